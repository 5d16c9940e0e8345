//! Builds the index of an object that is being written.

use std::ops::RangeInclusive;

use arrow::array::FixedSizeBinaryArray;
use parquet::file::metadata::KeyValue;

use super::filter::filter_of;
use super::hashed::xxh64;
use super::section::{Section, blocks, buckets, footer_entry};
use super::table::{self, MOST_ROWS};
use crate::model::ids::RecordId;
use crate::store::arrange::all_ids;
use crate::store::errors::StoreError;

/// The sections of an object, the last of which is open. Holds eight bytes for each row of that.
#[derive(Default)]
pub(in crate::store) struct Indexing {
    /// The hashes of the ids in the open section, in the order of their rows.
    hashes: Vec<u64>,
    /// The least and the greatest id of the open section.
    ids: Option<RangeInclusive<RecordId>>,
    /// How many rows the written sections have.
    rows: usize,
    written: Vec<Section>,
}

impl Indexing {
    /// Takes the ids of the next rows, as far as they fit into the open section; returns how many.
    pub(in crate::store) fn take(&mut self, ids: &FixedSizeBinaryArray, from: usize) -> usize {
        let room = MOST_ROWS - self.hashes.len();
        let taken = all_ids(ids).skip(from).take(room);
        let before = self.hashes.len();
        let (mut least, mut greatest) = match &self.ids {
            Some(ids) => (*ids.start(), *ids.end()),
            None => match taken.clone().next() {
                Some(first) => (first, first),
                None => return 0,
            },
        };
        self.hashes.extend(taken.map(|id| {
            least = least.min(id);
            greatest = greatest.max(id);
            xxh64(*id.as_bytes())
        }));
        self.ids = Some(least..=greatest);
        self.hashes.len() - before
    }

    pub(in crate::store) fn is_full(&self) -> bool {
        self.hashes.len() == MOST_ROWS
    }

    /// Ends the open section; returns the bytes to write at `start` of the object, if there are any.
    pub(in crate::store) fn end_section(&mut self, start: u64) -> Option<Vec<u8>> {
        let ids = self.ids.take()?;
        let rows = self.hashes.len();
        let mut content = filter_of(&self.hashes, blocks(rows));
        table::write(&self.hashes, buckets(rows), &mut content);
        self.hashes.clear();
        self.written
            .push(Section::new(self.rows..self.rows + rows, start, &ids));
        self.rows += rows;
        Some(content)
    }

    /// The footer entry for all sections.
    pub(in crate::store) fn said(self) -> Result<KeyValue, StoreError> {
        footer_entry(&self.written)
    }
}
