//! Rule 2.2: periods of the calendar in zones whose clocks are changed, by example and against another
//! implementation of zones.

use chrono::{Datelike as _, NaiveDateTime, Offset as _, TimeZone as _};
use proptest::prelude::*;

use super::*;
use crate::model::duration::Truncation;
use crate::model::time::parse_instant;
use crate::model::zone::Zone;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn instant(text: &str) -> Instant {
    parse_instant(text).unwrap()
}

fn range(start: &str, end: &str) -> TimeRange {
    TimeRange::new(instant(start), instant(end)).unwrap()
}

fn span(start: i64, end: i64) -> TimeRange {
    TimeRange::new(Instant::from_micros(start), Instant::from_micros(end)).unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).unwrap()
}

fn every(text: &str) -> Truncation {
    Truncation::parse(text).unwrap()
}

fn offset_of(zone: &Zone, micros: i64) -> i64 {
    let utc = chrono::DateTime::from_timestamp_micros(micros)
        .unwrap()
        .naive_utc();
    i64::from(zone.tz().offset_from_utc_datetime(&utc).fix().local_minus_utc()) * SECOND
}

/// A time as the clock of the zone shows it, with its offset.
fn shown(zone: &Zone, at: Instant) -> String {
    let utc = chrono::DateTime::from_timestamp_micros(at.micros()).unwrap();
    utc.with_timezone(&zone.tz())
        .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, false)
}

/// Labels of a grid, each with how many seconds its bin lasts.
fn labelled(name: &str, truncation: &str, start: &str, end: &str) -> Vec<(String, i64)> {
    let zone = zone(name);
    let grid = every(truncation).grid(&zone, range(start, end));
    grid.bins()
        .map(|(from, to)| (shown(&zone, from), (to.micros() - from.micros()) / SECOND))
        .collect()
}

#[track_caller]
fn bins_are(name: &str, truncation: &str, (start, end): (&str, &str), expected: &[(&str, i64)]) {
    let found = labelled(name, truncation, start, end);
    let found: Vec<(&str, i64)> = found
        .iter()
        .map(|(label, seconds)| (label.as_str(), *seconds))
        .collect();
    // How long the last bin lasts depends on where the range ends.
    assert_eq!(found.len(), expected.len(), "{found:?}");
    let (found_last, found) = found.split_last().unwrap();
    let (expected_last, expected) = expected.split_last().unwrap();
    assert_eq!((found, found_last.0), (expected, expected_last.0));
}

#[test]
fn rule_2_2_a_day_of_25_hours_b01() {
    bins_are(
        "America/New_York",
        "1d",
        ("2024-11-02T04:00:00Z", "2024-11-05T05:00:00Z"),
        &[
            ("2024-11-02T00:00:00-04:00", 86_400),
            ("2024-11-03T00:00:00-04:00", 90_000),
            ("2024-11-04T00:00:00-05:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_a_day_of_23_hours_b02() {
    bins_are(
        "America/New_York",
        "1d",
        ("2024-03-09T05:00:00Z", "2024-03-12T04:00:00Z"),
        &[
            ("2024-03-09T00:00:00-05:00", 86_400),
            ("2024-03-10T00:00:00-05:00", 82_800),
            ("2024-03-11T00:00:00-04:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_an_hour_comes_twice_b03() {
    bins_are(
        "America/New_York",
        "1h",
        ("2024-11-03T04:00:00Z", "2024-11-03T08:00:00Z"),
        &[
            ("2024-11-03T00:00:00-04:00", 3600),
            ("2024-11-03T01:00:00-04:00", 3600),
            ("2024-11-03T01:00:00-05:00", 3600),
            ("2024-11-03T02:00:00-05:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_two_hours_last_three_b04() {
    bins_are(
        "America/New_York",
        "2h",
        ("2024-11-03T04:00:00Z", "2024-11-03T09:00:00Z"),
        &[
            ("2024-11-03T00:00:00-04:00", 10_800),
            ("2024-11-03T02:00:00-05:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_six_hours_last_five_b05() {
    bins_are(
        "America/New_York",
        "6h",
        ("2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"),
        &[
            ("2024-03-10T00:00:00-05:00", 18_000),
            ("2024-03-10T06:00:00-04:00", 21_600),
            ("2024-03-10T12:00:00-04:00", 21_600),
            ("2024-03-10T18:00:00-04:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_half_an_hour_comes_twice_on_lord_howe_b06() {
    bins_are(
        "Australia/Lord_Howe",
        "1h",
        ("2024-04-06T14:00:00Z", "2024-04-06T16:45:00Z"),
        &[
            ("2024-04-07T01:00:00+11:00", 5400),
            ("2024-04-07T02:00:00+10:30", 3600),
            ("2024-04-07T03:00:00+10:30", 0),
        ],
    );
}

#[test]
fn rule_2_2_hours_of_a_zone_off_by_quarters_b07() {
    bins_are(
        "Asia/Kathmandu",
        "1h",
        ("2024-05-01T00:00:00Z", "2024-05-01T02:00:00Z"),
        &[
            ("2024-05-01T05:00:00+05:45", 3600),
            ("2024-05-01T06:00:00+05:45", 3600),
            ("2024-05-01T07:00:00+05:45", 0),
        ],
    );
}

#[test]
fn rule_2_2_a_midnight_that_comes_twice_begins_one_day_b08() {
    bins_are(
        "America/Havana",
        "1d",
        ("2024-11-02T04:00:00Z", "2024-11-04T06:00:00Z"),
        &[
            ("2024-11-02T00:00:00-04:00", 86_400),
            ("2024-11-03T00:00:00-04:00", 90_000),
            ("2024-11-04T00:00:00-05:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_a_day_without_midnight_begins_at_one_b09() {
    bins_are(
        "America/Sao_Paulo",
        "1d",
        ("2018-11-03T03:00:00Z", "2018-11-05T03:00:00Z"),
        &[
            ("2018-11-03T00:00:00-03:00", 86_400),
            ("2018-11-04T01:00:00-02:00", 82_800),
            ("2018-11-05T00:00:00-02:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_weeks_begin_on_monday_b10() {
    bins_are(
        "UTC",
        "1w",
        ("2024-05-01T00:00:00Z", "2024-05-14T00:00:00Z"),
        &[
            ("2024-04-29T00:00:00+00:00", 604_800),
            ("2024-05-06T00:00:00+00:00", 604_800),
            ("2024-05-13T00:00:00+00:00", 0),
        ],
    );
    bins_are(
        "UTC",
        "1w@-1d",
        ("2024-05-01T00:00:00Z", "2024-05-06T00:00:00Z"),
        &[
            ("2024-04-28T00:00:00+00:00", 604_800),
            ("2024-05-05T00:00:00+00:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_months_begin_on_the_first_b11() {
    bins_are(
        "Europe/Berlin",
        "1mo",
        ("2024-02-10T00:00:00Z", "2024-05-01T00:00:00Z"),
        &[
            ("2024-02-01T00:00:00+01:00", 29 * 86_400),
            ("2024-03-01T00:00:00+01:00", 31 * 86_400 - 3600),
            ("2024-04-01T00:00:00+02:00", 30 * 86_400),
            ("2024-05-01T00:00:00+02:00", 0),
        ],
    );
    bins_are(
        "UTC",
        "1mo@14d",
        ("2024-02-10T00:00:00Z", "2024-03-20T00:00:00Z"),
        &[
            ("2024-01-15T00:00:00+00:00", 31 * 86_400),
            ("2024-02-15T00:00:00+00:00", 29 * 86_400),
            ("2024-03-15T00:00:00+00:00", 0),
        ],
    );
    bins_are(
        "UTC",
        "1q",
        ("2024-02-10T00:00:00Z", "2024-07-20T00:00:00Z"),
        &[
            ("2024-01-01T00:00:00+00:00", 91 * 86_400),
            ("2024-04-01T00:00:00+00:00", 91 * 86_400),
            ("2024-07-01T00:00:00+00:00", 0),
        ],
    );
    bins_are(
        "UTC",
        "1y@3mo",
        ("2024-02-10T00:00:00Z", "2024-07-20T00:00:00Z"),
        &[
            ("2023-04-01T00:00:00+00:00", 366 * 86_400),
            ("2024-04-01T00:00:00+00:00", 0),
        ],
    );
}

#[test]
fn rule_1_2_numbers_count_from_the_range_and_strings_from_the_calendar_b12() {
    let asked = range("2024-05-01T00:10:00Z", "2024-05-01T02:30:00Z");
    let labels = |grid: &Grid| -> Vec<String> { grid.bins().map(|(start, _)| start.to_rfc3339()).collect() };
    let uniform = Grid::uniform(asked, HOUR);
    assert_eq!(
        labels(&uniform),
        [
            "2024-05-01T00:10:00Z",
            "2024-05-01T01:10:00Z",
            "2024-05-01T02:10:00Z"
        ]
    );
    assert_eq!(uniform.edge(3), asked.end());
    let calendar = every("1h").grid(&Zone::UTC, asked);
    assert_eq!(
        labels(&calendar),
        [
            "2024-05-01T00:00:00Z",
            "2024-05-01T01:00:00Z",
            "2024-05-01T02:00:00Z"
        ]
    );
    assert_eq!(calendar.edge(3), asked.end());
}

#[test]
fn rule_2_2_days_from_noon_to_noon_d03() {
    bins_are(
        "America/New_York",
        "1d@12h",
        ("2024-11-02T16:00:00Z", "2024-11-04T18:00:00Z"),
        &[
            ("2024-11-02T12:00:00-04:00", 90_000),
            ("2024-11-03T12:00:00-05:00", 86_400),
            ("2024-11-04T12:00:00-05:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_a_day_that_never_was_has_no_bin() {
    bins_are(
        "Pacific/Apia",
        "1d",
        ("2011-12-29T10:00:00Z", "2012-01-01T09:00:00Z"),
        &[
            ("2011-12-29T00:00:00-10:00", 86_400),
            ("2011-12-31T00:00:00+14:00", 86_400),
            ("2012-01-01T00:00:00+14:00", 0),
        ],
    );
    // Alaska lived 1867-10-18 twice when it changed hands; it is one day.
    let days = labelled(
        "America/Sitka",
        "1d",
        "1867-10-17T12:00:00Z",
        "1867-10-20T12:00:00Z",
    );
    assert!(
        days.windows(2).all(|pair| pair[0].0[..10] < pair[1].0[..10]),
        "{days:?}"
    );
}

#[test]
fn rule_2_2_a_gap_that_ends_off_the_hour_begins_a_bin_there() {
    bins_are(
        "Pacific/Chatham",
        "1h",
        ("2024-09-28T13:15:00Z", "2024-09-28T15:00:00Z"),
        &[
            ("2024-09-29T02:00:00+12:45", 2700),
            ("2024-09-29T03:45:00+13:45", 900),
            ("2024-09-29T04:00:00+13:45", 0),
        ],
    );
}

#[test]
fn rule_2_2_two_hours_in_casablanca() {
    // Clocks went back at 03:00 on 10 March 2024 and forward at 02:00 on 14 April.
    bins_are(
        "Africa/Casablanca",
        "2h",
        ("2024-03-10T01:00:00Z", "2024-03-10T05:00:00Z"),
        &[
            ("2024-03-10T02:00:00+01:00", 3600),
            ("2024-03-10T02:00:00+00:00", 7200),
            ("2024-03-10T04:00:00+00:00", 0),
        ],
    );
    bins_are(
        "Africa/Casablanca",
        "2h",
        ("2024-04-14T00:00:00Z", "2024-04-14T04:00:00Z"),
        &[
            ("2024-04-14T00:00:00+00:00", 7200),
            ("2024-04-14T03:00:00+01:00", 3600),
            ("2024-04-14T04:00:00+01:00", 0),
        ],
    );
}

#[test]
fn rule_2_2_fixed_offsets_and_local_mean_time() {
    bins_are(
        "Etc/GMT+5",
        "1d",
        ("2024-05-01T05:00:00Z", "2024-05-02T06:00:00Z"),
        &[
            ("2024-05-01T00:00:00-05:00", 86_400),
            ("2024-05-02T00:00:00-05:00", 0),
        ],
    );
    bins_are(
        "localtime",
        "1d",
        ("2024-05-01T05:00:00Z", "2024-05-01T06:00:00Z"),
        &[("2024-05-01T00:00:00+00:00", 0)],
    );
    // Paris was ahead by 9 minutes and 21 seconds; its midnight was its own.
    let grid = every("1d").grid(
        &zone("Europe/Paris"),
        range("1880-01-01T12:00:00Z", "1880-01-03T12:00:00Z"),
    );
    assert_eq!(grid.edge(1).to_rfc3339(), "1880-01-01T23:50:39Z");
}

#[test]
fn grids_are_cheap_however_fine_or_wide_they_are() {
    let century = range("1950-01-01T00:00:00Z", "2050-01-01T00:00:00Z");
    let fine = every("1us").grid(&zone("America/New_York"), century);
    assert!(fine.runs.len() < 300, "{}", fine.runs.len());
    assert_eq!(
        fine.len(),
        (century.end().micros() - century.start().micros()) as u64
    );
    let all = TimeRange::new(Instant::MIN, Instant::MAX).unwrap();
    assert_eq!(
        Grid::uniform(all, 1).len(),
        (Instant::MAX.micros() - Instant::MIN.micros()) as u64
    );
    assert_eq!(every("1y").grid(&zone("Asia/Gaza"), all).len(), 10_000);
    for wide in [
        "10000y",
        "3652400d",
        "500000w",
        "87000000h",
        "1us@10000y",
        "1mo@-10000y",
        "1y@3650000d",
    ] {
        let grid = every(wide).grid(&zone("Asia/Gaza"), all);
        assert!(!grid.is_empty() && grid.edge(0) <= all.start(), "{wide}");
        let one = TimeRange::new(Instant::MAX, Instant::from_micros(Instant::MAX.micros() + 1)).unwrap();
        assert_eq!(every(wide).grid(&zone("Asia/Gaza"), one).len(), 1, "{wide}");
    }
    assert_eq!(Grid::uniform(all, i64::MAX).len(), 1);
    let empty = range("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z");
    assert_eq!(
        (
            Grid::uniform(empty, 1).len(),
            every("1d").grid(&Zone::UTC, empty).len()
        ),
        (0, 0)
    );
    assert_eq!(
        (
            Grid::uniform(empty, 1).bins().count(),
            Grid::uniform(empty, 1).bin_of(empty.start())
        ),
        (0, None)
    );
}

#[test]
fn rule_2_2_trunc_is_total_and_monotone_in_every_zone_from_1970_to_2037() {
    let range = range("1970-01-01T00:00:00Z", "2037-12-31T23:59:59Z");
    let truncations = ["7m", "1h", "2h", "1d", "1d@12h", "1w", "1mo"].map(|text| (text, every(text)));
    for tz in chrono_tz::TZ_VARIANTS {
        let zone = zone(tz.name());
        for (text, truncation) in &truncations {
            let grid = truncation.grid(&zone, range);
            let mut next = 0;
            let mut before = i64::MIN;
            for (at, run) in grid.runs.iter().enumerate() {
                let last = run.edge(run.count - 1);
                let end = grid.runs.get(at + 1).map_or(grid.end, |run| run.start);
                assert!(
                    run.first == next && before < run.start && last < end,
                    "{} {text} {run:?}",
                    tz.name()
                );
                (next, before) = (run.first + run.count, last);
            }
            assert_eq!(next, grid.len());
            assert!(grid.edge(0) <= range.start() && grid.edge(grid.len()) == range.end());
        }
        // Around each jump of the clock, asked one by one.
        let (_, days) = &truncations[3];
        let (_, hours) = &truncations[1];
        let grids = [days.grid(&zone, range), hours.grid(&zone, range)];
        for stretch in zone
            .stretches(range.start().micros(), range.end().micros())
            .iter()
            .skip(1)
            .step_by(17)
        {
            for (truncation, grid) in [days, hours].into_iter().zip(&grids) {
                let mut previous = Instant::from_micros(i64::MIN);
                for micros in
                    [-DAY, -HOUR, -1, 0, 1, HOUR - 1, HOUR, DAY].map(|distance| stretch.start + distance)
                {
                    let asked = Instant::from_micros(micros);
                    if asked < range.start() || asked >= range.end() {
                        continue;
                    }
                    let found = truncation.trunc(&zone, asked);
                    assert!(previous <= found && found <= asked, "{} at {asked}", tz.name());
                    let bin = grid.bin_of(asked).unwrap();
                    assert_eq!(found, grid.edge(bin), "{} at {asked}", tz.name());
                    assert!(asked < grid.edge(bin + 1));
                    previous = found;
                }
            }
        }
    }
}

/// How long the periods of the model are, and where they are counted from.
#[derive(Clone, Copy, Debug)]
enum Period {
    Minutes(i64),
    Days(i64),
    Weeks(i64),
    Months(i64),
}

impl Period {
    fn text(self) -> String {
        match self {
            Self::Minutes(count) => format!("{count}m"),
            Self::Days(count) => format!("{count}d"),
            Self::Weeks(count) => format!("{count}w"),
            Self::Months(count) => format!("{count}mo"),
        }
    }

    /// The number of the period in which a time of the wall clock lies.
    fn number(self, local_minute: i64, offset_minutes: i64) -> i64 {
        let local = local_minute - offset_minutes;
        let date: NaiveDateTime = chrono::DateTime::from_timestamp(local * 60, 0)
            .unwrap()
            .naive_utc();
        match self {
            Self::Minutes(count) => local.div_euclid(count),
            Self::Days(count) => local.div_euclid(24 * 60).div_euclid(count),
            Self::Weeks(count) => (local.div_euclid(24 * 60) - 4).div_euclid(7 * count),
            Self::Months(count) => {
                ((i64::from(date.year()) - 1970) * 12 + i64::from(date.month0())).div_euclid(count)
            }
        }
    }
}

/// The edges in `[from, to)`, in minutes, found by watching the clock of the zone minute by minute.
fn watched(zone: &Zone, period: Period, offset: i64, from: i64, to: i64) -> Vec<i64> {
    let local = |minute: i64| minute + offset_of(zone, minute * MINUTE) / MINUTE;
    let fixed = matches!(period, Period::Minutes(_));
    let begin = from - 3 * 24 * 60;
    let mut latest = local(begin);
    let mut edges = Vec::new();
    for minute in begin + 1..to {
        let (previous, now) = (local(minute - 1), local(minute));
        let begins = if fixed && now <= previous {
            // Set back: the clock shows a time again, and a period begins if it is the first minute of one.
            period.number(now, offset) != period.number(now - 1, offset)
        } else if fixed {
            period.number(now, offset) != period.number(previous, offset)
        } else {
            period.number(now.max(latest), offset) != period.number(latest, offset)
        };
        latest = latest.max(now);
        if begins && minute >= from {
            edges.push(minute);
        }
    }
    edges
}

fn periods() -> impl Strategy<Value = Period> {
    prop_oneof![
        prop::sample::select(vec![
            1_i64, 5, 7, 15, 30, 45, 60, 90, 120, 180, 360, 420, 720, 1440
        ])
        .prop_map(Period::Minutes),
        (1_i64..4).prop_map(Period::Days),
        (1_i64..3).prop_map(Period::Weeks),
        (1_i64..4).prop_map(Period::Months),
    ]
}

/// A zone of whole minutes and a moment, mostly near a jump of its clock.
fn moments() -> impl Strategy<Value = (Zone, i64)> {
    (
        0..chrono_tz::TZ_VARIANTS.len(),
        any::<prop::sample::Index>(),
        -3000_i64..3000,
    )
        .prop_map(|(index, jump, distance)| {
            let zone = zone(chrono_tz::TZ_VARIANTS[index].name());
            // Monrovia kept 44 minutes and 30 seconds until 1972; a watch by the minute cannot follow.
            let stretches = zone.stretches(3 * 365 * DAY, 68 * 365 * DAY);
            let minute = stretches[jump.index(stretches.len())].start / MINUTE;
            (zone, minute + distance)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rule_2_2_edges_are_those_that_somebody_watching_the_clock_sees(
        (zone, start) in moments(),
        period in periods(),
        offset in prop_oneof![
            3 => Just(0_i64), 1 => prop::sample::select(vec![-1440_i64, -90, 15, 720, 840]),
        ],
        length in 1_i64..4000
    ) {
        let text = format!(
            "{}@{}{}m",
            period.text(),
            if offset < 0 { "-" } else { "" },
            offset.abs()
        );
        let grid = every(&text).grid(&zone, span(start * MINUTE, (start + length) * MINUTE));
        let found: Vec<i64> = grid
            .bins()
            .map(|(from, _)| from.micros())
            .skip_while(|from| *from < start * MINUTE)
            .collect();
        let expected: Vec<i64> = watched(&zone, period, offset, start, start + length)
            .iter()
            .map(|minute| minute * MINUTE)
            .collect();
        prop_assert_eq!(&found, &expected, "{} {}", zone.name(), text);
        prop_assert!(grid.edge(0).micros() <= start * MINUTE);
        // The first edge is the one that a longer range shows too.
        let wider = every(&text).grid(
            &zone,
            span((start - 200 * 1440) * MINUTE, (start + length) * MINUTE),
        );
        let bin = wider.bin_of(Instant::from_micros(start * MINUTE)).unwrap();
        prop_assert_eq!(wider.edge(bin), grid.edge(0));
    }

    #[test]
    fn bins_are_found_however_they_are_looked_for(
        (zone, start) in moments(),
        period in periods(),
        length in 1_i64..4000,
        width in 1_i64..10_000_000_000,
        steps in prop::collection::vec(-10_000_i64..200_000, 1..60),
    ) {
        let range = span(start * MINUTE, (start + length) * MINUTE);
        let calendar = every(&period.text()).grid(&zone, range);
        let uniform = Grid::uniform(range, width.max(length * MINUTE / 5000));
        for grid in [&calendar, &uniform] {
            let edges: Vec<i64> = (0..=grid.len()).map(|index| grid.edge(index).micros()).collect();
            prop_assert!(edges.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(grid.bins().count() as u64, grid.len());
            for (index, (from, to)) in grid.bins().enumerate() {
                prop_assert_eq!([from.micros(), to.micros()], [edges[index], edges[index + 1]]);
            }
            let middle = grid.len() / 2;
            prop_assert_eq!(grid.bins_from(middle).next().map(|bin| bin.index), Some(middle));
            let begins = [edges[0] - 1, edges[0], grid.edge(middle).micros(), edges[edges.len() - 1]];
            for moment in begins.into_iter().flat_map(|edge| [edge, edge + steps[0]]) {
                let skipped = edges.iter().filter(|edge| **edge <= moment).count().saturating_sub(1);
                let rest = grid.starting(Instant::from_micros(moment));
                prop_assert_eq!(rest.len(), grid.len() - skipped as u64);
                prop_assert!(rest.bins().eq(grid.bins().skip(skipped)));
            }
            let mut cursor = grid.cursor();
            let mut at = edges[0] - 100_000;
            for step in &steps {
                at += step * length * 10;
                let counted = edges.iter().filter(|edge| **edge <= at).count();
                let expected = (counted > 0 && counted < edges.len()).then(|| counted as u64 - 1);
                let asked = Instant::from_micros(at);
                prop_assert_eq!(grid.bin_of(asked), expected);
                prop_assert_eq!(cursor.bin_of(asked), expected);
            }
        }
    }
}

#[test]
fn rule_2_2_a_date_of_a_zone_begins_when_its_days_do() {
    let start = |zone: &str, date: &str| {
        let midnight = parse_instant(date).unwrap();
        start_of_day(&Zone::parse(zone).unwrap(), midnight).to_rfc3339()
    };
    assert_eq!(start("UTC", "2024-06-03"), "2024-06-03T00:00:00Z");
    assert_eq!(start("Asia/Tokyo", "2024-06-03"), "2024-06-02T15:00:00Z");
    assert_eq!(start("America/New_York", "2024-06-03"), "2024-06-03T04:00:00Z");
    // The clock goes forward at midnight: the day begins at one. It is set back at midnight: it begins once.
    assert_eq!(start("America/Santiago", "2024-09-08"), "2024-09-08T04:00:00Z");
    assert_eq!(start("America/Havana", "2024-11-03"), "2024-11-03T04:00:00Z");
    // A day that was left out begins with the one after it.
    assert_eq!(start("Pacific/Apia", "2011-12-30"), "2011-12-30T10:00:00Z");
    assert_eq!(start("Pacific/Kiritimati", "2024-06-03"), "2024-06-02T10:00:00Z");
}
