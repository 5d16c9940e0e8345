//! The ids of records to delete, in memory once however many partitions are asked to delete them.
//!
//! A tombstone for a base also deletes from each of the person's own types on it, of which there may be a
//! thousand, and one body may hold a million tombstones. Knows ids; knows nothing of partitions.

use std::ops::Range;
use std::sync::Arc;

use crate::model::ids::RecordId;

/// A part of a list of ids. Cheap to clone; all parts share the list.
#[derive(Clone, Debug)]
pub struct DeletedIds {
    list: Arc<[RecordId]>,
    part: Range<usize>,
}

impl DeletedIds {
    /// The ids of `list` in these places.
    #[must_use]
    pub const fn part(list: Arc<[RecordId]>, part: Range<usize>) -> Self {
        Self { list, part }
    }

    #[must_use]
    pub fn as_slice(&self) -> &[RecordId] {
        self.list.get(self.part.clone()).unwrap_or_default()
    }

    /// The list that this is a part of.
    #[must_use]
    pub fn list(&self) -> &[RecordId] {
        &self.list
    }
}

impl From<Vec<RecordId>> for DeletedIds {
    fn from(ids: Vec<RecordId>) -> Self {
        let part = 0..ids.len();
        Self::part(ids.into(), part)
    }
}
