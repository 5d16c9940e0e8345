//! Rows as plain values, how they are stored, and how they are cut: slowly, and simply enough to be believed.

use std::cmp::Reverse;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use proptest::prelude::*;

use crate::model::permit::Windows;
use crate::model::registry::dictionary_text;

pub(super) const MINUTE: i64 = 60_000_000;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;
/// 2024-03-30T00:00:00Z: the end of a month, and a day before clocks change in Europe.
pub(super) const BEGIN: i64 = 1_711_756_800_000_000;
/// The years 1 and 4001, for what is not known of a visit.
pub(super) const LONG_AGO: i64 = -62_135_596_800_000_000;
pub(super) const FAR_OFF: i64 = 64_092_211_200_000_000;

pub(super) const LEVEL: &str = "HeartRate";
pub(super) const AMOUNT: &str = "StepCount";
pub(super) const LOGGED: &str = "AlcoholicDrinksConsumed";
pub(super) const SLEEP: &str = "SleepStage";
pub(super) const UPDATES: &str = "PlatformLocationUpdate";
pub(super) const MAPS: &str = "MapsLocationUpdate";
pub(super) const VISITS: &str = "PlatformLocationVisit";
pub(super) const WORKOUTS: &str = "PlatformWorkout";
pub(super) const CALENDAR: &str = "CalendarEvent";
pub(super) const EVENTS: &str = "Event";

/// One row of whatever type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GivenRow {
    pub(super) id: u128,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) value: f64,
    pub(super) source: u8,
    /// What is said of the row as a whole, and not of its parts.
    pub(super) content: Option<i64>,
    /// The event has no hours.
    pub(super) all_day: bool,
}

/// Rows as they are stored.
pub(super) fn batch(name: &str, rows: &[GivenRow]) -> RecordBatch {
    let ids = rows.iter().map(|row| Some(row.id.to_be_bytes()));
    let times = |of: fn(&GivenRow) -> i64| {
        let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(of));
        Arc::new(times.with_timezone("UTC")) as ArrayRef
    };
    let numbers = |of: &dyn Fn(&GivenRow) -> Option<f64>| {
        Arc::new(rows.iter().map(of).collect::<Float64Array>()) as ArrayRef
    };
    let words = |of: &dyn Fn(&GivenRow) -> Option<String>| {
        Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef
    };
    let dictionary = |of: &dyn Fn(&GivenRow) -> Option<String>| cast(&words(of), &dictionary_text()).unwrap();
    let content = || Arc::new(rows.iter().map(|row| row.content).collect::<Int64Array>()) as ArrayRef;
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids, 16).unwrap()),
        ),
        ("start_time", times(|row| row.start)),
        ("end_time", times(|row| row.end)),
        (
            "source",
            dictionary(&|row| Some(format!("source {}", row.source % 4))),
        ),
        (
            "source_class",
            Arc::new(
                rows.iter()
                    .map(|row| Some(3 + (row.source % 2) as i8))
                    .collect::<Int8Array>(),
            ),
        ),
    ];
    match name {
        LEVEL | AMOUNT | LOGGED | SLEEP => {
            columns.push(("value", numbers(&|row| Some(row.value))));
            columns.push(("count", content()));
            let goes_on = rows.iter().map(|row| row.content.map(|content| content % 2 == 0));
            columns.push((
                "has_undetermined_duration",
                Arc::new(goes_on.collect::<BooleanArray>()),
            ));
        }
        UPDATES | MAPS | VISITS => {
            // Somewhere within a kilometre of each other, mostly.
            columns.push((
                "latitude_degrees",
                numbers(&|row| Some(47.0 + (row.value % 7.0) / 1_000.0)),
            ));
            columns.push((
                "longitude_degrees",
                numbers(&|row| Some(8.0 + (row.value % 3.0) / 1_000.0)),
            ));
            columns.push((
                "horizontal_accuracy_meters",
                numbers(&|row| Some(row.value % 5.0)),
            ));
        }
        WORKOUTS => {
            let kind = |row: &GivenRow| Some(format!("kind {}", row.value));
            columns.push(("workout_activity_type", dictionary(&kind)));
            columns.push((
                "duration",
                numbers(&|row| row.content.map(|content| content as f64)),
            ));
        }
        CALENDAR => {
            columns.push(("title", words(&|row| Some(format!("title {}", row.value)))));
            columns.push((
                "notes",
                words(&|row| row.content.map(|content| content.to_string())),
            ));
            columns.push((
                "is_all_day",
                Arc::new(rows.iter().map(|row| Some(row.all_day)).collect::<BooleanArray>()),
            ));
            columns.push(("time_zone", dictionary(&|_| Some("Europe/Berlin".to_owned()))));
        }
        _ => {}
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

/// What is left of rows inside `windows`.
pub(super) fn cut(name: &str, rows: &[GivenRow], windows: &Windows) -> Vec<GivenRow> {
    let windows: Vec<(i64, i64)> = windows
        .as_slice()
        .iter()
        .map(|window| (window.start().micros(), window.end().micros()))
        .collect();
    let inside = |moment: i64| windows.iter().any(|(from, to)| *from <= moment && moment < *to);
    let mut left = Vec::new();
    for row in rows {
        // Ids of parts stand in the order of those of their rows.
        let id = |part: usize| row.id * 16 + part as u128;
        let as_it_is = || GivenRow {
            id: id(0),
            ..row.clone()
        };
        if name == VISITS && (row.start == LONG_AGO || row.end == FAR_OFF) {
            let always = |(from, to): &(i64, i64)| *from <= LONG_AGO && FAR_OFF <= *to;
            let is_seen = match (row.start, row.end) {
                (LONG_AGO, FAR_OFF) => windows.iter().any(always),
                (LONG_AGO, departure) => inside(departure),
                (arrival, _) => inside(arrival),
            };
            left.extend(is_seen.then(as_it_is));
            continue;
        }
        if row.start == row.end {
            left.extend(inside(row.start).then(as_it_is));
            continue;
        }
        for (part, (from, to)) in windows.iter().enumerate() {
            let (start, end) = (row.start.max(*from), row.end.min(*to));
            if start >= end {
                continue;
            }
            if (start, end) == (row.start, row.end) {
                left.push(as_it_is());
                continue;
            }
            let share = row.value * (end - start) as f64 / (row.end - row.start) as f64;
            left.push(GivenRow {
                id: id(part),
                start,
                end,
                value: if name == AMOUNT || name == LOGGED {
                    share
                } else {
                    row.value
                },
                content: None,
                ..row.clone()
            });
        }
    }
    left
}

/// Who wins each moment inside `windows`, rule 3.3, with the recorded times; and all time in bed.
pub(super) fn resolved(rows: &[GivenRow], windows: &Windows) -> Vec<GivenRow> {
    const PRIORITY: [i64; 6] = [0, 2, 1, 2, 2, 2];
    let rows: Vec<&GivenRow> = rows.iter().filter(|row| row.start < row.end).collect();
    let mut edges: Vec<i64> = rows.iter().flat_map(|row| [row.start, row.end]).collect();
    edges.extend(
        windows
            .as_slice()
            .iter()
            .flat_map(|window| [window.start().micros(), window.end().micros()]),
    );
    edges.sort_unstable();
    edges.dedup();
    let in_bed: Vec<GivenRow> = rows
        .iter()
        .filter(|row| row.value == 0.0)
        .map(|row| (*row).clone())
        .collect();
    let mut left = cut(SLEEP, &in_bed, windows);
    for pair in edges.windows(2) {
        let &[from, to] = pair else { continue };
        let seen = windows
            .as_slice()
            .iter()
            .any(|window| window.start().micros() <= from && to <= window.end().micros());
        let covering = rows.iter().filter(|row| row.start <= from && to <= row.end);
        let rank = |row: &&&GivenRow| {
            (
                PRIORITY[row.value as usize],
                row.start,
                Reverse(row.end),
                row.value as i64,
                row.id,
            )
        };
        if let Some(winner) = covering
            .max_by_key(rank)
            .filter(|winner| seen && winner.value > 0.0)
        {
            left.push(GivenRow {
                id: (1 << 100) + left.len() as u128,
                start: from,
                end: to,
                content: None,
                ..(*winner).clone()
            });
        }
    }
    left
}

/// How long a row lasts, its value and its source, and in what it is odd.
type Oddity = (i64, i32, u8, u8);

/// Runs of rows close to each other, as devices make them: now and then one that lasts, and late ones.
pub(super) fn pieces(name: &'static str) -> impl Strategy<Value = Vec<Vec<GivenRow>>> {
    let step = prop_oneof![
        Just(MINUTE),
        Just(3 * MINUTE + 7),
        Just(4 * MINUTE),
        Just(20 * MINUTE)
    ];
    let length = match name {
        UPDATES | MAPS => prop_oneof![Just(0_i64)].boxed(),
        VISITS | WORKOUTS | CALENDAR | EVENTS => prop_oneof![0..3 * HOUR, Just(0)].boxed(),
        SLEEP => prop_oneof![1..2 * HOUR, Just(20 * MINUTE)].boxed(),
        _ => prop_oneof![8 => Just(0_i64), 4 => 1..5 * MINUTE, 1 => 1..4 * HOUR].boxed(),
    };
    let most = match name {
        LEVEL | AMOUNT | LOGGED | UPDATES => 80,
        _ => 12,
    };
    let oddity = (length, 0_i32..6, 0_u8..8, 0_u8..12);
    let run = (0..2 * DAY, step, prop::collection::vec(oddity, 1..most));
    prop::collection::vec(run, 1..4).prop_map(move |runs| {
        let piece = |(number, (first, step, oddities)): (usize, (i64, i64, Vec<Oddity>))| {
            let row = |(place, (length, value, source, odd)): (usize, Oddity)| {
                let start = BEGIN + first + place as i64 * step;
                let mut row = GivenRow {
                    id: (number * 1000 + place) as u128,
                    start,
                    end: start + length,
                    value: f64::from(value),
                    source,
                    content: Some(i64::from(odd)),
                    all_day: false,
                };
                match (name, odd) {
                    (VISITS, 0) => row.start = LONG_AGO,
                    (VISITS, 1) => row.end = FAR_OFF,
                    (VISITS, 2) => (row.start, row.end) = (LONG_AGO, FAR_OFF),
                    _ => {}
                }
                row
            };
            oddities.into_iter().enumerate().map(row).collect()
        };
        runs.into_iter().enumerate().map(piece).collect()
    })
}

/// Some moment near the rows, often where rollups begin.
pub(super) fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![
        (0_i64..220).prop_map(|quarters| BEGIN + quarters * 15 * MINUTE),
        (0_i64..3 * DAY).prop_map(|micros| BEGIN + micros)
    ]
}

pub(super) fn windows() -> impl Strategy<Value = Windows> {
    prop::collection::vec((moment(), moment()), 1..4).prop_map(|pairs| {
        Windows::new(
            pairs
                .into_iter()
                .map(|(one, other)| super::bench::range(one, other)),
        )
    })
}
