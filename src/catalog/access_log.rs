//! The log of what others read of a person, and of what happened to the person's shares.
//!
//! Entries are added, completed once, and otherwise never change. Their bodies are JSON text and opaque here.

use uuid::Uuid;

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::{id, text};
use super::tables::ACCESS_LOG;
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// The most bytes of the bodies of a page, unless its first entry alone has more.
const PAGE_BYTES: usize = 4 << 20;
/// How many entries are read at once. Each may name thousands of people.
const STEP: usize = 32;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Whose data or share it is about.
    pub person: PersonId,
    /// Grows with time.
    pub id: Uuid,
    pub at: Instant,
    /// Who did it.
    pub actor: PersonId,
    /// JSON text.
    pub body: String,
    pub rows: Option<i64>,
    pub outcome: String,
}

/// Entries, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub entries: Vec<LogEntry>,
    /// Whether no entry is older than these.
    pub is_last: bool,
}

impl Catalog {
    /// Writes entries, replacing those with the same ids. When this returns `Ok`, they survive a crash,
    /// except for those about people who were erased meanwhile.
    pub async fn log_access(&self, entries: Vec<LogEntry>) -> Result<(), CatalogError> {
        let refused = match self.write_entries(entries.clone()).await {
            Err(refused @ CatalogError::Refused { .. }) => refused,
            outcome => return outcome,
        };
        let (mut known, count) = (Vec::new(), entries.len());
        for entry in entries {
            if self.person_exists(entry.person).await? {
                known.push(entry);
            }
        }
        if known.len() == count {
            return Err(refused);
        }
        self.write_entries(known).await
    }

    async fn write_entries(&self, entries: Vec<LogEntry>) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let rows = entries.into_iter().map(values).collect();
        session.insert(&ACCESS_LOG, rows, Existing::Replace).await?;
        session.commit().await
    }

    /// The newest entries about `person` that are older than `before`: at most `limit`, and fewer where they
    /// are long.
    pub async fn accesses(
        &self,
        person: PersonId,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<LogPage, CatalogError> {
        let mut entries: Vec<LogEntry> = Vec::new();
        let (mut before, mut bytes) = (before.unwrap_or(Uuid::max()), 0);
        loop {
            // One more than there is room for tells whether the page is the last one.
            let most = STEP.min((limit - entries.len()).saturating_add(1));
            let found = self.older_accesses(person, before, most).await?;
            let is_last = found.len() < most;
            for entry in found {
                bytes += entry.body.len();
                if entries.len() == limit || (bytes > PAGE_BYTES && !entries.is_empty()) {
                    return Ok(LogPage {
                        entries,
                        is_last: false,
                    });
                }
                before = entry.id;
                entries.push(entry);
            }
            if is_last {
                return Ok(LogPage { entries, is_last });
            }
        }
    }

    async fn older_accesses(
        &self,
        person: PersonId,
        before: Uuid,
        most: usize,
    ) -> Result<Vec<LogEntry>, CatalogError> {
        let values = vec![
            id(person.0),
            id(before),
            Value::Int(i64::try_from(most).unwrap_or(i64::MAX)),
        ];
        let rest = "WHERE person = $1 AND entry < $2 ORDER BY entry DESC LIMIT $3";
        let rows = self.database.select(&ACCESS_LOG, rest, values).await?;
        rows.iter().map(entry_of).collect()
    }
}

fn values(entry: LogEntry) -> Vec<Value> {
    vec![
        id(entry.person.0),
        id(entry.id),
        Value::Int(entry.at.micros()),
        id(entry.actor.0),
        Value::Text(entry.body),
        entry.rows.map_or(Value::NullInt, Value::Int),
        text(&entry.outcome),
    ]
}

fn entry_of(row: &VerifiedRow) -> Result<LogEntry, CatalogError> {
    Ok(LogEntry {
        person: row.id(0, PersonId::from_slice)?,
        id: row.id(1, |bytes| Uuid::from_slice(bytes).ok())?,
        at: Instant::from_micros(row.int(2)?),
        actor: row.id(3, PersonId::from_slice)?,
        body: row.text(4)?.to_owned(),
        rows: row.optional_int(5),
        outcome: row.text(6)?.to_owned(),
    })
}
