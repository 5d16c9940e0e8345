//! Rollups as rows: what series read in the place of the rows that they were made from.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, Int64Array, RecordBatch, StringDictionaryBuilder,
    TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Int8Type, Int32Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_datafusion_err};

use crate::model::registry::{dictionary_text, timestamp};
use crate::model::sources::SourceClass;
use crate::query::ground::measure::Counting;
use crate::query::ground::rollups::{ROLLUP_COUNT, ROLLUP_LONG, ROLLUP_MAX, ROLLUP_MIN, ROLLUP_SUM};
use crate::query::series::points::Summary;

use super::cut::Columns;

/// The columns of rows, and of rollups in their place.
pub(super) fn schema(counting: Counting, amounts: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new("start_time", timestamp(), false),
        Field::new("end_time", timestamp(), false),
        Field::new("value", DataType::Float64, true),
    ];
    if counting == Counting::BestSource {
        fields.push(Field::new("source", dictionary_text(), true));
        fields.push(Field::new("source_class", DataType::Int8, true));
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

/// `batch` in the columns of `schema`; those that it has not are null, and `long` is the one that tells long
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

/// Amounts per rollup, as amounts that last as long as their rollup.
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

/// Gathers points into rollups. Rows come in the order of their starts.
pub(super) struct Gatherer {
    step: i64,
    counting: Counting,
    /// Rows may last beyond their rollup, because only their starts count.
    only_starts: bool,
    /// No row that starts earlier is taken.
    from: i64,
    rollup: i64,
    open: Vec<Seat>,
    starts: Vec<i64>,
    counts: Vec<i64>,
    sums: Vec<f64>,
    mins: Vec<f64>,
    maxs: Vec<f64>,
    sources: StringDictionaryBuilder<Int32Type>,
    classes: Vec<i8>,
}

#[derive(Debug)]
struct Seat {
    source: Option<String>,
    class: i8,
    summary: Summary,
}

impl Gatherer {
    pub(super) fn new(step: i64, counting: Counting, only_starts: bool, from: i64) -> Self {
        Self {
            step,
            counting,
            only_starts,
            from,
            rollup: i64::MIN,
            open: Vec::new(),
            starts: Vec::new(),
            counts: Vec::new(),
            sums: Vec::new(),
            mins: Vec::new(),
            maxs: Vec::new(),
            sources: StringDictionaryBuilder::new(),
            classes: Vec::new(),
        }
    }

    /// Takes rows. `false`: one of them lasts beyond its rollup, and there are no rollups of this piece.
    pub(super) fn take(&mut self, batch: &RecordBatch) -> Result<bool> {
        let columns = Columns::of(batch)?;
        let values = columns.numbers()?;
        let by_source = self.counting == Counting::BestSource;
        let class_column = batch
            .column_by_name("source_class")
            .and_then(|column| column.as_primitive_opt::<Int8Type>());
        let source_column = batch
            .column_by_name("source")
            .map(|column| cast(column, &dictionary_text()))
            .transpose()?;
        let sources = source_column
            .as_ref()
            .and_then(|column| column.as_dictionary_opt::<Int32Type>());
        let names = sources.and_then(|sources| sources.values().as_string_opt::<i32>());
        let name_of = |row: usize| {
            let key = sources.filter(|sources| sources.is_valid(row))?.keys().value(row);
            names.map(|names| names.value(key as usize))
        };
        for row in 0..batch.num_rows() {
            let (Some(&start), Some(&end)) = (columns.starts.get(row), columns.ends.get(row)) else {
                continue;
            };
            if self.only_starts && start < self.from {
                continue;
            }
            if values.is_null(row) {
                continue;
            }
            let rollup = start - start.rem_euclid(self.step);
            if !self.only_starts && (start < self.from || end > rollup + self.step) {
                return Ok(false);
            }
            if rollup != self.rollup {
                self.close();
                self.rollup = rollup;
            }
            let (source, class) = if by_source {
                let class = class_column
                    .filter(|classes| classes.is_valid(row))
                    .map(|classes| classes.value(row));
                (name_of(row), class.unwrap_or(SourceClass::Other.code()))
            } else {
                (None, SourceClass::Other.code())
            };
            self.seat(source, class).summary.add(values.value(row));
        }
        Ok(true)
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        self.close();
        let schema = schema(self.counting, false);
        let utc = |times: Vec<i64>| {
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")) as ArrayRef
        };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("start_time", utc(self.starts.clone())),
            ("end_time", utc(self.starts)),
            ("value", Arc::new(Float64Array::from(self.sums.clone()))),
            (ROLLUP_COUNT, Arc::new(Int64Array::from(self.counts))),
            (ROLLUP_SUM, Arc::new(Float64Array::from(self.sums))),
            (ROLLUP_MIN, Arc::new(Float64Array::from(self.mins))),
            (ROLLUP_MAX, Arc::new(Float64Array::from(self.maxs))),
        ];
        if self.counting == Counting::BestSource {
            columns.push(("source", Arc::new(self.sources.finish())));
            columns.push(("source_class", Arc::new(Int8Array::from(self.classes))));
        }
        fitted(&RecordBatch::try_from_iter(columns)?, &schema, None)
    }

    fn seat(&mut self, source: Option<&str>, class: i8) -> &mut Seat {
        let found = self
            .open
            .iter()
            .position(|seat| seat.class == class && seat.source.as_deref() == source);
        let at = found.unwrap_or_else(|| {
            self.open.push(Seat {
                source: source.map(str::to_owned),
                class,
                summary: Summary::default(),
            });
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    /// Writes down the rollup at hand. Seats stay for the next, because the same sources mostly go on.
    fn close(&mut self) {
        for seat in &mut self.open {
            let summary = std::mem::take(&mut seat.summary);
            if summary.count == 0 {
                continue;
            }
            self.starts.push(self.rollup);
            self.counts.push(summary.count as i64);
            self.sums.push(summary.sum.value());
            self.mins.push(summary.min);
            self.maxs.push(summary.max);
            if self.counting == Counting::BestSource {
                self.sources.append_option(seat.source.as_deref());
                self.classes.push(seat.class);
            }
        }
        if self.open.len() > 16 {
            self.open.clear();
        }
    }
}
