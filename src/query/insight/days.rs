//! The days that a report examines: days of the person's zone, by number, up to the moment of the report.
//!
//! A day has 23 or 25 hours where the clock changes. Day 0 is the first with any data.

use std::ops::Range;

use chrono::{NaiveDate, Offset as _, TimeZone as _};

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange};
use crate::model::zone::Zone;

use super::report::Coverage;

/// The days that are compared with those before.
pub(super) const WEEK: usize = 7;
/// The fewest days with a value in the week.
pub(super) const LEAST_OF_WEEK: usize = 5;
/// The days before, four weeks, that say what is usual.
pub(super) const BASELINE: usize = 28;

/// Days of a zone.
#[derive(Clone, Debug)]
pub struct Days {
    /// The start of each day, and the end of the last one.
    edges: Vec<Instant>,
    /// The day of the report's moment.
    today: usize,
    /// One microsecond after that moment.
    until: Instant,
    zone: Zone,
    day: Truncation,
}

impl Days {
    /// The days from that of `first` to that of `as_of`. `None` if there are none.
    #[must_use]
    pub fn new(zone: Zone, day: Truncation, first: Instant, as_of: Instant) -> Option<Self> {
        let until = Instant::from_micros(as_of.micros().checked_add(1)?);
        let beyond = Instant::from_micros(until.micros().checked_add(3 * MICROS_PER_DAY)?);
        let grid = day.grid(&zone, TimeRange::new(first.min(as_of), beyond)?);
        let edges: Vec<Instant> = grid.bins().map(|(start, _)| start).collect();
        let today = edges.partition_point(|start| *start <= as_of).checked_sub(1)?;
        edges.get(today + 1)?;
        Some(Self {
            edges,
            today,
            until,
            zone,
            day,
        })
    }

    #[must_use]
    pub const fn today(&self) -> usize {
        self.today
    }

    /// The number of days that are over: all before today, and today in its last microsecond.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.today + usize::from(self.start(self.today + 1) == self.until)
    }

    /// The start of day `number`.
    #[must_use]
    pub fn start(&self, number: usize) -> Instant {
        self.edges.get(number).copied().unwrap_or(self.until)
    }

    /// The time of some days, up to the moment of the report.
    #[must_use]
    pub fn range(&self, days: &Range<usize>) -> Option<TimeRange> {
        TimeRange::new(self.start(days.start), self.start(days.end).min(self.until))
    }

    /// All days including today, as bins of a series.
    #[must_use]
    pub fn grid(&self) -> Option<Grid> {
        Some(self.day.grid(&self.zone, self.range(&(0..self.today + 1))?))
    }

    /// The day of a moment.
    #[must_use]
    pub fn of(&self, moment: Instant) -> Option<usize> {
        let number = self
            .edges
            .partition_point(|start| *start <= moment)
            .checked_sub(1)?;
        (number <= self.today).then_some(number)
    }

    /// The date of the day.
    #[must_use]
    pub fn date(&self, number: usize) -> NaiveDate {
        self.local(self.start(number)).date()
    }

    /// Hours between midnight of day `number` and the local time at `moment`.
    #[must_use]
    pub fn clock(&self, number: usize, moment: Instant) -> f64 {
        let passed = self.local(moment) - self.date(number).and_time(chrono::NaiveTime::MIN);
        passed.num_microseconds().unwrap_or_default() as f64 / 3.6e9
    }

    #[must_use]
    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    fn local(&self, moment: Instant) -> chrono::NaiveDateTime {
        let utc = chrono::DateTime::from_timestamp_micros(moment.micros())
            .unwrap_or_default()
            .naive_utc();
        utc + self.zone.tz().offset_from_utc_datetime(&utc).fix()
    }
}

/// The last `length` days before day `end`.
#[must_use]
pub(super) const fn last(length: usize, end: usize) -> Range<usize> {
    end.saturating_sub(length)..end
}

/// One number for each day, where there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Daily(pub Vec<Option<f64>>);

impl Daily {
    #[must_use]
    pub fn get(&self, day: usize) -> Option<f64> {
        self.0.get(day).copied().flatten()
    }

    /// The numbers of some days, with their days.
    pub fn points(&self, days: &Range<usize>) -> impl DoubleEndedIterator<Item = (usize, f64)> + '_ {
        let numbered = self.0.iter().enumerate().take(days.end).skip(days.start);
        numbered.filter_map(|(day, value)| value.map(|value| (day, value)))
    }

    #[must_use]
    pub fn values(&self, days: &Range<usize>) -> Vec<f64> {
        self.points(days).map(|(_, value)| value).collect()
    }

    /// How many of some days have a number.
    #[must_use]
    pub fn coverage(&self, days: &Range<usize>) -> Coverage {
        Coverage {
            observed: self.points(days).count(),
            expected: days.len(),
        }
    }

    /// How many of some days have a number, counting as expected only those from the first that has one.
    #[must_use]
    pub fn coverage_since_first(&self, days: &Range<usize>) -> Coverage {
        let first = self.points(days).next().map_or(days.end, |(day, _)| day);
        self.coverage(&(first..days.end))
    }

    /// The days among some that have no number.
    #[must_use]
    pub fn missing(&self, days: &Range<usize>) -> Vec<usize> {
        days.clone().filter(|day| self.get(*day).is_none()).collect()
    }
}
