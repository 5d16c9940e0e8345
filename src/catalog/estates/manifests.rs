//! Notes which manifest of a person is the newest, and what it holds.

use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::deletions::note_older_manifests;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::rows::id;
use crate::catalog::sound_rows::WithDamage;
use crate::catalog::tables::MANIFESTS;
use crate::model::ids::PersonId;

/// How many noted manifests one statement lists.
const PAGE_MANIFESTS: usize = 1_000;

/// What the newest manifest of a person holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownManifest {
    pub number: i64,
    pub state: i64,
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
    ) -> Result<WithDamage<(PersonId, i64)>, CatalogError> {
        let after = after.map_or_else(|| Value::Bytes(Vec::new()), |person| id(person.0));
        let rest = "WHERE person > $1 ORDER BY person";
        let found = self.sound_page(&MANIFESTS, rest, vec![after], PAGE_MANIFESTS);
        found
            .await?
            .try_map(|row| Ok((row.id(0, PersonId::from_slice)?, row.int(1)?)))
    }

    /// Notes a manifest, unless one with a higher number was noted. `older`: there are older ones. Returns
    /// whether it was noted.
    pub async fn note_manifest(
        &self,
        person: PersonId,
        manifest: KnownManifest,
        older: bool,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let row = vec![
            id(person.0),
            Value::Int(manifest.number),
            Value::Int(manifest.state),
            Value::Int(now.micros()),
        ];
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
        if older {
            note_older_manifests(&mut session, person, now).await?;
        }
        session.commit().await?;
        Ok(true)
    }
}

/// The number of the newest manifest of a person that was noted, which stays so until the transaction ends.
async fn noted_number(session: &mut Session, person: PersonId) -> Result<Option<i64>, CatalogError> {
    let rest = format!("WHERE person = $1{}", session.locking());
    match session.select(&MANIFESTS, &rest, vec![id(person.0)]).await {
        // What is damaged says nothing.
        Err(CatalogError::Corrupt { .. }) => Ok(None),
        found => found?.first().map(|row| row.int(1)).transpose(),
    }
}
