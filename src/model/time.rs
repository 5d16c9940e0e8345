//! Instants in UTC microseconds, and half-open ranges of them. Only `parse` turns text into instants.
//!
//! Microseconds, because years 1 to 9999 must fit: a stay whose arrival is unknown arrived in year 1. Knows
//! nothing of time zones.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use parse::{TimeError, parse_instant, parse_instant_in_query};

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Of a day with 24 hours.
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
const SECONDS_PER_DAY: i64 = 86_400;

/// A moment in UTC, in microseconds since 1970. Covers years 1 to 9999 and more. Serialised as that number,
/// which is how documents store moments; answers have [`to_rfc3339`](Self::to_rfc3339).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(i64);

impl Instant {
    /// The first instant that can be written: 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// The last instant that can be written: 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The moment `length` after this one; it saturates.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(micros_of(length)))
    }

    /// The moment `length` before this one; it saturates.
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(micros_of(length)))
    }

    /// The time from `earlier` to this moment; none if this is the earlier one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// RFC 3339 in UTC with `Z`. The fraction has none, three or six digits, as needed.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        self.written().as_str().to_owned()
    }

    /// RFC 3339 in UTC with `Z`, without allocation. Instants outside the years 1 to 9999 are written as the
    /// nearest one inside.
    #[must_use]
    pub fn written(self) -> WrittenInstant {
        WrittenInstant::of(self.clamp(Self::MIN, Self::MAX))
    }
}

fn micros_of(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.written().as_str())
    }
}

/// The text of an instant, kept in place.
#[derive(Clone, Copy, Debug)]
pub struct WrittenInstant {
    text: [u8; 27],
    length: usize,
}

impl WrittenInstant {
    #[must_use]
    pub fn as_str(&self) -> &str {
        // It only contains digits and punctuation.
        self.text
            .get(..self.length)
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default()
    }

    fn of(instant: Instant) -> Self {
        let seconds = instant.0.div_euclid(MICROS_PER_SECOND);
        let micros = instant.0.rem_euclid(MICROS_PER_SECOND);
        let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let mut written = Self {
            text: *b"0000-00-00T00:00:00.000000Z",
            length: 27,
        };
        let parts = [
            (year, 0, 4),
            (month, 5, 2),
            (day, 8, 2),
            (of_day / 3600, 11, 2),
            (of_day / 60 % 60, 14, 2),
            (of_day % 60, 17, 2),
            (micros, 20, 6),
        ];
        for (number, at, digits) in parts {
            written.put(number, at, digits);
        }
        match micros {
            0 => written.end_at(19),
            whole if whole % 1000 == 0 => written.end_at(23),
            _ => {}
        }
        written
    }

    fn put(&mut self, mut number: i64, at: usize, digits: usize) {
        for place in self.text.iter_mut().skip(at).take(digits).rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }

    fn end_at(&mut self, end: usize) {
        if let Some(last) = self.text.get_mut(end) {
            *last = b'Z';
        }
        self.length = end + 1;
    }
}

/// Days since 1970 of a date of the proleptic Gregorian calendar. Years begin in March here, so that the leap
/// day comes last.
pub(super) const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date `days` days after 1970-01-01; the inverse of `days_of`.
#[must_use]
pub const fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// `[start, end)`. Never inverted; empty when both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    start: Instant,
    end: Instant,
}

impl TimeRange {
    /// All time that can be written, including the last instant.
    pub const ALWAYS: Self = Self {
        start: Instant::MIN,
        end: Instant(Instant::MAX.0 + 1),
    };

    /// The range, unless it is inverted.
    #[must_use]
    pub fn new(start: Instant, end: Instant) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The range between two instants, whichever comes first.
    #[must_use]
    pub fn between(one: Instant, other: Instant) -> Self {
        Self {
            start: one.min(other),
            end: one.max(other),
        }
    }

    /// All time from `start` to `end`; one that is missing is open. Empty if they are inverted.
    #[must_use]
    pub fn with_open_ends(start: Option<Instant>, end: Option<Instant>) -> Self {
        let start = start.unwrap_or(Self::ALWAYS.start);
        let end = end.unwrap_or(Self::ALWAYS.end);
        Self {
            start,
            end: end.max(start),
        }
    }

    /// The time that both share, if any.
    #[must_use]
    pub fn overlap(self, other: Self) -> Option<Self> {
        let shared = Self::new(self.start.max(other.start), self.end.min(other.end));
        shared.filter(|range| !range.is_empty())
    }

    #[must_use]
    pub const fn start(self) -> Instant {
        self.start
    }

    #[must_use]
    pub const fn end(self) -> Instant {
        self.end
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether this range selects a record from `start` to `end`: an interval if the two share time, an
    /// instant if it lies inside. Touching is not sharing, and an empty range selects nothing.
    #[must_use]
    pub fn selects(self, start: Instant, end: Instant) -> bool {
        if self.is_empty() {
            return false;
        }
        if start == end {
            return self.start <= start && start < self.end;
        }
        start < self.end && end > self.start
    }
}
