//! Looks up the offsets of a time zone once a day instead of once a row.

use std::ops::Range;

use chrono_tz::Tz;

use crate::model::zone::offset_in;

const DAY: i64 = 86_400;

/// A zone that remembers the stretch of time around the most recent instant.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    rule: Rule,
    /// Seconds since 1970 for which `minutes` holds.
    known: Range<i64>,
    minutes: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Utc,
    Fixed,
    Named(Tz),
}

impl Zone {
    pub(super) const fn utc() -> Self {
        Self {
            rule: Rule::Utc,
            known: i64::MIN..i64::MAX,
            minutes: 0,
        }
    }

    /// The zone of an Arrow timestamp: a name, or an offset such as `+05:45`. `None` if it is neither.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if matches!(name, "UTC" | "utc" | "Z" | "Etc/UTC" | "+00:00" | "+0000" | "+00") {
            return Some(Self::utc());
        }
        if let Some(minutes) = parse_offset(name) {
            return Some(Self {
                rule: Rule::Fixed,
                known: i64::MIN..i64::MAX,
                minutes,
            });
        }
        let zone: Tz = name.parse().ok()?;
        Some(Self {
            rule: Rule::Named(zone),
            known: 0..0,
            minutes: 0,
        })
    }

    pub(super) const fn is_utc(&self) -> bool {
        matches!(self.rule, Rule::Utc)
    }

    /// Whether clocks in both zones agree at every instant.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && (self.rule != Rule::Fixed || self.minutes == other.minutes)
    }

    /// Minutes east of UTC at an instant, in seconds since 1970.
    ///
    /// Historical offsets include seconds, which RFC 3339 cannot express; a time shown with the offset cut to
    /// minutes is the same instant.
    pub(super) fn minutes_at(&mut self, second: i64) -> i32 {
        if !self.known.contains(&second)
            && let Rule::Named(zone) = self.rule
        {
            (self.known, self.minutes) = stretch(zone, second);
        }
        self.minutes
    }
}

fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes() {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [a, b] => ([*a, *b], [b'0', b'0']),
        [a, b, c, d] | [a, b, b':', c, d] => ([*a, *b], [*c, *d]),
        _ => return None,
    };
    let number = |[tens, ones]: [u8; 2]| {
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn minutes_in(zone: Tz, second: i64) -> i32 {
    offset_in(zone, second) / 60
}

/// The part of the UTC day of `second` in which the offset stays as it is then.
///
/// No zone has changed twice within a day, so if the offsets at the two ends differ, there is one change
/// between.
fn stretch(zone: Tz, second: i64) -> (Range<i64>, i32) {
    let start = second.div_euclid(DAY).saturating_mul(DAY);
    let end = start.saturating_add(DAY);
    let (before, after) = (minutes_in(zone, start), minutes_in(zone, end));
    if before == after {
        return (start..end, before);
    }
    let (mut low, mut high) = (start, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if minutes_in(zone, middle) == before {
            low = middle;
        } else {
            high = middle;
        }
    }
    if second < high {
        (start..high, before)
    } else {
        (high..end, after)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_offsets_are_read() {
        assert!(Zone::parse("UTC").unwrap().is_utc());
        assert!(Zone::parse("+00:00").unwrap().is_utc());
        assert_eq!(Zone::parse("+05:45").unwrap().minutes_at(0), 345);
        assert_eq!(Zone::parse("-0330").unwrap().minutes_at(0), -210);
        assert_eq!(Zone::parse("+14").unwrap().minutes_at(0), 840);
        assert_eq!(
            Zone::parse("Asia/Kathmandu").unwrap().minutes_at(1_700_000_000),
            345
        );
        for unknown in ["", "+", "+1", "+24:00", "+01:60", "Mars/Olympus", "+0:100"] {
            assert!(Zone::parse(unknown).is_none(), "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn a_remembered_stretch_answers_as_a_lookup(
            index in 0..chrono_tz::TZ_VARIANTS.len(),
            start in -5_000_000_000_i64..5_000_000_000,
            steps in prop::collection::vec(-40_000_i64..90_000, 1..60)
        ) {
            let tz = chrono_tz::TZ_VARIANTS[index];
            let mut zone = Zone::parse(tz.name()).unwrap();
            let mut second = start;
            for step in steps {
                second += step;
                prop_assert_eq!(
                    zone.minutes_at(second),
                    minutes_in(tz, second),
                    "{} at {}",
                    tz.name(),
                    second
                );
            }
        }
    }

    #[test]
    fn each_change_of_a_zone_is_exact_to_the_second() {
        // New York, 2024: forward at 07:00 UTC on 10 March, back at 06:00 UTC on 3 November.
        let mut zone = Zone::parse("America/New_York").unwrap();
        for (change, before, after) in [(1_710_054_000, -300, -240), (1_730_613_600, -240, -300)] {
            assert_eq!(
                [change - 1, change, change - 1].map(|second| zone.minutes_at(second)),
                [before, after, before]
            );
        }
    }

    #[test]
    fn instants_beyond_the_calendar_do_not_fail() {
        let mut zone = Zone::parse("Europe/Berlin").unwrap();
        assert_eq!(zone.minutes_at(i64::MIN), 53);
        assert_eq!(zone.minutes_at(i64::MAX), 60);
    }
}
