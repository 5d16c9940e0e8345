//! Known times of calendar events and visits, of which the recorded times alone do not say when they are.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use datafusion::arrow::array::{Array as _, AsArray as _, BooleanArray, RecordBatch, StringArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DataFusionError, Result};

use crate::model::columns::{END, START};
use crate::model::time::{Instant, MICROS_PER_DAY};

use super::row_times::micros_of;

pub const PLATFORM_VISITS: &str = "PlatformLocationVisit";
pub const CALENDAR_EVENTS: &str = "CalendarEvent";

/// 0002-01-01: an arrival before it is unknown.
pub(in crate::query) const FIRST_KNOWN: i64 = Instant::MIN.micros() + 365 * MICROS_PER_DAY;
/// 4001-01-01: a departure from then on is unknown.
pub(in crate::query) const FIRST_UNKNOWN: i64 = 64_092_211_200_000_000;

/// The part of a visit that is known, in microseconds since 1970, given an arrival and a departure that may
/// be sentinels; `None` when neither is known.
pub(in crate::query) fn known_part(arrival: i64, departure: i64) -> Option<(i64, i64)> {
    match (arrival >= FIRST_KNOWN, departure < FIRST_UNKNOWN) {
        (true, true) => Some((arrival, departure)),
        (true, false) => Some((arrival, arrival)),
        (false, true) => Some((departure, departure)),
        (false, false) => None,
    }
}

/// The columns that decide when events take place.
pub(in crate::query) struct Events {
    starts: ScalarBuffer<i64>,
    ends: ScalarBuffer<i64>,
    all_day: BooleanArray,
    zones: StringArray,
}

impl Events {
    pub(in crate::query) fn of(batch: &RecordBatch) -> Result<Self> {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| DataFusionError::Internal(format!("events have no {name}")))
        };
        Ok(Self {
            starts: micros_of(batch, START)?.clone(),
            ends: micros_of(batch, END)?.clone(),
            all_day: column("is_all_day")?.as_boolean().clone(),
            zones: cast(column("time_zone")?, &ArrowType::Utf8)?
                .as_string::<i32>()
                .clone(),
        })
    }

    pub(in crate::query) fn span(&self, row: usize) -> (Instant, Instant) {
        let (start, end) = (
            Instant::from_micros(self.starts[row]),
            Instant::from_micros(self.ends[row]),
        );
        self.days(row).unwrap_or((start, end))
    }

    /// The span of whole days of an event that lasts whole days.
    pub(in crate::query) fn days(&self, row: usize) -> Option<(Instant, Instant)> {
        if !(self.all_day.is_valid(row) && self.all_day.value(row)) {
            return None;
        }
        let (start, end) = (
            Instant::from_micros(self.starts[row]),
            Instant::from_micros(self.ends[row]),
        );
        let zone = if self.zones.is_valid(row) {
            self.zones.value(row)
        } else {
            "UTC"
        };
        Some(days_of(start, end, zone.parse().unwrap_or(Tz::UTC)).unwrap_or((start, end)))
    }
}

/// The whole days in `zone` that an event from `start` to `end` covers; `None` beyond the calendar.
fn days_of(start: Instant, end: Instant, zone: Tz) -> Option<(Instant, Instant)> {
    let (from, to) = (utc(start)?, utc(end)?);
    let is_midnight = |moment: DateTime<Utc>| moment.time() == NaiveTime::MIN;
    // The end may be the last second or microsecond of the day as well as the midnight after it.
    let is_end_of_day = |moment: DateTime<Utc>| {
        is_midnight(moment) || moment.time() >= NaiveTime::from_hms_opt(23, 59, 0).unwrap_or_default()
    };
    let dates = is_midnight(from) && is_end_of_day(to);
    let local = |moment: DateTime<Utc>| {
        if dates {
            moment.naive_utc()
        } else {
            moment.with_timezone(&zone).naive_local()
        }
    };
    let (first, last) = (local(from), local(to));
    let after = if last.time() == NaiveTime::MIN && last.date() > first.date() {
        last.date()
    } else {
        last.date().checked_add_days(Days::new(1))?
    };
    Some((midnight(first.date(), zone)?, midnight(after, zone)?))
}

fn utc(instant: Instant) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(instant.micros())
}

/// When a day begins: at midnight, or at the first moment after it where midnight is skipped.
fn midnight(day: NaiveDate, zone: Tz) -> Option<Instant> {
    let wall = day.and_time(NaiveTime::MIN);
    let begins = (0..=4).find_map(|hours| {
        let later = wall + chrono::TimeDelta::minutes(hours * 30);
        zone.from_local_datetime(&later).earliest()
    });
    // A zone may skip a whole day, for example when it crosses the date line: the next day begins where this
    // one would have.
    let begins = begins.map_or_else(
        || {
            zone.from_local_datetime(&(wall + chrono::TimeDelta::days(1)))
                .earliest()
        },
        Some,
    );
    begins.map(|moment| Instant::from_micros(moment.timestamp_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    fn days(start: &str, end: &str, zone: &str) -> (String, String) {
        let (from, to) = days_of(
            parse_instant(start).unwrap(),
            parse_instant(end).unwrap(),
            zone.parse().unwrap(),
        )
        .unwrap();
        (from.to_rfc3339(), to.to_rfc3339())
    }

    #[test]
    fn all_day_events_cover_the_days_of_their_own_zone() {
        let may_first_in_new_york = (
            "2024-05-01T04:00:00Z".to_owned(),
            "2024-05-02T04:00:00Z".to_owned(),
        );
        for (start, end) in [
            ("2024-05-01T04:00:00Z", "2024-05-02T04:00:00Z"),
            ("2024-05-01T04:00:00Z", "2024-05-02T03:59:59Z"),
            ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z"),
            ("2024-05-01", "2024-05-02"),
            ("2024-05-01", "2024-05-01T23:59:59Z"),
            ("2024-05-01", "2024-05-01"),
        ] {
            assert_eq!(
                days(start, end, "America/New_York"),
                may_first_in_new_york,
                "{start} {end}"
            );
        }
        assert_eq!(
            days("2024-05-01", "2024-05-04", "UTC"),
            (
                "2024-05-01T00:00:00Z".to_owned(),
                "2024-05-04T00:00:00Z".to_owned()
            )
        );
    }

    #[test]
    fn a_day_without_midnight_begins_when_the_clock_jumps() {
        assert_eq!(
            days(
                "2018-11-04T12:00:00Z",
                "2018-11-04T12:00:00Z",
                "America/Sao_Paulo"
            ),
            (
                "2018-11-04T03:00:00Z".to_owned(),
                "2018-11-05T02:00:00Z".to_owned()
            )
        );
        let apia = days("2011-12-30", "2011-12-31", "Pacific/Apia");
        assert!(apia.0 <= apia.1, "the day that Samoa left out: {apia:?}");
    }
}
