//! Known times of calendar events and visits, of which the recorded times alone do not say when they are.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone as _, Utc};
use datafusion::arrow::array::{Array as _, AsArray as _, BooleanArray, RecordBatch, StringArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DataFusionError, Result};

use crate::model::columns::{END, START};
use crate::model::grid::start_of_day;
use crate::model::time::{Instant, MICROS_PER_DAY};
use crate::model::zone::Zone;

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
    /// The columns that it needs besides those of the key.
    pub(in crate::query) const COLUMNS: [&str; 2] = ["is_all_day", "time_zone"];

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
        let zone = Zone::parse(zone).unwrap_or(Zone::UTC);
        Some(days_of(start, end, &zone).unwrap_or((start, end)))
    }
}

/// The whole days in `zone` that an event from `start` to `end` covers; `None` beyond the calendar.
fn days_of(start: Instant, end: Instant, zone: &Zone) -> Option<(Instant, Instant)> {
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
            moment.with_timezone(&zone.tz()).naive_local()
        }
    };
    let (first, last) = (local(from), local(to));
    // Where clocks go forward at midnight, a day begins later than that.
    let begins_a_day = last.time() == NaiveTime::MIN || (!dates && start_of(last.date(), zone) == end);
    let after = if begins_a_day && last.date() > first.date() {
        last.date()
    } else {
        last.date().checked_add_days(Days::new(1))?
    };
    Some((start_of(first.date(), zone), start_of(after, zone)))
}

fn utc(instant: Instant) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(instant.micros())
}

/// When a day begins. Nearly every day has one midnight, which is found at once.
fn start_of(day: NaiveDate, zone: &Zone) -> Instant {
    let midnight = day.and_time(NaiveTime::MIN);
    let begins = zone.tz().from_local_datetime(&midnight).single();
    begins.map_or_else(
        || start_of_day(zone, Instant::from_micros(midnight.and_utc().timestamp_micros())),
        |moment| Instant::from_micros(moment.timestamp_micros()),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::time::parse_instant;

    fn days(start: &str, end: &str, zone: &str) -> (String, String) {
        let (from, to) = days_of(
            parse_instant(start).unwrap(),
            parse_instant(end).unwrap(),
            &Zone::parse(zone).unwrap(),
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
        // A quarter of an hour was left out.
        assert_eq!(
            days("1986-01-01", "1986-01-02", "Asia/Kathmandu"),
            (
                "1985-12-31T18:30:00Z".to_owned(),
                "1986-01-01T18:15:00Z".to_owned()
            )
        );
    }

    #[test]
    fn an_event_that_ends_where_a_day_without_midnight_begins_does_not_cover_it() {
        for (start, end, zone) in [
            ("2024-09-07T04:00:00Z", "2024-09-08T04:00:00Z", "America/Santiago"),
            ("2024-04-24T22:00:00Z", "2024-04-25T22:00:00Z", "Africa/Cairo"),
            ("2025-03-08T05:00:00Z", "2025-03-09T05:00:00Z", "America/Havana"),
            ("2024-03-29T22:00:00Z", "2024-03-30T22:00:00Z", "Asia/Beirut"),
        ] {
            assert_eq!(days(start, end, zone), (start.to_owned(), end.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn rule_2_2_days_of_events_begin_when_days_do(
            zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
            day in -30_000_i32..30_000,
        ) {
            let zone = Zone::parse(zone.name()).unwrap();
            let date = NaiveDate::from_num_days_from_ce_opt(719_163 + day).unwrap();
            let midnight = Instant::from_micros(i64::from(day) * MICROS_PER_DAY);
            prop_assert_eq!(start_of(date, &zone), start_of_day(&zone, midnight), "{} {}", zone.name(), date);
        }
    }

    #[test]
    fn rule_2_2_days_of_events_begin_when_days_do_beside_changes_of_the_clock() {
        const WEEK: usize = 7;
        // Every fourth zone takes seconds enough.
        for zone in chrono_tz::TZ_VARIANTS.iter().step_by(4) {
            let zone = Zone::parse(zone.name()).unwrap();
            let mut before = None;
            for week in (0..25_000_i32).step_by(WEEK) {
                let moment = i64::from(week) * MICROS_PER_DAY;
                let ahead = zone.wall_clock(moment) - moment;
                if before.replace(ahead).is_none_or(|before| before == ahead) {
                    continue;
                }
                for day in week - WEEK as i32 - 1..=week + 1 {
                    let date = NaiveDate::from_num_days_from_ce_opt(719_163 + day).unwrap();
                    let midnight = Instant::from_micros(i64::from(day) * MICROS_PER_DAY);
                    let (ours, expected) = (start_of(date, &zone), start_of_day(&zone, midnight));
                    assert_eq!(ours, expected, "{} {date}", zone.name());
                }
            }
        }
    }
}
