//! What waits for background jobs: rows of the tail that are to become objects, and objects to be merged.
//!
//! Knows how much waits where; knows nothing of how it is done.

use std::collections::HashMap;

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::records::{CompactionCandidate, TailBacklog};
use super::rows::{id, tail_memory_of};
use super::sound_rows::Sound;
use super::tables::{PARTITIONS, PIECES};
use crate::model::ids::{PersonId, PieceId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// How many times its stored size a tail row takes in memory, where this was not noted.
const USUAL_RATIO: i64 = 4;
/// The bytes of a tail piece.
pub(super) const BLOB_OF_PIECE: &str = "SELECT blob FROM blobs WHERE piece = $1";

impl Catalog {
    /// Partitions with rows in the tail, the longest waiting first. Damaged rows are set aside.
    pub async fn tail_backlog(&self) -> Result<Sound<TailBacklog>, CatalogError> {
        let mut backlog: HashMap<(PersonId, TypeId), TailBacklog> = HashMap::new();
        let Sound { sound, set_aside } = self
            .sound_rows(&PIECES, "WHERE path IS NULL ORDER BY created_at", Vec::new())
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
            entry.memory += tail_memory_of(&row).unwrap_or(bytes.saturating_mul(USUAL_RATIO));
            entry.oldest = entry.oldest.min(Instant::from_micros(row.int(14)?));
        }
        let mut backlog: Vec<TailBacklog> = backlog.into_values().collect();
        backlog.sort_by(|one, other| {
            one.oldest
                .cmp(&other.oldest)
                .then_with(|| one.data_type.cmp(&other.data_type))
                .then_with(|| one.person.cmp(&other.person))
        });
        Ok(Sound {
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
        let rows = self
            .database
            .fetch(BLOB_OF_PIECE.to_owned(), vec![id(piece.0)])
            .await?;
        rows.first().map(|row| row.bytes(0)).transpose()
    }

    /// Partitions with at least `pieces` pieces or any dead row, in which compaction may find work. The
    /// largest number of pieces first.
    pub async fn compaction_candidates(
        &self,
        pieces: i64,
    ) -> Result<Sound<CompactionCandidate>, CatalogError> {
        let rest = "WHERE pieces >= $1 OR dead > 0 ORDER BY pieces DESC";
        let rows = self.sound_rows(&PARTITIONS, rest, vec![Value::Int(pieces)]);
        rows.await?.try_map(|row| {
            Ok(CompactionCandidate {
                person: row.id(0, PersonId::from_slice)?,
                data_type: TypeId(row.text(1)?.into()),
                version: row.int(2)?,
            })
        })
    }
}
