//! Encodes pieces as Parquet: row groups, the index of ids and rollups, and what the file says about itself.
//!
//! The file contains everything needed to find a piece again, so that the catalogue could be rebuilt from the
//! objects.

mod properties;

use arrow::array::{Array as _, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;

use self::properties::properties;
use super::arrange::KeyColumns;
use super::checksums::Summing;
use super::errors::StoreError;
use super::id_index::writing::Indexing;
use super::rollups::keeping::Keeping;
use super::row_groups::RowGroups;
use crate::catalog::records::Footer;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

/// The rows of a row group: what one reader decodes in one go.
pub const ROW_GROUP_ROWS: usize = 131_072;
/// The size of a row group in memory: a reader may have to hold all of it. Rows of a usual type stay far
/// below.
pub const ROW_GROUP_BYTES: usize = 32 << 20;
/// A row of this size in memory is long. Long rows rarely fill a page, so whoever wants one decodes all rows
/// of its row group.
const LONG_ROW: usize = 1 << 10;
/// The size of a row group of long rows, for types of usual width.
const LONG_ROWS_BYTES: usize = 4 << 20;
/// What each leaf column needs of such a row group for its share of the footer to be small.
const LONG_ROWS_BYTES_OF_A_LEAF: usize = 16 << 10;
/// The rows of a page: the least that a selective read decodes.
pub(super) const PAGE_ROWS: usize = 8_192;

pub const PERSON_KEY: &str = "almanac.person";
pub const DATA_TYPE_KEY: &str = "almanac.data_type";
pub const LAYOUT_KEY: &str = "almanac.layout_version";
pub const PIECE_KEY: &str = "almanac.piece";

/// The partition and layout that a piece is written for.
#[derive(Clone, Debug)]
pub struct Target {
    pub person: PersonId,
    pub data_type: TypeId,
    pub layout_version: u32,
}

/// Turns sorted batches into the bytes of one Parquet object. Blocks, so it runs where blocking is allowed.
pub(super) struct Encoder {
    groups: RowGroups,
    summing: Summing,
    /// The size in memory of the rows in the open row group.
    in_group: usize,
    ids: Indexing,
    rollups: Option<Keeping>,
}

/// What is known of the rows of an object before they are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ahead<'r> {
    /// Some of them.
    Some(&'r RecordBatch),
    /// All of them, and perhaps others.
    All(&'r RecordBatch),
}

/// What is known of a complete object.
pub(super) struct Encoded {
    pub bytes: u64,
    pub checksum: u32,
    pub footer: Footer,
}

impl Encoder {
    /// Chooses encodings by what is known of the rows to come.
    pub(super) fn new(
        target: &Target,
        piece: &str,
        schema: &SchemaRef,
        rows: Ahead<'_>,
    ) -> Result<Self, StoreError> {
        let properties = properties(target, piece, schema, rows)?;
        Ok(Self {
            groups: RowGroups::new(schema, properties).map_err(StoreError::rows)?,
            summing: Summing::default(),
            in_group: 0,
            ids: Indexing::default(),
            rollups: None,
        })
    }

    /// This encoder, for an object that keeps rollups of its rows, if there are any.
    pub(super) fn keeping(self, rollups: Option<Keeping>) -> Self {
        Self { rollups, ..self }
    }

    /// Encodes rows; returns the bytes that became ready, which is nothing until a row group is full.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, StoreError> {
        if let Some(rollups) = &mut self.rollups {
            rollups.take(batch)?;
        }
        self.add(batch)?;
        self.index(batch)?;
        self.ready()
    }

    /// Adds ids to the index, and writes that of each section that they fill.
    fn index(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let ids = KeyColumns::of(batch)?.ids;
        let mut taken = 0;
        while taken < ids.len() {
            taken += self.ids.take(&ids, taken);
            if self.ids.is_full() {
                self.end_section().map_err(StoreError::rows)?;
            }
        }
        Ok(())
    }

    /// The size of the object so far, of what the writer has released.
    fn bytes(&mut self) -> u64 {
        self.summing.bytes() + self.groups.bytes().len() as u64
    }

    fn end_section(&mut self) -> std::io::Result<()> {
        self.groups.sync()?;
        let start = self.bytes();
        match self.ids.end_section(start) {
            Some(content) => self.groups.put(&content),
            None => Ok(()),
        }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let bytes = bytes_of(batch)?;
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        if rows > 1 && bytes > self.most_bytes_of(rows, bytes) {
            let half = rows / 2;
            self.add(&batch.slice(0, half))?;
            return self.add(&batch.slice(half, rows - half));
        }
        let together = self.in_group + bytes;
        let mut open = self.groups.rows_in_open_group();
        if open > 0 && together > self.most_bytes_of(open + rows, together) {
            self.groups.end_group().map_err(StoreError::rows)?;
            (self.in_group, open) = (0, 0);
        }
        self.groups.write(batch).map_err(StoreError::rows)?;
        let left = self.groups.rows_in_open_group();
        let has_ended = left < open + rows;
        self.in_group = if has_ended {
            bytes / rows * left
        } else {
            self.in_group + bytes
        };
        Ok(())
    }

    /// The most bytes of a row group whose rows are as long as these.
    fn most_bytes_of(&self, rows: usize, bytes: usize) -> usize {
        if bytes / rows < LONG_ROW {
            return ROW_GROUP_BYTES;
        }
        let of_leaves = self.groups.leaves().saturating_mul(LONG_ROWS_BYTES_OF_A_LEAF);
        of_leaves.clamp(LONG_ROWS_BYTES, ROW_GROUP_BYTES)
    }

    /// Ends the object; returns its last bytes.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, Encoded), StoreError> {
        self.end_rows().map_err(StoreError::rows)?;
        let ids = std::mem::take(&mut self.ids).said()?;
        self.groups.say(ids);
        let start = self.bytes();
        let rollups = self.rollups.take().map(|rollups| rollups.finish(start));
        let mut last = self.end_blocks(rollups.transpose()?.flatten())?;
        let footer = self.end_footer().map_err(StoreError::rows)?;
        last.extend_from_slice(&footer);
        let bytes = self.summing.bytes();
        let (checksum, footer) = self.summing.finish();
        Ok((
            last,
            Encoded {
                bytes,
                checksum,
                footer,
            },
        ))
    }

    fn end_rows(&mut self) -> Result<(), ParquetError> {
        self.groups.end_group()?;
        self.end_section()?;
        self.groups.sync()?;
        Ok(())
    }

    /// Ends what the table of checksums covers: rows with the index of their ids, and rollups behind them.
    fn end_blocks(&mut self, rollups: Option<(Vec<u8>, KeyValue)>) -> Result<Vec<u8>, StoreError> {
        if let Some((content, said)) = rollups {
            self.groups.put(&content).map_err(StoreError::rows)?;
            self.groups.say(said);
        }
        self.ready()
    }

    fn end_footer(&mut self) -> Result<Vec<u8>, ParquetError> {
        let table = self.summing.end_of_blocks();
        self.groups.put(&table)?;
        self.groups.finish()?;
        let footer = std::mem::take(self.groups.bytes());
        self.summing.take(&footer);
        Ok(footer)
    }

    fn ready(&mut self) -> Result<Vec<u8>, StoreError> {
        self.groups.sync().map_err(StoreError::rows)?;
        let ready = std::mem::take(self.groups.bytes());
        self.summing.take(&ready);
        Ok(ready)
    }
}

/// The size of exactly these rows in memory, whatever larger buffers they belong to.
pub fn bytes_of(batch: &RecordBatch) -> Result<usize, StoreError> {
    let mut bytes: usize = 0;
    for column in batch.columns() {
        bytes = bytes.saturating_add(column.to_data().get_slice_memory_size()?);
    }
    Ok(bytes)
}
