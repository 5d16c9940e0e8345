//! Collects the rows of the answer into batches.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Builder, Int64Builder, ListBuilder, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use super::bins::CurrentBin;
use super::calculation::{Calculation, Form};
use super::points::Points;
use super::spec::{Gaps, SeriesSpec};

/// The number of rows in a batch.
pub(super) const ROWS: usize = 8192;

/// The content of a bin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub(super) base: Option<f64>,
    /// Samples of an amount, or points of a level.
    pub(super) count: u64,
    pub(super) points: Option<&'a Points>,
    /// The mean of everything up to this bin.
    pub(super) rolling: Option<f64>,
}

impl Cell<'_> {
    pub(super) const fn empty(rolling: Option<f64>) -> Self {
        Cell {
            base: None,
            count: 0,
            points: None,
            rolling,
        }
    }
}

/// The batch being written.
#[derive(Debug)]
pub(super) struct Output {
    schema: SchemaRef,
    zone: Arc<str>,
    gaps: Gaps,
    times: Vec<i64>,
    base: Float64Builder,
    columns: Vec<(Calculation, Column)>,
}

#[derive(Debug)]
enum Column {
    Number(Float64Builder),
    Whole(Int64Builder),
    List(ListBuilder<Float64Builder>),
}

impl Output {
    pub(super) fn new(spec: &SeriesSpec, schema: SchemaRef) -> Self {
        let rows = usize::try_from(spec.grid.len()).unwrap_or(ROWS).min(ROWS);
        let column = |calculation: &Calculation| {
            let column = match calculation.form() {
                Form::Number => Column::Number(Float64Builder::with_capacity(rows)),
                Form::Whole => Column::Whole(Int64Builder::with_capacity(rows)),
                Form::List => Column::List(ListBuilder::new(Float64Builder::new())),
            };
            (*calculation, column)
        };
        Self {
            schema,
            zone: spec.zone.written().into(),
            gaps: spec.gaps,
            times: Vec::with_capacity(rows),
            base: Float64Builder::with_capacity(rows),
            columns: spec.calculations.iter().map(column).collect(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.times.len() >= ROWS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Bytes of what has no limit for a bin: the lists.
    pub(super) fn memory(&self) -> usize {
        let values = self.columns.iter().map(|(_, column)| match column {
            Column::List(lists) => lists.values_ref().values_slice().len(),
            Column::Number(_) | Column::Whole(_) => 0,
        });
        values.sum::<usize>() * size_of::<f64>()
    }

    /// Adds one bin. A number that is too large to be one is null, whatever gaps are replaced by.
    pub(super) fn push(&mut self, time: i64, cell: Cell<'_>) {
        if cell.base.is_none() && self.gaps.drop {
            return;
        }
        let replace = self.gaps.replace;
        let filled = |number: Option<f64>| number.or(replace.then_some(0.0)).filter(|it| it.is_finite());
        self.times.push(time);
        self.base.append_option(filled(cell.base));
        for (calculation, column) in &mut self.columns {
            match column {
                Column::Number(numbers) if *calculation == Calculation::RollingMean => {
                    numbers.append_option(filled(cell.rolling));
                }
                Column::Number(numbers) => {
                    numbers.append_option(filled(cell.points.and_then(|points| points.number(*calculation))));
                }
                Column::Whole(counts) => counts.append_value(cell.count as i64),
                Column::List(lists) => match cell.points.filter(|points| points.summary.count > 0) {
                    Some(points) if *calculation == Calculation::Uniques => {
                        lists.values().append_slice(&points.distinct());
                        lists.append(true);
                    }
                    Some(points) => {
                        lists.values().append_slice(points.values());
                        lists.append(true);
                    }
                    None => lists.append(replace),
                },
            }
        }
    }

    /// How many more rows fit.
    pub(super) fn room(&self) -> usize {
        ROWS.saturating_sub(self.times.len())
    }

    /// Adds bins from `start` on, each `width` long, with their means, where only means are asked for.
    pub(super) fn push_means(&mut self, start: i64, width: i64, means: impl ExactSizeIterator<Item = f64>) {
        let bins = means.len() as i64;
        self.times.extend((0..bins).map(|bin| start + bin * width));
        let means: Vec<f64> = means.collect();
        if means.iter().all(|mean| mean.is_finite()) {
            self.base.append_slice(&means);
        } else {
            self.base.extend(
                means
                    .iter()
                    .map(|mean| Some(*mean).filter(|mean| mean.is_finite())),
            );
        }
    }

    /// Adds empty bins from `current` up to bin `until`, as many as fit, and moves `current` behind the last
    /// of them.
    pub(super) fn push_empty(&mut self, current: &mut CurrentBin, until: u64, rolling: Option<f64>) {
        if self.gaps.drop {
            current.move_to(until);
            return;
        }
        let room = self.room() as u64;
        let until = until.min(current.index.saturating_add(room));
        if self.columns.is_empty() {
            let bins = until.saturating_sub(current.index) as usize;
            self.times
                .extend((current.index..until).map(|index| current.edge(index)));
            if self.gaps.replace {
                self.base.append_value_n(0.0, bins);
            } else {
                self.base.append_nulls(bins);
            }
        } else {
            for index in current.index..until {
                self.push(current.edge(index), Cell::empty(rolling));
            }
        }
        current.move_to(until.max(current.index));
    }

    /// The collected rows, in the order in which they were added.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let times = TimestampMicrosecondArray::from(std::mem::take(&mut self.times))
            .with_timezone(Arc::clone(&self.zone));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(self.base.finish())];
        arrays.extend(self.columns.iter_mut().map(|(_, column)| -> ArrayRef {
            match column {
                Column::Number(numbers) => Arc::new(numbers.finish()),
                Column::Whole(counts) => Arc::new(counts.finish()),
                Column::List(lists) => Arc::new(lists.finish()),
            }
        }));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}
