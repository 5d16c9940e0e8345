//! When a row takes place, where its recorded times do not say all.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;

use crate::model::registry::{TypeId, dictionary_text};
use crate::query::ground::events::{CALENDAR_EVENTS, Events, PLATFORM_VISITS, known_part};

/// The time of one row, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It can be cut.
    Span(i64, i64),
    /// It has no hours of its own: it is seen as it is or not at all.
    Whole(i64, i64),
    /// It says of no moment that it was then.
    Never,
}

/// How the rows of a type say when they take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extents {
    /// From the recorded start to the recorded end.
    Recorded,
    /// The same, but a sentinel is no moment: a visit of which only the arrival is known tells of that alone.
    Visits,
    /// The same, but events of whole days cover the days of a zone.
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

    /// Stored columns that have to be read to know.
    pub(super) fn fields(self) -> Vec<Field> {
        match self {
            Self::Recorded | Self::Visits => Vec::new(),
            Self::CalendarEvents => vec![
                Field::new("is_all_day", DataType::Boolean, true),
                Field::new("time_zone", dictionary_text(), true),
            ],
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
                    None => Extent::Never,
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
