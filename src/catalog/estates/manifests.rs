//! Notes which manifest of a person is the newest, and what it holds.

use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::deletions::note_older_manifests;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::rows::id;
use crate::catalog::sound_rows::Sound;
use crate::catalog::tables::MANIFESTS;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many noted manifests one statement lists.
const PAGE_MANIFESTS: usize = 1_000;

/// What the newest manifest of a person holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownManifest {
    pub number: i64,
    pub state: i64,
}

impl KnownManifest {
    /// Stands for the newest one of somebody new until their first is begun: as long as it is noted, no
    /// manifest of theirs was written from this catalogue. Of people whom an earlier release created, or who
    /// came back from the store, nothing is noted instead, which says nothing.
    pub const NONE: Self = Self {
        number: 0,
        // No state is negative.
        state: -1,
    };
}

impl Catalog {
    /// What the newest manifest of a person holds, as far as it was noted here.
    pub async fn known_manifest(&self, person: PersonId) -> Result<Option<KnownManifest>, CatalogError> {
        let found = self
            .database
            .find_once(&MANIFESTS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        found
            .first()
            .map(|row| {
                Ok(KnownManifest {
                    number: row.int(1)?,
                    state: row.int(2)?,
                })
            })
            .transpose()
    }

    /// The numbers of the newest manifests that were noted here, by person, of those after `after`; a
    /// thousand at most. Damaged notes are set aside; nothing sound is the end.
    pub async fn known_manifests(
        &self,
        after: Option<PersonId>,
    ) -> Result<Sound<(PersonId, i64)>, CatalogError> {
        let after = after.map_or_else(|| Value::Bytes(Vec::new()), |person| id(person.0));
        let rest = "WHERE person > $1 ORDER BY person";
        let found = self.sound_page(&MANIFESTS, rest, vec![after], PAGE_MANIFESTS);
        found
            .await?
            .try_map(|row| Ok((row.id(0, PersonId::from_slice)?, row.int(1)?)))
    }

    /// Prepares for the first manifest of a person, which may be in the store from now on although its writer
    /// dies before it is noted.
    pub async fn expect_first_manifest(&self, person: PersonId) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let sql = "DELETE FROM manifests WHERE person = $1 AND number = $2".to_owned();
        let values = vec![id(person.0), Value::Int(KnownManifest::NONE.number)];
        session.execute(sql, values).await?;
        session.commit().await
    }

    /// Notes a manifest, unless one with a higher number was noted. `has_older`: there are older ones.
    /// Returns whether it was noted.
    pub async fn note_manifest(
        &self,
        person: PersonId,
        manifest: KnownManifest,
        has_older: bool,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let row = manifest_row(id(person.0), manifest, now);
        // A row that is not there cannot be locked, so one is made before it is looked at.
        let made = session
            .insert(&MANIFESTS, vec![row.clone()], Existing::Keep)
            .await?;
        if made.rows == 0 {
            if noted_number(&mut session, person).await? > Some(manifest.number) {
                session.rollback().await?;
                return Ok(false);
            }
            session.insert(&MANIFESTS, vec![row], Existing::Replace).await?;
        }
        if has_older {
            note_older_manifests(&mut session, person, now).await?;
        }
        session.commit().await?;
        Ok(true)
    }
}

/// Notes of people who were created in this transaction that there is no manifest of theirs.
pub(in crate::catalog) async fn note_no_manifests(
    session: &mut Session,
    people: Vec<Value>,
    now: Instant,
) -> Result<(), CatalogError> {
    let rows = people
        .into_iter()
        .map(|person| manifest_row(person, KnownManifest::NONE, now));
    session.insert(&MANIFESTS, rows.collect(), Existing::Keep).await?;
    Ok(())
}

fn manifest_row(person: Value, manifest: KnownManifest, now: Instant) -> Vec<Value> {
    vec![
        person,
        Value::Int(manifest.number),
        Value::Int(manifest.state),
        Value::Int(now.micros()),
    ]
}

/// The number of the newest manifest of a person that was noted, which stays so until the transaction ends.
async fn noted_number(session: &mut Session, person: PersonId) -> Result<Option<i64>, CatalogError> {
    let rest = format!("WHERE person = $1{}", session.locking());
    let found = session.select(&MANIFESTS, &rest, vec![id(person.0)]).await;
    // What is damaged says nothing.
    let found = CatalogError::unless_corrupt(found)?.unwrap_or_default();
    found.first().map(|row| row.int(1)).transpose()
}
