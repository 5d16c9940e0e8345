//! Turns changes into what the catalogue commits: looks up what is stored, merges, and packs the rows.
//!
//! Knows snapshots and pieces; knows nothing of queues or requests.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::catalog::records::{Effect, Gathered, NewPiece, PartitionChange, SeenPartition};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::{Layout, TypeId};
use crate::store::StoreError;
use crate::store::arrange::{sort_rows, together, without_null_columns};
use crate::store::choose_tail_pieces::taken_along;
use crate::store::find::FoundRows;
use crate::store::sealing;
use crate::store::snapshot::Snapshot;
use crate::store::tail::Packer;

use super::changes::{Change, OrderedChanges, ids_to_look_up};
use super::errors::AssembleError;
use super::forward::bring_forward;
use super::merge::{self, Outcome};
use super::stored::{StoredRows, adapt};
use super::stores::{IntakeStores, Stores};
use super::upload::WrittenRows;

/// Rows of more bytes are assembled on a blocking thread, so that requests do not wait.
const HANDED_OVER: usize = 64 << 10;

/// A change of a partition, with the rows that it adds to the tail.
pub struct Assembled {
    pub change: PartitionChange,
    pub rows: Vec<Option<RecordBatch>>,
    /// Pieces of the tail whose rows are included in these.
    pub gathered: Option<Gathered>,
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

/// Merges what is asked of a partition with what is stored.
pub async fn tail_change(
    stores: &Stores,
    looks: Looks,
    piece: PieceId,
    person: PersonId,
    data_type: TypeId,
    layout: &Arc<Layout>,
    asked: OrderedChanges,
) -> Result<TailChange, AssembleError> {
    let ids = ids_to_look_up(&asked.changes);
    // Rows that have only new ids can be added whatever else happens to the partition, so nothing is looked
    // up.
    let (seen, found) = if ids.is_empty() {
        (None, Vec::new())
    } else {
        let (snapshot, found) = stored_rows(stores, looks, person, &data_type, &ids).await?;
        (Some(snapshot), found)
    };
    let expected = seen.as_ref().map(|seen| (seen.version, seen.digest));
    let bytes: usize = asked.changes.iter().map(Change::bytes).sum();
    let layout = Arc::clone(layout);
    let packer = stores.packer.clone();
    let work = move || packed(&packer, piece, &layout, asked, &found, seen.as_deref());
    let packed = if bytes < HANDED_OVER {
        work()?
    } else {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| AssembleError::Broken(error.to_string()))??
    };
    let Packed {
        mut add,
        rows,
        outcome,
        gathered,
    } = packed;
    // What was added and deleted again leaves no row, but counts among the updates.
    if add.is_empty() && outcome.dead.is_empty() && outcome.updates == 0 {
        return Ok(TailChange {
            added: None,
            unchanged: expected.map(|(version, digest)| SeenPartition {
                person,
                data_type,
                version,
                digest,
            }),
            effects: outcome.effects,
        });
    }
    if let Some(keys) = stores.snapshots.keys() {
        let mut sealed = Vec::with_capacity(add.len());
        for piece in add {
            sealed.push(sealing::sealed(keys, person, piece).await?);
        }
        add = sealed;
    }
    let gathered = (!gathered.is_empty()).then(|| Gathered {
        person,
        data_type: data_type.clone(),
        pieces: gathered,
        into: piece,
    });
    let change = PartitionChange {
        person,
        data_type,
        expected_version: expected.map(|(version, _)| version),
        expected_digest: expected.map(|(_, digest)| digest),
        add,
        dead: outcome.dead,
        records_delta: outcome.records_delta,
        updates: outcome.updates,
    };
    Ok(TailChange {
        added: Some(Assembled {
            change,
            rows,
            gathered,
        }),
        unchanged: None,
        effects: outcome.effects,
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
        match stores.finder.predecessors(&snapshot, ids).await {
            Ok(found) => return Ok((snapshot, found)),
            Err(error) => failed = Some((snapshot.stamp(), error)),
        }
    }
    let snapshot = stores.snapshot(person, data_type).await?;
    // Objects of an outdated state may be gone; if the state is current, asking its objects again is no use.
    if let Some((_, error)) = failed.filter(|(stamp, _)| *stamp == snapshot.stamp()) {
        return Err(error);
    }
    let found = stores.finder.predecessors(&snapshot, ids).await?;
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

fn packed(
    packer: &Packer,
    piece: PieceId,
    layout: &Layout,
    mut asked: OrderedChanges,
    found: &[FoundRows],
    seen: Option<&Snapshot>,
) -> Result<Packed, AssembleError> {
    let schema = &layout.storage;
    asked.changes = in_schema(schema, &asked.changes)?;
    let outcome = merge::merge(schema, &asked, &StoredRows::new(schema, found)?)?;
    let mut add = Vec::new();
    let mut rows = Vec::new();
    let mut gathered = Vec::new();
    if let Some(added) = &outcome.add {
        let mut parts = vec![without_null_columns(added)?];
        if let Some(seen) = seen {
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
        expected_version: Some(written.base.version),
        expected_digest: Some(written.base.digest),
        add: written.pieces.clone(),
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
            Change::Put { rows, given, undated } => Ok(Change::Put {
                rows: adapt(schema, rows)?,
                given: Arc::clone(given),
                undated: Arc::clone(undated),
            }),
            Change::Delete { .. } => Ok(change.clone()),
        })
        .collect()
}
