//! Encodes an answer as one JSON object, column name to array of values (`jscolumns`).
//!
//! The form is column by column while rows arrive row by row, so the text of all columns but the first has to
//! wait for the end. Up to [`BYTES_IN_MEMORY`] bytes wait in memory; beyond that, the waiting text goes to a
//! temporary file beside those of running questions, and the end of the answer reads it back column by
//! column. Memory stays flat, but the first byte is sent after the last row: for long answers another form is
//! better.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::cells::{Cells, Style};
use super::chunks::{CHUNK, Chunks};
use super::encoder::{EncodeError, Encoder, Progress, refuse_long_row};
use super::rows::name_before_value;
use super::spool::Spool;
use crate::query::spill_files::SpillFiles;

/// How many bytes of text wait in memory.
const BYTES_IN_MEMORY: usize = 1 << 20;

/// How many rows are written before the length of the text is checked again.
const ROWS: usize = 4_096;

/// The encoder.
pub(super) struct ColumnObject {
    columns: Vec<Column>,
    keep: usize,
    spool: Spool,
    any_row: bool,
    next_row: usize,
    rows: usize,
    next_column: usize,
    /// Whether the opening of `next_column` has been written.
    opened: bool,
}

struct Column {
    /// The name as JSON, a colon and the opening bracket, with the punctuation before it.
    opening: Vec<u8>,
    cells: Cells,
    /// The newest values, separated by commas. What is older is in the spool.
    text: Vec<u8>,
}

impl ColumnObject {
    pub(super) fn new(schema: &SchemaRef, spill: SpillFiles) -> Result<Self, EncodeError> {
        Self::keeping(schema, BYTES_IN_MEMORY, spill)
    }

    fn keeping(schema: &SchemaRef, keep: usize, spill: SpillFiles) -> Result<Self, EncodeError> {
        let column = |(index, field)| {
            let mut opening = vec![if index == 0 { b'{' } else { b',' }];
            opening.extend_from_slice(&name_before_value(field));
            opening.push(b'[');
            Ok(Column {
                opening,
                cells: Cells::new(field, Style::Json)?,
                text: Vec::new(),
            })
        };
        let columns: Vec<Column> = schema
            .fields()
            .iter()
            .enumerate()
            .map(column)
            .collect::<Result<_, EncodeError>>()?;
        let spool = Spool::new(spill, columns.len());
        Ok(Self {
            columns,
            keep,
            spool,
            any_row: false,
            next_row: 0,
            rows: 0,
            next_column: 0,
            opened: false,
        })
    }

    fn waiting(&self) -> usize {
        self.columns.iter().map(|column| column.text.len()).sum()
    }

    fn spill(&mut self) -> Result<(), EncodeError> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            self.spool.append(index, &column.text)?;
            column.text.clear();
        }
        Ok(())
    }
}

impl Encoder for ColumnObject {
    fn start(&mut self, _: &mut Chunks) -> Result<(), EncodeError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.next_row = 0;
        self.rows = batch.num_rows();
        self.columns
            .iter_mut()
            .zip(batch.columns())
            .try_for_each(|(column, array)| column.cells.load(array))
    }

    fn write(&mut self, _: &mut Chunks) -> Result<Progress, EncodeError> {
        let end = self.rows.min(self.next_row + ROWS);
        for (index, column) in self.columns.iter_mut().enumerate() {
            for row in self.next_row..end {
                if self.any_row || row > 0 {
                    column.text.push(b',');
                }
                column.cells.write_json(row, &mut column.text);
                refuse_long_row(&column.text)?;
                if column.text.len() > self.keep {
                    self.spool.append(index, &column.text)?;
                    column.text.clear();
                }
            }
        }
        self.any_row |= end > 0;
        self.next_row = end;
        if self.waiting() > self.keep {
            self.spill()?;
        }
        Ok(if self.next_row < self.rows {
            Progress::More
        } else {
            Progress::Done
        })
    }

    fn finish(&mut self, chunks: &mut Chunks) -> Result<Progress, EncodeError> {
        let out = chunks.open();
        while let Some(column) = self.columns.get_mut(self.next_column) {
            if out.len() >= CHUNK {
                return Ok(Progress::More);
            }
            if !self.opened {
                out.extend_from_slice(&column.opening);
                self.opened = true;
            }
            if self.spool.read(self.next_column, CHUNK, out)? {
                continue;
            }
            chunks.push(std::mem::take(&mut column.text).into());
            self.next_column += 1;
            self.opened = false;
            chunks.open().push(b']');
            return Ok(Progress::More);
        }
        out.extend_from_slice(if self.columns.is_empty() { b"{}" } else { b"}" });
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn text(keep: usize, batches: &[RecordBatch]) -> String {
        let schema = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Float64, true),
        ]));
        let mut encoder = ColumnObject::keeping(&schema, keep, SpillFiles::default()).unwrap();
        let mut chunks = Chunks::default();
        for batch in batches {
            encoder.batch(batch).unwrap();
            while encoder.write(&mut chunks).unwrap() == Progress::More {}
        }
        assert!(chunks.is_empty());
        let mut text = Vec::new();
        loop {
            let progress = encoder.finish(&mut chunks).unwrap();
            while let Some(chunk) = chunks.take(true) {
                assert!(chunk.len() <= 8 * CHUNK);
                text.extend_from_slice(&chunk);
            }
            if progress == Progress::Done {
                return String::from_utf8(text).unwrap();
            }
        }
    }

    #[test]
    fn an_answer_through_the_file_is_the_answer_from_memory() {
        let batch = |start: i64| {
            let numbers: Int64Array = (start..start + 5_000)
                .map(|number| (number % 7 > 0).then_some(number))
                .collect();
            let floats: Float64Array = (start..start + 5_000)
                .map(|number| (number % 3 > 0).then_some(number as f64 / 7.0))
                .collect();
            RecordBatch::try_from_iter([
                ("a", Arc::new(numbers) as ArrayRef),
                ("b", Arc::new(floats) as ArrayRef),
            ])
            .unwrap()
        };
        let batches: Vec<RecordBatch> = (0..40).map(|index| batch(index * 5_000)).collect();
        let from_memory = text(usize::MAX, &batches);
        assert_eq!(text(100_000, &batches), from_memory);
        assert_eq!(text(0, &batches), from_memory);
        let value: serde_json::Value = serde_json::from_str(&from_memory).unwrap();
        assert_eq!(value["a"].as_array().unwrap().len(), 200_000);
        assert_eq!(value["b"][199_999], serde_json::json!(199_999.0 / 7.0));
    }

    #[test]
    fn no_rows_are_empty_arrays() {
        assert_eq!(text(BYTES_IN_MEMORY, &[]), r#"{"a":[],"b":[]}"#);
    }
}
