//! Counts rows that no partition covers: people for the catalogue as a whole, sources and definitions for
//! each person. A vanished row is noticed like a changed one.
//!
//! The counts of a person are kept among those of their documents, under kinds that no document has. Knows
//! nothing of what the rows mean.

use std::collections::BTreeMap;

use super::Catalog;
use super::counted_rows::{CountedRows, read_counted, write_counted};
use super::damage::besides_rows;
use super::database::{Patience, Session, Value};
use super::erasure::refuse_erased;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::{id, optional_text, text};
use super::tables::{DEFINITIONS, FOLDERS, META, PEOPLE, SOURCES, Table};
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

pub(super) const SOURCES_KIND: &str = "sources";
pub(super) const DEFINITIONS_KIND: &str = "definitions";
/// All kinds that are counted and are no documents.
pub(super) const REGISTERS: [&str; 2] = [SOURCES_KIND, DEFINITIONS_KIND];
/// The name of the `meta` row that counts the people.
const ROSTER: &str = "people";
/// Of whom something is there, but not their own row.
const LOST_PEOPLE: &str = "SELECT person FROM (SELECT person FROM ledgers UNION SELECT person FROM \
                           partitions UNION SELECT person FROM folders) AS known WHERE person NOT IN \
                           (SELECT person FROM people)";

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

    /// What is wrong if not everybody ever created is there.
    pub async fn damaged_roster(&self) -> Result<Option<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let counted = roster(&mut session, "").await;
        let found = counted_people(&mut session).await;
        session.commit().await?;
        match (counted, found) {
            (Ok(counted), Ok(found)) if counted == found => Ok(None),
            (Err(CatalogError::Corrupt { what }), _) | (_, Err(CatalogError::Corrupt { what })) => {
                Ok(besides_rows(what))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(counted), Ok(found)) => Ok(Some(format!(
                "people were lost or invented: there are {}, not {}",
                found.count, counted.count
            ))),
        }
    }

    /// Makes anew the rows of people that were lost, as far as anything else is there of them, and takes
    /// those who are there then for all people; describes what was given up.
    pub async fn give_up_lost_people(&self) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.write().await?;
        // First, so that nobody comes or goes until the transaction ends.
        let locking = session.locking();
        let counted = stored_roster(&mut session, locking).await?;
        let now = session.now(&*self.time).await?;
        let mut given_up = Vec::new();
        for row in session.fetch(LOST_PEOPLE.to_owned(), Vec::new()).await? {
            let Some(person) = PersonId::from_slice(&row.bytes(0)?) else {
                continue;
            };
            match refuse_erased(&mut session, person, Patience::Waits).await {
                Err(CatalogError::Erased { .. }) => continue,
                refused => refused?,
            }
            let row = new_person(person, None, now);
            session.insert(&PEOPLE, vec![row], Existing::Keep).await?;
            given_up.push(format!(
                "person {person}: given up: their name, their preferences and since when they are known"
            ));
        }
        let found = counted_people(&mut session).await?;
        if counted != Some(found) {
            let row = vec![text(ROSTER), text(&found.written())];
            session.insert(&META, vec![row], Existing::Replace).await?;
            given_up.push(match counted {
                Some(counted) if counted.count != found.count => format!(
                    "given up: people: there are {}, not {}",
                    found.count, counted.count
                ),
                Some(_) => "given up: people are not those that were written".to_owned(),
                None => "given up: the number of people".to_owned(),
            });
        }
        if given_up.is_empty() {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(given_up)
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

/// The row of a person who has no preferences.
pub(super) fn new_person(person: PersonId, name: Option<&str>, created_at: Instant) -> Vec<Value> {
    vec![
        id(person.0),
        optional_text(name),
        Value::NullText,
        Value::Int(created_at.micros()),
    ]
}

/// Creates the people who are new, and counts them; returns the ids of those who were new.
pub(super) async fn enrol(
    session: &mut Session,
    rows: Vec<Vec<Value>>,
    patience: Patience,
) -> Result<Vec<Value>, CatalogError> {
    let locking = session.locking_with(patience);
    let mut known = roster(session, locking).await?;
    let mut created = Vec::new();
    for row in rows {
        let Some(Value::Bytes(person)) = row.first().cloned() else {
            continue;
        };
        if session.insert(&PEOPLE, vec![row], Existing::Keep).await?.rows == 1 {
            known.gain(&[crc32fast::hash(&person)]);
            created.push(Value::Bytes(person));
        }
    }
    if !created.is_empty() {
        let row = vec![text(ROSTER), text(&known.written())];
        session.insert(&META, vec![row], Existing::Replace).await?;
    }
    Ok(created)
}

/// Removes a person of whom nothing else is left, and reduces the count; returns whether they existed.
pub(super) async fn strike(session: &mut Session, person: PersonId) -> Result<bool, CatalogError> {
    let locking = session.locking();
    let mut known = roster(session, locking).await?;
    let removed = session
        .execute(
            "DELETE FROM people WHERE person = $1".to_owned(),
            vec![id(person.0)],
        )
        .await?;
    if removed > 0 {
        known.count -= 1;
        known.digest ^= crc32fast::hash(person.as_bytes());
        let row = vec![text(ROSTER), text(&known.written())];
        session.insert(&META, vec![row], Existing::Replace).await?;
    }
    Ok(removed > 0)
}

/// The stored count of people. `locking`: a clause that may keep it as it is until the transaction ends.
async fn roster(session: &mut Session, locking: &str) -> Result<CountedRows, CatalogError> {
    let stored = stored_roster(session, locking).await?;
    stored.ok_or_else(|| CatalogError::corrupt("the number of people is lost"))
}

/// The same; `None` if it is lost.
async fn stored_roster(session: &mut Session, locking: &str) -> Result<Option<CountedRows>, CatalogError> {
    let rest = format!("WHERE name = $1{locking}");
    let found = session.select(&META, &rest, vec![text(ROSTER)]).await?;
    Ok(found
        .first()
        .and_then(|row| CountedRows::parse(row.text(1).ok()?)))
}

async fn counted_people(session: &mut Session) -> Result<CountedRows, CatalogError> {
    let mut counted = CountedRows::default();
    for row in session
        .fetch("SELECT person FROM people".to_owned(), Vec::new())
        .await?
    {
        counted.gain(&[crc32fast::hash(&row.bytes(0)?)]);
    }
    Ok(counted)
}

/// Counts what is there, for a catalogue that has not counted so far.
pub(super) async fn register_all(session: &mut Session) -> Result<(), CatalogError> {
    let people = counted_people(session).await?;
    let row = vec![text(ROSTER), text(&people.written())];
    session.insert(&META, vec![row], Existing::Replace).await?;
    for (table, kind, owner) in [(&SOURCES, SOURCES_KIND, 0), (&DEFINITIONS, DEFINITIONS_KIND, 1)] {
        let mut counts: BTreeMap<PersonId, CountedRows> = BTreeMap::new();
        let mut after = Vec::new();
        loop {
            let page = session.page(table, &after).await?;
            let Some(last) = page.last() else { break };
            after = last.key(table);
            for row in &page {
                let person = row.id(owner, PersonId::from_slice)?;
                counts.entry(person).or_default().gain(&[row.checksum]);
            }
        }
        let rows = counts
            .into_iter()
            .map(|(person, counted)| counted.values(person, kind))
            .collect();
        session.insert(&FOLDERS, rows, Existing::Replace).await?;
    }
    Ok(())
}
