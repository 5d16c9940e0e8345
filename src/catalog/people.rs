//! People, their preferences, the sources of their records, and the idempotency keys of accepted requests.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Catalog;
use super::counted_rows::SOURCES_KIND;
use super::database::{Patience, Row, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::create_people;
use super::records::{Effect, KeptUpload, KeyCount, KnownPerson, KnownSource};
use super::rows::{id, text};
use super::sound_rows::Sound;
use super::tables::{PEOPLE, SOURCES, UPLOADS};
use super::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::{PersonId, UploadId};
use crate::model::time::Instant;

/// How many idempotency keys are looked up in one statement.
const KEYS_AT_ONCE: usize = 256;

impl Catalog {
    /// Creates a person unless there is one; returns whether they are new. An existing name is kept.
    pub async fn ensure_person(&self, person: PersonId, name: Option<&str>) -> Result<bool, CatalogError> {
        if self.person(person).await?.is_some() {
            return Ok(false);
        }
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let created = create_people(&mut session, &[person], name, now, Patience::Waits).await? == 1;
        self.conclude(session).await?;
        Ok(created)
    }

    pub async fn person_exists(&self, person: PersonId) -> Result<bool, CatalogError> {
        Ok(self.person(person).await?.is_some())
    }

    pub async fn person(&self, person: PersonId) -> Result<Option<KnownPerson>, CatalogError> {
        let found = self
            .database
            .find(&PEOPLE, "WHERE person = $1", vec![id(person.0)])
            .await?;
        found.first().map(known_person).transpose()
    }

    /// All people whose rows are intact, in the order of their ids.
    pub async fn sound_people(&self) -> Result<Sound<KnownPerson>, CatalogError> {
        let found = self.sound_rows(&PEOPLE, "ORDER BY person", Vec::new()).await?;
        found.try_map(|row| known_person(&row))
    }

    /// The ids of all people, including those whose row is damaged elsewhere than in its id.
    pub async fn people_ids(&self) -> Result<Vec<PersonId>, CatalogError> {
        let sql = "SELECT person FROM people ORDER BY person";
        let rows = self.database.fetch(sql.to_owned(), Vec::new()).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            ids.extend(PersonId::from_slice(&row.bytes(0)?));
        }
        Ok(ids)
    }

    /// Replaces a person's preferences, which are JSON text; `false` if they were not `before`.
    pub async fn swap_preferences(
        &self,
        person: PersonId,
        before: Option<&str>,
        preferences: &str,
    ) -> Result<bool, CatalogError> {
        let missing = || CatalogError::Missing {
            what: format!("person {person}"),
        };
        // Locking a person creates them.
        if !self.person_exists(person).await? {
            return Err(missing());
        }
        let mut session = self.change_of(&BTreeSet::from([person])).await?;
        let rest = format!("WHERE person = $1{}", session.locking());
        let Some(found) = session.select(&PEOPLE, &rest, vec![id(person.0)]).await?.pop() else {
            return Err(missing());
        };
        if found.optional_text(2) != before {
            session.rollback().await?;
            return Ok(false);
        }
        let mut row = found.into_values();
        if let Some(value) = row.get_mut(2) {
            *value = text(preferences);
        }
        session.insert(&PEOPLE, vec![row], Existing::Replace).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// The sources of a person's records, oldest first.
    pub async fn sources_of(&self, person: PersonId) -> Result<Vec<KnownSource>, CatalogError> {
        let rows = self
            .registered(person, (&SOURCES, SOURCES_KIND), "ORDER BY added_at, source_key")
            .await?;
        rows.iter()
            .map(|row| {
                Ok(KnownSource {
                    id: row.id(2, |bytes| Uuid::from_slice(bytes).ok())?,
                    key: row.text(1)?.to_owned(),
                    name: row.optional_text(3).map(str::to_owned),
                    added_at: Instant::from_micros(row.int(4)?),
                })
            })
            .collect()
    }

    /// The upload that was accepted under an idempotency key.
    pub async fn upload_for_key(
        &self,
        person: PersonId,
        key: &str,
    ) -> Result<Option<KeptUpload>, CatalogError> {
        let found = self
            .database
            .find(
                &UPLOADS,
                "WHERE person = $1 AND idempotency_key = $2",
                vec![id(person.0), text(key)],
            )
            .await?;
        let Some(found) = found.first() else {
            return Ok(None);
        };
        let (fingerprint, effect) = found.id(3, |bytes| {
            let (fingerprint, effect) = bytes.split_first_chunk()?;
            match effect {
                [] => Some((*fingerprint, None)),
                effect => Some((*fingerprint, Some(Effect::from_bytes(effect)?))),
            }
        })?;
        Ok(Some(KeptUpload {
            upload: found.id(2, UploadId::from_slice)?,
            fingerprint,
            effect,
        }))
    }

    /// How many idempotency keys of a person are kept.
    pub async fn key_count(&self, person: PersonId) -> Result<u64, CatalogError> {
        let counted = "SELECT COUNT(*) FROM uploads WHERE person = $1";
        let rows = self
            .database
            .fetch(counted.to_owned(), vec![id(person.0)])
            .await?;
        counted_in(&rows)
    }

    /// How many idempotency keys of a person are kept, counted up to `most`, and how many of `keys` are not.
    /// These are different from each other, and not looked up if those that are kept reach `most`.
    pub async fn key_count_with(
        &self,
        person: PersonId,
        keys: &[String],
        most: u64,
    ) -> Result<KeyCount, CatalogError> {
        let mut session = self.database.read().await?;
        let counted = "SELECT COUNT(*) FROM (SELECT 1 FROM uploads WHERE person = $1 LIMIT $2) AS counted";
        let values = vec![id(person.0), Value::Int(i64::try_from(most).unwrap_or(i64::MAX))];
        let kept = counted_in(&session.fetch(counted.to_owned(), values).await?)?;
        let keys = if kept < most { keys } else { &[] };
        let mut others = 0;
        for some in keys.chunks(KEYS_AT_ONCE) {
            let (list, mut keys) = one_of(2, some.iter().map(|key| text(key)).collect());
            let sql = format!("SELECT COUNT(*) FROM uploads WHERE person = $1 AND idempotency_key IN {list}");
            keys.insert(0, id(person.0));
            let kept_too = counted_in(&session.fetch(sql, keys).await?)?;
            others += (some.len() as u64).saturating_sub(kept_too);
        }
        session.commit().await?;
        Ok(KeyCount { kept, others })
    }

    /// Forgets idempotency keys accepted before `moment`; returns how many.
    pub async fn forget_uploads(&self, moment: Instant) -> Result<u64, CatalogError> {
        let mut session = self.database.write().await?;
        let forgotten = session
            .execute(
                "DELETE FROM uploads WHERE accepted_at < $1".to_owned(),
                vec![Value::Int(moment.micros())],
            )
            .await?;
        session.commit().await?;
        Ok(forgotten)
    }
}

/// The one number that a statement counted.
fn counted_in(rows: &[Row]) -> Result<u64, CatalogError> {
    let row = rows
        .first()
        .ok_or_else(|| CatalogError::corrupt("a count has no row"))?;
    Ok(row.int(0)?.unsigned_abs())
}

fn known_person(row: &VerifiedRow) -> Result<KnownPerson, CatalogError> {
    Ok(KnownPerson {
        id: row.id(0, PersonId::from_slice)?,
        name: row.optional_text(1).map(str::to_owned),
        preferences: row.optional_text(2).map(str::to_owned),
        created_at: Instant::from_micros(row.int(3)?),
    })
}
