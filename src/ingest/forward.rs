//! What happened to a partition while a large body was read.
//!
//! A body's rows are written long before they are committed, against a state that others go on to change:
//! rows that it replaces may be gone by then, ids that were new may have been taken, and rows that it left
//! out because they were stored already may have been deleted. Here that state is exchanged for a later one,
//! so that the body has the effect that it would have if all of it had come at once. Knows snapshots and
//! objects; knows nothing of requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::find::Predecessor;
use crate::store::piece::{Target, write_batch};
use crate::store::snapshot::Snapshot;

use super::assemble::{AssembleError, adapt};
use super::intake::IntakeStores;
use super::merge::Content;
use super::upload::WrittenRows;

/// Holds `written` against the partition as it is now.
pub(super) async fn bring_forward(
    shared: &IntakeStores,
    person: PersonId,
    written: &mut WrittenRows,
) -> Result<(), AssembleError> {
    let now = shared.stores.snapshot(person, &written.data_type).await?;
    if now.stamp() != written.base.stamp() {
        let alive = Alive::of(&now);
        written.replaced.retain(|(piece, id)| alive.has(*piece, *id));
        let moved: Vec<RecordId> = written
            .dropped
            .iter()
            .filter(|(id, piece)| !alive.has(**piece, **id))
            .map(|(id, _)| *id)
            .collect();
        let since = without(&now, &written.base);
        let mut ids: Vec<RecordId> = written.given.keys().copied().collect();
        ids.extend_from_slice(&moved);
        let mut found = shared.stores.finder.predecessors(&since, &ids).await?;
        if !moved.is_empty() {
            look_at_dropped(shared, person, written, &moved, &mut found).await?;
        }
        let known: HashSet<(PieceId, RecordId)> = written.replaced.iter().copied().collect();
        let taken = found.into_iter().map(|(id, predecessor)| (predecessor.piece, id));
        written.replaced.extend(taken.filter(|row| !known.contains(row)));
    }
    written.base = now;
    Ok(())
}

/// Rows that were left out stand no longer where they stood. Those that stand elsewhere just so stay left
/// out; the others are written after all. Leaves in `found` the rows that are replaced.
async fn look_at_dropped(
    shared: &IntakeStores,
    person: PersonId,
    written: &mut WrittenRows,
    moved: &[RecordId],
    found: &mut HashMap<RecordId, Predecessor>,
) -> Result<(), AssembleError> {
    let schema = Arc::clone(&written.layout.storage);
    let as_sent = shared.stores.finder.predecessors(&written.base, moved).await;
    let as_sent = as_sent.map_err(|error| match error {
        StoreError::Missing { path } => StoreError::Unavailable {
            detail: format!("object {path}, which a body was held against, was collected meanwhile"),
        },
        other => other,
    })?;
    let mut sent = Vec::with_capacity(moved.len());
    for id in moved {
        let Some(row) = as_sent.get(id) else {
            return Err(StoreError::corrupt(format!("record {id} was stored and is not")).into());
        };
        sent.push(adapt(&schema, &row.row)?);
    }
    let mut compared: Vec<(usize, PieceId, RecordBatch)> = Vec::new();
    for (place, id) in moved.iter().enumerate() {
        if let Some(other) = found.get(id) {
            compared.push((place, other.piece, adapt(&schema, &other.row)?));
        }
    }
    let mut stays_left_out = vec![false; moved.len()];
    if !compared.is_empty() {
        let content = Content::new(&schema)?;
        let ours = concat_batches(
            &schema,
            compared.iter().filter_map(|(place, ..)| sent.get(*place)),
        )?;
        let others = concat_batches(&schema, compared.iter().map(|(_, _, row)| row))?;
        let (ours, others) = (content.rows(&ours)?, content.rows(&others)?);
        for (index, (place, piece, _)) in compared.iter().enumerate() {
            if let (true, Some(id)) = (ours.row(index) == others.row(index), moved.get(*place)) {
                stays_left_out[*place] = true;
                written.dropped.insert(*id, *piece);
                found.remove(id);
            }
        }
    }
    let missing: Vec<&RecordBatch> = sent
        .iter()
        .zip(&stays_left_out)
        .filter(|(_, left_out)| !**left_out)
        .map(|(row, _)| row)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let rows = concat_batches(&schema, missing)?;
    let target = Target {
        person,
        data_type: written.data_type.clone(),
        layout_version: written.layout.version,
    };
    let pieces = write_batch(&shared.objects, shared.ids.as_ref(), target, &rows).await?;
    let keys = KeyColumns::of(&rows)?;
    written.take_in(
        pieces,
        (0..keys.len()).map(|row| (keys.id(row), keys.starts.value(row))),
    );
    Ok(())
}

/// The pieces of `now` that are not in `before`, or in which rows live again that were dead before, because a
/// database lost its last commits.
fn without(now: &Snapshot, before: &Snapshot) -> Snapshot {
    let known: HashMap<PieceId, &[RecordId]> = before
        .pieces
        .iter()
        .map(|piece| (piece.id, piece.dead.as_ref()))
        .collect();
    let new = now.pieces.iter().filter(|piece| {
        known
            .get(&piece.id)
            .is_none_or(|dead| dead.iter().any(|id| piece.dead.binary_search(id).is_err()))
    });
    Snapshot {
        pieces: new.cloned().collect(),
        ..now.clone()
    }
}

/// Which rows a snapshot has, as far as it knows without reading: those of its pieces that are not dead.
struct Alive<'s>(HashMap<PieceId, &'s [RecordId]>);

impl<'s> Alive<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let dead = snapshot
            .pieces
            .iter()
            .map(|piece| (piece.id, piece.dead.as_ref()));
        Self(dead.collect())
    }

    /// Whether the row of `id` that once was in `piece` still is.
    fn has(&self, piece: PieceId, id: RecordId) -> bool {
        self.0
            .get(&piece)
            .is_some_and(|dead| dead.binary_search(&id).is_err())
    }
}
