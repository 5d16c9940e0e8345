//! Stored columns of one partition, for questions that compute from them.
//!
//! Knows permits, snapshots and scans; knows nothing of what is computed.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::model::permit::ReadPermit;
use crate::store::snapshot::Snapshot;

use super::records::{Archive, QueryError, Source};
use super::scan::{KEY_COLUMNS, Scan};

impl<Authority> Archive<Authority> {
    /// The rows that `permit` lets be seen, as of `snapshot`: the key columns and `columns`, in the stored order of columns, one partition sorted by
    /// (start, end, id). A name that the type does not store is left out.
    pub(super) fn stored(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let storage = &source.data_type.layout.storage;
        let mut wanted: Vec<usize> = KEY_COLUMNS
            .iter()
            .chain(columns)
            .filter_map(|name| storage.index_of(name).ok())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let scan = Scan {
            snapshot,
            storage,
            columns: wanted,
            windows: permit.windows().as_slice(),
        };
        Ok(scan.plan(&self.reader, &self.objects)?)
    }
}
