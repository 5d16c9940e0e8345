//! Turns changes into what the catalogue commits: looks up what is stored, merges, and packs the rows.
//!
//! Knows snapshots and pieces; knows nothing of queues, and requests only by their numbers.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::catalog::records::{Effect, GatheredTail, NewPiece, PartitionChange, SeenPartition};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::{Layout, TypeId};
use crate::store::StoreError;
use crate::store::arrange::{sort_rows, together, without_null_columns};
use crate::store::blocking::run_blocking;
use crate::store::choose_tail_pieces::taken_along;
use crate::store::find::FoundRows;
use crate::store::sealing;
use crate::store::snapshot::Snapshot;
use crate::store::tail::Packer;

use super::changes::{Change, OrderedChanges, ids_to_look_up};
use super::errors::AssembleError;
use super::forward::bring_forward;
use super::merge_changes::{Outcome, merge};
use super::stored::{StoredRows, adapt};
use super::stores::{IntakeStores, Stores};
use super::upload::{PartitionChanges, WrittenRows};

/// Rows of more bytes are assembled on a blocking thread, so that requests do not wait.
const HANDED_OVER: usize = 64 << 10;

/// A change of a partition, with the rows that it adds to the tail.
pub struct Assembled {
    pub change: PartitionChange,
    pub rows: Vec<Option<RecordBatch>>,
    /// Pieces of the tail whose rows are included in these.
    pub gathered: Option<GatheredTail>,
}

/// The result of what is asked of a partition.
pub struct TailChange {
    /// `None` when it changes nothing.
    pub added: Option<Assembled>,
    /// The state of the partition that the result depends on, if it depends on one.
    pub unchanged: Option<SeenPartition>,
    /// What each request does.
    pub effects: Vec<Effect>,
}

/// Which state of a partition changes are compared with first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// The one in memory. If it is outdated, the commit that rests on it is stale, and everything is done
    /// again; a commit of one process mostly follows the one before it.
    AtMemory,
    /// The current one in the catalogue.
    AtCatalogue,
}

/// What a group of requests of one person asks of one partition.
pub struct GroupedChanges {
    pub person: PersonId,
    pub data_type: TypeId,
    /// The newest layout that one of the requests was decoded with.
    pub layout: Arc<Layout>,
    pub asked: OrderedChanges,
}

impl GroupedChanges {
    /// Adds what one more request asks.
    pub fn add(&mut self, request: usize, partition: &PartitionChanges) {
        if partition.layout.version > self.layout.version {
            self.layout = Arc::clone(&partition.layout);
        }
        self.asked.extend(request, partition.changes.iter().cloned());
    }
}

/// Merges what is asked of a partition with what is stored. New rows become `piece` of the tail.
pub async fn tail_change(
    stores: &Stores,
    looks: Looks,
    piece: PieceId,
    grouped: GroupedChanges,
) -> Result<TailChange, AssembleError> {
    let (person, data_type) = (grouped.person, grouped.data_type.clone());
    let stored = look_up(stores, looks, &grouped).await?;
    let expected = stored.seen.as_ref().map(|seen| seen.stamp);
    let packed = pack(&stores.packer, piece, grouped, stored).await?;
    if packed.changes_nothing() {
        return Ok(TailChange {
            added: None,
            unchanged: expected.map(|stamp| SeenPartition {
                person,
                data_type,
                stamp,
            }),
            effects: packed.outcome.effects,
        });
    }
    let gathered = (!packed.gathered.is_empty()).then(|| GatheredTail {
        person,
        data_type: data_type.clone(),
        pieces: packed.gathered,
        into: piece,
    });
    let outcome = packed.outcome;
    let change = PartitionChange {
        person,
        data_type,
        expected,
        add: seal(stores, person, packed.add).await?,
        dead: outcome.dead,
        records_delta: outcome.records_delta,
        updates: outcome.updates,
    };
    Ok(TailChange {
        added: Some(Assembled {
            change,
            rows: packed.rows,
            gathered,
        }),
        unchanged: None,
        effects: outcome.effects,
    })
}

/// The stored rows that changes may replace or delete, and the state of the partition that they are from.
#[derive(Default)]
struct LookedUp {
    seen: Option<Arc<Snapshot>>,
    found: Vec<FoundRows>,
}

async fn look_up(stores: &Stores, looks: Looks, grouped: &GroupedChanges) -> Result<LookedUp, StoreError> {
    let ids = ids_to_look_up(&grouped.asked.changes);
    // Rows that have only new ids can be added whatever else happens to the partition, so nothing is looked
    // up.
    if ids.is_empty() {
        return Ok(LookedUp::default());
    }
    let (snapshot, found) = stored_rows(stores, looks, grouped.person, &grouped.data_type, &ids).await?;
    Ok(LookedUp {
        seen: Some(snapshot),
        found,
    })
}

/// The rows that are stored under `ids`, and the state of the partition that they are from.
async fn stored_rows(
    stores: &Stores,
    looks: Looks,
    person: PersonId,
    data_type: &TypeId,
    ids: &[RecordId],
) -> Result<(Arc<Snapshot>, Vec<FoundRows>), StoreError> {
    let remembered = stores.snapshots.cached(person, data_type);
    let remembered = remembered.filter(|_| looks == Looks::AtMemory);
    let mut failed = None;
    if let Some(snapshot) = remembered {
        match stores.finder.live_rows_of(&snapshot, ids).await {
            Ok(found) => return Ok((snapshot, found)),
            Err(error) => failed = Some((snapshot.stamp, error)),
        }
    }
    let snapshot = stores.snapshot(person, data_type).await?;
    // Objects of an outdated state may be gone; if the state is current, asking its objects again is no use.
    if let Some((_, error)) = failed.filter(|(stamp, _)| *stamp == snapshot.stamp) {
        return Err(error);
    }
    let found = stores.finder.live_rows_of(&snapshot, ids).await?;
    Ok((snapshot, found))
}

/// The result of changes, with the rows as a piece.
struct Packed {
    add: Vec<NewPiece>,
    rows: Vec<Option<RecordBatch>>,
    outcome: Outcome,
    /// Pieces of the tail whose rows are included in these.
    gathered: Vec<PieceId>,
}

impl Packed {
    /// What was added and deleted again leaves no row, but counts among the updates.
    const fn changes_nothing(&self) -> bool {
        self.add.is_empty() && self.outcome.dead.is_empty() && self.outcome.updates == 0
    }
}

async fn pack(
    packer: &Packer,
    piece: PieceId,
    grouped: GroupedChanges,
    stored: LookedUp,
) -> Result<Packed, AssembleError> {
    let bytes: usize = grouped.asked.changes.iter().map(Change::bytes).sum();
    let packer = packer.clone();
    let work = move || packed(&packer, piece, grouped, &stored);
    if bytes < HANDED_OVER {
        return work();
    }
    run_blocking(work).await
}

fn packed(
    packer: &Packer,
    piece: PieceId,
    grouped: GroupedChanges,
    stored: &LookedUp,
) -> Result<Packed, AssembleError> {
    let (layout, mut asked) = (grouped.layout, grouped.asked);
    let schema = &layout.storage;
    asked.changes = in_schema(schema, &asked.changes)?;
    let outcome = merge(schema, &asked, &StoredRows::new(schema, &stored.found)?)?;
    let mut add = Vec::new();
    let mut rows = Vec::new();
    let mut gathered = Vec::new();
    if let Some(added) = &outcome.add {
        let mut parts = vec![without_null_columns(added)?];
        if let Some(seen) = &stored.seen {
            let dying = |piece: PieceId| outcome.dead.iter().any(|(dying, _)| *dying == piece);
            for (piece, rows) in taken_along(seen, layout.version, added.num_rows(), dying) {
                gathered.push(piece.id);
                parts.push(rows.batch().clone());
            }
        }
        let sorted = sort_rows(&together(&parts)?)?;
        add.push(packer.piece(piece, &sorted, layout.version)?);
        rows.push(Some(sorted));
    }
    Ok(Packed {
        add,
        rows,
        outcome,
        gathered,
    })
}

/// The pieces as they are stored: sealed with the person's key, where encryption is enabled.
async fn seal(stores: &Stores, person: PersonId, pieces: Vec<NewPiece>) -> Result<Vec<NewPiece>, StoreError> {
    let Some(keys) = stores.snapshots.keys() else {
        return Ok(pieces);
    };
    let mut sealed = Vec::with_capacity(pieces.len());
    for piece in pieces {
        sealed.push(sealing::sealed(keys, person, piece).await?);
    }
    Ok(sealed)
}

/// The effect of rows already written to objects on their partition, as it is now.
pub async fn written(
    shared: &IntakeStores,
    person: PersonId,
    written: &mut WrittenRows,
) -> Result<Assembled, AssembleError> {
    bring_forward(shared, person, written).await?;
    let mut dead = written.replaced.clone();
    let replaced = dead.len() as i64;
    dead.extend_from_slice(&written.superseded);
    let change = PartitionChange {
        person,
        data_type: written.data_type.clone(),
        expected: Some(written.base.stamp),
        add: written.pieces.all(),
        dead,
        records_delta: written.live() - replaced,
        updates: written.updates(),
    };
    Ok(Assembled {
        change,
        rows: Vec::new(),
        gathered: None,
    })
}

fn in_schema(schema: &SchemaRef, changes: &[Change]) -> Result<Vec<Change>, ArrowError> {
    changes
        .iter()
        .map(|change| match change {
            Change::Put {
                rows, given, undated, ..
            } => {
                let rows = adapt(schema, rows)?;
                Ok(Change::put(rows, Arc::clone(given), Arc::clone(undated)))
            }
            Change::Delete { .. } => Ok(change.clone()),
        })
        .collect()
}
