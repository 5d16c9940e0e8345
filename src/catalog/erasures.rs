//! People whose erasure has begun, and what the catalogue still knows of them.
//!
//! An erasure begins with one transaction, after which nobody stores or reads anything of the person, and
//! goes on in small ones that can stop anywhere: each finds what is left to remove by looking for it. The
//! columns of a table tell whether its rows belong to a person, so that a new table cannot be forgotten. Only
//! the person's groups are noted, since they cannot be looked for when they are gone.
//! Knows rows; knows nothing of what they mean, and nothing of the object store.

mod erasing_mentions;
mod erasing_own;
mod erasing_texts;
mod mentions;
mod owned_groups;
mod rewriting;
mod spellings;
mod steps;

pub use super::erasure::Erasure;
pub use spellings::spellings_of;

use serde_json::Value as Json;

use super::Catalog;
use super::database::Value;
use super::erasure::{read, stays_under_way};
use super::errors::CatalogError;
use super::estates::parsed_row;
use super::inserting::Existing;
use super::rows::id;
use super::sound_rows::Sound;
use super::tables::{
    ALL, DEFINITIONS, DOCUMENTS, ERASURES, FOLDERS, LEDGERS, LINKS, MANIFESTS, PARTITIONS, SOURCES, Table,
};
use super::witness::Attempts;
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use mentions::{mentioning, page_after, referring};

/// What the first transaction removes: everything by which something else is found, and everything that is
/// counted, so that what is left of a person never looks like damage.
const TABLES_REMOVED_FIRST: [&Table; 8] = [
    &LINKS,
    &DOCUMENTS,
    &FOLDERS,
    &SOURCES,
    &DEFINITIONS,
    &MANIFESTS,
    &PARTITIONS,
    &LEDGERS,
];

/// The erasures that are not over.
const UNDER_WAY: &str = "WHERE ended_at IS NULL ORDER BY begun_at, mark";

/// How many blobs belong to no piece. Neither database looks through all pieces for each of them.
const OF_NO_PIECE: &str =
    "SELECT COUNT(*) FROM (SELECT piece FROM blobs EXCEPT SELECT piece FROM pieces) AS strange";

/// How many rows are looked at together.
const ROWS_AT_ONCE: i64 = 512;

/// Rows in which a person is still found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub table: String,
    pub rows: u64,
    /// They belong to others, whose records refer to the text with the id, or have the same id themselves:
    /// no erasure removes that.
    pub stays: bool,
}

/// Whether a row that mentions a person does so only where that stays, as [`Leftover::stays`] tells. `row`:
/// the values of a row of this table, as an [`EstatePage`](super::estates::EstatePage) has them.
#[must_use]
pub fn only_stays(table: &str, row: Vec<Json>, person: PersonId) -> bool {
    parsed_row(table, row).is_some_and(|(table, row)| mentions::only_stays(table, &row, person))
}

impl Catalog {
    /// Begins to erase a person, unless an erasure is under way. When this returns `Ok`, nothing of theirs is
    /// found any more, and nothing is stored for them until the erasure is over.
    pub async fn begin_erasure(&self, person: PersonId) -> Result<Erasure, CatalogError> {
        let mut attempts = Attempts::begin();
        loop {
            match self.try_begin_erasure(person).await {
                Err(error) if attempts.go_on(&error).await => {}
                outcome => return outcome,
            }
        }
    }

    async fn try_begin_erasure(&self, person: PersonId) -> Result<Erasure, CatalogError> {
        let mut session = self.database.write().await?;
        let mark = ErasureMark::of(person);
        // Not verified: damage to stored data is no reason to keep it.
        let ledger = format!(
            "SELECT person FROM ledgers WHERE person = $1{}",
            session.locking()
        );
        session.fetch(ledger.clone(), vec![id(person.0)]).await?;
        session.lock_alone(ERASURES.name).await?;
        // The first data of this person may have been stored meanwhile.
        session.fetch(ledger, vec![id(person.0)]).await?;
        if let Some(under_way) = read(&mut session, mark).await?.filter(|found| !found.is_over()) {
            session.rollback().await?;
            return Ok(under_way);
        }
        owned_groups::note(&mut session, mark, person).await?;
        for table in TABLES_REMOVED_FIRST {
            let sql = format!("DELETE FROM {} WHERE person = $1", table.name);
            session.execute(sql, vec![id(person.0)]).await?;
        }
        let erasure = Erasure {
            mark,
            person: Some(person),
            begun_at: session.now(&*self.time).await?,
            purged_at: None,
            ended_at: None,
        };
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        self.conclude(session).await?;
        Ok(erasure)
    }

    /// What is known of a person's erasure, under way or over.
    pub async fn erasure_of(&self, person: PersonId) -> Result<Option<Erasure>, CatalogError> {
        self.erasure_marked(ErasureMark::of(person)).await
    }

    /// An erasure that was read before, as it is now; `None` if it is over, after which the person may have
    /// begun anew.
    pub async fn still_under_way(&self, erasure: &Erasure) -> Result<Option<Erasure>, CatalogError> {
        let found = self.erasure_marked(erasure.mark).await?;
        Ok(found.filter(|found| found.continues(erasure)))
    }

    async fn erasure_marked(&self, mark: ErasureMark) -> Result<Option<Erasure>, CatalogError> {
        let values = vec![Value::Bytes(mark.as_bytes().to_vec())];
        let found = self.database.find(&ERASURES, "WHERE mark = $1", values).await?;
        found.first().map(Erasure::of).transpose()
    }

    /// Whether a person's erasure has begun and is not over. Nothing of them is shown any more.
    pub async fn is_being_erased(&self, person: PersonId) -> Result<bool, CatalogError> {
        let erasure = self.erasure_of(person).await?;
        Ok(erasure.is_some_and(|erasure| !erasure.is_over()))
    }

    /// The erasures that were ever noted here, without damaged ones. Whose these are must not stay in a log.
    pub async fn sound_erasures(&self) -> Result<Sound<Erasure>, CatalogError> {
        let found = self.sound_rows(&ERASURES, "", Vec::new()).await?;
        found.try_map(|row| Erasure::of(&row))
    }

    /// The erasures that are not over, the longest under way first.
    #[cfg(test)]
    pub async fn erasures_under_way(&self) -> Result<Vec<Erasure>, CatalogError> {
        let found = self.database.select(&ERASURES, UNDER_WAY, Vec::new()).await?;
        found.iter().map(Erasure::of).collect()
    }

    /// The erasures that are not over, without damaged ones, the longest under way first. Whose damaged ones
    /// are must not stay in a log.
    pub async fn sound_erasures_under_way(&self) -> Result<Sound<Erasure>, CatalogError> {
        let found = self.sound_rows(&ERASURES, UNDER_WAY, Vec::new()).await?;
        found.try_map(|row| Erasure::of(&row))
    }

    /// Stores the progress of an erasure. `false` if it is over already: then nothing is stored.
    pub async fn note_erasure(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        if !stays_under_way(&mut session, erasure).await? {
            session.rollback().await?;
            return Ok(false);
        }
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        if erasure.is_over() {
            owned_groups::forget(&mut session, erasure.mark).await?;
        }
        self.conclude(session).await?;
        Ok(true)
    }

    /// Enters an erasure that the store remembers, unless a later one of the same person is known.
    pub async fn enter_erasure(&self, erasure: &Erasure) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session.lock_alone(ERASURES.name).await?;
        let known = read(&mut session, erasure.mark).await?;
        if known.is_some_and(|known| known.begun_at > erasure.begun_at) {
            return session.rollback().await;
        }
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        self.conclude(session).await
    }

    /// Where a person is still found, in any column of any table.
    pub async fn traces_of(&self, person: PersonId) -> Result<Vec<Leftover>, CatalogError> {
        let is_under_way = self.is_being_erased(person).await?;
        let mut traces = Vec::new();
        // An erasure that is under way must keep the person's id.
        for table in ALL
            .iter()
            .filter(|table| !(is_under_way && table.name == ERASURES.name))
        {
            let (condition, values) = mentioning(table, person);
            let sql = format!("SELECT COUNT(*) FROM {} WHERE {condition}", table.name);
            let rows = self.count(sql, values).await?;
            let staying = if rows > 0 {
                self.staying_rows(table, person).await?
            } else {
                0
            };
            for (rows, stays) in [(rows.saturating_sub(staying), false), (staying, true)] {
                let table = table.name.to_owned();
                traces.push(Leftover { table, rows, stays });
            }
        }
        traces.push(Leftover {
            table: "blobs, of no piece: nobody can tell whose,".to_owned(),
            rows: self.count(OF_NO_PIECE.to_owned(), Vec::new()).await?,
            stays: false,
        });
        traces.retain(|trace| trace.rows > 0);
        Ok(traces)
    }

    async fn count(&self, sql: String, values: Vec<Value>) -> Result<u64, CatalogError> {
        let rows = self.database.fetch(sql, values).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(count.unsigned_abs())
    }

    /// How many rows of a table mention a person only where that stays.
    async fn staying_rows(&self, table: &Table, person: PersonId) -> Result<u64, CatalogError> {
        let Some(clause) = referring(table, person) else {
            return Ok(0);
        };
        let (mut staying, mut after) = (0, Vec::new());
        loop {
            let (rest, values) = page_after(table, clause.clone(), &after, ROWS_AT_ONCE);
            // Not verified: a damaged row is counted too, as it is.
            let rows = self.database.fetch(table.select(&rest), values).await?;
            if rows.is_empty() {
                return Ok(staying);
            }
            for row in &rows {
                let values = table.values(row)?;
                staying += u64::from(mentions::only_stays(table, &values, person));
                after = values.into_iter().take(table.key).collect();
            }
        }
    }

    /// Overwrites what removed rows leave in the database's own files, where the database supports that.
    pub async fn scour(&self) -> Result<(), CatalogError> {
        self.database.scour().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn bytes_of_no_piece_are_found_by_one_look_at_all_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let steps = steps_of(&catalog, OF_NO_PIECE).await;
        let is_repeated = |step: &String| step.contains("CORRELATED");
        assert!(!steps.iter().any(is_repeated), "{steps:?}");
        let person = PersonId(uuid::Uuid::from_u128(7));
        assert_eq!(catalog.traces_of(person).await.unwrap(), []);
        let mut session = catalog.database.write().await.unwrap();
        let sql = "INSERT INTO blobs (piece, blob) VALUES ($1, $2)".to_owned();
        let values = vec![id(person.0), Value::Bytes(Vec::new())];
        session.execute(sql, values).await.unwrap();
        session.commit().await.unwrap();
        let traces = catalog.traces_of(person).await.unwrap();
        let rows: Vec<u64> = traces.iter().map(|trace| trace.rows).collect();
        assert_eq!(rows, [1]);
    }
}
