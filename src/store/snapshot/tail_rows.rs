//! The decoded rows of a tail piece, found by their ids.

use std::fmt;
use std::sync::OnceLock;

use ahash::HashMap;
use arrow::array::{Array as _, FixedSizeBinaryArray, RecordBatch};

use crate::model::ids::RecordId;
use crate::store::StoreError;
use crate::store::arrange::{KeyColumns, all_ids};
use crate::store::wanted_ids::WantedIds;

/// The memory that a piece takes in a snapshot besides its rows.
pub(super) const PIECE_BYTES: usize = 256;

/// How many rows can be searched in the time in which one id is found by its hash.
const ROWS_PER_LOOKUP: usize = 16;

/// How many bytes a row takes in the index of a piece.
const INDEX_BYTES: usize = 48;

/// The rows of a tail piece, sorted, without columns that are null in all of them.
pub struct TailRows {
    batch: RecordBatch,
    ids: FixedSizeBinaryArray,
    /// How many bytes it takes in all. Computed once: a commit weighs the snapshot that it makes, with every
    /// piece.
    memory: usize,
    /// Row numbers by id, made when first asked for.
    by_id: OnceLock<HashMap<RecordId, usize>>,
}

impl TailRows {
    pub fn new(batch: RecordBatch) -> Result<Self, StoreError> {
        let ids = KeyColumns::of(&batch)?.ids;
        let index = if batch.num_rows() > ROWS_PER_LOOKUP {
            batch.num_rows() * INDEX_BYTES
        } else {
            0
        };
        Ok(Self {
            memory: PIECE_BYTES + batch.get_array_memory_size() + index,
            ids,
            batch,
            by_id: OnceLock::new(),
        })
    }

    #[must_use]
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// How many bytes it takes in all.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Whether all rows have one of `ids`, which are sorted.
    pub(super) fn are_all_among(&self, ids: &[RecordId]) -> bool {
        let is_among = |id| ids.binary_search(&id).is_ok();
        ids.len() >= self.ids.len() && all_ids(&self.ids).all(is_among)
    }

    /// The rows that have one of `ids`, by number and in order.
    #[must_use]
    pub(in crate::store) fn rows_of(&self, ids: &WantedIds) -> Vec<(usize, RecordId)> {
        if ids.len() * ROWS_PER_LOOKUP >= self.ids.len() {
            return ids.among(&self.ids);
        }
        let by_id = self.by_id.get_or_init(|| {
            all_ids(&self.ids)
                .enumerate()
                .map(|(row, id)| (id, row))
                .collect()
        });
        let found = ids.iter().filter_map(|id| Some((*by_id.get(&id)?, id)));
        let mut found: Vec<(usize, RecordId)> = found.collect();
        found.sort_unstable();
        found
    }
}

impl fmt::Debug for TailRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TailRows({} rows)", self.batch.num_rows())
    }
}
