//! Rollups in the form of rows: what series read in place of the rows that were reduced.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Array, RecordBatch, TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_datafusion_err};

use crate::model::columns::{END, SOURCE, SOURCE_CLASS, START, VALUE};
use crate::model::registry::{dictionary_text, timestamp};
use crate::query::ground::errors::outside;
use crate::query::ground::measure::Counting;
use crate::query::ground::rollups::{ROLLUP_COUNT, ROLLUP_LONG, ROLLUP_MAX, ROLLUP_MIN, ROLLUP_SUM};
use crate::store::rollups::{COUNT, GREATEST, LEAST, SUM, together};

/// The columns of rows, and of rollups in their place.
pub(super) fn schema(counting: Counting, amounts: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new(START, timestamp(), false),
        Field::new(END, timestamp(), false),
        Field::new(VALUE, DataType::Float64, true),
    ];
    if counting == Counting::BestSource {
        fields.push(Field::new(SOURCE, dictionary_text(), true));
        fields.push(Field::new(SOURCE_CLASS, DataType::Int8, true));
    }
    if amounts {
        fields.push(Field::new(ROLLUP_LONG, DataType::Boolean, true));
    } else {
        fields.push(Field::new(ROLLUP_COUNT, DataType::Int64, true));
        fields.extend(
            [ROLLUP_SUM, ROLLUP_MIN, ROLLUP_MAX].map(|name| Field::new(name, DataType::Float64, true)),
        );
    }
    Arc::new(Schema::new(fields))
}

/// `batch` in the columns of `schema`; missing ones are null, and `long` is the column that marks long
/// amounts.
pub(super) fn fitted(
    batch: &RecordBatch,
    schema: &SchemaRef,
    long: Option<&ArrayRef>,
) -> Result<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => Ok(cast(column, field.data_type())?),
            None => Ok(match long.filter(|_| field.name() == ROLLUP_LONG) {
                Some(long) => Arc::clone(long),
                None => new_null_array(field.data_type(), batch.num_rows()),
            }),
        });
    Ok(RecordBatch::try_new(
        Arc::clone(schema),
        columns.collect::<Result<_>>()?,
    )?)
}

/// Amounts per rollup, as amounts with the duration of the rollup.
pub(super) fn of_amounts(sums: &[RecordBatch], step: i64, counting: Counting) -> Result<RecordBatch> {
    let schema = schema(counting, true);
    let mut starts = Vec::new();
    let mut values = Vec::new();
    for batch in sums {
        let (times, amounts) = (batch.column(0), batch.column(1));
        let times = times
            .as_primitive_opt::<TimestampMicrosecondType>()
            .ok_or_else(|| internal_datafusion_err!("rollups without times"))?;
        let amounts = amounts
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(|| internal_datafusion_err!("rollups without amounts"))?;
        starts.extend_from_slice(times.values());
        values.extend_from_slice(amounts.values());
    }
    let ends = starts.iter().map(|start| start + step).collect();
    let utc =
        |times: Vec<i64>| Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")) as ArrayRef;
    let rows = Schema::new(schema.fields().iter().take(3).cloned().collect::<Vec<_>>());
    let batch = RecordBatch::try_new(
        Arc::new(rows),
        vec![utc(starts), utc(ends), Arc::new(Float64Array::from(values))],
    )?;
    fitted(&batch, &schema, None)
}

/// Rollups as rows: one for all sources together at each time, where sources do not matter.
pub(super) fn of_rollups(rollups: &RecordBatch, counting: Counting) -> Result<RecordBatch> {
    let rollups = match counting {
        Counting::Everything => together(rollups).map_err(outside)?,
        Counting::BestSource => rollups.clone(),
    };
    let named = [
        (START, START),
        (END, START),
        (VALUE, SUM),
        (ROLLUP_COUNT, COUNT),
        (ROLLUP_SUM, SUM),
        (ROLLUP_MIN, LEAST),
        (ROLLUP_MAX, GREATEST),
        (SOURCE, SOURCE),
        (SOURCE_CLASS, SOURCE_CLASS),
    ];
    let column = |(name, of): (&'static str, &str)| {
        let column = rollups.column_by_name(of);
        column
            .map(|column| (name, Arc::clone(column)))
            .ok_or_else(|| internal_datafusion_err!("rollups without {of}"))
    };
    let columns = named.into_iter().map(column).collect::<Result<Vec<_>>>()?;
    fitted(
        &RecordBatch::try_from_iter(columns)?,
        &schema(counting, false),
        None,
    )
}
