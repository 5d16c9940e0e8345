//! What is asked of one partition: rows to put and ids to delete.
//!
//! Made by requests, applied by `merge_changes`. Knows rows and ids; does not know what is stored.

use std::sync::Arc;

use arrow::array::{FixedSizeBinaryArray, RecordBatch};

use super::deleted_ids::DeletedIds;
use crate::model::ids::RecordId;

/// A change asked of a partition, in the order of acceptance.
#[derive(Clone, Debug)]
pub enum Change {
    /// Rows in the layout's storage schema; `given[row]` means that the caller chose the row's id, so that it
    /// may replace another. The rows `undated`, in order, came without a time, and take that of the rows they
    /// replace.
    Put {
        rows: RecordBatch,
        given: Arc<[bool]>,
        undated: Arc<[usize]>,
        /// Bytes of the rows. Measuring them takes longer than much else that is done for a small request.
        bytes: usize,
    },
    Delete {
        records: DeletedIds,
        /// The definition that the records must belong to, as the source that names it; any if `None`.
        definition: Option<Arc<str>>,
    },
}

impl Change {
    /// Puts `rows`, of which the caller chose the ids of those `given`, and of which those `undated` came
    /// without a time.
    #[must_use]
    pub fn put(rows: RecordBatch, given: Arc<[bool]>, undated: Arc<[usize]>) -> Self {
        Self::Put {
            bytes: rows.get_array_memory_size(),
            rows,
            given,
            undated,
        }
    }

    /// Bytes of the rows put, or of the ids deleted, which other changes may share.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put { bytes, .. } => *bytes,
            Self::Delete { records, .. } => size_of_val(records.as_slice()),
        }
    }
}

/// Changes of one partition in the order of acceptance, each with the request that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct OrderedChanges {
    pub changes: Vec<Change>,
    pub requests: Vec<usize>,
}

impl OrderedChanges {
    pub fn extend(&mut self, request: usize, changes: impl IntoIterator<Item = Change>) {
        self.changes.extend(changes);
        self.requests.resize(self.changes.len(), request);
    }
}

/// The ids whose stored rows are needed to apply the changes.
#[must_use]
pub fn ids_to_look_up(changes: &[Change]) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for change in changes {
        match change {
            Change::Put { rows, given, .. } => {
                let Some(column) = id_column(rows) else { continue };
                ids.extend(
                    given
                        .iter()
                        .zip(column.iter())
                        .filter(|(given, _)| **given)
                        .filter_map(|(_, bytes)| RecordId::from_slice(bytes?)),
                );
            }
            Change::Delete { records, .. } => ids.extend_from_slice(records.as_slice()),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The ids of rows to put, if they have the form in which rows are stored.
pub(super) fn id_column(rows: &RecordBatch) -> Option<&FixedSizeBinaryArray> {
    rows.columns().first()?.as_any().downcast_ref()
}
