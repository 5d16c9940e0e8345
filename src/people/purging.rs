//! Purging: keeps what people deleted for as long as the operator says, so that it can be restored, and then
//! removes it for good, also from the database's own files.
//!
//! Only what its owner deleted is removed. Versions of files that newer ones replaced were not deleted, and
//! stay. Lives as long as the process; works on one node at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::catalog::documents::{Changed, Document, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::upkeep::lease::Leases;
use crate::upkeep::pause::paused;
use crate::upkeep::scour::Scouring;

use super::files::{Files, FilesError};

/// The pause between two looks, if deleted things are kept for long.
const LOOK_PAUSE: Duration = Duration::from_mins(10);
/// The number of looks while something is kept, if that time is short.
const LOOKS_WHILE_KEPT: u32 = 20;
/// Kinds that are only marked when they are deleted, and have nothing outside the catalogue.
const MARKED_KINDS: [DocumentKind; 3] = [
    DocumentKind::Annotation,
    DocumentKind::Reflection,
    DocumentKind::Session,
];

/// Removes what was deleted long ago.
pub struct Purging {
    pub catalog: Catalog,
    pub files: Files,
    pub leases: Leases,
    /// How long deleted things are kept.
    pub after: Duration,
    /// The shortest pause between two looks for any work.
    pub interval: Duration,
}

impl Purging {
    /// Works until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let pause = LOOK_PAUSE.min(self.after / LOOKS_WHILE_KEPT).max(self.interval);
        while paused(&stop, pause).await {
            let work = Box::pin(self.purge());
            if let Err(error) = Box::pin(self.leases.alone("purge documents", &stop, work)).await {
                self.leases.note_failure();
                tracing::warn!(%error, "what was deleted long ago could not be removed; will try again");
            }
        }
    }

    /// Removes everything that was deleted long enough ago; returns the number of documents.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let moment = self.catalog.now().await?.before(self.after);
        let scouring = Scouring::of("purge documents", &self.catalog, self.after);
        let documents = self.documents(moment, &scouring).await?;
        let files = self.deleted_files(moment, &scouring).await?;
        scouring.scour_due().await?;
        Ok(documents + files)
    }

    async fn documents(&self, moment: Instant, scouring: &Scouring) -> Result<usize, CatalogError> {
        let (mut removed, mut after) = (0, None);
        loop {
            let page = self
                .catalog
                .documents_deleted_before(&MARKED_KINDS, moment, after)
                .await?;
            report_damaged(page.damaged);
            if !page.documents.is_empty() {
                scouring.expect_removal().await?;
            }
            let mut people = BTreeSet::new();
            for document in &page.documents {
                match self.catalog.change_documents(vec![document.removal()]).await {
                    Ok(Changed::Done) => {
                        removed += 1;
                        people.insert(document.person);
                    }
                    Ok(_) => {}
                    Err(error @ CatalogError::Corrupt { .. }) => report_kept(&error),
                    Err(error) => return Err(error),
                }
            }
            for person in people {
                self.write_down_anew(person).await?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(removed),
            }
        }
    }

    async fn deleted_files(&self, moment: Instant, scouring: &Scouring) -> Result<usize, StoreError> {
        let (mut removed, mut after) = (0, None);
        loop {
            let mut page = self
                .catalog
                .documents_deleted_before(&[DocumentKind::File], moment, after)
                .await?;
            report_damaged(page.damaged);
            if !page.documents.is_empty() {
                scouring.expect_removal().await?;
            }
            page.documents.sort_by_key(|file| file.person);
            for of_person in page.documents.chunk_by(|one, other| one.person == other.person) {
                removed += self.files_of_person(of_person).await?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(removed),
            }
        }
    }

    /// Removes deleted files of one person; returns their number.
    async fn files_of_person(&self, deleted: &[Document]) -> Result<usize, StoreError> {
        let Some(first) = deleted.first() else {
            return Ok(0);
        };
        match self.files.remove_for_good(first.person, deleted).await {
            Ok(outcome) => {
                for damage in &outcome.kept {
                    report_kept(damage);
                }
                if outcome.removed > 0 {
                    self.write_down_anew(first.person).await?;
                }
                Ok(outcome.removed)
            }
            Err(FilesError::Store(error)) if !error.is_damage() => Err(error),
            Err(error) => {
                report_kept(&error);
                Ok(0)
            }
        }
    }

    /// Lets upkeep write down a person anew and remove what was written before, which has what was removed
    /// now, and would stay for nearly as long again.
    async fn write_down_anew(&self, person: PersonId) -> Result<(), CatalogError> {
        self.catalog.request_manifest(person).await
    }
}

/// What cannot be removed does not keep the rest.
fn report_kept(error: &dyn std::error::Error) {
    tracing::error!(%error, "something deleted stays; run `almanac check`");
}

fn report_damaged(rows: usize) {
    if rows > 0 {
        tracing::error!(
            rows,
            "rows of deleted documents are damaged and stay; run `almanac check`"
        );
    }
}
