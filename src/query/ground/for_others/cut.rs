//! Cuts sorted rows to windows, as an operator of a plan.
//!
//! A row becomes one row for each window that it shares time with, with the same id, in the order of (start,
//! end, id). An amount that is spread over its time is reduced to the part that falls into the window; of all
//! other columns, only those stay that are as true of a part as of the whole. Rows inside one window, nearly
//! all, are passed on untouched; parts are held back while earlier ones may still come. Where one definition
//! is meant, rows of others are dropped before anything else is done. Columns leave with nothing in them but
//! the rows that are left.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{
    SortColumn, cast, concat_batches, filter_record_batch, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::model::columns::{END, ID, START, VALUE};
use crate::model::permit::Windows;
use crate::model::registry::OwnersName;
use crate::model::time::{Instant, TimeRange};
use crate::query::ground::annotation_definitions::SOURCE_ID;
use crate::query::ground::key::{KEY_COLUMNS, KEY_ORDER};
use crate::query::ground::measure::{LONG, prorated};
use crate::query::ground::operator::{
    Input, Needs, Operator, Plan, Step, Task, ascending, first_columns, one_partition, only,
};
use crate::query::ground::rollups::ROLLUP_LONG;
use crate::query::ground::row_times::micros_of;

use super::extent::{Extent, Extents};
use super::original_length::OriginalLength;
use super::own_rows::{alone, without};
use super::private::without_names;

/// How rows are cut.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Where rows are cut.
    pub(super) edges: Windows,
    /// Rows that cannot be cut are dropped unless they lie inside one of these.
    pub(super) whole_within: Windows,
    /// Keeps only parts that share time with one of these; `None` keeps all.
    pub(super) asked_windows: Option<Vec<TimeRange>>,
    /// Keeps only parts that begin in this.
    pub(super) begins: Option<TimeRange>,
    pub(super) extents: Extents,
    /// The value is an amount that is spread evenly over the time of its row.
    pub(super) spread: bool,
    /// Columns, besides those of the key, that keep their values in cut rows.
    pub(super) kept: Vec<String>,
    pub(super) lengths: OriginalLength,
    /// Names that tell whose rows they are, and are left out.
    pub(super) hidden_names: Vec<OwnersName>,
    /// Keeps only rows that name this source; `None` keeps all.
    pub(super) definition: Option<Arc<str>>,
}

/// Cuts rows by a rule.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    rule: Arc<Rule>,
}

pub(super) type CutExec = Operator<Cut>;

impl CutExec {
    /// `input` has one partition with `start_time` and `end_time`, sorted by the key.
    pub(super) fn new(input: Plan, rule: Rule) -> Self {
        let rule = Arc::new(rule);
        Self::over(Cut { rule }, vec![input])
    }
}

impl Step for Cut {
    const NAME: &'static str = "CutExec";
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("{} windows", self.rule.edges.as_slice().len())
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::sorted_by(inputs, &KEY_ORDER)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let schema = self.rule.schema(&first_columns(inputs));
        let order = ascending(&schema, &KEY_ORDER);
        one_partition(schema, order)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let cutter = Cutter {
            rule: self.rule,
            schema: task.schema(),
            held: Vec::new(),
            first_held: i64::MAX,
            memory: task.memory("parts of rows"),
        };
        Ok(cut(only(inputs)?.open()?, cutter).boxed())
    }
}

fn cut(rows: SendableRecordBatchStream, cutter: Cutter) -> impl Stream<Item = Result<RecordBatch>> + Send {
    futures::stream::try_unfold(
        (rows, cutter, false),
        |(mut rows, mut cutter, mut ended)| async move {
            while !ended {
                let ready = if let Some(batch) = rows.next().await.transpose()? {
                    cutter.push(&batch)?
                } else {
                    ended = true;
                    cutter.release_before(i64::MAX)?
                };
                if let Some(batch) = ready {
                    return Ok(Some((batch, (rows, cutter, ended))));
                }
            }
            Ok(None)
        },
    )
}

/// The state of a running cut.
struct Cutter {
    rule: Arc<Rule>,
    schema: SchemaRef,
    /// Parts that others may still precede, and the first start among them.
    held: Vec<RecordBatch>,
    first_held: i64,
    memory: MemoryReservation,
}

impl Cutter {
    /// Takes the next rows, and returns the parts that no later one can precede.
    fn push(&mut self, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let belonging = self.rule.belonging(rows)?;
        let rows = belonging.as_ref().unwrap_or(rows);
        let hidden = &self.rule.hidden_names;
        let nameless = (!hidden.is_empty())
            .then(|| without_names(rows, hidden))
            .transpose()?;
        let rows = nameless.as_ref().unwrap_or(rows);
        let (starts, ends) = times(rows)?;
        let Some(last) = starts.last().copied() else {
            return Ok(None);
        };
        if self.first_held > last && self.rule.leaves_whole(starts, ends) {
            return self.rule.untouched(rows, &self.schema, ends).map(Some);
        }
        let extents = self.rule.extents.read(rows, starts, ends)?;
        let mut parts = Parts::default();
        for (row, (extent, recorded)) in extents.iter().zip(starts.iter().zip(ends)).enumerate() {
            self.rule
                .parts_of(*extent, (*recorded.0, *recorded.1), &mut |part| {
                    parts.add(row, part);
                });
        }
        if let Some(first) = parts.starts.iter().min() {
            self.first_held = self.first_held.min(*first);
            let batch = self.rule.made(rows, &parts, &self.schema)?;
            self.memory.try_grow(batch.get_array_memory_size())?;
            self.held.push(batch);
        }
        self.release_before(last)
    }

    /// The parts that begin before `moment`, in order.
    fn release_before(&mut self, moment: i64) -> Result<Option<RecordBatch>> {
        if self.first_held >= moment {
            return Ok(None);
        }
        let held = concat_batches(&self.schema, &std::mem::take(&mut self.held))?;
        let sorted = sorted(&held)?;
        let (starts, _) = times(&sorted)?;
        let ready = starts.partition_point(|start| *start < moment);
        self.first_held = starts.get(ready).copied().unwrap_or(i64::MAX);
        if ready < sorted.num_rows() {
            self.held.push(sorted.slice(ready, sorted.num_rows() - ready));
        }
        self.memory
            .try_resize(self.held.iter().map(RecordBatch::get_array_memory_size).sum())?;
        Ok(Some(sorted.slice(0, ready)))
    }
}

/// A stretch of a row's time that may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    start: i64,
    end: i64,
    /// For a row that was cut: how long it was.
    cut_from: Option<i64>,
}

/// The parts of the rows of one batch.
#[derive(Debug, Default)]
struct Parts {
    rows: Vec<u32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    cut_from: Vec<Option<i64>>,
}

impl Parts {
    fn add(&mut self, row: usize, part: Part) {
        self.rows.push(row as u32);
        self.starts.push(part.start);
        self.ends.push(part.end);
        self.cut_from.push(part.cut_from);
    }
}

impl Rule {
    /// The rows of the definition that is meant; `None` if those of all are.
    fn belonging(&self, rows: &RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(definition) = &self.definition else {
            return Ok(None);
        };
        let named = rows.column_by_name(SOURCE_ID);
        let named = named.ok_or_else(|| internal_datafusion_err!("rows do not name their definitions"))?;
        let belong = eq(named, &StringArray::new_scalar(definition))?;
        Ok(Some(filter_record_batch(rows, &belong)?))
    }

    fn schema(&self, rows: &SchemaRef) -> SchemaRef {
        let mut fields: Vec<Field> = rows.fields().iter().map(|field| field.as_ref().clone()).collect();
        for field in &mut fields {
            if self.spread && field.name() == VALUE {
                // A part of a whole number may not be whole.
                *field = field.clone().with_data_type(DataType::Float64);
            } else if !KEY_COLUMNS.contains(&field.name().as_str()) {
                *field = field.clone().with_nullable(true);
            }
        }
        if self.lengths == OriginalLength::Marked {
            fields.push(Field::new(ROLLUP_LONG, DataType::Boolean, true));
        }
        Arc::new(Schema::new_with_metadata(fields, rows.metadata().clone()))
    }

    /// Whether the rows, sorted by their starts, are all visible uncut, and no part of a later row can
    /// precede one of them. A later row that begins with the last of them may, once cut, also end with it, so
    /// the last one must not reach the end of the window.
    fn leaves_whole(&self, starts: &[i64], ends: &[i64]) -> bool {
        let (Some(first), Some(last), Some(last_end)) = (starts.first(), starts.last(), ends.last()) else {
            return true;
        };
        if self.extents == Extents::CalendarEvents {
            return false;
        }
        let begin = self
            .begins
            .is_none_or(|range| range.start().micros() <= *first && *last < range.end().micros());
        let window = window_of(&self.edges, *first);
        begin
            && window.is_some_and(|(_, end)| {
                *last < end && *last_end < end && ends.iter().all(|moment| *moment <= end)
            })
    }

    /// Rows that are passed on as they are, without what was read along with them.
    fn untouched(&self, rows: &RecordBatch, schema: &SchemaRef, ends: &[i64]) -> Result<RecordBatch> {
        if self.lengths == OriginalLength::Dropped && !self.spread {
            let columns = rows.columns().iter().map(alone).collect::<Result<_>>()?;
            return Ok(RecordBatch::try_new(Arc::clone(schema), columns)?);
        }
        let (starts, _) = times(rows)?;
        let long = || {
            starts
                .iter()
                .zip(ends)
                .map(|(start, end)| Some(end - start > LONG))
        };
        let columns = schema.fields().iter().enumerate().map(|(index, field)| {
            let Some(column) = rows.columns().get(index) else {
                return Ok(Arc::new(long().collect::<BooleanArray>()) as ArrayRef);
            };
            let column = alone(column)?;
            if column.data_type() == field.data_type() {
                Ok(column)
            } else {
                Ok(cast(&column, field.data_type())?)
            }
        });
        Ok(RecordBatch::try_new(
            Arc::clone(schema),
            columns.collect::<Result<_>>()?,
        )?)
    }

    /// The parts of a row that may be seen, in order.
    fn parts_of(&self, extent: Extent, recorded: (i64, i64), add: &mut impl FnMut(Part)) {
        let mut add_asked = |part: Part, (from, to): (i64, i64)| {
            let (from, to) = (Instant::from_micros(from), Instant::from_micros(to));
            let asked = |windows: &Vec<TimeRange>| windows.iter().any(|range| range.selects(from, to));
            let start = Instant::from_micros(part.start);
            let begins = |range: TimeRange| range.start() <= start && start < range.end();
            if self.asked_windows.as_ref().is_none_or(asked) && self.begins.is_none_or(begins) {
                add(part);
            }
        };
        let whole = Part {
            start: recorded.0,
            end: recorded.1,
            cut_from: None,
        };
        match extent {
            // Whoever may read at all times may read it, too.
            Extent::Unknown => {
                let window = window_of(&self.whole_within, recorded.0);
                if window.is_some_and(|(_, to)| recorded.1 <= to) {
                    add_asked(whole, recorded);
                }
            }
            Extent::Span(start, end) if start >= end => {
                if window_of(&self.edges, start).is_some() {
                    add_asked(whole, recorded);
                }
            }
            Extent::Whole(start, end) => {
                if let Some((from, to)) = window_of(&self.whole_within, start)
                    && end <= to
                {
                    // Of a row that takes place later than it was recorded, no recorded time may lie in the
                    // window: it is asked for by the beginning of the window then.
                    let asked_by = if recorded.1 < from { (from, from) } else { recorded };
                    add_asked(whole, asked_by);
                }
            }
            Extent::Span(start, end) => {
                let windows = self.edges.as_slice();
                let first = windows.partition_point(|window| window.end().micros() <= start);
                for window in windows.iter().skip(first) {
                    let (from, to) = (window.start().micros(), window.end().micros());
                    if from >= end {
                        break;
                    }
                    let is_whole = from <= start && end <= to;
                    let part = Part {
                        start: start.max(from),
                        end: end.min(to),
                        cut_from: (!is_whole).then_some(end - start),
                    };
                    add_asked(part, (part.start, part.end));
                }
            }
        }
    }

    /// Makes rows of the parts.
    fn made(&self, rows: &RecordBatch, parts: &Parts, schema: &SchemaRef) -> Result<RecordBatch> {
        let taken = take_record_batch(rows, &UInt32Array::from_iter_values(parts.rows.iter().copied()))?;
        let is_cut = || parts.cut_from.iter().map(Option::is_some);
        let any_is_cut = is_cut().any(|is_cut| is_cut);
        let (recorded_starts, recorded_ends) = times(&taken)?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let Some(column) = taken.columns().get(index) else {
                let recorded = recorded_starts.iter().zip(recorded_ends);
                let long = recorded.map(|(start, end)| Some(end - start > LONG));
                columns.push(Arc::new(long.collect::<BooleanArray>()) as ArrayRef);
                continue;
            };
            columns.push(match field.name().as_str() {
                START => moments(&parts.starts, column.data_type()),
                END => moments(&parts.ends, column.data_type()),
                ID => alone(column)?,
                VALUE if self.spread => {
                    let covered = parts
                        .starts
                        .iter()
                        .zip(&parts.ends)
                        .map(|(start, end)| end - start);
                    shares(column, covered.zip(&parts.cut_from))?
                }
                name if any_is_cut && self.kept.iter().all(|kept| kept != name) => {
                    alone(&without(column, is_cut())?)?
                }
                _ => alone(column)?,
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// Start and end of the window that contains a moment.
fn window_of(windows: &Windows, moment: i64) -> Option<(i64, i64)> {
    let windows = windows.as_slice();
    let after = windows.partition_point(|window| window.start().micros() <= moment);
    let window = windows.get(after.checked_sub(1)?)?;
    let (start, end) = (window.start().micros(), window.end().micros());
    (moment < end).then_some((start, end))
}

/// The part of each amount that is left, given the time that is left and the original length.
fn shares<'a>(amounts: &ArrayRef, parts: impl Iterator<Item = (i64, &'a Option<i64>)>) -> Result<ArrayRef> {
    let amounts = cast(amounts, &DataType::Float64)?;
    let amounts = amounts
        .as_primitive_opt::<Float64Type>()
        .ok_or_else(|| internal_datafusion_err!("an amount is not a number"))?;
    let share = |(amount, (covered, length)): (Option<f64>, (i64, &Option<i64>))| match length {
        Some(length) => Some(prorated(amount?, covered, *length)),
        None => amount,
    };
    Ok(Arc::new(
        amounts.iter().zip(parts).map(share).collect::<Float64Array>(),
    ))
}

fn moments(micros: &[i64], kind: &DataType) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(micros.to_vec()).with_data_type(kind.clone()))
}

fn times(rows: &RecordBatch) -> Result<(&[i64], &[i64])> {
    Ok((micros_of(rows, START)?, micros_of(rows, END)?))
}

/// Sorts by start, end and, where it is read, id.
fn sorted(rows: &RecordBatch) -> Result<RecordBatch> {
    let column = |name: &str| rows.column_by_name(name).map(Arc::clone);
    let columns = KEY_ORDER.into_iter().filter_map(column);
    let columns: Vec<SortColumn> = columns
        .map(|values| SortColumn {
            values,
            options: None,
        })
        .collect();
    Ok(take_record_batch(rows, &lexsort_to_indices(&columns, None)?)?)
}
