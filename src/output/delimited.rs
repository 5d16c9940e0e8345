//! Encodes rows as RFC 4180 text with a header: `csv` quotes where needed, `quotecsv` everywhere.
//!
//! Lines end with a line feed. In `csv` a null is an empty field and an empty text is `""`, so that they can
//! be distinguished; in `quotecsv` both are `""`. An answer of one column writes null as `""` in both,
//! because readers skip empty lines. Lists and structs are JSON text. Text that begins with `=` or the like
//! is left as it is: this is data, and how a spreadsheet shows it is the spreadsheet's business. On request
//! such text is defused with an apostrophe before it.

use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::record_batch::RecordBatch;

use super::cells::{Cells, FieldStyle, Style};
use super::chunks::{CHUNK, Chunks};
use super::encoder::{EncodeError, Encoder, Progress, refuse_long_row};
use super::steps::{Column, Steps};

/// When fields are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    WhereNeeded,
    Everywhere,
}

/// The encoder.
pub(super) struct Delimited {
    style: Style,
    header: Vec<u8>,
    columns: Vec<Column>,
    /// How to write a row of the current batch, without its line end.
    steps: Steps,
    next_row: usize,
    rows: usize,
}

impl Delimited {
    pub(super) fn new(schema: &SchemaRef, quoting: Quoting) -> Result<Self, EncodeError> {
        Self::styled(
            schema,
            match quoting {
                Quoting::WhereNeeded => FieldStyle::QuoteWhereNeeded,
                Quoting::Everywhere => FieldStyle::QuoteAlways,
            },
        )
    }

    /// An encoder that defuses text that looks like a formula.
    pub(super) fn defused(schema: &SchemaRef, quoting: Quoting) -> Result<Self, EncodeError> {
        Self::styled(
            schema,
            match quoting {
                Quoting::WhereNeeded => FieldStyle::DefuseWhereNeeded,
                Quoting::Everywhere => FieldStyle::DefuseAlways,
            },
        )
    }

    fn styled(schema: &SchemaRef, style: FieldStyle) -> Result<Self, EncodeError> {
        let mut header = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                header.push(b',');
            }
            style.write(field.name().as_bytes(), &mut header);
        }
        header.push(b'\n');
        let style = Style::Field(style);
        let column = |(index, field): (usize, &FieldRef)| {
            Ok(Column {
                index,
                name: Vec::new(),
                cells: Cells::new(field, style)?,
            })
        };
        let columns = schema.fields().iter().enumerate().map(column);
        let columns = columns.collect::<Result<_, EncodeError>>()?;
        Ok(Self {
            style,
            header,
            columns,
            steps: Steps::default(),
            next_row: 0,
            rows: 0,
        })
    }

    fn write_row(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        self.steps.write(row, &mut self.columns, self.style, out);
        if out.len() == start {
            out.extend_from_slice(b"\"\"");
        }
        out.push(b'\n');
        refuse_long_row(out)
    }
}

impl Encoder for Delimited {
    fn start(&mut self, out: &mut Chunks) -> Result<(), EncodeError> {
        out.open().extend_from_slice(&self.header);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        self.next_row = 0;
        self.rows = batch.num_rows();
        for column in &mut self.columns {
            column.cells.load(batch.column(column.index))?;
        }
        if self.rows > 0 {
            self.steps.plan(&mut self.columns, self.style, b"");
        }
        Ok(())
    }

    fn write(&mut self, chunks: &mut Chunks) -> Result<Progress, EncodeError> {
        let out = chunks.open();
        while self.next_row < self.rows && out.len() < CHUNK {
            self.write_row(self.next_row, out)?;
            self.next_row += 1;
        }
        Ok(if self.next_row < self.rows {
            Progress::More
        } else {
            Progress::Done
        })
    }

    fn finish(&mut self, _: &mut Chunks) -> Result<Progress, EncodeError> {
        Ok(Progress::Done)
    }
}
