//! Stores where records came from, as part of the transaction that stores the records.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::counted_rows::SOURCES_KIND;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::records::SeenSource;
use super::registers::change_register;
use super::rows::{id, optional_text, text};
use super::tables::SOURCES;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// Stores the sources that are new, and counts them.
pub(super) async fn store_sources(
    session: &mut Session,
    sources: &[SeenSource],
    now: Instant,
) -> Result<(), CatalogError> {
    let mut by_person: BTreeMap<PersonId, Vec<Vec<Value>>> = BTreeMap::new();
    for source in sources {
        by_person.entry(source.person).or_default().push(vec![
            id(source.person.0),
            text(&source.key),
            id(source_id(source.person, &source.key)),
            optional_text(source.name.as_deref()),
            Value::Int(now.micros()),
        ]);
    }
    for (person, rows) in by_person {
        let new = session.insert_new(&SOURCES, rows).await?;
        if !new.is_empty() {
            change_register(session, person, SOURCES_KIND, |counted| counted.gain(&new)).await?;
        }
    }
    Ok(())
}

/// A source has the same id on every node, derived from its person and key.
pub(super) fn source_id(person: PersonId, key: &str) -> Uuid {
    Uuid::new_v5(&person.0, key.as_bytes())
}
