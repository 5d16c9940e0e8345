//! Cuts the rows of a stretch of time to what counts in it.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Schema};
use datafusion::common::{Result, internal_datafusion_err};

use crate::model::columns::{END, START, VALUE};
use crate::query::ground::measure::{LONG, prorated};
use crate::query::ground::row_times::micros_of;

/// How rows become the rows of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// All rows uncut: each touches only time that is read as rows.
    Whole,
    /// The part of each amount that lies inside.
    Inside,
    /// The rows that start inside, as instants.
    StartInside,
}

/// Rows in the columns that a series needs.
pub(super) struct Columns<'a> {
    pub(super) starts: &'a [i64],
    pub(super) ends: &'a [i64],
    /// As numbers. May have nulls.
    pub(super) values: ArrayRef,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Self> {
        let values = batch
            .column_by_name(VALUE)
            .ok_or_else(|| internal_datafusion_err!("rows without a value"))?;
        Ok(Self {
            starts: micros_of(batch, START)?,
            ends: micros_of(batch, END)?,
            values: cast(values, &DataType::Float64)?,
        })
    }

    pub(super) fn numbers(&self) -> Result<&Float64Array> {
        self.values
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(|| internal_datafusion_err!("the value is not a number"))
    }
}

impl Cut {
    /// The part of `batch` that counts in `time`, and which amounts were long before the cut.
    pub(super) fn apply(
        self,
        batch: &RecordBatch,
        time: &Range<i64>,
    ) -> Result<(RecordBatch, Option<BooleanArray>)> {
        let columns = Columns::of(batch)?;
        match self {
            Self::Whole => Ok((batch.clone(), None)),
            Self::Inside => inside(batch, &columns, time),
            Self::StartInside => {
                let keep: BooleanArray = columns
                    .starts
                    .iter()
                    .map(|start| Some(time.contains(start)))
                    .collect();
                let starts = TimestampMicrosecondArray::from(columns.starts.to_vec()).with_timezone("UTC");
                let instants = with(batch, END, Arc::new(starts))?;
                Ok((filter_record_batch(&instants, &keep)?, None))
            }
        }
    }
}

fn inside(
    batch: &RecordBatch,
    columns: &Columns<'_>,
    time: &Range<i64>,
) -> Result<(RecordBatch, Option<BooleanArray>)> {
    let spans = || columns.starts.iter().copied().zip(columns.ends.iter().copied());
    let long: BooleanArray = spans().map(|(start, end)| Some(end - start > LONG)).collect();
    if spans().all(|(start, end)| time.start <= start && end <= time.end) {
        return Ok((batch.clone(), Some(long)));
    }
    let utc =
        |times: Vec<i64>| Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")) as ArrayRef;
    let starts = spans().map(|(start, _)| start.max(time.start)).collect();
    // Instants are inside; they were selected for that.
    let ends = spans()
        .map(|(start, end)| if start == end { end } else { end.min(time.end) })
        .collect();
    let values: Float64Array = columns
        .numbers()?
        .iter()
        .zip(spans())
        .map(|(value, (start, end))| {
            let covered = end.min(time.end) - start.max(time.start);
            value.map(|value| {
                if covered >= end - start {
                    value
                } else {
                    prorated(value, covered, end - start)
                }
            })
        })
        .collect();
    let cut = with(batch, START, utc(starts))?;
    let cut = with(&cut, END, utc(ends))?;
    Ok((with(&cut, VALUE, Arc::new(values))?, Some(long)))
}

/// `batch` with the column `name` replaced.
fn with(batch: &RecordBatch, name: &str, column: ArrayRef) -> Result<RecordBatch> {
    let at = batch.schema().index_of(name)?;
    let mut columns = batch.columns().to_vec();
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    if let (Some(slot), Some(field)) = (columns.get_mut(at), fields.get_mut(at)) {
        *field = Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(column.data_type().clone())
                .with_nullable(true),
        );
        *slot = column;
    }
    let schema = Arc::new(Schema::new(fields));
    Ok(RecordBatch::try_new(schema, columns)?)
}
