//! Encodes rows as JSON objects: one a line (`ndjson`), or in one array (`jstable`).
//!
//! An answer without rows has no bytes in `ndjson`, and is `[]` in `jstable`.
//!
//! A member of a spread column stands beside the columns. Where one of them has its name, an object there
//! takes in the members that it lacks, and what a column without a value cannot hold stays under the name of
//! the spread one: so a column has one value in all forms.

use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::record_batch::RecordBatch;

use super::SPREAD;
use super::cells::{Cells, Style};
use super::chunks::{CHUNK, Chunks};
use super::encoder::{EncodeError, Encoder, Progress, refuse_long_row};
use super::flattened_members::{Broken, Names, for_each_member, merge};
use super::steps::{Column, Steps};
use super::text::write_json_string;
use crate::model::registry::is_json_text;

/// What surrounds the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One line for each object.
    Lines,
    /// One array.
    Array,
}

/// The encoder.
pub(super) struct RowObjects {
    framing: Framing,
    columns: Vec<Column>,
    spread: Vec<SpreadColumn>,
    /// The names that every row has.
    names: Names,
    /// The names that the spread columns gave to the current row. Kept only if there are several such
    /// columns.
    given: Option<Names>,
    /// Undeclared members of declared objects in the current row, which are in a spread column under the name
    /// of the object's column.
    besides: Vec<(usize, String)>,
    /// The members of the spread column that is being written of which the columns of their names are null.
    left: Vec<u8>,
    scratch: Vec<u8>,
    /// How to write a row of the current batch, without the closing brace.
    steps: Steps,
    next_row: usize,
    rows: usize,
    any_row: bool,
}

struct SpreadColumn {
    index: usize,
    title: String,
    cells: Cells,
}

impl RowObjects {
    pub(super) fn new(schema: &SchemaRef, framing: Framing) -> Result<Self, EncodeError> {
        let mut names = Names::default();
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut spread = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let cells = Cells::new(field, Style::Json)?;
            if is_spread(field) {
                spread.push(SpreadColumn {
                    index,
                    title: field.name().clone(),
                    cells,
                });
            } else {
                names.insert(field.name().clone());
                columns.push(Column {
                    index,
                    name: name_before_value(field),
                    cells,
                });
            }
        }
        let given = (spread.len() > 1).then(Names::default);
        Ok(Self {
            framing,
            columns,
            spread,
            names,
            given,
            besides: Vec::new(),
            left: Vec::new(),
            scratch: Vec::new(),
            steps: Steps::default(),
            next_row: 0,
            rows: 0,
            any_row: false,
        })
    }

    fn write_row(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if !self.spread.is_empty() {
            self.find_besides(row)?;
        }
        if self.besides.is_empty() {
            self.steps.write(row, &mut self.columns, Style::Json, out);
        } else {
            self.write_with_besides(row, out)?;
        }
        if !self.spread.is_empty() {
            self.write_spread(row, out)?;
        }
        out.push(b'}');
        refuse_long_row(out)
    }

    fn find_besides(&mut self, row: usize) -> Result<(), EncodeError> {
        self.besides.clear();
        for spread in &self.spread {
            let Some(json) = spread.cells.text(row) else {
                continue;
            };
            let each = |name: &str, value: &str| {
                if !value.starts_with('{') || !self.names.contain(name) {
                    return;
                }
                if let Some((position, column)) = named(&self.columns, name)
                    && !column.cells.is_null(row)
                    && !self.besides.iter().any(|(known, _)| *known == position)
                {
                    self.besides.push((position, value.to_owned()));
                }
            };
            for_each_member(json, each).map_err(|_| EncodeError::BrokenJson {
                column: spread.title.clone(),
            })?;
        }
        Ok(())
    }

    fn write_with_besides(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for (position, column) in self.columns.iter_mut().enumerate() {
            out.push(if position == 0 { b'{' } else { b',' });
            out.extend_from_slice(&column.name);
            match self.besides.iter().find(|(besides, _)| *besides == position) {
                Some((_, value)) => {
                    self.scratch.clear();
                    column.cells.write_json(row, &mut self.scratch);
                    let written = std::str::from_utf8(&self.scratch).map_err(|_| Broken);
                    written
                        .and_then(|written| merge(written, value, out))
                        .map_err(|_| EncodeError::BrokenJson {
                            column: String::from_utf8_lossy(&column.name).into_owned(),
                        })?;
                }
                None => column.cells.write_json(row, out),
            }
        }
        Ok(())
    }

    fn write_spread(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if let Some(given) = &mut self.given {
            given.clear();
        }
        let mut empty = self.columns.is_empty();
        for column in &self.spread {
            let Some(json) = column.cells.text(row) else {
                continue;
            };
            self.left.clear();
            let each = |name: &str, value: &str| {
                if self.names.contain(name) {
                    let is_left = |column: &Column| column.cells.is_null(row) && value != "null";
                    if named(&self.columns, name).is_some_and(|(_, column)| is_left(column)) {
                        self.left.push(if self.left.is_empty() { b'{' } else { b',' });
                        write_member(name, value, &mut self.left);
                    }
                    return;
                }
                if self.given.as_ref().is_some_and(|given| given.contain(name)) {
                    return;
                }
                if !std::mem::take(&mut empty) {
                    out.push(b',');
                }
                write_member(name, value, out);
                if let Some(given) = &mut self.given {
                    given.insert_quoted(name);
                }
            };
            for_each_member(json, each).map_err(|_| EncodeError::BrokenJson {
                column: column.title.clone(),
            })?;
            if !self.left.is_empty() {
                if !std::mem::take(&mut empty) {
                    out.push(b',');
                }
                write_json_string(&column.title, out);
                out.push(b':');
                out.append(&mut self.left);
                out.push(b'}');
            }
        }
        Ok(())
    }
}

impl Encoder for RowObjects {
    fn start(&mut self, out: &mut Chunks) -> Result<(), EncodeError> {
        if self.framing == Framing::Array {
            out.open().push(b'[');
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        for column in &mut self.columns {
            column.cells.load(batch.column(column.index))?;
        }
        for column in &mut self.spread {
            column.cells.load(batch.column(column.index))?;
        }
        self.next_row = 0;
        self.rows = batch.num_rows();
        if self.rows > 0 {
            self.steps.plan(&mut self.columns, Style::Json, b"{");
        }
        Ok(())
    }

    fn write(&mut self, chunks: &mut Chunks) -> Result<Progress, EncodeError> {
        let out = chunks.open();
        while self.next_row < self.rows && out.len() < CHUNK {
            if self.framing == Framing::Array && self.any_row {
                out.extend_from_slice(b",\n");
            }
            self.write_row(self.next_row, out)?;
            if self.framing == Framing::Lines {
                out.push(b'\n');
            }
            self.any_row = true;
            self.next_row += 1;
        }
        Ok(if self.next_row < self.rows {
            Progress::More
        } else {
            Progress::Done
        })
    }

    fn finish(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        if self.framing == Framing::Array {
            out.open().push(b']');
        }
        Ok(Progress::Done)
    }
}

/// The column whose name this is as JSON, and its place.
fn named<'c>(columns: &'c [Column], name: &str) -> Option<(usize, &'c Column)> {
    let is_named = |column: &Column| column.name.strip_suffix(b":") == Some(name.as_bytes());
    let mut places = columns.iter().enumerate();
    places.find(|(_, column)| is_named(column))
}

fn write_member(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

/// The name of a field as JSON, and a colon.
pub(super) fn name_before_value(field: &FieldRef) -> Vec<u8> {
    let mut name = Vec::new();
    write_json_string(field.name(), &mut name);
    name.push(b':');
    name
}

fn is_spread(field: &FieldRef) -> bool {
    is_json_text(field) && field.metadata().get(SPREAD).is_some_and(|value| value == "true")
}
