//! The decision about reading files: which of an owner's files a reader may read, and which a listing shows.
//!
//! A share is for files by their paths and by when they were uploaded; no group opens any. Makes no permits
//! for rows, and must not know how files are stored, or what a listing of them looks like.

use uuid::Uuid;

use super::disclosures::{Disclosure, Subject};
use super::grants::{Denied, Grants, Refused};
use super::reach::Beyond;
use super::ties::shares_file;
use super::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::permit::Windows;
use crate::model::time::{Instant, TimeRange};
use crate::people::sharing::terms::{FileAge, Terms};

/// Which files of one person may be read. Made only here.
#[derive(Debug)]
pub struct ReadableFiles {
    owner: PersonId,
    /// `None`: the owner asks, who may read all.
    shared: Option<Vec<Terms>>,
}

impl Grants {
    /// Whether `reader` may read a version of `owner`'s file with this path and moment of upload: if the
    /// share has a window of time, it includes the versions uploaded in that window. `None` is a version that
    /// nobody else may read, or that does not exist: refusing it takes as long as refusing any other.
    pub async fn file(
        &self,
        reader: &Reader,
        owner: PersonId,
        version: Option<(&str, FileAge, Instant)>,
    ) -> Result<(), Denied> {
        if !reader.reach().has_all_types() {
            return Err(Beyond::Types.into());
        }
        if reader.owns(owner) {
            return Ok(());
        }
        let given = self.ties().given(reader.person(), owner).await?;
        let (path, age, moment) = version.ok_or(Refused)?;
        let grants: Vec<Uuid> = given
            .iter()
            .filter(|given| shares_file(&given.terms, path, age, moment))
            .map(|given| given.id)
            .collect();
        if grants.is_empty() {
            return Err(Refused.into());
        }
        let requested = at(moment);
        reader.disclosures().note(Disclosure {
            owner,
            subject: Subject::File(path.to_owned(), age),
            requested,
            windows: Windows::new([requested]),
            grants,
            group: None,
        });
        Ok(())
    }

    /// Which of `owner`'s files `reader` may read, for listing those in `folder`.
    pub async fn files(
        &self,
        reader: &Reader,
        owner: PersonId,
        folder: &str,
    ) -> Result<ReadableFiles, Denied> {
        if !reader.reach().has_all_types() {
            return Err(Beyond::Types.into());
        }
        if reader.owns(owner) {
            return Ok(ReadableFiles { owner, shared: None });
        }
        let mut given = self.ties().given(reader.person(), owner).await?;
        given.retain(|given| given.terms.leads_through(folder));
        if given.is_empty() {
            return Err(Refused.into());
        }
        let grants = given.iter().map(|given| given.id).collect();
        let shared: Vec<Terms> = given.into_iter().map(|given| given.terms).collect();
        reader.disclosures().note(Disclosure {
            owner,
            subject: Subject::Folder(folder.to_owned(), shared.clone()),
            requested: TimeRange::ALWAYS,
            windows: Windows::new(shared.iter().map(Terms::window)),
            grants,
            group: None,
        });
        Ok(ReadableFiles {
            owner,
            shared: Some(shared),
        })
    }
}

impl ReadableFiles {
    #[must_use]
    pub const fn owner(&self) -> PersonId {
        self.owner
    }

    /// Whether all files may be read, because they are the reader's own.
    #[must_use]
    pub const fn are_own(&self) -> bool {
        self.shared.is_none()
    }

    /// Whether a version of the file at `path` that was uploaded at `moment` may be read.
    #[must_use]
    pub fn include(&self, path: &str, age: FileAge, moment: Instant) -> bool {
        self.shared
            .as_ref()
            .is_none_or(|shared| shared.iter().any(|terms| shares_file(terms, path, age, moment)))
    }
}

/// The shortest range with `moment` in it.
fn at(moment: Instant) -> TimeRange {
    TimeRange::between(moment, Instant::from_micros(moment.micros().saturating_add(1)))
}
