//! Stored columns of one partition, for questions that compute from them.
//!
//! Knows permits, snapshots and scans; knows nothing of what is computed.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::model::permit::ReadPermit;
use crate::store::snapshot::Snapshot;

use super::archive::Archive;
use super::definitions;
use super::errors::QueryError;
use super::key::KEY_COLUMNS;
use super::scan::Scan;
use super::shared::{Lengths, few, permitted};
use super::stored_type::Source;

impl<Authority> Archive<Authority> {
    /// The rows that `permit` lets be seen, as of `snapshot`: the key columns and `columns`, in the stored
    /// order of columns, one partition sorted by (start, end, id). A name that the type does not store is
    /// left out.
    pub(in crate::query) fn stored(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
        lengths: Lengths,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let scan = scan(permit, source, snapshot, KEY_COLUMNS.iter().chain(columns));
        let rows = self.seen(permit, &source.data_type, scan, lengths)?;
        Ok(definitions::laid_over(rows, source.definitions.as_ref())?)
    }

    /// The same rows as they were recorded, whoever reads. What is made of them is to be cut to the windows.
    pub(in crate::query) fn stored_uncut(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        permitted(permit, snapshot)?;
        let windows = few(permit.windows().as_slice());
        let scan = Scan {
            windows: &windows,
            ..scan(permit, source, snapshot, KEY_COLUMNS.iter().chain(columns))
        };
        Ok(scan.plan(&self.objects)?)
    }

    /// The same without ids, where nothing depends on the order of records that start and end together. The
    /// column is there all the same when rows of the snapshot are dead, since those are known by their ids.
    pub(in crate::query) fn stored_without_ids(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        columns: &[&str],
        lengths: Lengths,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        if snapshot.pieces.iter().any(|piece| !piece.dead.is_empty()) {
            return self.stored(permit, source, snapshot, columns, lengths);
        }
        let key = KEY_COLUMNS.iter().filter(|name| **name != "id");
        let scan = scan(permit, source, snapshot, key.chain(columns));
        let rows = self.seen(permit, &source.data_type, scan, lengths)?;
        Ok(definitions::laid_over(rows, source.definitions.as_ref())?)
    }
}

fn scan<'a, 'c, Authority>(
    permit: &'a ReadPermit<Authority>,
    source: &'a Source,
    snapshot: &'a Snapshot,
    columns: impl Iterator<Item = &'c &'c str>,
) -> Scan<'a> {
    let storage = &source.data_type.layout.storage;
    let wanted: Vec<usize> = columns.filter_map(|name| storage.index_of(name).ok()).collect();
    Scan {
        snapshot,
        storage,
        columns: definitions::needed(source.definitions.as_ref(), &source.data_type, wanted),
        windows: permit.windows().as_slice(),
        begins: None,
    }
}
