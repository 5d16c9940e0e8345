//! From changes to what the catalogue commits: looks up what is stored, merges, and packs the rows.
//!
//! Knows snapshots and pieces; knows nothing of queues or requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::catalog::records::PartitionChange;
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::{Layout, TypeId};
use crate::store::StoreError;
use crate::store::arrange::{sort_rows, without_null_columns};
use crate::store::find::{Finder, Predecessor};
use crate::store::snapshot::{Snapshot, Snapshots};
use crate::store::tail;

use super::merge::{self, Change, Stored};
use super::upload::WrittenRows;

/// Why changes could not be turned into a commit.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("rows could not be put together: {0}")]
    Rows(#[from] ArrowError),
}

/// Where stored rows are looked up.
#[derive(Clone)]
pub struct Stores {
    pub snapshots: Snapshots,
    pub finder: Finder,
}

impl Stores {
    /// One partition, as it is now.
    pub async fn snapshot(&self, person: PersonId, data_type: &TypeId) -> Result<Arc<Snapshot>, StoreError> {
        let mut snapshots = self
            .snapshots
            .get(person, std::slice::from_ref(data_type))
            .await?;
        snapshots
            .pop()
            .ok_or_else(|| StoreError::corrupt(format!("partition {data_type} was not read")))
    }
}

/// A change of a partition, with the rows that it adds to the tail.
pub struct Assembled {
    pub change: PartitionChange,
    pub rows: Vec<Option<RecordBatch>>,
}

/// What `changes` do to a partition; `None` when they change nothing.
pub async fn small(
    stores: &Stores,
    piece: PieceId,
    person: PersonId,
    data_type: TypeId,
    layout: &Arc<Layout>,
    changes: &[Change],
) -> Result<Option<Assembled>, AssembleError> {
    let ids = merge::ids_to_look_up(changes);
    let schema = &layout.storage;
    let changes = in_schema(schema, changes)?;
    // Rows with new ids only can be added whatever else happens to the partition, so nothing is looked at.
    let (expected_version, stored) = if ids.is_empty() {
        (None, HashMap::new())
    } else {
        let snapshot = stores.snapshot(person, &data_type).await?;
        let found = stores.finder.predecessors(&snapshot, &ids).await?;
        (Some(snapshot.version), stored_rows(schema, found)?)
    };
    let outcome = merge::merge(schema, &changes, &stored)?;
    if outcome.add.is_none() && outcome.dead.is_empty() {
        return Ok(None);
    }
    let mut add = Vec::new();
    let mut rows = Vec::new();
    if let Some(added) = &outcome.add {
        let sorted = sort_rows(added)?;
        add.push(tail::piece(piece, &sorted, layout.version)?);
        rows.push(Some(without_null_columns(&sorted)?));
    }
    let change = PartitionChange {
        person,
        data_type,
        expected_version,
        add,
        dead: outcome.dead,
        records_delta: outcome.records_delta,
        updates: outcome.updates,
    };
    Ok(Some(Assembled { change, rows }))
}

/// What rows that stand in objects do to their partition, as it is now.
pub async fn written(
    stores: &Stores,
    person: PersonId,
    written: &WrittenRows,
) -> Result<Assembled, AssembleError> {
    let snapshot = stores.snapshot(person, &written.data_type).await?;
    let mut dead = still_replaced(written, &snapshot);
    if snapshot.stamp() != written.base.stamp() {
        let known: HashSet<PieceId> = written.base.pieces.iter().map(|piece| piece.id).collect();
        let ids: Vec<RecordId> = written.given.keys().copied().collect();
        let since = Snapshot {
            pieces: snapshot
                .pieces
                .iter()
                .filter(|piece| !known.contains(&piece.id))
                .cloned()
                .collect(),
            ..(*snapshot).clone()
        };
        let found = stores.finder.predecessors(&since, &ids).await?;
        dead.extend(found.into_iter().map(|(id, predecessor)| (predecessor.piece, id)));
    }
    let replaced = dead.len() as i64;
    dead.extend_from_slice(&written.superseded);
    let change = PartitionChange {
        person,
        data_type: written.data_type.clone(),
        expected_version: Some(snapshot.version),
        add: written.pieces.clone(),
        dead,
        records_delta: written.live() - replaced,
        updates: written.live(),
    };
    Ok(Assembled {
        change,
        rows: Vec::new(),
    })
}

/// The rows found while the body was read that are alive where they were found.
fn still_replaced(written: &WrittenRows, snapshot: &Snapshot) -> Vec<(PieceId, RecordId)> {
    let dead: HashMap<PieceId, &[RecordId]> = snapshot
        .pieces
        .iter()
        .map(|piece| (piece.id, piece.dead.as_ref()))
        .collect();
    let lives = |(piece, id): &(PieceId, RecordId)| {
        dead.get(piece)
            .is_some_and(|dead| dead.binary_search(id).is_err())
    };
    written.replaced.iter().copied().filter(lives).collect()
}

fn stored_rows(
    schema: &SchemaRef,
    found: HashMap<RecordId, Predecessor>,
) -> Result<HashMap<RecordId, Stored>, ArrowError> {
    found
        .into_iter()
        .map(|(id, predecessor)| {
            Ok((
                id,
                Stored {
                    piece: predecessor.piece,
                    row: adapt(schema, &predecessor.row)?,
                },
            ))
        })
        .collect()
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
            Change::Delete { records } => Ok(Change::Delete {
                records: records.clone(),
            }),
        })
        .collect()
}

/// `rows` with exactly the columns of `schema`: a type that grew has columns that older rows do not.
pub fn adapt(schema: &SchemaRef, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if rows.schema_ref() == schema {
        return Ok(rows.clone());
    }
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| match rows.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => arrow::compute::cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        })
        .collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}
