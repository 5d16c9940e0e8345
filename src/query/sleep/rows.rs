//! Builds answers that are rows of a hypnogram.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use uuid::Uuid;

use crate::model::registry::timestamp;

use super::cycles::{Cycle, CycleSink};
use super::night_of;
use super::resolve::Row;
use super::samples::SourceNumber;
use super::spec::StagesSpec;

/// The number of rows in a batch of an answer.
pub(super) const BATCH_ROWS: usize = 8192;

pub(super) fn moments(micros: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"))
}

pub(super) fn numbers(numbers: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(numbers))
}

pub(super) fn days(days: Vec<i32>) -> ArrayRef {
    Arc::new(Date32Array::from(days))
}

/// The length of `[start, end)` in whole milliseconds.
pub(super) const fn milliseconds(start: i64, end: i64) -> i64 {
    (end - start) / 1000
}

/// Rows for other questions to build on.
#[derive(Debug, Default)]
pub(super) struct ResolvedRows {
    start: Vec<i64>,
    end: Vec<i64>,
    stage: Vec<i64>,
}

impl ResolvedRows {
    #[must_use]
    pub(super) fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("start_time", timestamp(), false),
            Field::new("end_time", timestamp(), false),
            Field::new("stage", DataType::Int64, false),
        ]))
    }

    pub(super) fn push(&mut self, row: &Row) {
        self.start.push(row.start);
        self.end.push(row.end);
        self.stage.push(row.stage);
    }

    #[must_use]
    pub(super) const fn len(&self) -> usize {
        self.start.len()
    }

    pub(super) fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let Self { start, end, stage } = std::mem::take(self);
        let columns = vec![moments(start), moments(end), numbers(stage)];
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// Rows with the number of their cycle.
#[derive(Debug)]
pub(super) struct StageRows {
    spec: StagesSpec,
    cycle: Vec<i64>,
    rows: ResolvedRows,
    /// Filled where the answer names sources.
    sources: Vec<SourceNumber>,
    /// The cycle of the last row, and its night.
    night: Option<(i64, i32)>,
    nights: Vec<i32>,
}

impl StageRows {
    #[must_use]
    pub(super) fn new(spec: StagesSpec) -> Self {
        Self {
            spec,
            cycle: Vec::new(),
            rows: ResolvedRows::default(),
            sources: Vec::new(),
            night: None,
            nights: Vec::new(),
        }
    }

    #[must_use]
    pub(super) fn schema(spec: &StagesSpec) -> SchemaRef {
        let mut fields = vec![
            Field::new("cycle", DataType::Int64, false),
            Field::new("start_time", timestamp(), false),
            Field::new("end_time", timestamp(), false),
            Field::new("sleep_stage", DataType::Int64, false),
            Field::new("duration_ms", DataType::Int64, false),
        ];
        if !spec.merge_contiguous {
            fields.push(Field::new("source_id", DataType::Utf8, true));
        }
        fields.extend(spec.cycles.nights.map(|_| night_of::field()));
        Arc::new(Schema::new(fields))
    }

    #[must_use]
    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows so far. `name` returns the id under which a source is listed.
    pub(super) fn take(
        &mut self,
        schema: &SchemaRef,
        name: impl Fn(SourceNumber) -> Option<Uuid>,
    ) -> Result<RecordBatch> {
        let ResolvedRows { start, end, stage } = std::mem::take(&mut self.rows);
        let spans = start.iter().zip(&end);
        let lengths = spans.map(|(start, end)| milliseconds(*start, *end)).collect();
        let mut columns = vec![
            numbers(std::mem::take(&mut self.cycle)),
            moments(start),
            moments(end),
            numbers(stage),
            numbers(lengths),
        ];
        if !self.spec.merge_contiguous {
            let sources = std::mem::take(&mut self.sources).into_iter();
            let ids = sources.map(|source| name(source).map(|id| id.to_string()));
            columns.push(Arc::new(ids.collect::<StringArray>()));
        }
        if self.spec.cycles.nights.is_some() {
            columns.push(days(std::mem::take(&mut self.nights)));
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

impl CycleSink for StageRows {
    fn row(&mut self, number: i64, row: &Row) {
        if let Some(zone) = &self.spec.cycles.nights
            && self.night.is_none_or(|(cycle, _)| cycle != number)
        {
            // A cycle begins with its first row, shown or not.
            self.night = Some((number, night_of::night_of(zone, row.start)));
        }
        if self.spec.cycles.shows(row.stage) {
            self.cycle.push(number);
            self.rows.push(row);
            if !self.spec.merge_contiguous {
                self.sources.push(row.source);
            }
            self.nights.extend(self.night.map(|(_, night)| night));
        }
    }

    fn closed(&mut self, _cycle: Cycle) {}
}
