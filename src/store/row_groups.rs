//! Writes batches into the row groups of a Parquet file as Parquet's own writer does, except that columns of
//! one word are not encoded row by row (`constant_text`), and that what compression did not make smaller is
//! no longer compressed.

#[cfg(test)]
mod tests;

use std::io;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::constant_text;

/// Compression that saves less than one in so many bytes of a column is not worth the time of its readers.
const LITTLE_SAVED: i64 = 16;

pub(super) struct RowGroups {
    file: SerializedFileWriter<Vec<u8>>,
    columns: ArrowRowGroupWriterFactory,
    /// The columns that `columns` compresses, though the last row group became hardly smaller by it.
    hardly_smaller: Vec<ColumnPath>,
    /// The columns that are not compressed any more.
    left_as_they_are: Vec<ColumnPath>,
    schema: SchemaRef,
    open: Option<OpenGroup>,
}

struct OpenGroup {
    rows: usize,
    leaves: Vec<Leaf>,
}

/// A leaf column of the open row group.
struct Leaf {
    writer: ArrowColumnWriter,
    held: PendingValues,
}

/// What the writer of a leaf has not been given yet.
enum PendingValues {
    /// There are no rows.
    Nothing,
    /// All rows are this word.
    Word { word: String, rows: usize },
    /// The writer has all rows.
    Written,
}

impl RowGroups {
    pub(super) fn new(schema: &SchemaRef, properties: WriterProperties) -> Result<Self, ParquetError> {
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Self {
            file,
            columns,
            hardly_smaller: Vec::new(),
            left_as_they_are: Vec::new(),
            schema: schema.clone(),
            open: None,
        })
    }

    pub(super) fn rows_in_open_group(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.rows)
    }

    /// The number of leaf columns.
    pub(super) fn leaves(&self) -> usize {
        self.file.schema_descr().num_columns()
    }

    /// Takes rows, and ends each row group that they fill.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let most = self.file.properties().max_row_group_row_count();
        let most = most.unwrap_or(usize::MAX);
        let mut from = 0;
        while from < batch.num_rows() {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open_group()?,
            };
            let length = (most - open.rows).min(batch.num_rows() - from);
            open.write(&self.schema, &batch.slice(from, length))?;
            from += length;
            let is_full = open.rows == most;
            self.open = Some(open);
            if is_full {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<OpenGroup, ParquetError> {
        self.compress_what_shrinks()?;
        let number = self.file.flushed_row_groups().len();
        let leaf = |writer| Leaf {
            writer,
            held: PendingValues::Nothing,
        };
        let writers = self.columns.create_column_writers(number)?;
        Ok(OpenGroup {
            rows: 0,
            leaves: writers.into_iter().map(leaf).collect(),
        })
    }

    pub(super) fn end_group(&mut self) -> Result<(), ParquetError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let page_rows = self.file.properties().data_page_row_count_limit();
        let described = self.file.schema_descr().columns().to_vec();
        let mut group = self.file.next_row_group()?;
        for (leaf, column) in open.leaves.into_iter().zip(&described) {
            if let PendingValues::Word { word, rows } = leaf.held {
                let (bytes, close) = constant_text::chunk(column, &word, rows, page_rows)?;
                group.append_column(&bytes, close)?;
            } else {
                leaf.writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        let group = group.close()?;
        self.hardly_smaller = hardly_smaller(&group);
        Ok(())
    }

    /// Makes writers for the row groups to come that leave columns alone for which compression hardly paid.
    fn compress_what_shrinks(&mut self) -> Result<(), ParquetError> {
        if self.hardly_smaller.is_empty() {
            return Ok(());
        }
        self.left_as_they_are.append(&mut self.hardly_smaller);
        let mut properties = self.file.properties().as_ref().clone().into_builder();
        for column in &self.left_as_they_are {
            properties = properties.set_column_compression(column.clone(), Compression::UNCOMPRESSED);
        }
        // A writer of column writers has the properties of its file, so another file lends its own.
        let lender = ArrowWriter::try_new(Vec::new(), self.schema.clone(), Some(properties.build()))?;
        (_, self.columns) = lender.into_serialized_writer()?;
        Ok(())
    }

    /// The bytes of the file that were not taken yet; complete after `sync`.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        self.file.inner_mut()
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Puts bytes between row groups or after them.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    pub(super) fn say(&mut self, said: KeyValue) {
        self.file.append_key_value_metadata(said);
    }

    /// Writes the footer.
    pub(super) fn finish(&mut self) -> Result<(), ParquetError> {
        self.end_group()?;
        self.file.finish()?;
        Ok(())
    }
}

/// The columns of a row group that compression made hardly smaller.
fn hardly_smaller(group: &RowGroupMetaData) -> Vec<ColumnPath> {
    let is_hardly_smaller = |column: &&ColumnChunkMetaData| {
        let saved = column
            .uncompressed_size()
            .saturating_sub(column.compressed_size());
        column.compression() != Compression::UNCOMPRESSED
            && saved.saturating_mul(LITTLE_SAVED) < column.uncompressed_size()
    };
    let columns = group.columns().iter().filter(is_hardly_smaller);
    columns.map(|column| column.column_path().clone()).collect()
}

impl OpenGroup {
    fn write(&mut self, schema: &SchemaRef, batch: &RecordBatch) -> Result<(), ParquetError> {
        let rows = batch.num_rows();
        self.rows += rows;
        let mut rest = self.leaves.as_mut_slice();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            let words = constant_text::words(column);
            let (leaves, others) = rest.split_at_mut_checked(words.len()).ok_or_else(|| {
                ParquetError::General(format!("column {} has too many leaves", field.name()))
            })?;
            rest = others;
            let held = leaves.iter_mut().zip(words);
            let held = held.map(|(leaf, word)| word.is_some_and(|word| leaf.hold(word, rows)));
            let held: Vec<bool> = held.collect();
            if !held.contains(&false) {
                continue;
            }
            let levels = compute_leaves(field, column)?;
            for (number, (leaf, levels)) in leaves.iter_mut().zip(&levels).enumerate() {
                if held.get(number) == Some(&false) {
                    leaf.write_held(field, number)?;
                    leaf.writer.write(levels)?;
                }
            }
        }
        Ok(())
    }
}

impl Leaf {
    /// Holds `more` rows of the word, unless the leaf has other rows.
    fn hold(&mut self, next: &str, more: usize) -> bool {
        match &mut self.held {
            PendingValues::Nothing => {
                self.held = PendingValues::Word {
                    word: next.to_owned(),
                    rows: more,
                };
                true
            }
            PendingValues::Word { word, rows } if word == next => {
                *rows += more;
                true
            }
            PendingValues::Word { .. } | PendingValues::Written => false,
        }
    }

    /// Other rows follow: gives the writer those that were held until now.
    fn write_held(&mut self, field: &Field, number: usize) -> Result<(), ParquetError> {
        if let PendingValues::Word { word, rows } = std::mem::replace(&mut self.held, PendingValues::Written)
        {
            let (field, column) = constant_text::rows_of(field, number, &word, rows)?;
            for levels in compute_leaves(&field, &column)? {
                self.writer.write(&levels)?;
            }
        }
        Ok(())
    }
}
