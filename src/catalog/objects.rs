//! Lists objects of the object store: those that pieces point to, and those that nothing points to any more.
//!
//! Knows their paths; knows nothing of what they hold.

use std::collections::HashSet;

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::records::ObjectTotals;
use super::rows::{id, text};
use super::tables::{PIECES, RETIRED_OBJECTS};
use super::verified_rows::one_of;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// How many rows one listing statement returns.
const PAGE: usize = 1_000;

impl Catalog {
    /// Paths of objects that pieces point to, after `after` in the fixed order (person, type, piece); a
    /// thousand at most. An empty answer is the end.
    pub async fn object_paths(
        &self,
        after: Option<&ObjectCursor>,
    ) -> Result<Vec<ObjectCursor>, CatalogError> {
        let (rest, values) = match after {
            None => (
                "WHERE path IS NOT NULL ORDER BY person, data_type, piece",
                Vec::new(),
            ),
            Some(cursor) => (
                "WHERE path IS NOT NULL AND (person, data_type, piece) > ($1, $2, $3) ORDER BY person, \
                 data_type, piece",
                vec![id(cursor.person.0), text(&cursor.data_type.0), id(cursor.piece)],
            ),
        };
        self.sound_page(&PIECES, rest, values, PAGE)
            .await?
            .sound
            .iter()
            .map(|row| {
                Ok(ObjectCursor {
                    person: row.id(0, PersonId::from_slice)?,
                    data_type: TypeId(row.text(1)?.into()),
                    piece: row.id(2, |bytes| uuid::Uuid::from_slice(bytes).ok())?,
                    path: row.text(11)?.to_owned(),
                })
            })
            .collect()
    }

    /// The number and size of the objects that pieces point to.
    pub async fn object_totals(&self) -> Result<ObjectTotals, CatalogError> {
        let sql =
            "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM pieces WHERE path IS NOT NULL";
        let rows = self.database.fetch(sql.to_owned(), Vec::new()).await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("objects cannot be counted"))?;
        Ok(ObjectTotals {
            objects: row.int(0)?,
            bytes: row.int(1)?,
        })
    }

    /// Objects retired before `moment`, the longest retired first: `most` of those after `after` in that
    /// order. An empty answer is the end.
    pub async fn retired_objects(
        &self,
        moment: Instant,
        after: Option<&RetiredObject>,
        most: usize,
    ) -> Result<Vec<RetiredObject>, CatalogError> {
        let (retired_at, path) = after.map_or((i64::MIN, ""), |after| {
            (after.retired_at.micros(), after.path.as_str())
        });
        let rest = "WHERE retired_at < $1 AND (retired_at, path) > ($2, $3) ORDER BY retired_at, path";
        let values = vec![Value::Int(moment.micros()), Value::Int(retired_at), text(path)];
        self.sound_page(&RETIRED_OBJECTS, rest, values, most)
            .await?
            .sound
            .iter()
            .map(|row| {
                Ok(RetiredObject {
                    path: row.text(0)?.to_owned(),
                    retired_at: Instant::from_micros(row.int(1)?),
                })
            })
            .collect()
    }

    /// Whether any object was retired before `moment`. Reads one row, unless that is damaged.
    pub async fn has_retired_objects(&self, moment: Instant) -> Result<bool, CatalogError> {
        let rest = "WHERE retired_at < $1 LIMIT 1";
        let values = vec![Value::Int(moment.micros())];
        let any = self.sound_rows(&RETIRED_OBJECTS, rest, values).await?;
        if any.set_aside.is_empty() {
            return Ok(!any.sound.is_empty());
        }
        Ok(!self.retired_objects(moment, None, PAGE).await?.is_empty())
    }

    /// The `paths` of objects that are not retired.
    pub async fn not_retired(&self, paths: Vec<String>) -> Result<Vec<String>, CatalogError> {
        let mut retired = HashSet::new();
        for some in paths.chunks(64) {
            let (list, values) = one_of(1, some.iter().map(|path| text(path)).collect());
            let sql = format!("SELECT path FROM retired_objects WHERE path IN {list}");
            for row in self.database.fetch(sql, values).await? {
                retired.insert(row.text(0)?.clone());
            }
        }
        Ok(paths.into_iter().filter(|path| !retired.contains(path)).collect())
    }

    /// Forgets retired objects, after they were removed from the object store.
    pub async fn forget_objects(&self, paths: &[String]) -> Result<(), CatalogError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut session = self.database.write().await?;
        for some in paths.chunks(64) {
            let (list, values) = one_of(1, some.iter().map(|path| text(path)).collect());
            session
                .execute(
                    format!("DELETE FROM retired_objects WHERE path IN {list}"),
                    values,
                )
                .await?;
        }
        session.commit().await
    }
}

/// An object that no piece points to any more, and its place in the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiredObject {
    pub path: String,
    retired_at: Instant,
}

/// An object that a piece points to, and its place in the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectCursor {
    pub person: PersonId,
    pub data_type: TypeId,
    piece: uuid::Uuid,
    pub path: String,
}

impl ObjectCursor {
    /// The place as text, which `parse` reads.
    #[must_use]
    pub fn written(&self) -> String {
        format!(
            "{} {} {} {}",
            self.person, self.piece, self.data_type.0, self.path
        )
    }

    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        let mut parts = written.splitn(4, ' ');
        Some(Self {
            person: parts.next()?.parse().ok()?,
            piece: parts.next()?.parse().ok()?,
            data_type: TypeId(parts.next()?.into()),
            path: parts.next()?.to_owned(),
        })
    }
}
