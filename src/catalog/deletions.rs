//! Since when deletions in a partition wait to become final: the partition has records that were replaced or
//! deleted and are still dead rows of pieces, or were when that was last checked.
//!
//! Dead rows in a partition are noticed by looking for them, so that no write pays for it. All times are the
//! database's.

use std::time::Duration;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::{id, text};
use super::sound_rows::Sound;
use super::tables::DELETIONS;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// Stands for the person's older manifests instead of a partition: they may hold what was deleted since.
const WRITTEN_DOWN: &str = "";
/// Notices that must not wait have a time before this moment. It counts backwards from here, so that a later
/// notice differs from the one being worked on.
const IMMEDIATELY: Instant = Instant::from_micros(0);
/// How long an older manifest may still appear after a newer one was noted. Its writer asks for a newer one
/// before the request that completes it, so this is longer than any such request.
pub(super) const STILL_APPEARS: Duration = Duration::from_hours(1);
/// How many partitions one statement returns.
const PAGE: usize = 1_000;

/// A partition in which something was replaced or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticedDeletion {
    pub person: PersonId,
    pub data_type: TypeId,
    /// Not before the first deletion.
    pub noticed_at: Instant,
}

impl Catalog {
    /// Marks partitions that have dead rows and are not marked yet; returns how many are new.
    pub async fn notice_deletions(&self) -> Result<u64, CatalogError> {
        let unnoticed = "SELECT person, data_type FROM partitions p WHERE dead > 0 AND NOT EXISTS (SELECT 1 \
                         FROM deletions d WHERE d.person = p.person AND d.data_type = p.data_type) ORDER BY \
                         person, data_type LIMIT $1";
        let found = self
            .database
            .fetch(unnoticed.to_owned(), vec![Value::Int(PAGE as i64)])
            .await?;
        if found.is_empty() {
            return Ok(0);
        }
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let mut rows = Vec::with_capacity(found.len());
        for row in found {
            rows.push(vec![
                Value::Bytes(row.bytes(0)?),
                Value::Text(row.text(1)?),
                Value::Int(now.micros()),
            ]);
        }
        let written = session.insert(&DELETIONS, rows, Existing::Keep).await?;
        session.commit().await?;
        Ok(written.rows)
    }

    /// Partitions noticed before `moment`, oldest notice first; a thousand at most. Damaged notices are set
    /// aside.
    pub async fn deletions_before(&self, moment: Instant) -> Result<Sound<NoticedDeletion>, CatalogError> {
        let rest = "WHERE noticed_at < $1 AND data_type <> $2 ORDER BY noticed_at, person, data_type";
        let values = vec![Value::Int(moment.micros()), text(WRITTEN_DOWN)];
        self.deletions(rest, values).await
    }

    /// People whose manifests have held something outdated since before `moment`, of those after `after`; a
    /// thousand at most. `None`: only those whose outdated manifests must go at once. Damaged notices are set
    /// aside; nothing sound is the end.
    pub async fn people_needing_manifest(
        &self,
        moment: Option<Instant>,
        after: Option<PersonId>,
    ) -> Result<Sound<NoticedDeletion>, CatalogError> {
        let moment = moment.unwrap_or(IMMEDIATELY).micros();
        let after = after.map_or_else(|| Value::Bytes(Vec::new()), |person| id(person.0));
        let rest = "WHERE data_type = $1 AND noticed_at < $2 AND person > $3 ORDER BY person";
        let values = vec![text(WRITTEN_DOWN), Value::Int(moment), after];
        self.deletions(rest, values).await
    }

    async fn deletions(
        &self,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Sound<NoticedDeletion>, CatalogError> {
        let rows = self.sound_page(&DELETIONS, rest, values, PAGE).await?;
        rows.try_map(|row| {
            Ok(NoticedDeletion {
                person: row.id(0, PersonId::from_slice)?,
                data_type: TypeId(row.text(1)?.into()),
                noticed_at: Instant::from_micros(row.int(2)?),
            })
        })
    }

    /// Requests a new manifest of a person, and the removal of the older ones.
    pub async fn request_manifest(&self, person: PersonId) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        self.note_urgent_manifest(&mut session, person).await?;
        session.commit().await
    }

    /// Notes in the same transaction that a person has older manifests, which hold what must no longer be
    /// known.
    pub(super) async fn note_urgent_manifest(
        &self,
        session: &mut Session,
        person: PersonId,
    ) -> Result<(), CatalogError> {
        let now = session.now(&*self.time).await?;
        note_urgent(session, person, now).await
    }

    /// Forgets a partition in which nothing waits any more, or older manifests that are gone, unless others
    /// may still appear. Rows that die from now on are noticed again.
    pub async fn forget_deletion(&self, deletion: &NoticedDeletion) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        if deletion.lasts_at(now) {
            return session.rollback().await;
        }
        let sql = "DELETE FROM deletions WHERE person = $1 AND data_type = $2 AND noticed_at = $3";
        let values = vec![
            id(deletion.person.0),
            text(&deletion.data_type.0),
            Value::Int(deletion.noticed_at.micros()),
        ];
        session.execute(sql.to_owned(), values).await?;
        session.commit().await
    }

    /// Notes that older manifests of a person may appear for a while, and that none of them may wait.
    pub async fn expect_older_manifests(&self, person: PersonId) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let until = session.now(&*self.time).await?.after(STILL_APPEARS);
        note_urgent(&mut session, person, until).await?;
        session.commit().await
    }
}

impl NoticedDeletion {
    /// Whether it stays a notice, whatever was done about it until `now`. A clock that was far ahead when it
    /// was made does not keep it longer.
    fn lasts_at(&self, now: Instant) -> bool {
        let urgent_until = self.noticed_at.micros().saturating_neg();
        now.micros() < urgent_until && urgent_until <= now.after(STILL_APPEARS).micros()
    }
}

/// Notes in the same transaction that a person has, or may have until `until`, older manifests that must not
/// wait. A notice in its place that lasts longer goes on.
async fn note_urgent(session: &mut Session, person: PersonId, until: Instant) -> Result<(), CatalogError> {
    let key = vec![id(person.0), text(WRITTEN_DOWN)];
    let rest = format!("WHERE person = $1 AND data_type = $2{}", session.locking());
    let noted = match session.select(&DELETIONS, &rest, key.clone()).await {
        // What is damaged says nothing, and is replaced.
        Err(CatalogError::Corrupt { .. }) => None,
        found => found?.first().map(|row| row.int(2)).transpose()?,
    };
    let noticed_at = IMMEDIATELY.micros().saturating_sub(until.micros());
    let noticed_at = match noted {
        Some(noted) if noted < noticed_at => noted.saturating_sub(1),
        _ => noticed_at,
    };
    let row = [key, vec![Value::Int(noticed_at)]].concat();
    session.insert(&DELETIONS, vec![row], Existing::Replace).await?;
    Ok(())
}

/// Notes in the same transaction that a person has older manifests.
pub(super) async fn note_older_manifests(
    session: &mut Session,
    person: PersonId,
    now: Instant,
) -> Result<(), CatalogError> {
    let row = vec![id(person.0), text(WRITTEN_DOWN), Value::Int(now.micros())];
    session.insert(&DELETIONS, vec![row], Existing::Keep).await?;
    Ok(())
}
