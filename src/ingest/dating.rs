//! Dates records that were sent without a time and are stored already: they keep their time. Only new records
//! get the time of acceptance; otherwise a record sent again would be a different record each time.
//!
//! Lives as long as one body or one commit. Knows rows; knows nothing of where they are stored.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;

use crate::model::ids::RecordId;

/// The columns of start and end, which follow the id.
const TIMES: [usize; 2] = [1, 2];

/// Start and end of stored records, in microseconds.
#[derive(Clone, Debug, Default)]
pub struct KnownTimes(HashMap<RecordId, [i64; 2]>);

impl KnownTimes {
    #[must_use]
    pub fn know(&self, id: RecordId) -> bool {
        self.0.contains_key(&id)
    }

    /// Learns the times of the record in row `row`.
    pub fn learn(&mut self, id: RecordId, rows: &RecordBatch, row: usize) -> Result<(), ArrowError> {
        let [start, end] = TIMES.map(|column| moments(rows, column));
        self.0.insert(id, [start?.value(row), end?.value(row)]);
        Ok(())
    }

    pub fn forget(&mut self, id: RecordId) {
        self.0.remove(&id);
    }

    /// Returns `rows` with the known times in the rows that came without one (`undated`), and learns the
    /// times of all rows whose id the caller chose.
    pub fn date(
        &mut self,
        rows: &RecordBatch,
        given: &[bool],
        undated: &[usize],
    ) -> Result<RecordBatch, ArrowError> {
        let ids = rows
            .columns()
            .first()
            .and_then(|column| column.as_fixed_size_binary_opt());
        let ids =
            ids.ok_or_else(|| ArrowError::SchemaError("rows to store begin with a 16-byte id".to_owned()))?;
        let mut starts = moments(rows, TIMES[0])?.values().to_vec();
        let mut ends = moments(rows, TIMES[1])?.values().to_vec();
        let mut undated = undated.iter().copied().peekable();
        let mut is_changed = false;
        for (row, (start, end)) in starts.iter_mut().zip(&mut ends).enumerate() {
            let is_undated = undated.next_if_eq(&row).is_some();
            if given.get(row) != Some(&true) {
                continue;
            }
            let Some(id) = RecordId::from_slice(ids.value(row)) else {
                continue;
            };
            match self.0.get(&id) {
                Some(known) if is_undated => {
                    [*start, *end] = *known;
                    is_changed = true;
                }
                _ => {
                    self.0.insert(id, [*start, *end]);
                }
            }
        }
        if !is_changed {
            return Ok(rows.clone());
        }
        let mut columns = rows.columns().to_vec();
        for (place, micros) in TIMES.into_iter().zip([starts, ends]) {
            if let Some(column) = columns.get_mut(place) {
                let array =
                    TimestampMicrosecondArray::from(micros).with_data_type(column.data_type().clone());
                *column = Arc::new(array) as ArrayRef;
            }
        }
        RecordBatch::try_new(rows.schema(), columns)
    }
}

fn moments(rows: &RecordBatch, column: usize) -> Result<&TimestampMicrosecondArray, ArrowError> {
    rows.columns()
        .get(column)
        .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>())
        .ok_or_else(|| ArrowError::SchemaError("rows to store have start and end behind their id".to_owned()))
}
