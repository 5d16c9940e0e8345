//! Turns decoded rows into an upload: few rows stay in memory, many go straight into objects, chunk by chunk.
//!
//! An intake lives as long as one request. Nobody sees the objects that it writes until the commit; when the
//! request fails they are removed, and what a crash leaves behind is collected later. Knows rows, snapshots
//! and objects; knows nothing of JSON or of the queue.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;

use crate::catalog::records::{NewPiece, NewPlace};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::DataType;
use crate::model::sort_scattered::sort_scattered;
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::blocking::run_blocking;
use crate::store::objects::ObjectStorage;
use crate::store::piece::{Target, write_batch};

use super::changes::Change;
use super::compare_lines::{are_equal, changed_ids, changed_rows};
use super::dating::KnownTimes;
use super::errors::AssembleError;
use super::forward;
use super::pieces_by_id::PiecesById;
use super::stored::StoredRows;
use super::stores::IntakeStores;
use super::upload::{PartitionChanges, Work, WrittenPieces, WrittenRows};

/// A body with more rows than this goes straight to the object store.
pub const TAIL_ROWS: usize = 4096;
/// So does one with more bytes, because every reader of a partition reads its whole tail.
const TAIL_BYTES: usize = 2 << 20;
/// How many rows are decoded before they are written, which bounds the memory of a body of any length.
pub const CHUNK_ROWS: usize = 131_072;

/// Collects the rows of one body.
pub struct Intake {
    shared: IntakeStores,
    person: PersonId,
    data_type: Arc<DataType>,
    first: Option<Rows>,
    written: Option<WrittenRows>,
}

/// Rows in the order of their lines; `given[row]` means that the caller chose the id.
#[derive(Clone, Debug)]
pub struct Rows {
    pub batch: RecordBatch,
    pub given: Vec<bool>,
    /// The rows, in order, that came without a time.
    pub undated: Vec<usize>,
}

impl Intake {
    #[must_use]
    pub const fn new(shared: IntakeStores, person: PersonId, data_type: Arc<DataType>) -> Self {
        Self {
            shared,
            person,
            data_type,
            first: None,
            written: None,
        }
    }

    /// Bytes of rows in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.first
            .as_ref()
            .map_or(0, |rows| rows.batch.get_array_memory_size())
    }

    /// How many ids it has to remember.
    #[must_use]
    pub fn ids(&self) -> usize {
        self.written.as_ref().map_or(0, |written| {
            let placed = [&written.given, &written.dropped, &written.begun_as_stored];
            let rows = written.replaced.len() + written.superseded.len();
            placed.into_iter().map(PiecesById::len).sum::<usize>() + rows + written.changes.len()
        })
    }

    /// Accepts the next rows of the body.
    pub async fn push(&mut self, rows: Rows) -> Result<(), AssembleError> {
        match self.first.take() {
            None if self.written.is_none() => self.first = Some(rows),
            None => self.write(rows).await?,
            Some(first) => {
                self.write(first).await?;
                self.write(rows).await?;
            }
        }
        Ok(())
    }

    /// Ends the body and returns its work.
    pub async fn finish(mut self) -> Result<Work, AssembleError> {
        if let Some(first) = self.first.take() {
            let bytes = first.batch.get_array_memory_size();
            let is_small = first.given.len() <= TAIL_ROWS && bytes <= TAIL_BYTES;
            if self.written.is_none() && is_small {
                let change = Change::Put {
                    rows: first.batch,
                    given: first.given.into(),
                    undated: first.undated.into(),
                    bytes,
                };
                let layout = Arc::clone(&self.data_type.layout);
                return Ok(Work::Small(vec![PartitionChanges {
                    data_type: self.data_type.id.clone(),
                    layout,
                    changes: vec![change],
                }]));
            }
            self.write(first).await?;
        }
        Ok(self.written.take().map_or_else(
            || Work::Small(Vec::new()),
            |written| Work::Written(Box::new(written)),
        ))
    }

    /// Removes what was written, because the request failed. What cannot be removed now is later collected as
    /// orphans.
    pub async fn abandon(mut self) {
        if let Some(written) = self.written.take() {
            remove(&self.shared.objects, &written.pieces.all()).await;
        }
    }

    async fn write(&mut self, rows: Rows) -> Result<(), AssembleError> {
        if self.written.is_none() {
            self.written = Some(self.begin().await?);
        }
        self.look_again().await?;
        let Some(mut written) = self.written.take() else {
            return Ok(());
        };
        let result = self.write_chunk(&mut written, rows).await;
        self.written = Some(written);
        result
    }

    /// Compares what was written so far with the partition as it is now. A body may take longer than the
    /// objects it was first compared with are kept.
    pub async fn look_again(&mut self) -> Result<(), AssembleError> {
        let Some(mut written) = self.written.take() else {
            return Ok(());
        };
        // Mostly nothing is to be done, and the request should not be larger for it.
        let looking = Box::pin(forward::bring_forward(&self.shared, self.person, &mut written));
        let result = looking.await;
        self.written = Some(written);
        result
    }

    async fn begin(&self) -> Result<WrittenRows, StoreError> {
        Ok(WrittenRows {
            data_type: self.data_type.id.clone(),
            layout: Arc::clone(&self.data_type.layout),
            pieces: WrittenPieces::default(),
            given: PiecesById::default(),
            superseded: Vec::new(),
            times: KnownTimes::default(),
            base: self
                .shared
                .stores
                .snapshot(self.person, &self.data_type.id)
                .await?,
            replaced: Vec::new(),
            dropped: PiecesById::default(),
            changes: HashMap::new(),
            begun_as_stored: PiecesById::default(),
        })
    }

    async fn write_chunk(&self, written: &mut WrittenRows, rows: Rows) -> Result<(), AssembleError> {
        let batch = self.dated(written, &rows).await?;
        let ids = KeyColumns::of(&batch)?;
        let mut keep = vec![true; rows.given.len()];
        let named = named_in(&written.layout.storage, &batch, &ids, &rows.given, &mut keep).await?;
        for named in named.iter().filter(|named| named.changes > 0) {
            *written.changes.entry(named.id).or_default() += named.changes;
        }
        let known = named.iter().filter(|named| written.given.has(named.id));
        let known: Vec<(RecordId, usize)> = known.map(|named| (named.id, named.first)).collect();
        let changed = changed_ids(&self.shared.stores.finder, written, &batch, &known).await?;
        for id in changed {
            *written.changes.entry(id).or_default() += 1;
        }
        self.settle_identity(written, &batch, &named, &mut keep).await?;
        if !keep.contains(&true) {
            return Ok(());
        }
        let batch = if keep.iter().all(|keep| *keep) {
            batch.clone()
        } else {
            filter_record_batch(&batch, &BooleanArray::from(keep.clone()))?
        };
        let target = Target {
            person: self.person,
            data_type: written.data_type.clone(),
            layout_version: written.layout.version,
        };
        let pieces = write_batch(&self.shared.objects, self.shared.ids.as_ref(), target, &batch).await?;
        let kept = named
            .into_iter()
            .filter(|named| keep.get(named.last).is_some_and(|keep| *keep));
        written.take_in(pieces, kept.map(|named| (named.id, ids.starts.value(named.last))));
        Ok(())
    }

    /// The rows, in which records without a time have that of their previous version.
    async fn dated(&self, written: &mut WrittenRows, rows: &Rows) -> Result<RecordBatch, AssembleError> {
        if !written.layout.times.may_be_absent() {
            return Ok(rows.batch.clone());
        }
        let ids = KeyColumns::of(&rows.batch)?;
        let asked: Vec<RecordId> = rows
            .undated
            .iter()
            .filter(|row| rows.given.get(**row).is_some_and(|given| *given))
            .map(|row| ids.id(*row))
            .filter(|id| !written.times.know(*id))
            .collect();
        let finder = &self.shared.stores.finder;
        let found = finder.live_rows_of(&written.base, &asked).await?;
        let stored = StoredRows::new(&written.layout.storage, &found)?;
        for (id, place) in stored.iter() {
            written.times.learn(id, &stored.rows, place.row)?;
        }
        Ok(written.times.date(&rows.batch, &rows.given, &rows.undated)?)
    }

    /// Drops rows that are stored already with the same content, and records which stored rows the others
    /// replace. What a body changes and changes back is written anew, as it is where a body is small.
    async fn settle_identity(
        &self,
        written: &mut WrittenRows,
        batch: &RecordBatch,
        named: &[IdInChunk],
        keep: &mut [bool],
    ) -> Result<(), AssembleError> {
        let ids = named.iter().map(|named| named.id);
        let ids: Vec<RecordId> = ids.filter(|id| !written.given.has(*id)).collect();
        let finder = &self.shared.stores.finder;
        let found = finder.live_rows_of(&written.base, &ids).await?;
        if found.is_empty() {
            return Ok(());
        }
        // In the order of the found rows.
        let ids_found = found
            .iter()
            .flat_map(|part| part.ids.iter().map(|id| (*id, part.piece)));
        // Found rows mostly follow the order of their ids.
        let mut next = 0;
        let mut row_of = |id: RecordId| {
            let is_next = named.get(next).is_some_and(|other| other.id == id);
            let place = if is_next {
                next
            } else {
                named.binary_search_by_key(&id, |named| named.id).ok()?
            };
            next = place + 1;
            named.get(place).copied()
        };
        let places: Vec<(RecordId, PieceId, IdInChunk)> = ids_found
            .filter_map(|(id, piece)| Some((id, piece, row_of(id)?)))
            .collect();
        let rows: Vec<usize> = places.iter().map(|(.., named)| named.first).collect();
        let (layout, batch) = (Arc::clone(&written.layout), batch.clone());
        let equal = run_blocking(move || are_equal(&layout.storage, &found, &batch, &rows)).await?;
        let mut left_out = Vec::new();
        let mut begun_as_stored = Vec::new();
        for ((id, piece, named), is_equal) in places.into_iter().zip(equal) {
            if is_equal && named.changes == 0 {
                leave_out(keep, named.last)?;
                left_out.push((id, piece));
                continue;
            }
            written.replaced.push((piece, id));
            if is_equal {
                begun_as_stored.push((id, piece));
            } else if written.dropped.has(id) {
                // An earlier chunk began with what is stored, and this one changes that.
                begun_as_stored.push((id, piece));
                *written.changes.entry(id).or_default() += 1;
            }
        }
        written.dropped.put(left_out);
        written.begun_as_stored.put(begun_as_stored);
        Ok(())
    }
}

/// What the rows of a chunk say of an id that the caller chose. Of its rows only the last is kept.
#[derive(Clone, Copy, Debug)]
struct IdInChunk {
    id: RecordId,
    first: usize,
    last: usize,
    /// How many rows say something else than the one before them.
    changes: i64,
}

/// The ids that callers chose, in order.
async fn named_in(
    schema: &SchemaRef,
    batch: &RecordBatch,
    ids: &KeyColumns,
    given: &[bool],
    keep: &mut [bool],
) -> Result<Vec<IdInChunk>, AssembleError> {
    let rows = given.iter().enumerate().filter(|(_, given)| **given);
    let mut given: Vec<(RecordId, usize)> = rows.map(|(row, _)| (ids.id(row), row)).collect();
    // This is cheap if they came in order, or are random.
    sort_scattered(&mut given, |(id, _)| id.0.as_u64_pair().0);
    let mut named: Vec<IdInChunk> = given
        .into_iter()
        .map(|(id, row)| IdInChunk {
            id,
            first: row,
            last: row,
            changes: 0,
        })
        .collect();
    let mut pairs = Vec::new();
    named.dedup_by(|later, earlier| {
        let is_same = later.id == earlier.id;
        if is_same {
            pairs.push((earlier.last, later.last));
            earlier.last = later.last;
        }
        is_same
    });
    if pairs.is_empty() {
        return Ok(named);
    }
    for (earlier, _) in &pairs {
        leave_out(keep, *earlier)?;
    }
    let (schema, batch) = (Arc::clone(schema), batch.clone());
    let changed = run_blocking(move || changed_rows(&schema, &batch, &pairs)).await?;
    for row in changed {
        if let Ok(place) = named.binary_search_by_key(&ids.id(row), |named| named.id)
            && let Some(named) = named.get_mut(place)
        {
            named.changes += 1;
        }
    }
    Ok(named)
}

fn leave_out(keep: &mut [bool], row: usize) -> Result<(), AssembleError> {
    let missing = || AssembleError::Broken("a row is left out that never came".to_owned());
    *keep.get_mut(row).ok_or_else(missing)? = false;
    Ok(())
}

impl Drop for Intake {
    /// A request that is given up at any point leaves nothing behind, as far as that is possible now.
    fn drop(&mut self) {
        if let Some(written) = self.written.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let objects = self.shared.objects.clone();
            runtime.spawn(async move { remove(&objects, &written.pieces.all()).await });
        }
    }
}

/// Removes objects that were written for a request that was then refused.
pub async fn remove(objects: &ObjectStorage, pieces: &[NewPiece]) {
    for piece in pieces {
        if let NewPlace::Object { path, .. } = &piece.place
            && let Err(error) = objects.delete(path).await
        {
            tracing::warn!(%path, %error, "an object of a refused request stays until orphans are collected");
        }
    }
}
