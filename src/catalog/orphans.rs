//! Objects of the store that nothing names, and their removal in two phases.
//!
//! An orphan is noticed, and after a long while condemned. From then on every commit that would name it is
//! refused, in that commit's own transaction; only then is it deleted. So no clock of a node or of the object
//! store decides about a write that is under way: if the write was taken for abandoned, it is refused, and
//! nothing ever points to a deleted object. All times are the database's. Knows nothing of what the objects
//! are.

use std::collections::HashSet;

use super::Catalog;
use super::database::{Patience, Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::records::{NewPiece, NewPlace};
use super::rows::text;
use super::sound_rows::{Sound, sound_among};
use super::tables::ORPHANS;
use super::verified_rows::one_of;
use crate::model::time::Instant;

/// How many rows one listing statement returns.
const PAGE: usize = 1_000;
/// How many paths one statement names.
const PATHS_AT_ONCE: usize = 64;
/// Objects that are kept for the operator count as noticed at the end of time.
const KEPT_SINCE: i64 = i64::MAX;

/// How many orphans are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrphanTotals {
    pub noticed: i64,
    pub condemned: i64,
    /// Kept for the operator, and never collected.
    pub kept: i64,
}

impl Catalog {
    /// Notes objects that nothing seems to name, unless they are noted already.
    pub async fn notice_orphans(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let rows = paths.iter().map(|path| noticed(path, now)).collect();
        session.insert_new(&ORPHANS, rows).await?;
        session.commit().await
    }

    /// Marks objects that must never be collected.
    pub async fn keep_objects(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        let end = Instant::from_micros(KEPT_SINCE);
        let rows = paths.iter().map(|path| noticed(path, end)).collect();
        session.insert(&ORPHANS, rows, Existing::Replace).await?;
        session.commit().await
    }

    /// The `paths` of objects that are not kept for the operator.
    pub async fn not_kept(&self, paths: Vec<String>) -> Result<Vec<String>, CatalogError> {
        let mut kept = HashSet::new();
        for some in paths.chunks(PATHS_AT_ONCE) {
            let (list, values) = one_of(1, some.iter().map(|path| text(path)).collect());
            let sql = format!("SELECT path, noticed_at FROM strays WHERE path IN {list}");
            for row in self.database.fetch(sql, values).await? {
                if row.int(1)? == KEPT_SINCE {
                    kept.insert(row.text(0)?);
                }
            }
        }
        Ok(paths.into_iter().filter(|path| !kept.contains(path)).collect())
    }

    /// Condemns objects that were noticed before `moment`, and returns their paths; a thousand at most. When
    /// this returns, any commit that was to name one of them has done so, visibly to the caller, or never
    /// will. Damaged notes are set aside; nothing sound is the end.
    pub async fn condemn_orphans(&self, moment: Instant) -> Result<Sound<String>, CatalogError> {
        let mut session = self.database.write().await?;
        session.lock_alone(ORPHANS.name).await?;
        let rest = "WHERE noticed_at < $1 AND condemned_at IS NULL ORDER BY path LIMIT $2";
        let values = vec![Value::Int(moment.micros()), Value::Int(PAGE as i64)];
        let found = session.fetch(ORPHANS.select(rest), values).await?;
        let paths = sound_among(&ORPHANS, &found)?.try_map(|row| row.text(0).map(str::to_owned))?;
        condemn(&mut session, &paths.sound, self).await?;
        session.commit().await?;
        Ok(paths)
    }

    /// Condemns these objects now, whether or not they were noticed before.
    pub async fn condemn(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        session.lock_alone(ORPHANS.name).await?;
        condemn(&mut session, paths, self).await?;
        session.commit().await
    }

    /// Objects condemned before `moment` that are still there; a thousand at most. Damaged notes are set
    /// aside; nothing sound is the end.
    pub async fn condemned_before(&self, moment: Instant) -> Result<Sound<String>, CatalogError> {
        let rest = "WHERE condemned_at < $1 AND removed_at IS NULL ORDER BY path";
        let values = vec![Value::Int(moment.micros())];
        let found = self.sound_page(&ORPHANS, rest, values, PAGE).await?;
        found.try_map(|row| row.text(0).map(str::to_owned))
    }

    /// Marks condemned objects as deleted.
    pub async fn note_removed(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let rows = paths
            .iter()
            .map(|path| condemned(path, now, Value::Int(now.micros())))
            .collect();
        session.insert(&ORPHANS, rows, Existing::Replace).await?;
        session.commit().await
    }

    /// Forgets objects that turned out not to be orphans.
    pub async fn unmark_orphans(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        for some in paths.chunks(PATHS_AT_ONCE) {
            let (list, values) = one_of(1, some.iter().map(|path| text(path)).collect());
            let sql = format!("DELETE FROM strays WHERE path IN {list}");
            session.execute(sql, values).await?;
        }
        session.commit().await
    }

    /// Forgets objects that were deleted before `moment`.
    pub async fn forget_orphans(&self, moment: Instant) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let sql = "DELETE FROM strays WHERE removed_at < $1";
        session
            .execute(sql.to_owned(), vec![Value::Int(moment.micros())])
            .await?;
        session.commit().await
    }

    pub async fn orphan_totals(&self) -> Result<OrphanTotals, CatalogError> {
        let sql = "SELECT COUNT(CASE WHEN condemned_at IS NULL AND noticed_at < $1 THEN 1 END), \
                   COUNT(CASE WHEN condemned_at IS NOT NULL THEN 1 END), \
                   COUNT(CASE WHEN noticed_at = $1 THEN 1 END) FROM strays WHERE removed_at IS NULL";
        let rows = self
            .database
            .fetch(sql.to_owned(), vec![Value::Int(KEPT_SINCE)])
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("orphans cannot be counted"))?;
        Ok(OrphanTotals {
            noticed: row.int(0)?,
            condemned: row.int(1)?,
            kept: row.int(2)?,
        })
    }
}

fn noticed(path: &str, at: Instant) -> Vec<Value> {
    vec![
        text(path),
        Value::Int(at.micros()),
        Value::NullInt,
        Value::NullInt,
    ]
}

fn condemned(path: &str, at: Instant, removed_at: Value) -> Vec<Value> {
    let at = || Value::Int(at.micros());
    vec![text(path), at(), at(), removed_at]
}

async fn condemn(session: &mut Session, paths: &[String], catalog: &Catalog) -> Result<(), CatalogError> {
    let now = session.now(&*catalog.time).await?;
    let rows = paths
        .iter()
        .map(|path| condemned(path, now, Value::NullInt))
        .collect();
    session.insert(&ORPHANS, rows, Existing::Replace).await?;
    Ok(())
}

/// The objects among new pieces.
pub(super) fn paths_of<'p>(pieces: impl IntoIterator<Item = &'p NewPiece>) -> Vec<&'p str> {
    let path = |piece: &'p NewPiece| match &piece.place {
        NewPlace::Object { path, .. } => Some(path.as_str()),
        NewPlace::Tail { .. } => None,
    };
    pieces.into_iter().filter_map(path).collect()
}

/// Refuses to name a condemned object. Every change that names objects of the store calls this in its
/// transaction: from here to the end of that nobody condemns any.
pub(super) async fn refuse_condemned(session: &mut Session, paths: Vec<&str>) -> Result<(), CatalogError> {
    if paths.is_empty() {
        return Ok(());
    }
    session.lock_shared(ORPHANS.name, Patience::Waits).await?;
    for some in paths.chunks(PATHS_AT_ONCE) {
        let (list, values) = one_of(1, some.iter().map(|path| text(path)).collect());
        let rest = format!("WHERE path IN {list} AND condemned_at IS NOT NULL");
        if let Some(found) = session.select(&ORPHANS, &rest, values).await?.first() {
            return Err(CatalogError::Missing {
                what: format!(
                    "object {}, which waited for longer than a write may take,",
                    found.text(0)?
                ),
            });
        }
    }
    Ok(())
}
