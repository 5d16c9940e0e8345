//! Manifests in the store: whom they mention, and what a catalogue is made from.

use std::io::BufRead as _;

use bytes::Bytes;

use super::lines::{Ending, FORMAT, Heading, Row, lines_of, unreadable, unwritable, verify};
use crate::catalog::CatalogError;
use crate::catalog::erasures::{only_stays, spellings_of};
use crate::catalog::estates::{EstatePage, EstateReader, EstateWriter, PutBack};
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;
use crate::upkeep::manifest_names::parse_manifest_path;

/// How many rows are put back together: as many as were read together.
const ROWS_AT_ONCE: usize = 512;

/// Where a manifest mentions a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    Nowhere,
    /// Where no erasure removes it, as [`only_stays`] tells.
    WhereItStays,
    Elsewhere,
}

/// Whether a manifest mentions a person.
pub async fn mention_of(
    objects: &ObjectStorage,
    path: &str,
    person: PersonId,
) -> Result<Mention, StoreError> {
    let content = objects.get(path).await?;
    let (path, names) = (path.to_owned(), spellings_of(person));
    let searched = tokio::task::spawn_blocking(move || {
        let mut found = Mention::Nowhere;
        let mut line = String::new();
        let mut lines = lines_of(&content)?;
        while lines.read_line(&mut line).ok()? > 0 {
            let lower = line.to_ascii_lowercase();
            if names.iter().any(|name| lower.contains(name.as_str())) {
                let row = serde_json::from_str::<Row>(&line);
                if !row.is_ok_and(|Row(table, values)| only_stays(&table, values, person)) {
                    return Some(Mention::Elsewhere);
                }
                found = Mention::WhereItStays;
            }
            line.clear();
        }
        Some(found)
    });
    let found = searched.await.map_err(unwritable)?;
    found.ok_or_else(|| StoreError::corrupt(format!("{path} cannot be read")))
}

/// What became of a person whom a manifest was to restore.
#[derive(Debug)]
pub enum PutBackOutcome {
    /// They are as it says. Describes what it says itself that it lacks, which is given up.
    Done(Vec<String>),
    /// Nothing happened, since this was not wanted.
    Unwanted(PutBack),
}

/// A manifest that was fetched and verified.
pub struct Manifest {
    pub heading: Heading,
    path: String,
    content: Bytes,
    pub(super) ending: Ending,
}

impl Manifest {
    /// Fetches the manifest at `path`. `Corrupt` if it is not what was written.
    pub async fn fetch(objects: &ObjectStorage, path: &str) -> Result<Self, StoreError> {
        let content = objects.get(path).await?;
        let damaged = |what: &str| StoreError::corrupt(format!("manifest {path} {what}"));
        let verified = content.clone();
        let verified = tokio::task::spawn_blocking(move || verify(&verified)).await;
        let (heading, ending) = verified
            .map_err(unwritable)?
            .ok_or_else(|| damaged("differs from what was written"))?;
        let of_name = parse_manifest_path(path).map(|(person, _)| person);
        if of_name != Some(heading.person) {
            return Err(damaged("says that it is another"));
        }
        let expected = EstateReader::columns();
        // Tables that came later have no rows in it.
        let fits = heading.format == FORMAT
            && heading.columns.iter().all(|(table, columns)| {
                let known = expected.iter().find(|(name, _)| name == table);
                known.is_some_and(|(_, names)| columns == names)
            });
        if !fits {
            return Err(damaged("was written by another release, which alone can read it"));
        }
        Ok(Self {
            heading,
            path: path.to_owned(),
            content,
            ending,
        })
    }

    /// Makes the person in the catalogue what it says of them, if that `is_wanted`. `Corrupt` if a catalogue
    /// wrote it that had lost partitions, pieces or dead rows, and does not say so.
    pub async fn put_back(
        &self,
        mut writer: EstateWriter,
        is_wanted: impl Fn(&PutBack) -> bool,
    ) -> Result<PutBackOutcome, StoreError> {
        let back = match self.put_into(&mut writer).await {
            Ok((put, given_up)) if is_wanted(&put) => {
                let finished = writer.finish().await;
                finished
                    .map(|()| PutBackOutcome::Done(given_up))
                    .map_err(StoreError::from)
            }
            unwanted => {
                writer.abandon().await?;
                unwanted.map(|(put, _)| PutBackOutcome::Unwanted(put))
            }
        };
        back.map_err(|error| match error {
            StoreError::Corrupt { what } | StoreError::Catalog(CatalogError::Corrupt { what }) => {
                StoreError::corrupt(format!("manifest {}: {what}", self.path))
            }
            // The same row twice, the key of somebody else's, or what another rebuild put back meanwhile.
            StoreError::Catalog(CatalogError::Exists { what }) => {
                StoreError::corrupt(format!("manifest {}: {what} already exists", self.path))
            }
            error => error,
        })
    }

    /// Puts all its rows into the catalogue; also describes what was given up.
    async fn put_into(&self, writer: &mut EstateWriter) -> Result<(PutBack, Vec<String>), StoreError> {
        let mut lines = lines_of(&self.content).ok_or_else(unreadable)?;
        let mut line = String::new();
        // The heading.
        lines.read_line(&mut line).map_err(|_| unreadable())?;
        let mut page: Option<EstatePage> = None;
        for _ in 0..self.ending.rows {
            line.clear();
            lines.read_line(&mut line).map_err(|_| unreadable())?;
            let Row(table, values) = serde_json::from_str(&line).map_err(|_| unreadable())?;
            let is_full = page
                .as_ref()
                .is_some_and(|page| page.table != table || page.rows.len() >= ROWS_AT_ONCE);
            if let Some(page) = page.take_if(|_| is_full) {
                writer.put(page).await?;
            }
            page.get_or_insert_with(|| EstatePage {
                table,
                rows: Vec::new(),
            })
            .rows
            .push(values);
        }
        if let Some(page) = page {
            writer.put(page).await?;
        }
        let given_up = if self.heading.lacks_rows {
            writer.give_up_lost(self.heading.moment()).await?
        } else {
            Vec::new()
        };
        Ok((writer.verify().await?, given_up))
    }
}
