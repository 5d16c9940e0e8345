//! Answers for background jobs: who works on what, what waits, what may be removed.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::records::{CompactionCandidate, ObjectTotals, TailBacklog};
use super::rows::{id, text};
use super::sound_rows::WithDamage;
use super::tables::{LEASES, META, PARTITIONS, PIECES, RETIRED_OBJECTS};
use super::verified_rows::one_of;
use crate::model::ids::{PersonId, PieceId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// The prefix of the names of notes about damaged objects.
const DAMAGE: &str = "damage:";

/// How many times its stored size a tail row takes in memory, where this was not noted.
const USUAL_RATIO: i64 = 4;

/// How many rows one listing statement returns.
const PAGE: usize = 1_000;

impl Catalog {
    /// Takes or renews the lease called `name` for `holder`. `false` while somebody else holds it. The time
    /// is the database's. A lease that ends later than any taken now could was taken under a wrong clock, and
    /// counts as ended.
    pub async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?.micros();
        let length = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        let until = now.saturating_add(length);
        // Leases of other names may be longer, but not by that much.
        let longest = until.saturating_add(length);
        let holds = |until: i64| until > now && until <= longest;
        let rest = format!("WHERE name = $1{}", session.locking());
        let row = vec![text(name), text(holder), Value::Int(until)];
        let taken = match session.select(&LEASES, &rest, vec![text(name)]).await?.first() {
            Some(lease) if lease.text(1)? != holder && holds(lease.int(2)?) => false,
            Some(_) => session.insert(&LEASES, vec![row], Existing::Replace).await?.rows == 1,
            // Somebody else may insert the same name meanwhile; then theirs holds.
            None => session.insert(&LEASES, vec![row], Existing::Keep).await?.rows == 1,
        };
        session.commit().await?;
        Ok(taken)
    }

    /// Gives a lease back, if `holder` has it.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session
            .execute(
                "DELETE FROM leases WHERE name = $1 AND holder = $2".to_owned(),
                vec![text(name), text(holder)],
            )
            .await?;
        session.commit().await
    }

    /// Partitions with rows in the tail, the longest waiting first. Damaged rows are set aside.
    pub async fn tail_backlog(&self) -> Result<WithDamage<TailBacklog>, CatalogError> {
        let mut backlog: HashMap<(PersonId, TypeId), TailBacklog> = HashMap::new();
        let WithDamage { sound, set_aside } = self
            .with_damage(&PIECES, "WHERE path IS NULL ORDER BY created_at", Vec::new())
            .await?;
        for row in sound {
            let (person, data_type) = (row.id(0, PersonId::from_slice)?, TypeId(row.text(1)?.into()));
            let entry = backlog
                .entry((person, data_type.clone()))
                .or_insert_with(|| TailBacklog {
                    person,
                    data_type,
                    pieces: 0,
                    rows: 0,
                    bytes: 0,
                    memory: 0,
                    oldest: Instant::from_micros(i64::MAX),
                });
            entry.pieces += 1;
            entry.rows += row.int(4)?;
            let bytes = row.int(5)?;
            entry.bytes += bytes;
            entry.memory += row.optional_int(12).unwrap_or(bytes.saturating_mul(USUAL_RATIO));
            entry.oldest = entry.oldest.min(Instant::from_micros(row.int(14)?));
        }
        let mut backlog: Vec<TailBacklog> = backlog.into_values().collect();
        backlog.sort_by(|one, other| {
            one.oldest
                .cmp(&other.oldest)
                .then_with(|| one.data_type.cmp(&other.data_type))
                .then_with(|| one.person.cmp(&other.person))
        });
        Ok(WithDamage {
            sound: backlog,
            set_aside,
        })
    }

    /// How many bytes all rows of the tail take when they are read.
    pub async fn tail_memory(&self) -> Result<i64, CatalogError> {
        let sql = format!(
            "SELECT CAST(COALESCE(SUM(COALESCE(footer_bytes, bytes * {USUAL_RATIO})), 0) AS BIGINT) \
             FROM pieces WHERE path IS NULL"
        );
        let rows = self.database.fetch(sql, Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// The bytes of a tail piece, unless it is gone.
    pub async fn tail_blob(&self, piece: PieceId) -> Result<Option<Vec<u8>>, CatalogError> {
        let sql = "SELECT blob FROM blobs WHERE piece = $1".to_owned();
        let rows = self.database.fetch(sql, vec![id(piece.0)]).await?;
        rows.first().map(|row| row.bytes(0)).transpose()
    }

    /// Partitions with at least `pieces` pieces or any dead row, in which compaction may find work. The
    /// largest number of pieces first.
    pub async fn compaction_candidates(
        &self,
        pieces: i64,
    ) -> Result<WithDamage<CompactionCandidate>, CatalogError> {
        let rest = "WHERE pieces >= $1 OR dead > 0 ORDER BY pieces DESC";
        let rows = self.with_damage(&PARTITIONS, rest, vec![Value::Int(pieces)]);
        rows.await?.try_map(|row| {
            Ok(CompactionCandidate {
                person: row.id(0, PersonId::from_slice)?,
                data_type: TypeId(row.text(1)?.into()),
                version: row.int(2)?,
            })
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
        let any = self.with_damage(&RETIRED_OBJECTS, rest, values).await?;
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

    /// Marks an object as damaged, until `forget_damage` is called for it.
    pub async fn note_damage(&self, path: &str, what: &str) -> Result<(), CatalogError> {
        self.set_meta(&format!("{DAMAGE}{path}"), what).await
    }

    /// Objects known to be damaged, each with a description of the damage.
    pub async fn damages(&self) -> Result<Vec<(String, String)>, CatalogError> {
        let rows = self
            .database
            .select(
                &META,
                "WHERE name LIKE $1 ORDER BY name",
                vec![text(&format!("{DAMAGE}%"))],
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok((
                    row.text(0)?.chars().skip(DAMAGE.len()).collect(),
                    row.text(1)?.to_owned(),
                ))
            })
            .collect()
    }

    pub async fn forget_damage(&self, path: &str) -> Result<(), CatalogError> {
        self.forget_meta(&format!("{DAMAGE}{path}")).await
    }

    /// Forgets a fact about the catalogue as a whole.
    pub async fn forget_meta(&self, name: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let sql = "DELETE FROM meta WHERE name = $1";
        session.execute(sql.to_owned(), vec![text(name)]).await?;
        session.commit().await
    }

    /// A fact about the catalogue as a whole.
    pub async fn meta(&self, name: &str) -> Result<Option<String>, CatalogError> {
        let found = self
            .database
            .select(&META, "WHERE name = $1", vec![text(name)])
            .await?;
        found
            .first()
            .map(|row| row.text(1).map(str::to_owned))
            .transpose()
    }

    /// A fact about the catalogue as a whole. Stores `proposal` first if there is none yet; it then holds on
    /// every node.
    pub async fn settled_meta(&self, name: &str, proposal: &str) -> Result<String, CatalogError> {
        if let Some(settled) = self.meta(name).await? {
            return Ok(settled);
        }
        let mut session = self.database.write().await?;
        session
            .insert(&META, vec![vec![text(name), text(proposal)]], Existing::Keep)
            .await?;
        session.commit().await?;
        let settled = self.meta(name).await?;
        settled.ok_or_else(|| CatalogError::corrupt(format!("{name} was settled and is gone")))
    }

    pub async fn set_meta(&self, name: &str, value: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session
            .insert(&META, vec![vec![text(name), text(value)]], Existing::Replace)
            .await?;
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
