//! Stored columns of one partition, for questions that compute from them.
//!
//! Knows permits, snapshots and scans; knows nothing of what is computed.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::model::permit::ReadPermit;
use crate::store::snapshot::Snapshot;

use super::definitions;
use super::records::{Archive, QueryError, Source};
use super::scan::{KEY_COLUMNS, Scan};

impl<Authority> Archive<Authority> {
    /// The rows that `permit` lets be seen, as of `snapshot`: the key columns and `columns`, in the stored
    /// order of columns, one partition sorted by (start, end, id). A name that the type does not store is
    /// left out.
    pub(super) fn stored(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        self.stored_columns(permit, source, snapshot, KEY_COLUMNS.iter().chain(columns))
    }

    /// The same without ids, where nothing depends on the order of records that start and end together. The
    /// column is there all the same when rows of the snapshot are dead, since those are known by their ids.
    pub(super) fn stored_without_ids(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        if snapshot.pieces.iter().any(|piece| !piece.dead.is_empty()) {
            return self.stored(permit, source, snapshot, columns);
        }
        let key = KEY_COLUMNS.iter().filter(|name| **name != "id");
        self.stored_columns(permit, source, snapshot, key.chain(columns))
    }

    fn stored_columns<'c>(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: impl Iterator<Item = &'c &'c str>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let storage = &source.data_type.layout.storage;
        let mut wanted: Vec<usize> = columns.filter_map(|name| storage.index_of(name).ok()).collect();
        wanted = definitions::needed(source, wanted);
        let scan = Scan {
            snapshot,
            storage,
            columns: wanted,
            windows: permit.windows().as_slice(),
            begins: None,
        };
        Ok(definitions::laid_over(
            scan.plan(&self.reader, &self.objects)?,
            source,
        )?)
    }
}
