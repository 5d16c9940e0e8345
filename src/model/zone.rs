//! Time zones: the name that was given, and the jumps of the wall clock there.
//!
//! The database is compiled in, so that every node knows the same zones. A zone is a few bytes to copy. Knows
//! no period and no output.

use chrono::{DateTime, NaiveDateTime, Offset as _, TimeZone as _};
use chrono_tz::Tz;

use super::time::{Instant, MICROS_PER_DAY, MICROS_PER_SECOND};

/// Before 1800 no clock was ever set back or forward, and no rule is known after 2200.
const FIRST_CHANGE: i64 = -5_364_662_400;
const LAST_CHANGE: i64 = 7_258_118_400;
/// No clock was ever changed twice within this time; the shortest summer on record lasted a week.
const STEP: i64 = 5 * 86_400;

/// Names that the compiled database lacks.
const ELSEWHERE: [(&str, Tz); 2] = [("localtime", Tz::UTC), ("Factory", Tz::UTC)];

/// A time zone, with the name by which it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone {
    tz: Tz,
    name: &'static str,
}

/// A name that is not a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {name:?}; {hint}")]
pub struct UnknownZone {
    name: String,
    hint: String,
}

impl UnknownZone {
    fn called(name: &str) -> Self {
        const MOST: usize = 5;
        let wanted = name.trim().to_ascii_lowercase().replace(' ', "_");
        let alike = |known: &&str| {
            let known = known.to_ascii_lowercase();
            known == wanted
                || (wanted.len() > 2
                    && known
                        .rsplit('/')
                        .next()
                        .is_some_and(|city| wanted.ends_with(city)))
        };
        let alike: Vec<&str> = chrono_tz::TZ_VARIANTS
            .iter()
            .map(|tz| tz.name())
            .filter(alike)
            .take(MOST)
            .collect();
        let hint = if alike.is_empty() {
            "use a name of the IANA database such as America/New_York, Europe/Berlin, Etc/GMT+5 or UTC"
                .to_owned()
        } else {
            format!("did you mean {}?", alike.join(" or "))
        };
        Self {
            name: name.chars().take(64).collect(),
            hint,
        }
    }
}

impl Zone {
    pub const UTC: Self = Self {
        tz: Tz::UTC,
        name: "UTC",
    };

    /// The zone called `name`: an IANA name or alias in its exact spelling, or `localtime`, which is UTC on a
    /// server.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some((name, tz)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
            return Some(Self { tz: *tz, name });
        }
        let tz: Tz = name.parse().ok()?;
        Some(Self { tz, name: tz.name() })
    }

    /// The zone called `name`, with a suggestion if there is no such zone.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        Self::parse(name).ok_or_else(|| UnknownZone::called(name))
    }

    /// The zone that a query names. A `+` may have arrived as a space, as in `Etc/GMT+5`; no zone has a space
    /// in its name.
    pub fn parse_in_query(name: &str) -> Result<Self, UnknownZone> {
        let named = Self::parse(name).or_else(|| Self::parse(&name.replace(' ', "+")));
        named.ok_or_else(|| UnknownZone::called(name))
    }

    /// The name as it was given.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    #[must_use]
    pub const fn tz(&self) -> Tz {
        self.tz
    }

    /// The name under which columns of this zone are written: one that every reader of the zone database
    /// knows.
    #[must_use]
    pub fn written(&self) -> &'static str {
        match self.tz {
            Tz::Etc__UTC
            | Tz::Etc__UCT
            | Tz::Etc__Universal
            | Tz::Etc__Zulu
            | Tz::UCT
            | Tz::Universal
            | Tz::Zulu => "UTC",
            tz => tz.name(),
        }
    }

    /// The date of a moment in the zone, in days since 1970-01-01.
    #[must_use]
    pub fn day_of(&self, moment: Instant) -> i32 {
        let micros = moment.micros();
        let offset = self.offset(micros.div_euclid(MICROS_PER_SECOND));
        let local = micros.saturating_add(offset * MICROS_PER_SECOND);
        local.div_euclid(MICROS_PER_DAY) as i32
    }

    /// How many seconds the wall clock is ahead of UTC at `second` since 1970.
    fn offset(&self, second: i64) -> i64 {
        i64::from(offset_in(self.tz, second))
    }

    /// What the wall clock shows at a moment, both in microseconds since 1970.
    #[must_use]
    pub fn wall_clock(&self, micros: i64) -> i64 {
        let offset = self.offset(micros.div_euclid(MICROS_PER_SECOND));
        micros.saturating_add(offset.saturating_mul(MICROS_PER_SECOND))
    }

    /// The parts of `[from, to)`, in microseconds, within which the wall clock does not jump. In order,
    /// without gaps.
    pub(super) fn stretches(&self, from: i64, to: i64) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        if from >= to {
            return stretches;
        }
        let last = to.div_euclid(MICROS_PER_SECOND).clamp(FIRST_CHANGE, LAST_CHANGE);
        let mut at = from
            .div_euclid(MICROS_PER_SECOND)
            .clamp(FIRST_CHANGE, LAST_CHANGE);
        let mut offset = self.offset(at);
        let mut start = from;
        while at < last && !self.is_constant() {
            let next = (at + STEP).min(last);
            let after = self.offset(next);
            if after != offset {
                let change = self.change(at, next, offset) * MICROS_PER_SECOND;
                if change >= to {
                    break;
                }
                stretches.push(Stretch {
                    start,
                    end: change,
                    offset: offset * MICROS_PER_SECOND,
                });
                (start, offset) = (change, after);
            }
            at = next;
        }
        stretches.push(Stretch {
            start,
            end: to,
            offset: offset * MICROS_PER_SECOND,
        });
        stretches
    }

    fn is_constant(&self) -> bool {
        self.tz == Tz::UTC
    }

    /// The second in `(low, high]` from which on the offset is no longer `before`.
    fn change(&self, mut low: i64, mut high: i64, before: i64) -> i64 {
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.offset(middle) == before {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// A part of time in which the wall clock does not jump, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: i64,
    pub(super) end: i64,
    /// How far the wall clock is ahead of UTC.
    pub(super) offset: i64,
}

impl Stretch {
    pub(super) const fn local_start(self) -> i64 {
        self.start.saturating_add(self.offset)
    }

    pub(super) const fn local_end(self) -> i64 {
        self.end.saturating_add(self.offset)
    }
}

/// How many seconds the wall clock in a zone is ahead of UTC at `second` since 1970.
#[must_use]
pub fn offset_in(zone: Tz, second: i64) -> i32 {
    let extreme = if second < 0 {
        NaiveDateTime::MIN
    } else {
        NaiveDateTime::MAX
    };
    let instant = DateTime::from_timestamp(second, 0).map_or(extreme, |instant| instant.naive_utc());
    zone.offset_from_utc_datetime(&instant).fix().local_minus_utc()
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, NaiveTime};

    use super::*;

    #[test]
    fn the_documentation_names_the_database() {
        let documented = include_str!("../../docs/API.md");
        let version = chrono_tz::IANA_TZDB_VERSION;
        assert!(documented.contains(&format!("version {version},")), "{version}");
        let new_york = Zone::parse("America/New_York").unwrap();
        let july = |year| {
            NaiveDate::from_ymd_opt(year, 7, 1)
                .unwrap()
                .and_time(NaiveTime::MIN)
                .and_utc()
        };
        let hours = |year| new_york.offset(july(year).timestamp()) / 3_600;
        assert_eq!((hours(2099), hours(2100)), (-4, -5));
    }

    #[test]
    fn rule_2_2_every_name_of_the_database_and_localtime_are_zones() {
        for tz in chrono_tz::TZ_VARIANTS {
            let zone = Zone::parse(tz.name()).unwrap();
            assert_eq!((zone.name(), zone.tz()), (tz.name(), tz));
            assert!(Zone::parse(zone.written()).is_some(), "{}", tz.name());
        }
        let local = Zone::parse("localtime").unwrap();
        assert_eq!(
            (local.name(), local.tz(), local.written()),
            ("localtime", Tz::UTC, "UTC")
        );
        assert_eq!(Zone::parse("Etc/GMT+5").unwrap().offset(0), -5 * 3600);
        for unknown in [
            "",
            "utc+1",
            "Mars/Olympus",
            "america/new_york",
            "+05:45",
            "EST5EDT4",
            " UTC",
            "UTC ",
        ] {
            assert_eq!(Zone::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn rule_0_2_a_space_in_a_query_is_the_plus_that_it_was() {
        assert_eq!(
            Zone::parse_in_query("Etc/GMT 5"),
            Ok(Zone::parse("Etc/GMT+5").unwrap())
        );
        assert_eq!(
            Zone::parse_in_query("Etc/GMT+5"),
            Ok(Zone::parse("Etc/GMT+5").unwrap())
        );
        for unknown in ["", " ", " UTC", "UTC ", "America/New York"] {
            assert!(Zone::parse_in_query(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_it_could_mean() {
        let message = |name: &str| Zone::parse_in_query(name).unwrap_err().to_string();
        assert!(
            message("america/new_york").contains("America/New_York"),
            "{}",
            message("america/new_york")
        );
        assert!(message("Kathmandu").contains("Asia/Kathmandu"));
        assert!(message("Mars/Olympus").contains("\"Mars/Olympus\"; use a name of the IANA database"));
    }

    #[test]
    fn rule_2_2_stretches_hold_the_offset_of_each_second_at_which_it_changes() {
        const DAY: i64 = 86_400;
        for tz in chrono_tz::TZ_VARIANTS {
            let zone = Zone::parse(tz.name()).unwrap();
            let (from, to) = (-1_000_000_000_000_000_000, 1_000_000_000_000_000_000);
            let stretches = zone.stretches(from, to);
            assert_eq!(
                (stretches[0].start, stretches[stretches.len() - 1].end),
                (from, to)
            );
            for pair in stretches.windows(2) {
                let [before, after] = pair else { unreachable!() };
                assert_eq!(before.end, after.start);
                let change = after.start / MICROS_PER_SECOND;
                let offsets = [change - DAY, change - 1, change, change + DAY]
                    .map(|second| zone.offset(second) * MICROS_PER_SECOND);
                assert_eq!(
                    offsets,
                    [before.offset, before.offset, after.offset, after.offset],
                    "{} at {change}",
                    tz.name()
                );
            }
            // Smaller steps find no more, and outside the searched range nothing changes.
            let changes = (FIRST_CHANGE / DAY / 3..LAST_CHANGE / DAY / 3)
                .filter(|step| zone.offset(step * 3 * DAY) != zone.offset((step + 1) * 3 * DAY))
                .count();
            assert_eq!(changes + 1, stretches.len(), "{}", tz.name());
            assert_eq!(
                zone.offset(FIRST_CHANGE),
                zone.offset(-60_000_000_000),
                "{}",
                tz.name()
            );
            assert_eq!(
                zone.offset(LAST_CHANGE),
                zone.offset(250_000_000_000),
                "{}",
                tz.name()
            );
        }
    }
}
