//! By which times a row is cut: the recorded ones, or those that are known of an event or a visit.

use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;

use crate::model::permit::Windows;
use crate::model::registry::{TypeId, dictionary_text};
use crate::model::time::TimeRange;
use crate::query::ground::events::{CALENDAR_EVENTS, Events, FIRST_KNOWN, PLATFORM_VISITS, known_part};

/// More than the clocks of any two zones differ.
const ONE_DAY: Duration = Duration::from_hours(24);

/// The time of one row, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It can be cut.
    Span(i64, i64),
    /// It has no hours of its own: it is shown whole or not at all.
    Whole(i64, i64),
    /// It took place at no known moment: it is shown where all of its recorded time is.
    Unknown,
}

/// How a type says when its rows take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extents {
    /// From the recorded start to the recorded end.
    Recorded,
    /// From the recorded start to the recorded end, but a sentinel is not a moment: a visit with only a known
    /// arrival is just that moment.
    Visits,
    /// From the recorded start to the recorded end, but events of whole days cover the days of a zone.
    CalendarEvents,
}

impl Extents {
    pub(super) fn of(data_type: &TypeId) -> Self {
        match data_type.as_str() {
            PLATFORM_VISITS => Self::Visits,
            CALENDAR_EVENTS => Self::CalendarEvents,
            _ => Self::Recorded,
        }
    }

    /// The stored columns that this depends on.
    pub(super) fn fields(self) -> Vec<Field> {
        match self {
            Self::Recorded | Self::Visits => Vec::new(),
            Self::CalendarEvents => vec![
                Field::new("is_all_day", DataType::Boolean, true),
                Field::new("time_zone", dictionary_text(), true),
            ],
        }
    }

    /// When rows may take place that are recorded as beginning in `begins`.
    pub(super) fn reached_from(self, begins: TimeRange) -> TimeRange {
        match self {
            // Without a known arrival a visit begins long ago, and takes place when it ends.
            Self::Visits if begins.start().micros() < FIRST_KNOWN => TimeRange::ALWAYS,
            Self::Recorded | Self::Visits => begins,
            // The days of an event in its zone may begin after what is recorded as its start.
            Self::CalendarEvents => TimeRange::between(begins.start(), begins.end().after(ONE_DAY)),
        }
    }

    /// When rows may take place whose recorded times share time with `recorded`.
    pub(super) fn reached_within(self, recorded: TimeRange) -> TimeRange {
        match self {
            // A visit of which one end is unknown is recorded as lasting for ages, and takes place at the
            // other end.
            Self::Visits => TimeRange::ALWAYS,
            Self::Recorded => recorded,
            // The days of an event in its zone may lie beside what is recorded.
            Self::CalendarEvents => {
                let (start, end) = (recorded.start(), recorded.end());
                TimeRange::between(start.before(2 * ONE_DAY), end.after(2 * ONE_DAY))
            }
        }
    }

    /// When rows may be recorded that take place in `windows`.
    pub(super) fn recorded_for(self, windows: Vec<TimeRange>) -> Vec<TimeRange> {
        match self {
            Self::Recorded | Self::Visits => windows,
            // All that is recorded of an event may lie before its days in its zone.
            Self::CalendarEvents => {
                let earlier =
                    |window: TimeRange| TimeRange::between(window.start().before(ONE_DAY), window.end());
                Windows::new(windows.into_iter().map(earlier)).as_slice().to_vec()
            }
        }
    }

    pub(super) fn read(self, rows: &RecordBatch, starts: &[i64], ends: &[i64]) -> Result<Vec<Extent>> {
        let times = starts.iter().copied().zip(ends.iter().copied());
        Ok(match self {
            Self::Recorded => times.map(|(start, end)| Extent::Span(start, end)).collect(),
            Self::Visits => times
                .map(|(start, end)| match known_part(start, end) {
                    Some(known) if known == (start, end) => Extent::Span(start, end),
                    Some((from, to)) => Extent::Whole(from, to),
                    None => Extent::Unknown,
                })
                .collect(),
            Self::CalendarEvents => {
                let events = Events::of(rows)?;
                let extent = |(row, (start, end))| match events.days(row) {
                    Some((from, to)) => Extent::Whole(from.micros(), to.micros()),
                    None => Extent::Span(start, end),
                };
                times.enumerate().map(extent).collect()
            }
        })
    }
}
