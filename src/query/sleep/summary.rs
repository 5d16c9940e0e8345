//! Summarises a cycle in one row.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::Result;

use crate::model::registry::timestamp;

use super::cycles::{Cycle, CycleSink};
use super::in_bed::{InBed, union};
use super::night_of;
use super::resolve::Row;
use super::rows::{days, milliseconds, moments, numbers};
use super::spec::CyclesSpec;
use super::stages::StageTable;

/// The summary of a cycle. Times are microseconds since 1970, lengths are microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CycleSummary {
    pub number: i64,
    /// The start of its first row, whatever stage that has.
    pub begun: i64,
    /// The first start and the last end of stages other than being in bed, or of being in bed where there is
    /// nothing else.
    pub start: i64,
    pub end: i64,
    pub asleep: i64,
    /// From the start until falling asleep.
    pub latency: Option<i64>,
    /// Sorted and disjoint; never empty.
    pub in_bed: Vec<(i64, i64)>,
    pub intervals: Vec<(i64, i64, i64)>,
    pub totals: Vec<StageTotal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StageTotal {
    pub stage: i64,
    pub length: i64,
    /// From the start of the cycle to the first row of the stage.
    pub latency: i64,
}

/// The summary of the rows of a cycle. `in_bed` is the recorded time in bed, which may be empty. `None` if no
/// row has a stage that is shown.
pub(super) fn summarise(
    number: i64,
    rows: &[Row],
    in_bed: Vec<(i64, i64)>,
    stages: &StageTable,
    spec: &CyclesSpec,
) -> Option<CycleSummary> {
    if !rows.iter().any(|row| spec.shows(row.stage)) {
        return None;
    }
    let only_in_bed = rows.iter().all(|row| stages.is_in_bed(row.stage));
    let told: Vec<&Row> = rows
        .iter()
        .filter(|row| only_in_bed || !stages.is_in_bed(row.stage))
        .collect();
    let start = told.first()?.start;
    let end = told.last()?.end;
    let asleep = || rows.iter().filter(|row| stages.is_asleep(row.stage));
    let in_bed = if in_bed.is_empty() {
        union(rows.iter().map(|row| (row.start, row.end)))
    } else {
        in_bed
    };
    let shown: Vec<&Row> = told.into_iter().filter(|row| spec.shows(row.stage)).collect();
    let mut totals: BTreeMap<i64, StageTotal> = BTreeMap::new();
    for row in &shown {
        let total = totals.entry(row.stage).or_insert(StageTotal {
            stage: row.stage,
            length: 0,
            latency: row.start - start,
        });
        total.length += row.end - row.start;
    }
    Some(CycleSummary {
        number,
        begun: rows.first()?.start,
        start,
        end,
        asleep: asleep().map(|row| row.end - row.start).sum(),
        latency: asleep().next().map(|row| row.start - start),
        in_bed,
        intervals: shown.iter().map(|row| (row.start, row.end, row.stage)).collect(),
        totals: totals.into_values().collect(),
    })
}

/// Summaries of cycles as they close.
#[derive(Debug)]
pub(super) struct Summaries {
    spec: CyclesSpec,
    stages: Arc<StageTable>,
    pub in_bed: InBed,
    /// Rows of the open cycle.
    rows: Vec<Row>,
    ready: Vec<CycleSummary>,
    /// The number of intervals in the finished ones.
    intervals: usize,
}

impl Summaries {
    #[must_use]
    pub(super) const fn new(spec: CyclesSpec, stages: Arc<StageTable>, in_bed: InBed) -> Self {
        Self {
            spec,
            stages,
            in_bed,
            rows: Vec::new(),
            ready: Vec::new(),
            intervals: 0,
        }
    }

    /// The number of finished cycles and intervals.
    #[must_use]
    pub(super) const fn len(&self) -> usize {
        self.ready.len() + self.intervals
    }

    /// The number of rows of the open cycle, samples in bed, and finished cycles and intervals.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        self.rows.len() + self.in_bed.len() + self.len()
    }

    #[must_use]
    pub(super) const fn spec(&self) -> &CyclesSpec {
        &self.spec
    }

    /// The cycles that have closed since the last call.
    pub(super) fn take(&mut self) -> Vec<CycleSummary> {
        self.intervals = 0;
        std::mem::take(&mut self.ready)
    }
}

impl CycleSink for Summaries {
    fn row(&mut self, _number: i64, row: &Row) {
        self.rows.push(*row);
    }

    fn closed(&mut self, cycle: Cycle) {
        let in_bed = self.in_bed.block(cycle.start, cycle.end);
        let rows = std::mem::take(&mut self.rows);
        if let Some(summary) = summarise(cycle.number, &rows, in_bed, &self.stages, &self.spec) {
            self.intervals += summary.intervals.len() + summary.in_bed.len();
            self.ready.push(summary);
        }
        self.in_bed.forget_before(cycle.end.saturating_add(self.spec.gap));
    }

    fn idle(&mut self, moment: i64) {
        self.in_bed.forget_before(moment);
    }
}

fn interval_fields() -> Fields {
    Fields::from(vec![
        Field::new("start_time", timestamp(), false),
        Field::new("end_time", timestamp(), false),
        Field::new("duration_ms", DataType::Int64, false),
        Field::new("sleep_stage", DataType::Int64, false),
    ])
}

fn total_fields() -> Fields {
    Fields::from(vec![
        Field::new("sleep_stage", DataType::Int64, false),
        Field::new("total_time_in_stage_ms", DataType::Int64, false),
        Field::new("stage_latency_ms", DataType::Int64, false),
    ])
}

fn item(fields: Fields) -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(fields), false))
}

/// The columns of cycles.
#[must_use]
pub(super) fn schema(spec: &CyclesSpec) -> SchemaRef {
    let time = |name: &str| Field::new(name, timestamp(), false);
    let length = |name: &str| Field::new(name, DataType::Int64, false);
    let list = |name: &str, fields: Fields| Field::new(name, DataType::List(item(fields)), false);
    let mut fields = vec![
        length("number"),
        time("start_time"),
        time("end_time"),
        length("total_time_ms"),
        length("total_time_asleep_ms"),
        Field::new("latency_ms", DataType::Int64, true),
        time("in_bed_start_time"),
        time("in_bed_end_time"),
        length("total_time_in_bed_ms"),
        length("in_bed_to_first_stage_ms"),
        list("sleep_stage_intervals", interval_fields()),
        list("sleep_stage_totals", total_fields()),
        list("in_bed_intervals", interval_fields()),
    ];
    fields.extend(spec.nights.map(|_| night_of::field()));
    Arc::new(Schema::new(fields))
}

/// Cycles as a batch of [`schema`].
pub(super) fn batch(cycles: &[CycleSummary], stages: &StageTable, spec: &CyclesSpec) -> Result<RecordBatch> {
    let mut columns = columns(cycles, stages)?;
    if let Some(zone) = &spec.nights {
        let nights = cycles.iter().map(|cycle| night_of::night_of(zone, cycle.begun));
        columns.push(days(nights.collect()));
    }
    RecordBatch::try_new(schema(spec), columns).map_err(Into::into)
}

/// The columns that every cycle has.
fn columns(cycles: &[CycleSummary], stages: &StageTable) -> Result<Vec<ArrayRef>> {
    let each = |value: fn(&CycleSummary) -> i64| cycles.iter().map(value).collect::<Vec<i64>>();
    let intervals = cycles.iter().map(|cycle| cycle.intervals.as_slice());
    let in_bed_stage = stages.in_bed();
    let in_bed: Vec<Vec<(i64, i64, i64)>> = cycles
        .iter()
        .map(|cycle| {
            cycle
                .in_bed
                .iter()
                .map(|&(start, end)| (start, end, in_bed_stage))
                .collect()
        })
        .collect();
    Ok(vec![
        numbers(each(|cycle| cycle.number)),
        moments(each(|cycle| cycle.start)),
        moments(each(|cycle| cycle.end)),
        numbers(each(|cycle| milliseconds(cycle.start, cycle.end))),
        numbers(each(|cycle| cycle.asleep / 1000)),
        Arc::new(
            cycles
                .iter()
                .map(|cycle| cycle.latency.map(|latency| latency / 1000))
                .collect::<Int64Array>(),
        ),
        moments(each(in_bed_start)),
        moments(each(|cycle| cycle.in_bed.last().map_or(cycle.end, |last| last.1))),
        numbers(each(|cycle| {
            cycle.in_bed.iter().map(|(start, end)| end - start).sum::<i64>() / 1000
        })),
        numbers(each(|cycle| {
            milliseconds(in_bed_start(cycle), cycle.start).max(0)
        })),
        interval_lists(intervals)?,
        total_lists(cycles)?,
        interval_lists(in_bed.iter().map(Vec::as_slice))?,
    ])
}

fn in_bed_start(cycle: &CycleSummary) -> i64 {
    cycle.in_bed.first().map_or(cycle.start, |first| first.0)
}

fn interval_lists<'a>(lists: impl Iterator<Item = &'a [(i64, i64, i64)]> + Clone) -> Result<ArrayRef> {
    let flat: Vec<(i64, i64, i64)> = lists.clone().flatten().copied().collect();
    let columns = vec![
        moments(flat.iter().map(|interval| interval.0).collect()),
        moments(flat.iter().map(|interval| interval.1).collect()),
        numbers(
            flat.iter()
                .map(|interval| milliseconds(interval.0, interval.1))
                .collect(),
        ),
        numbers(flat.iter().map(|interval| interval.2).collect()),
    ];
    lists_of(interval_fields(), lists.map(<[_]>::len), columns)
}

fn total_lists(cycles: &[CycleSummary]) -> Result<ArrayRef> {
    let flat = || cycles.iter().flat_map(|cycle| &cycle.totals);
    let columns = vec![
        numbers(flat().map(|total| total.stage).collect()),
        numbers(flat().map(|total| total.length / 1000).collect()),
        numbers(flat().map(|total| total.latency / 1000).collect()),
    ];
    lists_of(
        total_fields(),
        cycles.iter().map(|cycle| cycle.totals.len()),
        columns,
    )
}

fn lists_of(
    fields: Fields,
    lengths: impl Iterator<Item = usize>,
    columns: Vec<ArrayRef>,
) -> Result<ArrayRef> {
    let values = StructArray::try_new(fields.clone(), columns, None)?;
    let lists = ListArray::try_new(
        item(fields),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(values),
        None,
    )?;
    Ok(Arc::new(lists))
}
