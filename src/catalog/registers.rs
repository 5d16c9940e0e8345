//! Counts a person's sources and definitions, which no partition covers: a vanished row is noticed like a
//! changed one.
//!
//! The counts are kept among those of their documents, under kinds that no document has. Knows nothing of
//! what the rows mean.

use super::Catalog;
use super::counted_rows::{CountedRows, DEFINITIONS_KIND, SOURCES_KIND, read_counted, write_counted};
use super::damage::besides_rows;
use super::database::Session;
use super::errors::CatalogError;
use super::rows::{id, text};
use super::tables::{DEFINITIONS, FOLDERS, SOURCES, Table};
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// Rows of a person that no partition and no document covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisteredCounts {
    pub sources: u64,
    pub definitions: u64,
}

/// The state of a person's sources. While it stays the same, so do their ids and keys: since neither of a
/// source is ever changed, nor is one removed before its person is, there are more of them in each later
/// state. (The name changes where it has the id of somebody who was erased.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcesState(CountedRows);

impl Catalog {
    /// The present state of a person's sources. Finds one row by its key.
    pub async fn sources_state(&self, person: PersonId) -> Result<SourcesState, CatalogError> {
        let values = vec![id(person.0), text(SOURCES_KIND)];
        let of_kind = "WHERE person = $1 AND kind = $2";
        let found = self.database.find(&FOLDERS, of_kind, values).await?;
        let counted = found
            .first()
            .map_or(Ok(CountedRows::default()), CountedRows::read)?;
        Ok(SourcesState(counted))
    }

    /// How many sources and how many definitions a person has.
    pub async fn registered_counts(&self, person: PersonId) -> Result<RegisteredCounts, CatalogError> {
        let rest = "WHERE person = $1 AND kind IN ($2, $3)";
        let values = vec![id(person.0), text(SOURCES_KIND), text(DEFINITIONS_KIND)];
        let mut counts = RegisteredCounts::default();
        for row in self.database.find(&FOLDERS, rest, values).await? {
            let count = row.int(2)?.unsigned_abs();
            if row.text(1)? == SOURCES_KIND {
                counts.sources = count;
            } else {
                counts.definitions = count;
            }
        }
        Ok(counts)
    }

    /// Describes the damage to a person's rows that no partition and no document covers, besides rows that
    /// differ from what was written.
    pub async fn damaged_registers(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let mut complaints = Vec::new();
        for counted in [(&SOURCES, SOURCES_KIND), (&DEFINITIONS, DEFINITIONS_KIND)] {
            match verified_rows(&mut session, person, counted, "").await {
                Ok(_) => {}
                Err(CatalogError::Corrupt { what }) => complaints.extend(besides_rows(what)),
                Err(error) => return Err(error),
            }
        }
        session.commit().await?;
        Ok(complaints)
    }

    /// A person's rows of a table, in this order, verified against their count.
    pub(super) async fn registered(
        &self,
        person: PersonId,
        (table, kind): (&Table, &str),
        order: &str,
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let rest = format!("WHERE person = $1 {order}");
        let values = vec![id(person.0)];
        // Sources are few and short, and read for every amount.
        let rows = if kind == SOURCES_KIND {
            self.database.find(table, &rest, values).await?
        } else {
            self.database.select(table, &rest, values).await?
        };
        let of_kind = "WHERE person = $1 AND kind = $2";
        let stored = self
            .database
            .find(&FOLDERS, of_kind, vec![id(person.0), text(kind)])
            .await?;
        let counted = stored.first().map_or(Ok((0, 0)), |row| {
            row.int(2)
                .and_then(|count| row.int(3).map(|digest| (count, digest)))
        })?;
        let found = CountedRows::of(&rows);
        if counted == (found.count, i64::from(found.digest)) {
            return Ok(rows);
        }
        // Somebody may have added one between the two statements.
        let mut session = self.database.read().await?;
        let rows = verified_rows(&mut session, person, (table, kind), order).await?;
        session.commit().await?;
        Ok(rows)
    }
}

/// A person's rows of a table, verified to be complete.
async fn verified_rows(
    session: &mut Session,
    person: PersonId,
    (table, kind): (&Table, &str),
    order: &str,
) -> Result<Vec<VerifiedRow>, CatalogError> {
    let counted = read_counted(session, person, kind).await?;
    let rest = format!("WHERE person = $1 {order}");
    let rows = session.select(table, &rest, vec![id(person.0)]).await?;
    if CountedRows::of(&rows) == counted {
        Ok(rows)
    } else {
        Err(CatalogError::corrupt(format!(
            "person {person}: {kind} are not those that were written"
        )))
    }
}

/// Changes the count of one kind of a person's rows. The caller has locked the person's ledger.
pub(super) async fn change_register(
    session: &mut Session,
    person: PersonId,
    kind: &str,
    change: impl FnOnce(&mut CountedRows),
) -> Result<(), CatalogError> {
    let mut counted = read_counted(session, person, kind).await?;
    change(&mut counted);
    write_counted(session, person, kind, counted).await
}
