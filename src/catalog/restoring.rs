//! Restores what an archive says of a person beside their records and documents: who they are, and the
//! sources of their records. What is known here already stays.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Catalog;
use super::counted_rows::SOURCES_KIND;
use super::database::{Patience, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::{create_people, lock_for_change};
use super::records::{KnownPerson, KnownSource};
use super::registers::change_register;
use super::rows::{id, optional_text, text};
use super::stored_sources::source_id;
use super::tables::{PEOPLE, SOURCES};
use crate::model::ids::PersonId;

impl Catalog {
    /// Creates the person of `known`, with their name and creation time. Somebody who exists already gets the
    /// name if they have none, and the time if it is earlier. Returns whether anything changed.
    pub async fn restore_person(&self, known: &KnownPerson) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let person = [known.id];
        let (called, since) = (known.name.as_deref(), known.created_at);
        let created = create_people(&mut session, &person, called, since, Patience::Waits).await? == 1;
        lock_for_change(&mut session, &BTreeSet::from(person), &*self.time).await?;
        let rest = format!("WHERE person = $1{}", session.locking());
        let Some(found) = session.select(&PEOPLE, &rest, vec![id(known.id.0)]).await?.pop() else {
            return Err(CatalogError::corrupt("a person who was just made is not there"));
        };
        let name = found
            .optional_text(1)
            .or(known.name.as_deref())
            .map(str::to_owned);
        let created_at = found.int(3)?.min(known.created_at.micros());
        let is_new = name.as_deref() != found.optional_text(1) || created_at != found.int(3)?;
        if is_new {
            let mut row = found.into_values();
            for (place, value) in [(1, optional_text(name.as_deref())), (3, Value::Int(created_at))] {
                if let Some(column) = row.get_mut(place) {
                    *column = value;
                }
            }
            session.insert(&PEOPLE, vec![row], Existing::Replace).await?;
        }
        if created || is_new {
            self.conclude(session).await?;
        } else {
            session.rollback().await?;
        }
        Ok(created || is_new)
    }

    /// Adds sources as they were known elsewhere, with the times at which they were added there; returns how
    /// many were new. The id of a source follows from its person and key.
    pub async fn restore_sources(
        &self,
        person: PersonId,
        sources: &[KnownSource],
    ) -> Result<usize, CatalogError> {
        let mut session = self.change_of(&BTreeSet::from([person])).await?;
        let rows = sources.iter().map(|source| {
            vec![
                id(person.0),
                text(&source.key),
                id(source_id(person, &source.key)),
                optional_text(source.name.as_deref()),
                Value::Int(source.added_at.micros()),
            ]
        });
        let new = session.insert_new(&SOURCES, rows.collect()).await?;
        if new.is_empty() {
            session.rollback().await?;
            return Ok(0);
        }
        change_register(&mut session, person, SOURCES_KIND, |counted| counted.gain(&new)).await?;
        self.conclude(session).await?;
        Ok(new.len())
    }

    /// The id of a source of `person`.
    #[must_use]
    pub fn source_id(person: PersonId, key: &str) -> Uuid {
        source_id(person, key)
    }
}
