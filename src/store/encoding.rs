//! Encodes pieces as Parquet: row groups, pages, encodings, compression, and what the file says about itself.
//!
//! The file contains everything needed to find a piece again, so that the catalogue could be rebuilt from the
//! objects.

use std::collections::HashSet;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::arrange::KeyColumns;
use super::checksums::Summing;
use super::errors::StoreError;
use super::id_index::writing::Indexing;
use super::rollups::keeping::Keeping;
use super::row_groups::RowGroups;
use crate::catalog::records::Footer;
use crate::model::columns::{END, ID, START};
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
/// A dictionary does not pay if more than one in this many of the first rows has a new value.
const FEW_DIFFERENT: usize = 4;

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

fn properties(
    target: &Target,
    piece: &str,
    schema: &SchemaRef,
    ahead: Ahead<'_>,
) -> Result<WriterProperties, StoreError> {
    let (Ahead::Some(sample) | Ahead::All(sample)) = ahead;
    let level = ZstdLevel::try_new(1).map_err(StoreError::rows)?;
    let mut builder = WriterProperties::builder()
        .set_created_by("almanac".to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(facts(target, piece)))
        .set_sorting_columns(Some(sorting_columns(schema)?));
    for name in [START, END] {
        // Pages are only ever chosen by time; for other columns the bounds of a row group are enough.
        let column = ColumnPath::from(name);
        builder =
            delta(builder, column.clone()).set_column_statistics_enabled(column, EnabledStatistics::Page);
    }
    // Ids need no Parquet bloom filter: their index says more, in less space.
    builder = plain(builder, ColumnPath::from(ID));
    if let Ahead::All(rows) = ahead {
        builder = with_constants_as_they_are(builder, rows);
    }
    for field in schema.fields() {
        if [ID, START, END].contains(&field.name().as_str()) {
            continue;
        }
        if let Some(values) = sample.column_by_name(field.name()) {
            builder = encoded_by_values(builder, field, values);
        }
    }
    Ok(builder.build())
}

/// What a file says of the piece in it.
fn facts(target: &Target, piece: &str) -> Vec<KeyValue> {
    let facts = [
        (PERSON_KEY, target.person.to_string()),
        (DATA_TYPE_KEY, target.data_type.0.to_string()),
        (LAYOUT_KEY, target.layout_version.to_string()),
        (PIECE_KEY, piece.to_owned()),
    ];
    let entry = |(key, value): (&str, String)| KeyValue::new(key.to_owned(), value);
    facts.into_iter().map(entry).collect()
}

/// Chooses the encoding of a column by some of its values. Others than numbers and times keep the usual one.
fn encoded_by_values(
    builder: WriterPropertiesBuilder,
    field: &Field,
    values: &ArrayRef,
) -> WriterPropertiesBuilder {
    let column = ColumnPath::from(field.name().as_str());
    if let Some(floats) = values.as_primitive_opt::<Float64Type>() {
        if many_different(floats.values().iter().map(|value| value.to_bits())) {
            return split(builder, column);
        }
    } else if let Some(integers) = values.as_primitive_opt::<Int64Type>() {
        if many_different(integers.values().iter().map(|value| value.cast_unsigned())) {
            return delta(builder, column);
        }
    } else if matches!(field.data_type(), DataType::Timestamp(..)) {
        return delta(builder, column);
    }
    builder
}

/// One text in all rows is a few bytes, with nothing to compress. Setting up compression would take longer
/// than encoding them.
fn with_constants_as_they_are(
    mut builder: WriterPropertiesBuilder,
    rows: &RecordBatch,
) -> WriterPropertiesBuilder {
    let schema = rows.schema();
    let mut open: Vec<(Vec<String>, &ArrayRef)> = Vec::new();
    let named = schema.fields().iter().zip(rows.columns());
    open.extend(named.map(|(field, column)| (vec![field.name().clone()], column)));
    while let Some((path, column)) = open.pop() {
        if let Some(members) = column.as_struct_opt() {
            let named = members.fields().iter().zip(members.columns());
            open.extend(named.map(|(field, column)| {
                let path = path.iter().chain([field.name()]);
                (path.cloned().collect(), column)
            }));
        } else if has_one_distinct_key(column) {
            builder = builder.set_column_compression(ColumnPath::new(path), Compression::UNCOMPRESSED);
        }
    }
    builder
}

/// Whether all rows of a dictionary column that have a value refer to the same one.
fn has_one_distinct_key(column: &ArrayRef) -> bool {
    let Some(words) = column.as_dictionary_opt::<Int32Type>() else {
        return false;
    };
    let keys = words.keys();
    if keys.null_count() == 0 {
        return keys.values().windows(2).all(|pair| pair[0] == pair[1]);
    }
    let mut set = keys.iter().flatten();
    let first = set.next();
    set.all(|key| Some(key) == first)
}

/// The size of exactly these rows in memory, whatever larger buffers they belong to.
pub fn bytes_of(batch: &RecordBatch) -> Result<usize, StoreError> {
    let mut bytes: usize = 0;
    for column in batch.columns() {
        bytes = bytes.saturating_add(column.to_data().get_slice_memory_size()?);
    }
    Ok(bytes)
}

fn delta(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
}

fn split(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::BYTE_STREAM_SPLIT)
}

fn plain(builder: WriterPropertiesBuilder, column: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(column.clone(), false)
        .set_column_encoding(column, Encoding::PLAIN)
}

fn many_different(values: impl ExactSizeIterator<Item = u64>) -> bool {
    let sampled = values.len().min(PAGE_ROWS);
    let mut different = HashSet::new();
    let are_many = |value| different.insert(value) && different.len() * FEW_DIFFERENT > sampled;
    values.take(sampled).any(are_many)
}

/// The order of the rows as Parquet describes it: leaf columns by number.
fn sorting_columns(schema: &Schema) -> Result<Vec<SortingColumn>, StoreError> {
    let leaves = ArrowSchemaConverter::new()
        .convert(schema)
        .map_err(StoreError::rows)?;
    let leaf = |name: &str| {
        leaves
            .columns()
            .iter()
            .position(|column| column.path().parts().len() == 1 && column.name() == name)
    };
    let order = [START, END, ID].into_iter().filter_map(leaf);
    Ok(order
        .map(|leaf| SortingColumn {
            column_idx: leaf as i32,
            descending: false,
            nulls_first: false,
        })
        .collect())
}
