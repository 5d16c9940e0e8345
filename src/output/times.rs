//! Writes instants and days as text, without a calendar computation per row.
//!
//! RFC 3339: `2024-01-24T00:00:00Z`, or with the offset of the column's zone. A fraction is written if it is
//! not zero, in three, six or nine digits. A timestamp without a zone is UTC, as every instant here is. Where
//! the zone shows a year beyond 9999 or before 0, which RFC 3339 cannot name, and UTC does not, it is written
//! in UTC; other such years carry a sign and at least four digits.

use std::ops::Range;

use arrow::datatypes::TimeUnit;

use super::zones::Zone;
use crate::model::time::date_of;

const DAY_SECONDS: u32 = 86_400;

/// The days of years with four digits, counted from 1970.
const NAMED_DAYS: Range<i64> = -719_528..2_932_897;

/// Two digits for each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn pair(number: u32) -> [u8; 2] {
    PAIRS[(number % 100) as usize]
}

/// Three digits.
fn thousandths(number: u32) -> [u8; 3] {
    let [tens, ones] = pair(number % 100);
    [b'0' + (number / 100) as u8, tens, ones]
}

const MICROS: i64 = 1_000_000;

/// The template of an instant in milliseconds, to be filled in.
const MILLIS: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

/// Splits an instant, counted in `per_second` parts of a second, into the day, the second of the day, and the
/// rest.
#[inline]
fn parts(value: i64, per_second: i64) -> (i64, u32, u32) {
    let per_day = per_second * i64::from(DAY_SECONDS);
    let within = value.rem_euclid(per_day);
    (
        value.div_euclid(per_day),
        (within / per_second) as u32,
        (within % per_second) as u32,
    )
}

/// The time of day, as it follows the date.
fn clock(second: u32) -> [u8; 9] {
    let ([h1, h2], [m1, m2], [s1, s2]) = (pair(second / 3600), pair(second / 60 % 60), pair(second % 60));
    [b'T', h1, h2, b':', m1, m2, b':', s1, s2]
}

/// Writes the instants of one column.
#[derive(Clone, Debug)]
pub(super) struct InstantText {
    per_second: i64,
    zone: Zone,
    date: DateText,
    /// `Z`, or the offset of `suffix_minutes`.
    suffix: [u8; 6],
    suffix_length: usize,
    suffix_minutes: i32,
}

impl InstantText {
    pub(super) fn new(unit: TimeUnit, zone: Zone) -> Self {
        let per_second = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let suffix = if zone.is_utc() { *b"Z     " } else { *b"+00:00" };
        let suffix_length = if zone.is_utc() { 1 } else { 6 };
        Self {
            per_second,
            zone,
            date: DateText::default(),
            suffix,
            suffix_length,
            suffix_minutes: 0,
        }
    }

    /// Whether both write the same instants with the same text.
    pub(super) fn writes_like(&self, other: &Self) -> bool {
        self.per_second == other.per_second && self.zone.is_like(&other.zone)
    }

    /// Writes an instant, without quotes.
    pub(super) fn write(&mut self, value: i64, out: &mut Vec<u8>) {
        // Dividing by a constant is faster, and stored instants are in microseconds.
        let (mut day, mut second, fraction) = match self.per_second {
            MICROS => parts(value, MICROS),
            per_second => parts(value, per_second),
        };
        if !self.zone.is_utc() {
            let shown = self.local(day, second);
            if !NAMED_DAYS.contains(&shown.0) && NAMED_DAYS.contains(&day) {
                return self.write_in_utc(value, out);
            }
            (day, second) = shown;
        }
        let date = self.date.text(day);
        let clock = clock(second);
        let Ok(date) = <[u8; 10]>::try_from(date) else {
            out.extend_from_slice(date);
            out.extend_from_slice(&clock);
            return self.write_rest(fraction, out);
        };
        if self.suffix_length != 1 || self.per_second != MICROS || fraction % 1_000 != 0 {
            out.extend_from_slice(&date);
            out.extend_from_slice(&clock);
            return self.write_rest(fraction, out);
        }
        // The form of nearly all instants: a year with four digits, UTC, milliseconds. Filled in in place:
        // reading back as a whole what was just written in parts would stall.
        out.extend_from_slice(MILLIS);
        let Some(text) = out.last_chunk_mut::<24>() else {
            return;
        };
        text[..10].copy_from_slice(&date);
        text[10..19].copy_from_slice(&clock);
        if fraction == 0 {
            text[19] = b'Z';
            out.truncate(out.len() - 4);
        } else {
            text[20..23].copy_from_slice(&thousandths(fraction / 1_000));
        }
    }

    /// Writes what follows the second.
    fn write_rest(&self, fraction: u32, out: &mut Vec<u8>) {
        if fraction != 0 {
            self.write_fraction(fraction, out);
        }
        out.extend_from_slice(&self.suffix[..self.suffix_length]);
    }

    #[cold]
    fn write_in_utc(&self, value: i64, out: &mut Vec<u8>) {
        let mut utc = Self {
            zone: Zone::utc(),
            suffix: *b"Z     ",
            suffix_length: 1,
            ..self.clone()
        };
        utc.write(value, out);
    }

    #[cold]
    fn set_suffix(&mut self, minutes: i32) {
        let sign = if minutes < 0 { b'-' } else { b'+' };
        let ([h1, h2], [m1, m2]) = (
            pair(minutes.unsigned_abs() / 60),
            pair(minutes.unsigned_abs() % 60),
        );
        self.suffix = [sign, h1, h2, b':', m1, m2];
        self.suffix_minutes = minutes;
    }

    /// The local day, and the second of it, in the zone.
    fn local(&mut self, day: i64, second: u32) -> (i64, u32) {
        let minutes = self
            .zone
            .minutes_at(day.saturating_mul(i64::from(DAY_SECONDS)) + i64::from(second));
        if minutes != self.suffix_minutes {
            self.set_suffix(minutes);
        }
        let shifted = second as i32 + minutes * 60;
        let days = shifted.div_euclid(DAY_SECONDS as i32);
        (
            day + i64::from(days),
            shifted.rem_euclid(DAY_SECONDS as i32) as u32,
        )
    }

    fn write_fraction(&self, fraction: u32, out: &mut Vec<u8>) {
        let nanos = fraction * (1_000_000_000 / self.per_second as u32);
        let [millis, micros, nanos] =
            [nanos / 1_000_000, nanos / 1_000 % 1_000, nanos % 1_000].map(thousandths);
        out.push(b'.');
        out.extend_from_slice(&millis);
        if micros != *b"000" || nanos != *b"000" {
            out.extend_from_slice(&micros);
        }
        if nanos != *b"000" {
            out.extend_from_slice(&nanos);
        }
    }
}

/// The text of the most recent day.
#[derive(Clone, Debug)]
pub(super) struct DateText {
    day: i64,
    text: Vec<u8>,
}

impl Default for DateText {
    fn default() -> Self {
        Self {
            day: 0,
            text: b"1970-01-01".to_vec(),
        }
    }
}

impl DateText {
    /// `2024-01-24`, for a number of days since 1970.
    pub(super) fn text(&mut self, day: i64) -> &[u8] {
        if day != self.day {
            self.set(day);
        }
        &self.text
    }

    fn set(&mut self, day: i64) {
        let (year, month, of_month) = date_of(day);
        self.day = day;
        self.text.clear();
        if (0..=9999).contains(&year) {
            self.text.extend_from_slice(&pair(year as u32 / 100));
            self.text.extend_from_slice(&pair(year as u32));
        } else {
            self.text.extend_from_slice(format!("{year:+05}").as_bytes());
        }
        let ([m1, m2], [d1, d2]) = (pair(month as u32), pair(of_month as u32));
        self.text.extend_from_slice(&[b'-', m1, m2, b'-', d1, d2]);
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Datelike, SecondsFormat};
    use proptest::prelude::*;

    use super::*;

    fn text(unit: TimeUnit, zone: &str, value: i64) -> String {
        let mut out = Vec::new();
        InstantText::new(unit, Zone::parse(zone).unwrap()).write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rule_0_2_output_timestamps_are_rfc_3339_with_an_offset() {
        let micros = |zone, value| text(TimeUnit::Microsecond, zone, value);
        assert_eq!(micros("UTC", 1_706_054_400_000_000), "2024-01-24T00:00:00Z");
        assert_eq!(micros("UTC", 1_706_054_400_500_000), "2024-01-24T00:00:00.500Z");
        assert_eq!(micros("UTC", -1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(
            micros("Asia/Kathmandu", 1_706_054_400_000_000),
            "2024-01-24T05:45:00+05:45"
        );
        assert_eq!(
            micros("-08:00", 1_706_054_400_000_001),
            "2024-01-23T16:00:00.000001-08:00"
        );
        assert_eq!(
            micros("Europe/London", 1_706_054_400_000_000),
            "2024-01-24T00:00:00+00:00"
        );
        assert_eq!(
            text(TimeUnit::Nanosecond, "UTC", 1),
            "1970-01-01T00:00:00.000000001Z"
        );
        assert_eq!(
            text(TimeUnit::Second, "UTC", -62_135_596_800),
            "0001-01-01T00:00:00Z"
        );
        assert_eq!(
            text(TimeUnit::Second, "UTC", 64_092_211_200),
            "4001-01-01T00:00:00Z"
        );
    }

    #[test]
    fn rule_0_2_what_a_zone_puts_into_no_year_is_written_in_utc() {
        let in_zone = |zone, value| text(TimeUnit::Second, zone, value);
        let last = 253_402_300_799;
        assert_eq!(
            in_zone("Asia/Tokyo", last - 9 * 3600),
            "9999-12-31T23:59:59+09:00"
        );
        assert_eq!(in_zone("Asia/Tokyo", last - 9 * 3600 + 1), "9999-12-31T15:00:00Z");
        assert_eq!(in_zone("Asia/Tokyo", last), "9999-12-31T23:59:59Z");
        assert_eq!(
            in_zone("Asia/Tokyo", last - 9 * 3600),
            "9999-12-31T23:59:59+09:00"
        );
        assert_eq!(in_zone("-12:00", -62_167_219_200), "0000-01-01T00:00:00Z");
        assert_eq!(
            in_zone("-12:00", -62_167_219_200 + 12 * 3600),
            "0000-01-01T00:00:00-12:00"
        );
        assert_eq!(in_zone("Asia/Tokyo", last + 1), "+10000-01-01T09:00:00+09:00");
    }

    #[test]
    fn the_ends_of_the_range_have_a_text() {
        for unit in [
            TimeUnit::Second,
            TimeUnit::Millisecond,
            TimeUnit::Microsecond,
            TimeUnit::Nanosecond,
        ] {
            for zone in ["UTC", "Pacific/Kiritimati", "America/New_York", "-12:00"] {
                for value in [i64::MIN, i64::MAX] {
                    assert!(text(unit, zone, value).len() >= 20);
                }
            }
        }
        assert_eq!(
            text(TimeUnit::Microsecond, "UTC", i64::MAX),
            "+294247-01-10T04:00:54.775807Z"
        );
        assert_eq!(
            text(TimeUnit::Microsecond, "UTC", i64::MIN),
            "-290308-12-21T19:59:05.224192Z"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn every_instant_reads_back(
            zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
            value in -62_135_596_800_000_000_i64..253_402_300_800_000_000
        ) {
            let shown = text(TimeUnit::Microsecond, zone.name(), value);
            let back = DateTime::parse_from_rfc3339(&shown);
            prop_assert_eq!(back.unwrap().timestamp_micros(), value, "{}", shown);
        }

        #[test]
        fn utc_is_what_the_calendar_says(value in -62_135_596_800_000_000_i64..253_402_300_800_000_000) {
            let instant = DateTime::from_timestamp_micros(value).unwrap();
            prop_assert_eq!(
                text(TimeUnit::Microsecond, "UTC", value),
                instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
            );
            prop_assert_eq!(
                date_of(value.div_euclid(86_400_000_000)),
                (i64::from(instant.year()), i64::from(instant.month()), i64::from(instant.day()))
            );
        }
    }
}
