//! Flush: the tail of a partition becomes objects, one per calendar year.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::merge::living;
use super::settings::UpkeepSettings;
use super::stores::{Input, PartitionKey, UpkeepStores};
use crate::catalog::records::{CommitOutcome, Piece, Place, TailBacklog};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::arrange::{united, with_columns};
use crate::store::piece::{Target, write_batch};
use crate::store::tail;

/// A tail of more pieces than this slows down every read of its partition.
const MOST_PIECES: i64 = 256;
/// A tail whose rows take so many times the size at which it is flushed is flushed however well it is
/// compressed.
const MOST_EXPANDED: i64 = 4;
/// Bytes of rows in memory that are flushed at once. More go in several steps.
const AT_ONCE: usize = 8 << 20;
/// Looks at a partition that others keep changing.
const ATTEMPTS: usize = 5;
/// Who was overtaken, because writes that come put small pieces together, leaves those with fewer rows to the
/// next round, first these and then also those of more. Rows that waited long are in larger ones.
const LEFT_TO_WRITES: [i64; 3] = [0, 256, 4096];

/// Whether a tail has waited long enough, or is too large to wait.
#[must_use]
pub fn is_due(backlog: &TailBacklog, settings: &UpkeepSettings, now: Instant) -> bool {
    let age = i64::try_from(settings.flush_age.as_micros()).unwrap_or(i64::MAX);
    let size = i64::try_from(settings.flush_size).unwrap_or(i64::MAX);
    backlog.pieces >= MOST_PIECES
        || backlog.bytes >= size
        || backlog.memory >= size.saturating_mul(MOST_EXPANDED)
        || now.micros().saturating_sub(backlog.oldest.micros()) >= age
        // Written by a node whose clock is ahead of this one.
        || backlog.oldest > now
}

/// Makes objects of the tail that a partition has now, in steps that fit into memory. Returns how many pieces
/// of the tail are gone; none when there was none, or when others kept changing it.
pub async fn flush(stores: &UpkeepStores, key: &PartitionKey) -> Result<usize, StoreError> {
    let mut overtaken = 0;
    let mut flushed = 0;
    let mut waiting: Option<usize> = None;
    while overtaken < ATTEMPTS {
        // No bytes of the tail are wanted yet, so all of them count as held.
        let mut partitions = stores
            .catalog
            .snapshot(key.person, std::slice::from_ref(&key.data_type), &|_| true)
            .await?;
        let pieces = partitions
            .pop()
            .map(|partition| partition.pieces)
            .unwrap_or_default();
        let mut tail: Vec<&Piece> = pieces
            .iter()
            .filter(|piece| matches!(piece.place, Place::Tail { .. }))
            .collect();
        // What comes in while this works is left for the next round.
        let waiting = waiting.get_or_insert(tail.len());
        let fewest = LEFT_TO_WRITES.iter().take(overtaken + 1).rev();
        let settled = |fewest: &i64| tail.iter().any(|piece| piece.rows >= *fewest);
        if let Some(fewest) = fewest.copied().find(settled) {
            tail.retain(|piece| piece.rows >= fewest);
        }
        if tail.is_empty() || flushed >= *waiting {
            break;
        }
        let Some(part) = read_part(stores, key.person, &tail).await? else {
            overtaken += 1;
            continue;
        };
        let inputs: Vec<Input> = part
            .iter()
            .map(|(piece, _)| Input {
                piece: piece.id,
                dead: Arc::clone(&piece.dead),
            })
            .collect();
        let target = Target {
            person: key.person,
            data_type: key.data_type.clone(),
            layout_version: part
                .iter()
                .map(|(piece, _)| piece.layout_version)
                .max()
                .unwrap_or(0),
        };
        let rows = aside(move || living_rows(&part)).await?;
        let output = if rows.num_rows() == 0 {
            Vec::new()
        } else {
            write_batch(stores.objects(), stores.ids.as_ref(), target, &rows).await?
        };
        if stores.replace(key, &inputs, output).await? == CommitOutcome::Done {
            flushed += inputs.len();
        } else {
            overtaken += 1;
        }
    }
    Ok(flushed)
}

/// As many pieces as fit into memory, at least one, with their rows. `None`: one of them is gone.
async fn read_part(
    stores: &UpkeepStores,
    person: PersonId,
    tail: &[&Piece],
) -> Result<Option<Vec<(Piece, RecordBatch)>>, StoreError> {
    let mut part = Vec::new();
    let mut bytes = 0;
    for piece in tail {
        if bytes >= AT_ONCE {
            break;
        }
        let Some(blob) = stores.catalog.tail_blob(piece.id).await? else {
            return Ok(None);
        };
        let (id, checksum) = (piece.id, piece.checksum);
        let key = stores
            .snapshots
            .opener(person, std::iter::once(blob.as_slice()))
            .await?;
        let rows = aside(move || tail::open(id, &blob, checksum, key.as_ref())).await?;
        if rows.num_rows() as i64 != piece.rows {
            return Err(StoreError::corrupt(format!(
                "tail piece {} has another number of rows than was written",
                piece.id
            )));
        }
        bytes += rows.get_array_memory_size();
        part.push(((*piece).clone(), rows));
    }
    Ok(Some(part))
}

fn living_rows(tail: &[(Piece, RecordBatch)]) -> Result<RecordBatch, StoreError> {
    let schema = united(tail.iter().map(|(_, rows)| rows.schema_ref()))?;
    let batches = tail
        .iter()
        .map(|(piece, rows)| living(&with_columns(rows, &schema)?, &piece.dead))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}

/// Does work that takes long on a thread that answers nobody meanwhile.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Unavailable {
            detail: error.to_string(),
        })?
}
