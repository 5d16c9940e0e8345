//! Flush: the tail of a partition becomes objects, one per calendar year.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::merge::{living, united};
use super::settings::UpkeepSettings;
use super::stores::{Input, PartitionKey, UpkeepStores};
use crate::catalog::records::{CommitOutcome, TailBacklog};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::arrange::with_columns;
use crate::store::piece::{Target, write_batch};
use crate::store::snapshot::{Content, Snapshot, SnapshotPiece};

/// A tail of more pieces than this slows down every read of its partition.
const MOST_PIECES: i64 = 256;
/// Looks at a partition that others keep changing.
const ATTEMPTS: usize = 5;

/// Whether a tail has waited long enough, or is too large to wait.
#[must_use]
pub fn is_due(backlog: &TailBacklog, settings: &UpkeepSettings, now: Instant) -> bool {
    let age = i64::try_from(settings.flush_age.as_micros()).unwrap_or(i64::MAX);
    let size = i64::try_from(settings.flush_size).unwrap_or(i64::MAX);
    backlog.pieces >= MOST_PIECES
        || backlog.bytes >= size
        || now.micros().saturating_sub(backlog.oldest.micros()) >= age
        // Written by a node whose clock is ahead of this one.
        || backlog.oldest > now
}

/// Makes objects of the tail that a partition has now. Returns how many pieces of the tail are gone; none
/// when there was none, or when others kept changing it.
pub async fn flush(stores: &UpkeepStores, key: &PartitionKey) -> Result<usize, StoreError> {
    for _ in 0..ATTEMPTS {
        let mut snapshots = stores
            .snapshots
            .get(key.person, std::slice::from_ref(&key.data_type))
            .await?;
        let Some(snapshot) = snapshots.pop() else {
            return Ok(0);
        };
        let tail: Vec<(&SnapshotPiece, &RecordBatch)> = tail_of(&snapshot).collect();
        if tail.is_empty() {
            return Ok(0);
        }
        let inputs: Vec<Input> = tail
            .iter()
            .map(|(piece, _)| Input {
                piece: piece.id,
                dead: Arc::clone(&piece.dead),
            })
            .collect();
        let target = Target {
            person: key.person,
            data_type: key.data_type.clone(),
            layout_version: tail
                .iter()
                .map(|(piece, _)| piece.layout_version)
                .max()
                .unwrap_or(0),
        };
        let rows = living_rows(&tail)?;
        let output = if rows.num_rows() == 0 {
            Vec::new()
        } else {
            write_batch(stores.objects(), stores.ids.as_ref(), target, &rows).await?
        };
        if stores.replace(key, &inputs, output).await? == CommitOutcome::Done {
            return Ok(inputs.len());
        }
    }
    Ok(0)
}

fn tail_of(snapshot: &Snapshot) -> impl Iterator<Item = (&SnapshotPiece, &RecordBatch)> {
    snapshot.pieces.iter().filter_map(|piece| match &piece.content {
        Content::Tail(rows) => Some((piece, rows.batch())),
        Content::Object(_) => None,
    })
}

fn living_rows(tail: &[(&SnapshotPiece, &RecordBatch)]) -> Result<RecordBatch, StoreError> {
    let schema = united(tail.iter().map(|(_, rows)| rows.schema_ref()))?;
    let batches = tail
        .iter()
        .map(|(piece, rows)| living(&with_columns(rows, &schema)?, &piece.dead))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}
