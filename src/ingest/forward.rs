//! Brings a large body up to date with what happened to its partition while it was read.
//!
//! A body's rows are written long before they are committed, against a state that others go on to change:
//! rows that it replaces may be gone by then, ids that were new may have been taken, and rows that it left
//! out because they were stored already may have been deleted. This module replaces that state with a later
//! one, so that the body has the effect that it would have if all of it had come at once. The number of its
//! updates is not always that: of a record that the body itself changes, only the last line is kept, and
//! whether the first one changed something is known of the states that were looked at. If others change the
//! same record meanwhile, it may count one update too many or, once their rows were collected, too few. Knows
//! snapshots and objects; knows nothing of requests.

use std::collections::{HashMap, HashSet};

use arrow::array::UInt32Array;
use arrow::compute::take_record_batch;

use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::find::FoundRows;
use crate::store::piece::{Target, write_batch};
use crate::store::snapshot::Snapshot;

use super::compare_lines::changed_ids;
use super::compare_rows::RowComparer;
use super::errors::AssembleError;
use super::stored::{StoredRow, StoredRows};
use super::stores::IntakeStores;
use super::upload::WrittenRows;

/// Compares `written` with the partition as it is now.
pub(super) async fn bring_forward(
    shared: &IntakeStores,
    person: PersonId,
    written: &mut WrittenRows,
) -> Result<(), AssembleError> {
    let now = shared.stores.snapshot(person, &written.data_type).await?;
    if now.stamp != written.base.stamp {
        let alive = Alive::of(&now);
        written.replaced.retain(|(piece, id)| alive.has(*piece, *id));
        let moved: Vec<RecordId> = written
            .dropped
            .iter()
            .filter(|(id, piece)| !alive.has(*piece, *id))
            .map(|(id, _)| id)
            .collect();
        let begun: Vec<RecordId> = written
            .begun_as_stored
            .iter()
            .filter(|(id, piece)| !alive.has(*piece, *id))
            .map(|(id, _)| id)
            .collect();
        let (changed, unchanged) = begun
            .into_iter()
            .partition::<Vec<_>, _>(|id| written.changes.contains_key(id));
        let since = without(&now, &written.base);
        let mut ids: Vec<RecordId> = written.given.iter().map(|(id, _)| id).collect();
        ids.extend_from_slice(&moved);
        let found = shared.stores.finder.live_rows_of(&since, &ids).await?;
        let pieces = found
            .iter()
            .flat_map(|part| part.ids.iter().map(|id| (*id, part.piece)));
        let mut taken: HashMap<RecordId, PieceId> = pieces.collect();
        written.begun_as_stored.remove(&unchanged);
        let same = restated(shared, written, &found).await?;
        written.begun_as_stored.put(same);
        if !moved.is_empty() || !changed.is_empty() {
            let found = StoredRows::new(&written.layout.storage, &found)?;
            look_at_begun(shared, written, &changed, &found).await?;
            for id in look_at_dropped(shared, person, written, &moved, &found).await? {
                taken.remove(&id);
            }
        }
        let known: HashSet<(PieceId, RecordId)> = written.replaced.iter().copied().collect();
        let taken = taken.into_iter().map(|(id, piece)| (piece, id));
        written.replaced.extend(taken.filter(|row| !known.contains(row)));
    }
    written.base = now;
    Ok(())
}

/// Of the ids that were found, those of which all lines of the body say what is stored there, each with the
/// piece that holds it. Their rows are written already; they take the place of what is found, and change
/// nothing.
async fn restated(
    shared: &IntakeStores,
    written: &WrittenRows,
    found: &[FoundRows],
) -> Result<Vec<(RecordId, PieceId)>, AssembleError> {
    let mut restated = Vec::new();
    for part in found {
        let ids = part.ids.iter().enumerate();
        let said_once = ids.filter(|(_, id)| written.given.has(**id) && !written.changes.contains_key(*id));
        let said_once: Vec<(RecordId, usize)> = said_once.map(|(row, id)| (*id, row)).collect();
        let others = changed_ids(&shared.stores.finder, written, &part.rows, &said_once).await?;
        let others: HashSet<RecordId> = others.into_iter().collect();
        let same = said_once.into_iter().filter(|(id, _)| !others.contains(id));
        restated.extend(same.map(|(id, _)| (id, part.piece)));
    }
    Ok(restated)
}

/// Looks whether the first lines of ids that later lines changed still find what they said. Where one does
/// not, it changes something after all. That is not taken back when others store what it said after that, nor
/// is it seen when they store what the first line of another id said: what a first line said is known only as
/// long as a row that is stored says it too. Such an id counts one update too many.
///
/// What it said may be gone with the object that held it: compaction moved the row and the object was
/// collected, after which it is missing or, if its footer is not in memory, counts as lost. Then a row that
/// is there is taken for the one that was moved. That may cost a count, for which no body is refused.
async fn look_at_begun(
    shared: &IntakeStores,
    written: &mut WrittenRows,
    begun: &[RecordId],
    found: &StoredRows,
) -> Result<(), AssembleError> {
    let (same, others) = match held_against(shared, written, begun, found).await {
        Ok(moved) => (
            moved.same,
            moved.others.into_iter().map(|(id, _)| id).collect::<Vec<_>>(),
        ),
        Err(AssembleError::Store(error))
            if error.is_damage() || matches!(error, StoreError::Missing { .. }) =>
        {
            let here = begun.iter().filter_map(|id| Some((*id, found.get(*id)?.piece)));
            let gone = begun.iter().copied().filter(|id| found.get(*id).is_none());
            (here.collect(), gone.collect())
        }
        Err(error) => return Err(error),
    };
    written.begun_as_stored.put(same);
    written.begun_as_stored.remove(&others);
    Ok(())
}

/// Handles rows that were left out and are no longer where they were. Those stored elsewhere with the same
/// content stay left out, and their ids are returned; the others are written after all, and replace what is
/// found.
async fn look_at_dropped(
    shared: &IntakeStores,
    person: PersonId,
    written: &mut WrittenRows,
    moved: &[RecordId],
    found: &StoredRows,
) -> Result<Vec<RecordId>, AssembleError> {
    if moved.is_empty() {
        return Ok(Vec::new());
    }
    let moved = held_against(shared, written, moved, found).await;
    let moved = moved.map_err(|error| match error {
        AssembleError::Store(StoreError::Missing { path }) => StoreError::Unavailable {
            detail: format!("object {path}, which a body was held against, was collected meanwhile"),
        }
        .into(),
        other => other,
    })?;
    let left_out = moved.same.iter().map(|(id, _)| *id).collect();
    written.dropped.put(moved.same);
    if moved.others.is_empty() {
        return Ok(left_out);
    }
    let missing = UInt32Array::from_iter_values(moved.others.into_iter().map(|(_, row)| row as u32));
    let rows = take_record_batch(&moved.as_sent.rows, &missing)?;
    let target = Target {
        person,
        data_type: written.data_type.clone(),
        layout_version: written.layout.version,
    };
    let keys = KeyColumns::of(&rows)?;
    let pieces = write_batch(&shared.objects, shared.ids.as_ref(), target, &rows).await?;
    written.take_in(
        pieces,
        (0..keys.len()).map(|row| (keys.id(row), keys.starts.value(row))),
    );
    Ok(left_out)
}

/// Rows that are no longer where `base` had them.
struct Moved {
    /// As `base` had them.
    as_sent: StoredRows,
    /// Those stored elsewhere with the same content, each with the piece that holds it now.
    same: Vec<(RecordId, PieceId)>,
    /// The others, each with its row in `as_sent`.
    others: Vec<(RecordId, usize)>,
}

async fn held_against(
    shared: &IntakeStores,
    written: &WrittenRows,
    moved: &[RecordId],
    found: &StoredRows,
) -> Result<Moved, AssembleError> {
    let schema = &written.layout.storage;
    let as_sent = shared.stores.finder.live_rows_of(&written.base, moved).await?;
    let as_sent = StoredRows::new(schema, &as_sent)?;
    let mut same = Vec::new();
    let mut others = Vec::new();
    let mut compared: Vec<(RecordId, StoredRow, StoredRow)> = Vec::new();
    for id in moved {
        let Some(sent) = as_sent.get(*id) else {
            return Err(StoreError::corrupt(format!("record {id} was stored and is not")).into());
        };
        match found.get(*id) {
            Some(other) => compared.push((*id, sent, other)),
            None => others.push((*id, sent.row)),
        }
    }
    if !compared.is_empty() {
        let comparer = RowComparer::new(schema)?;
        let rows: (Vec<usize>, Vec<usize>) = compared
            .iter()
            .map(|(_, sent, other)| (sent.row, other.row))
            .unzip();
        let (sent, elsewhere) = (
            comparer.some(&as_sent.rows, &rows.0)?,
            comparer.some(&found.rows, &rows.1)?,
        );
        for ((sent, other), (id, place, now)) in sent.iter().zip(elsewhere.iter()).zip(compared) {
            if sent == other {
                same.push((id, now.piece));
            } else {
                others.push((id, place.row));
            }
        }
    }
    Ok(Moved {
        as_sent,
        same,
        others,
    })
}

/// The pieces of `now` that are not in `before`, or in which rows live again that were dead before because a
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

/// Which rows a snapshot has, as far as it shows without reading: those of its pieces that are not dead.
struct Alive<'s>(HashMap<PieceId, &'s [RecordId]>);

impl<'s> Alive<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let dead = snapshot
            .pieces
            .iter()
            .map(|piece| (piece.id, piece.dead.as_ref()));
        Self(dead.collect())
    }

    /// Whether the row of `id` that was in `piece` is still there.
    fn has(&self, piece: PieceId, id: RecordId) -> bool {
        self.0
            .get(&piece)
            .is_some_and(|dead| dead.binary_search(&id).is_err())
    }
}
