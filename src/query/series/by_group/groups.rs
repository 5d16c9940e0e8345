//! The distinct values of samples in the columns that amounts are split by, numbered as they appear.
//!
//! Knows columns; must not know what is split.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};

/// The most groups among samples, and the error if there are more.
#[derive(Clone, Copy, Debug)]
pub(super) struct SplitLimit {
    pub(super) most: usize,
    pub(super) too_many: fn() -> DataFusionError,
}

#[derive(Debug)]
pub(super) struct Groups {
    columns: Vec<usize>,
    converter: RowConverter,
    numbers: HashMap<OwnedRow, u32>,
    rows: Vec<OwnedRow>,
    /// The bytes of all rows.
    bytes: usize,
    limit: SplitLimit,
}

impl Groups {
    /// `names`: columns of `input`.
    pub(super) fn new(names: &[String], input: &SchemaRef, limit: SplitLimit) -> Result<Self> {
        let columns = names
            .iter()
            .map(|name| input.index_of(name))
            .collect::<Result<Vec<_>, _>>()?;
        let fields = columns
            .iter()
            .map(|column| SortField::new(input.field(*column).data_type().clone()));
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            columns,
            numbers: HashMap::new(),
            rows: Vec::new(),
            bytes: 0,
            limit,
        })
    }

    /// The number of each row's group.
    pub(super) fn numbers(&mut self, batch: &RecordBatch) -> Result<Vec<u32>> {
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|column| Arc::clone(batch.column(*column)))
            .collect();
        let rows = self.converter.convert_columns(&columns)?;
        let mut numbers = Vec::with_capacity(batch.num_rows());
        for row in &rows {
            let row = row.owned();
            let number = match self.numbers.get(&row) {
                Some(number) => *number,
                None if self.rows.len() >= self.limit.most => return Err((self.limit.too_many)()),
                None => {
                    let number = self.rows.len() as u32;
                    self.bytes += row.as_ref().len();
                    self.rows.push(row.clone());
                    self.numbers.insert(row, number);
                    number
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// The values of the groups with these numbers.
    pub(super) fn columns(&self, numbers: impl Iterator<Item = u32>) -> Result<Vec<ArrayRef>> {
        let rows = numbers
            .filter_map(|number| self.rows.get(number as usize))
            .map(OwnedRow::row);
        Ok(self.converter.convert_rows(rows)?)
    }

    /// Bytes on the heap: every row is there twice.
    pub(super) fn memory(&self) -> usize {
        2 * (self.bytes + self.rows.capacity() * size_of::<OwnedRow>())
    }
}
