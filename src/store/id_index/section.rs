//! Where the index of a section is in its object, and its layout: the blocks of the filter, then the table,
//! which begins with the offsets of its buckets.

use std::ops::{Range, RangeInclusive};

use parquet::file::metadata::{KeyValue, ParquetMetaData};
use serde::{Deserialize, Serialize};

use super::filter::BLOCK_BYTES;
use super::hashed::part_of;
use super::table::{ENTRY_BYTES, OFFSET_BYTES, PLACE_ROWS};
use crate::model::ids::RecordId;
use crate::store::errors::StoreError;
use crate::store::footer_facts;

/// The footer's key for the list of sections.
const SECTIONS_KEY: &str = "almanac.ids";
/// How many ids there are per block of a filter: sixteen bits per id, which let one in a thousand other ids
/// pass.
const IDS_A_BLOCK: usize = 16;
/// The size of a filter per row.
pub(in crate::store) const FILTER_BYTES_A_ROW: u64 = (BLOCK_BYTES / IDS_A_BLOCK) as u64;
/// About how many ids there are per bucket of a table: half a kilobyte, and one in thirty thousand other ids
/// is taken for one of them.
const IDS_A_BUCKET: usize = 128;

/// The rows that one index covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Section {
    /// The number of its first row in the object.
    first: usize,
    rows: usize,
    /// Where the index begins in the object.
    start: u64,
    least: RecordId,
    greatest: RecordId,
}

/// How many blocks the filter of `rows` rows has.
pub(super) fn blocks(rows: usize) -> usize {
    rows.div_ceil(IDS_A_BLOCK)
}

/// How many buckets the table of `rows` rows has.
pub(super) fn buckets(rows: usize) -> usize {
    rows.div_ceil(IDS_A_BUCKET)
}

impl Section {
    pub(super) fn new(rows: Range<usize>, start: u64, ids: &RangeInclusive<RecordId>) -> Self {
        Self {
            first: rows.start,
            rows: rows.len(),
            start,
            least: *ids.start(),
            greatest: *ids.end(),
        }
    }

    /// The range of its ids.
    pub(in crate::store) fn ids(&self) -> RangeInclusive<RecordId> {
        self.least..=self.greatest
    }

    pub(in crate::store) fn filter(&self) -> Range<u64> {
        self.start..self.start + self.filter_bytes()
    }

    pub(in crate::store) fn filter_bytes(&self) -> u64 {
        (blocks(self.rows) * BLOCK_BYTES) as u64
    }

    /// How many blocks the filter has.
    pub(in crate::store) fn blocks(&self) -> usize {
        blocks(self.rows)
    }

    /// The filter in parts of `of` blocks: the number of the first block, and where they are.
    pub(in crate::store) fn parts(&self, of: usize) -> impl Iterator<Item = (usize, Range<u64>)> {
        let at = |block: usize| self.start + (block * BLOCK_BYTES) as u64;
        let firsts = (0..self.blocks()).step_by(of);
        firsts.map(move |first| (first, at(first)..at((first + of).min(self.blocks()))))
    }

    /// The block of the filter that an id belongs to.
    pub(in crate::store) fn block(&self, hash: u64) -> Range<u64> {
        let start = self.start + (part_of(hash, blocks(self.rows)) * BLOCK_BYTES) as u64;
        start..start + BLOCK_BYTES as u64
    }

    /// The bucket of the table that an id belongs to.
    pub(in crate::store) fn bucket(&self, hash: u64) -> usize {
        part_of(hash, buckets(self.rows))
    }

    /// Where the two offsets of a bucket are.
    pub(in crate::store) fn offsets(&self, bucket: usize) -> Range<u64> {
        let start = self.filter().end + (bucket * OFFSET_BYTES) as u64;
        start..start + 2 * OFFSET_BYTES as u64
    }

    /// Where the entries of a bucket are, from its offsets; `None` if these are impossible.
    pub(in crate::store) fn entries(&self, offsets: &[u8]) -> Option<Range<u64>> {
        let (pair, _) = offsets.as_chunks::<OFFSET_BYTES>();
        let [from, until] = pair else { return None };
        let (from, until) = (u32::from_le_bytes(*from), u32::from_le_bytes(*until));
        let start = self.filter().end + ((buckets(self.rows) + 1) * OFFSET_BYTES) as u64;
        let entry = |number: u32| start + u64::from(number) * ENTRY_BYTES as u64;
        (from <= until && until as usize <= self.rows).then(|| entry(from)..entry(until))
    }

    /// The rows of the object that a place of the table stands for.
    pub(in crate::store) fn rows_at(&self, place: usize) -> Range<usize> {
        let at = |place: usize| self.first + (place * PLACE_ROWS).min(self.rows);
        at(place)..at(place + 1)
    }
}

/// The footer entry for the sections.
pub(super) fn footer_entry(sections: &[Section]) -> Result<KeyValue, StoreError> {
    footer_facts::entry(SECTIONS_KEY, sections)
}

/// The sections listed in a footer; none where an object has no index, as older ones do not.
pub(in crate::store) fn sections(footer: &ParquetMetaData) -> Result<Vec<Section>, serde_json::Error> {
    footer_facts::fact(footer, SECTIONS_KEY).map_or_else(|| Ok(Vec::new()), serde_json::from_str)
}
