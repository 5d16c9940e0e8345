//! The roster: the count of all people, with a digest of their ids, so that somebody who vanished is noticed.
//!
//! Whoever adds or removes somebody changes it in the same transaction. Knows nothing of what people have.

use super::counted_rows::CountedRows;
use super::database::{Patience, Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::{id, optional_text, text};
use super::tables::{META, PEOPLE};
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// The name of the `meta` row that counts the people.
pub(super) const ROSTER: &str = "people";

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
pub(super) async fn roster(session: &mut Session, locking: &str) -> Result<CountedRows, CatalogError> {
    let stored = stored_roster(session, locking).await?;
    stored.ok_or_else(|| CatalogError::corrupt("the number of people is lost"))
}

/// The same; `None` if it is lost.
pub(super) async fn stored_roster(
    session: &mut Session,
    locking: &str,
) -> Result<Option<CountedRows>, CatalogError> {
    let rest = format!("WHERE name = $1{locking}");
    let found = session.select(&META, &rest, vec![text(ROSTER)]).await?;
    Ok(found
        .first()
        .and_then(|row| CountedRows::parse(row.text(1).ok()?)))
}

pub(super) async fn counted_people(session: &mut Session) -> Result<CountedRows, CatalogError> {
    let mut counted = CountedRows::default();
    for row in session
        .fetch("SELECT person FROM people".to_owned(), Vec::new())
        .await?
    {
        counted.gain(&[crc32fast::hash(&row.bytes(0)?)]);
    }
    Ok(counted)
}
