//! People whose erasure has begun, and what the catalogue still knows of them.
//!
//! An erasure begins with one transaction, after which nobody stores or reads anything of the person, and
//! goes on in small ones that can stop anywhere: each finds what is left to remove by looking for it. The
//! columns of a table tell whether its rows belong to a person, so that a new table cannot be forgotten.
//! Knows rows; knows nothing of what they mean, and nothing of the object store.

mod mentions;
mod purging;

use std::collections::BTreeMap;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::rows::id;
use super::tables::{
    ALL, DEFINITIONS, DOCUMENTS, ERASURES, Existing, FOLDERS, LEDGERS, LINKS, MANIFESTS, PARTITIONS, Record,
    SOURCES, Table,
};
use super::witness::is_repeated;
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use mentions::mentioning;

/// What the first transaction removes: everything by which something else is found, and everything that is
/// counted, so that what is left of a person never looks like damage.
const FIRST: [&Table; 8] = [
    &LINKS,
    &DOCUMENTS,
    &FOLDERS,
    &SOURCES,
    &DEFINITIONS,
    &MANIFESTS,
    &PARTITIONS,
    &LEDGERS,
];

/// The erasure of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub mark: ErasureMark,
    /// The person's id, as long as there may be something to look for.
    pub person: Option<PersonId>,
    pub begun_at: Instant,
    /// When the last search that left nothing began.
    pub purged_at: Option<Instant>,
    /// When the erasure was over.
    pub ended_at: Option<Instant>,
}

/// Rows in which a person is still found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub table: String,
    pub rows: u64,
}

impl Erasure {
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether a token issued at this moment may be accepted; `None` where the moment is unknown.
    #[must_use]
    pub fn admits(&self, issued: Option<Instant>) -> bool {
        self.is_over() && issued.is_some_and(|issued| issued > self.begun_at)
    }

    fn of(record: &Record) -> Result<Self, CatalogError> {
        Ok(Self {
            mark: record.id(0, ErasureMark::from_slice)?,
            person: PersonId::from_slice(record.bytes(1)?),
            begun_at: Instant::from_micros(record.int(2)?),
            purged_at: record.optional_int(3).map(Instant::from_micros),
            ended_at: record.optional_int(4).map(Instant::from_micros),
        })
    }

    fn values(&self) -> Vec<Value> {
        let moment = |moment: Option<Instant>| moment.map_or(Value::NullInt, |at| Value::Int(at.micros()));
        vec![
            Value::Bytes(self.mark.as_bytes().to_vec()),
            Value::Bytes(
                self.person
                    .map_or_else(Vec::new, |person| person.as_bytes().to_vec()),
            ),
            Value::Int(self.begun_at.micros()),
            moment(self.purged_at),
            moment(self.ended_at),
        ]
    }
}

impl Catalog {
    /// Begins to erase a person, unless an erasure is under way. When this returns `Ok`, nothing of theirs is
    /// found any more, and nothing is stored for them until the erasure is over.
    pub async fn begin_erasure(&self, person: PersonId) -> Result<Erasure, CatalogError> {
        let mut attempt = 0;
        loop {
            match self.try_begin_erasure(person).await {
                Err(error) if is_repeated(&error, attempt).await => attempt += 1,
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
        for table in FIRST {
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
        let values = vec![Value::Bytes(ErasureMark::of(person).as_bytes().to_vec())];
        let found = self.database.find(&ERASURES, "WHERE mark = $1", values).await?;
        found.first().map(Erasure::of).transpose()
    }

    /// Whether a person's erasure has begun and is not over. Nothing of them is shown any more.
    pub async fn is_being_erased(&self, person: PersonId) -> Result<bool, CatalogError> {
        let erasure = self.erasure_of(person).await?;
        Ok(erasure.is_some_and(|erasure| !erasure.is_over()))
    }

    /// When each erasure began that was ever noted here, by the mark of its person.
    pub async fn erasures_begun(&self) -> Result<BTreeMap<ErasureMark, Instant>, CatalogError> {
        let found = self.database.select(&ERASURES, "", Vec::new()).await?;
        let erasures = found.iter().map(Erasure::of);
        erasures
            .map(|erasure| erasure.map(|erasure| (erasure.mark, erasure.begun_at)))
            .collect()
    }

    /// The erasures that are not over, the longest under way first.
    pub async fn erasures_under_way(&self) -> Result<Vec<Erasure>, CatalogError> {
        let rest = "WHERE ended_at IS NULL ORDER BY begun_at, mark";
        let found = self.database.select(&ERASURES, rest, Vec::new()).await?;
        found.iter().map(Erasure::of).collect()
    }

    /// Stores the progress of an erasure.
    pub async fn note_erasure(&self, erasure: &Erasure) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session.lock_alone(ERASURES.name).await?;
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        self.conclude(session).await
    }

    /// Where a person is still found, in any column of any table.
    pub async fn traces_of(&self, person: PersonId) -> Result<Vec<Trace>, CatalogError> {
        let is_under_way = self.is_being_erased(person).await?;
        let mut traces = Vec::new();
        // An erasure that is under way must keep the person's id.
        for table in ALL
            .iter()
            .filter(|table| !(is_under_way && table.name == ERASURES.name))
        {
            let (condition, values) = mentioning(table, person);
            let sql = format!("SELECT COUNT(*) FROM {} WHERE {condition}", table.name);
            self.trace(table.name, sql, values, &mut traces).await?;
        }
        let strange = "SELECT COUNT(*) FROM blobs WHERE NOT EXISTS \
                       (SELECT 1 FROM pieces WHERE pieces.piece = blobs.piece)";
        let whose = "blobs, of no piece: nobody can tell whose,";
        self.trace(whose, strange.to_owned(), Vec::new(), &mut traces)
            .await?;
        Ok(traces)
    }

    async fn trace(
        &self,
        table: &str,
        sql: String,
        values: Vec<Value>,
        traces: &mut Vec<Trace>,
    ) -> Result<(), CatalogError> {
        let rows = self.database.fetch(sql, values).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        if count > 0 {
            traces.push(Trace {
                table: table.to_owned(),
                rows: count.unsigned_abs(),
            });
        }
        Ok(())
    }

    /// Overwrites what removed rows leave in the database's own files, where the database supports that.
    pub async fn scour(&self) -> Result<(), CatalogError> {
        self.database.scour().await
    }
}

/// Refuses to create a person whose erasure is under way. No erasure begins before the transaction ends.
pub(super) async fn refuse_erased(session: &mut Session, person: PersonId) -> Result<(), CatalogError> {
    session.lock_shared(ERASURES.name).await?;
    match read(session, ErasureMark::of(person)).await? {
        Some(erasure) if !erasure.is_over() => Err(CatalogError::Erased { person }),
        _ => Ok(()),
    }
}

async fn read(session: &mut Session, mark: ErasureMark) -> Result<Option<Erasure>, CatalogError> {
    let values = vec![Value::Bytes(mark.as_bytes().to_vec())];
    let found = session.select(&ERASURES, "WHERE mark = $1", values).await?;
    found.first().map(Erasure::of).transpose()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_token_is_admitted_again_when_the_erasure_is_over_and_it_is_younger() {
        let moment = Instant::from_micros;
        let erasure = |ended_at| Erasure {
            mark: ErasureMark::of(PersonId(Uuid::nil())),
            person: None,
            begun_at: moment(10),
            purged_at: Some(moment(20)),
            ended_at,
        };
        let (under_way, over) = (erasure(None), erasure(Some(moment(30))));
        assert!(!under_way.admits(Some(moment(25))));
        assert!(over.admits(Some(moment(11))));
        assert!(!over.admits(Some(moment(10))));
        assert!(!over.admits(None));
    }
}
