//! The time in each stage in each period of a calendar.
//!
//! The unit is the time that one cycle spends in one stage or, where cycles are split, the part of it that
//! lies in one period. A cycle without the stage has no unit, so it does not count as zero. Periods come in
//! order, so only one is open at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::Result;

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::time::{Instant, MICROS_PER_HOUR, TimeRange};
use crate::model::zone::Zone;
use crate::query::statistic::Statistic;

use super::cycles::{Cycle, CycleSink};
use super::night_of;
use super::resolve::Row;
use super::rows::{BATCH_ROWS, days, numbers};
use super::spec::{Mode, SleepTotalsSpec, TooManyPeriods};

/// The columns of totals.
pub(super) fn schema(spec: &SleepTotalsSpec) -> SchemaRef {
    let time = |name: &str| {
        let zone = spec.zone.written().into();
        Field::new(
            name,
            DataType::Timestamp(TimeUnit::Microsecond, Some(zone)),
            false,
        )
    };
    let mut fields = vec![
        time("period_start_time"),
        Field::new("value", DataType::Int64, false),
    ];
    fields.extend(spec.functions.iter().map(|function| {
        let kind = if *function == Statistic::Avg {
            DataType::Float64
        } else {
            DataType::Int64
        };
        Field::new(column_of(*function), kind, false)
    }));
    fields.extend([
        time("min_start_time"),
        time("max_end_time"),
        Field::new("cycles", DataType::Int64, false),
    ]);
    fields.extend(spec.cycles.nights.map(|_| night_of::field()));
    Arc::new(Schema::new(fields))
}

/// The time that one cycle spends in one stage.
#[derive(Clone, Copy, Debug)]
struct Unit {
    length: i64,
    first_start: i64,
    last_end: i64,
}

impl Unit {
    fn and(&mut self, start: i64, end: i64) {
        self.length += end - start;
        self.first_start = self.first_start.min(start);
        self.last_end = self.last_end.max(end);
    }
}

/// One stage in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Total {
    /// Start of the period.
    pub period: i64,
    pub stage: i64,
    pub cycles: i64,
    pub sum: i64,
    /// The sum of units in whole milliseconds. The mean is computed from these, since the shortest and the
    /// longest are shown so: it lies between them.
    pub whole_millis: i64,
    pub min: i64,
    pub max: i64,
    pub first_start: i64,
    pub last_end: i64,
}

/// Totals of periods, computed as they pass.
#[derive(Debug)]
pub(super) struct Totals {
    spec: SleepTotalsSpec,
    periods: Periods,
    reach: Reach,
    /// Events that are not counted yet: one row may be split into more periods than fit into one batch.
    events: VecDeque<Event>,
    /// The units of the open cycle, or of its part in the open period.
    units: BTreeMap<i64, Unit>,
    period: Option<i64>,
    open: BTreeMap<i64, Total>,
    ready: Vec<Total>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Lasted { stage: i64, start: i64, end: i64 },
    Closed(Cycle),
}

impl CycleSink for Totals {
    fn row(&mut self, _number: i64, row: &Row) {
        if self.spec.cycles.shows(row.stage) {
            if self.spec.mode == Mode::Split {
                self.reach.include(row, &self.spec);
            }
            self.events.push_back(Event::Lasted {
                stage: row.stage,
                start: row.start,
                end: row.end,
            });
        }
    }

    fn closed(&mut self, cycle: Cycle) {
        self.events.push_back(Event::Closed(cycle));
    }
}

impl Totals {
    #[must_use]
    pub(super) fn new(spec: SleepTotalsSpec) -> Self {
        Self {
            periods: Periods::new(spec.period, spec.zone),
            reach: Reach::of(&spec),
            spec,
            events: VecDeque::new(),
            units: BTreeMap::new(),
            period: None,
            open: BTreeMap::new(),
            ready: Vec::new(),
        }
    }

    /// Fails if the rows so far lie in more periods than an answer may have.
    pub(super) fn refuse_too_many(&self) -> Result<(), TooManyPeriods> {
        self.spec.refuse_too_many(self.reach.periods)
    }

    /// The number of events and totals that are held.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        self.events.len() + self.ready.len()
    }

    /// Totals of past periods, once there are enough for a batch. After the last cycle, `ended`, all that
    /// remain.
    pub(super) fn take(&mut self, ended: bool) -> Option<Vec<Total>> {
        while self.ready.len() < BATCH_ROWS {
            match self.events.pop_front() {
                Some(event) => self.count(event),
                None if ended && !self.open.is_empty() => self.pass(),
                None if ended && !self.ready.is_empty() => break,
                None => return None,
            }
        }
        Some(std::mem::take(&mut self.ready))
    }

    fn count(&mut self, event: Event) {
        match (event, self.spec.mode) {
            (Event::Lasted { stage, start, end }, Mode::Start | Mode::End) => self.lasted(stage, start, end),
            (Event::Lasted { stage, start, end }, Mode::Split) => {
                let (period, next) = self.periods.around(start);
                self.enter(period);
                self.lasted(stage, start, end.min(next));
                if end > next {
                    self.end_units();
                    self.events.push_front(Event::Lasted {
                        stage,
                        start: next,
                        end,
                    });
                }
            }
            (Event::Closed(cycle), mode) => {
                let moment = match mode {
                    Mode::Start => Some(cycle.start),
                    // A nap that ends at midnight belongs to the day before.
                    Mode::End => Some(cycle.end - 1),
                    Mode::Split => None,
                };
                if let Some(moment) = moment {
                    let period = self.periods.around(moment).0;
                    self.enter_with_units(period);
                }
                self.end_units();
            }
        }
    }

    fn lasted(&mut self, stage: i64, start: i64, end: i64) {
        let unit = self.units.entry(stage).or_insert(Unit {
            length: 0,
            first_start: start,
            last_end: end,
        });
        unit.and(start, end);
    }

    /// From here on everything lies in `period`. The open cycle's units in the previous period are complete.
    fn enter(&mut self, period: i64) {
        if self.period != Some(period) {
            self.end_units();
            self.enter_with_units(period);
        }
    }

    /// Assigns the open cycle as a whole to `period`.
    fn enter_with_units(&mut self, period: i64) {
        if self.period != Some(period) {
            self.pass();
            self.period = Some(period);
        }
    }

    /// Closes the open period.
    fn pass(&mut self) {
        self.ready.extend(std::mem::take(&mut self.open).into_values());
    }

    fn end_units(&mut self) {
        let Some(period) = self.period else { return };
        for (stage, unit) in std::mem::take(&mut self.units) {
            let total = self.open.entry(stage).or_insert(Total {
                period,
                stage,
                cycles: 0,
                sum: 0,
                whole_millis: 0,
                min: i64::MAX,
                max: 0,
                first_start: unit.first_start,
                last_end: unit.last_end,
            });
            total.cycles += 1;
            total.sum += unit.length;
            total.whole_millis += unit.length / 1000;
            total.min = total.min.min(unit.length);
            total.max = total.max.max(unit.length);
            total.first_start = total.first_start.min(unit.first_start);
            total.last_end = total.last_end.max(unit.last_end);
        }
    }
}

/// The time in which totals may lie. It is known beforehand, except that what is not clipped may be longer
/// than any time around the range.
#[derive(Debug)]
struct Reach {
    /// Microseconds.
    start: i64,
    end: i64,
    /// The number of periods in it.
    periods: u64,
}

impl Reach {
    fn of(spec: &SleepTotalsSpec) -> Self {
        let read = spec.cycles.reads();
        Self {
            start: read.start().micros(),
            end: read.end().micros(),
            periods: spec.periods_in(read),
        }
    }

    fn include(&mut self, row: &Row, spec: &SleepTotalsSpec) {
        if row.start < self.start {
            self.periods = self.periods.saturating_add(beyond(self.start, row.start, spec));
            self.start = row.start;
        }
        if row.end > self.end {
            self.periods = self.periods.saturating_add(beyond(self.end, row.end, spec));
            self.end = row.end;
        }
    }
}

/// The number of periods between an edge and a moment, without the one that lies on both sides of the edge.
fn beyond(edge: i64, moment: i64, spec: &SleepTotalsSpec) -> u64 {
    let (edge, moment) = (Instant::from_micros(edge), Instant::from_micros(moment));
    let shared = u64::from(spec.period.trunc(&spec.zone, edge) != edge);
    spec.periods_in(TimeRange::between(edge, moment))
        .saturating_sub(shared)
}

/// Periods of a calendar, looked up as moments come.
#[derive(Debug)]
struct Periods {
    length: Truncation,
    zone: Zone,
    /// Periods near the last moment. All but the last are complete.
    grid: Option<Grid>,
}

/// How far ahead periods are looked up at first, in microseconds.
const AHEAD: i64 = 48 * MICROS_PER_HOUR;

impl Periods {
    const fn new(length: Truncation, zone: Zone) -> Self {
        Self {
            length,
            zone,
            grid: None,
        }
    }

    /// The start and end of the period that contains a moment.
    fn around(&mut self, moment: i64) -> (i64, i64) {
        let at = Instant::from_micros(moment);
        let mut ahead = AHEAD;
        loop {
            if let Some(whole) = self.grid.as_ref().and_then(|grid| whole_bin(grid, at)) {
                return whole;
            }
            let end = moment.saturating_add(ahead);
            if end == i64::MAX {
                return (self.length.trunc(&self.zone, at).micros(), i64::MAX);
            }
            self.grid = TimeRange::new(at, Instant::from_micros(end))
                .map(|range| self.length.grid(&self.zone, range));
            ahead = ahead.saturating_mul(8);
        }
    }
}

const fn column_of(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Sum => "sum_ms",
        Statistic::Avg => "avg_ms",
        Statistic::Min => "min_ms",
        Statistic::Max => "max_ms",
    }
}

fn whole_bin(grid: &Grid, moment: Instant) -> Option<(i64, i64)> {
    let bin = grid.bin_of(moment).filter(|bin| bin + 1 < grid.len())?;
    Some((grid.edge(bin).micros(), grid.edge(bin + 1).micros()))
}

/// Totals as a batch.
pub(super) fn batch(totals: &[Total], spec: &SleepTotalsSpec, schema: &SchemaRef) -> Result<RecordBatch> {
    let each = |value: fn(&Total) -> i64| totals.iter().map(value).collect::<Vec<i64>>();
    let times = |value: fn(&Total) -> i64| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(each(value)).with_timezone(spec.zone.written()))
    };
    let mut columns = vec![times(|total| total.period), numbers(each(|total| total.stage))];
    columns.extend(spec.functions.iter().map(|function| match function {
        Statistic::Sum => numbers(each(|total| total.sum / 1000)),
        Statistic::Min => numbers(each(|total| total.min / 1000)),
        Statistic::Max => numbers(each(|total| total.max / 1000)),
        Statistic::Avg => {
            let average = |total: &Total| total.whole_millis as f64 / total.cycles as f64;
            Arc::new(totals.iter().map(average).collect::<Float64Array>()) as ArrayRef
        }
    }));
    columns.extend([
        times(|total| total.first_start),
        times(|total| total.last_end),
        numbers(each(|total| total.cycles)),
    ]);
    if let Some(zone) = &spec.cycles.nights {
        let nights = totals.iter().map(|total| night_of::night_of(zone, total.period));
        columns.push(days(nights.collect()));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
