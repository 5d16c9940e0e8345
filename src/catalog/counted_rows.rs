//! Counts a person's rows of one kind, with their digest: a vanished row is noticed like a changed one.
//!
//! A count changes in the same transaction as what it counts, while its person is locked. Knows which kinds
//! are counted beside documents; knows nothing of what their rows mean.

use super::database::{Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::{digest, id, text};
use super::tables::FOLDERS;
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

pub(super) const SOURCES_KIND: &str = "sources";
pub(super) const DEFINITIONS_KIND: &str = "definitions";
/// All kinds that are counted and are no documents.
pub(super) const REGISTERS: [&str; 2] = [SOURCES_KIND, DEFINITIONS_KIND];

/// The number of rows of one kind, and the exclusive or of the checksums of all that must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CountedRows {
    pub count: i64,
    pub digest: u32,
}

impl CountedRows {
    /// Adds rows with these checksums.
    pub(super) fn gain(&mut self, checksums: &[u32]) {
        self.count += checksums.len() as i64;
        self.digest = checksums.iter().fold(self.digest, |digest, one| digest ^ one);
    }

    /// What a row of `folders` says.
    pub(super) fn read(row: &VerifiedRow) -> Result<Self, CatalogError> {
        Ok(Self {
            count: row.int(2)?,
            digest: digest(row.int(3)?)?,
        })
    }

    pub(super) fn of(rows: &[VerifiedRow]) -> Self {
        let mut counted = Self::default();
        let checksums: Vec<u32> = rows.iter().map(|row| row.checksum).collect();
        counted.gain(&checksums);
        counted
    }

    /// As the value of a `meta` row.
    pub(super) fn written(self) -> String {
        format!("{} {}", self.count, self.digest)
    }

    pub(super) fn parse(written: &str) -> Option<Self> {
        let (count, digest) = written.split_once(' ')?;
        Some(Self {
            count: count.parse().ok()?,
            digest: digest.parse().ok()?,
        })
    }

    /// The row of `folders` for this.
    pub(super) fn values(self, person: PersonId, kind: &str) -> Vec<Value> {
        vec![
            id(person.0),
            text(kind),
            Value::Int(self.count),
            Value::Int(i64::from(self.digest)),
        ]
    }
}

pub(super) async fn read_counted(
    session: &mut Session,
    person: PersonId,
    kind: &str,
) -> Result<CountedRows, CatalogError> {
    let values = vec![id(person.0), text(kind)];
    let found = session
        .select(&FOLDERS, "WHERE person = $1 AND kind = $2", values)
        .await?;
    found
        .first()
        .map_or(Ok(CountedRows::default()), CountedRows::read)
}

pub(super) async fn write_counted(
    session: &mut Session,
    person: PersonId,
    kind: &str,
    counted: CountedRows,
) -> Result<(), CatalogError> {
    let row = counted.values(person, kind);
    session.insert(&FOLDERS, vec![row], Existing::Replace).await?;
    Ok(())
}
