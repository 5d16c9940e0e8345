//! Functions answer what their endpoints answer, and are tables like others.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{SQL, alike, rows};
use crate::harness::{Backends, Person, Setup, heart_rate, id, instant, number, person, steps};

const START: &str = "2024-05-01T00:00:00Z";
const END: &str = "2024-05-08T00:00:00Z";

/// A person with a week of everything that functions are about, different for each seed.
async fn recorded(person: &Person, runner: &mut TestRunner) {
    let seconds = || 0_u32..7 * 86_400;
    let mut drawn = |count: usize| {
        let drawn = prop::collection::vec((seconds(), 60_u32..20_000, 0_i64..6, -100_i32..100), count);
        drawn.new_tree(runner).unwrap().current()
    };
    let beats: Vec<Value> = (0..)
        .zip(drawn(300))
        .map(|(n, (at, _, _, value))| heart_rate(id(n), &instant(at), 120 + value))
        .collect();
    person.records("HeartRate", &beats).await;
    let walked: Vec<Value> = (1000..)
        .zip(drawn(100))
        .map(|(n, (at, long, _, value))| steps(id(n), &instant(at), &instant(at + long), 100 + value))
        .collect();
    person.records("StepCount", &walked).await;
    let slept: Vec<Value> = (2000..)
        .zip(drawn(60))
        .map(|(n, (at, long, stage, _))| {
            json!({"uuid": id(n), "start_date": instant(at), "end_date": instant(at + long), "value": stage})
        })
        .collect();
    person.records("SleepStage", &slept).await;
    let places: Vec<Value> = (3000..)
        .zip(drawn(80))
        .map(|(n, (at, ..))| {
            json!({"uuid": id(n), "timestamp": instant(at), "latitude_degrees": f64::from(n % 7) / 10.0,
                "longitude_degrees": f64::from(n % 11) / 10.0, "horizontal_accuracy_meters": 10.0})
        })
        .collect();
    person.records("PlatformLocationUpdate", &places).await;
}

async fn endpoint(person: &Person, route: &str, parameters: &[(&str, &str)]) -> Vec<Value> {
    let route = if route.starts_with('/') {
        route.to_owned()
    } else {
        format!("/data/v0/{}/{route}", person.id)
    };
    let call = person.get(&route).with("output", "jstable");
    let call = parameters
        .iter()
        .fold(call, |call, (name, value)| call.with(name, value));
    call.await.must_be(200).rows()
}

#[track_caller]
fn assert_alike(found: &[Value], expected: &[Value], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(alike(found, expected), "{what}: {found} is not {expected}");
    }
}

/// JSON shows neither; SQL tells null from infinity.
#[tokio::test]
async fn a_sum_that_is_too_large_for_a_number_is_null_in_series_and_aggregates() {
    let person = person();
    let beat = |n: u32| json!({"uuid": id(n), "start_date": instant(n), "value": 1e308});
    person.records("HeartRate", &[beat(1), beat(2)]).await;
    let counted = async |columns: &str, function: String| {
        rows(&person, &format!("SELECT {columns} FROM {function}")).await
    };
    assert_eq!(
        counted(
            "count(*) AS windows, count(heart_rate) AS means",
            format!("series('HeartRate', '1d', '{START}', '{END}')")
        )
        .await,
        [json!({"windows": 7, "means": 0})]
    );
    assert_eq!(
        counted(
            "count(\"sum\") AS sums, count(\"avg\") AS means, max(\"max\") AS greatest",
            format!("agg('HeartRate', 'day', 'sum, avg, max', '{START}', '{END}')")
        )
        .await,
        [json!({"sums": 0, "means": 0, "greatest": 1e308})]
    );
}

#[tokio::test]
async fn each_function_answers_what_its_endpoint_does_on_random_data() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let mut runner = TestRunner::deterministic();
        for _ in 0..3 {
            let person = server.person();
            recorded(&person, &mut runner).await;
            let range = [("start_time", START), ("end_time", END)];
            let with = |more: &[(&'static str, &'static str)]| [&range[..], more].concat();
            let cases = [
                (
                    format!("series('HeartRate', 3600, '{START}', '{END}')"),
                    "metric_time_series",
                    with(&[("metric", "HeartRate"), ("samprate", "3600")]),
                ),
                (
                    format!("series('step_count', '1d', '{START}', '{END}', 'Europe/Berlin')"),
                    "metric_time_series",
                    with(&[
                        ("metric", "StepCount"),
                        ("samprate", "1d"),
                        ("tz", "Europe/Berlin"),
                    ]),
                ),
                (
                    format!("series('SleepStage', '6h', TIMESTAMP '2024-05-01 00:00:00', '{END}')"),
                    "metric_time_series",
                    with(&[("metric", "SleepStage"), ("samprate", "6h")]),
                ),
                (
                    format!("sleep_stages('{START}', '{END}')"),
                    "sleep_stages",
                    with(&[]),
                ),
                (
                    format!("sleep_cycles('{START}', '{END}')"),
                    "sleep_cycles",
                    with(&[]),
                ),
                (
                    format!("sleep_agg('{START}', '{END}', '1d', 'America/New_York')"),
                    "sleep_agg",
                    with(&[("period", "1d"), ("tz", "America/New_York")]),
                ),
                (
                    format!("location_series('{START}', '{END}', 7200)"),
                    "location_time_series",
                    with(&[("sample_rate", "7200")]),
                ),
                (
                    format!("location_updates('{START}', '{END}')"),
                    "location_updates",
                    with(&[]),
                ),
                (
                    format!("agg('StepCount', '60m', 'sum, max', '{START}', '{END}', 'Europe/Berlin')"),
                    "/data/v1alpha1/metric/StepCount/agg/60m",
                    with(&[
                        ("function", "sum"),
                        ("function", "max"),
                        ("time_zone", "Europe/Berlin"),
                    ]),
                ),
                (
                    format!("agg('sleep_stage', \"end\" => '{END}', start => '{START}')"),
                    "/data/v1alpha1/event/SleepStage/agg/day",
                    with(&[]),
                ),
                (
                    "location_at('2024-05-04T12:00:00Z')".to_owned(),
                    "location_at_time",
                    vec![("time", "2024-05-04T12:00:00Z")],
                ),
            ];
            for (function, route, parameters) in cases {
                let expected = endpoint(&person, route, &parameters).await;
                let found = rows(&person, &format!("SELECT * FROM {function}")).await;
                assert_alike(&found, &expected, &function);
            }
        }
    }
}

#[tokio::test]
async fn arguments_may_be_left_out_named_computed_and_parameters() {
    let person = person();
    recorded(&person, &mut TestRunner::deterministic()).await;
    // Open ends are those of what is recorded; nothing of it is lost.
    let counted = rows(&person, "SELECT sum(value) AS sum FROM step_count").await;
    let series = rows(
        &person,
        "SELECT sum(step_count) AS sum FROM series('StepCount', '1d')",
    )
    .await;
    assert!(
        number(&series[0], "sum") > 0.0 && number(&series[0], "sum") <= number(&counted[0], "sum") + 1e-6
    );
    let cycles = rows(&person, "SELECT * FROM sleep_cycles()").await;
    assert!(!cycles.is_empty());
    let by_name = format!(
        "SELECT * FROM series(rate => '1d', type => 'HeartRate', \"end\" => '{END}', start => '{START}')"
    );
    let by_place =
        format!("SELECT * FROM series('HeartRate', '1d', '{START}', DATE '2024-05-01' + INTERVAL '7 days')");
    assert_eq!(rows(&person, &by_name).await, rows(&person, &by_place).await);
    let bound = person.post(
        SQL,
        &json!({"query": "SELECT * FROM series($t, $r, $s, $e)",
            "parameters": {"t": "HeartRate", "r": "1d", "s": START, "e": END}}),
    );
    assert_eq!(bound.await.must_be(200).rows(), rows(&person, &by_place).await);
    for text in [
        "SELECT * FROM series()",
        "SELECT * FROM series('HeartRate', 'often')",
        "SELECT * FROM series('HeartRate', '1d', '2024-05-02', '2024-05-01')",
        "SELECT * FROM series('HeartRate', '1d', 'yesterday')",
        "SELECT * FROM series('CalendarEvent', '1d')",
        "SELECT * FROM series('HeartRate', 0.001)",
        "SELECT * FROM series('HeartRate', '1d', NULL, NULL, 'Nowhere/Land')",
        "SELECT * FROM series('HeartRate', '1d', NULL, NULL, 'UTC', 1)",
        "SELECT * FROM series(kind => 'HeartRate')",
        "SELECT * FROM heart_rate, series(heart_rate.uuid)",
        "SELECT * FROM location_at()",
        "SELECT * FROM agg('SleepCycle', 'day')",
        "SELECT * FROM agg('HeartRate', 'week')",
        "SELECT * FROM agg('HeartRate', 'day', 'median')",
        "SELECT * FROM agg('HeartRate', 'day', 'sum,sum')",
        "SELECT * FROM agg('CalendarEvent', 'day', 'sum')",
        "SELECT * FROM location_series(NULL, NULL, 0)",
        "SELECT * FROM location_series('0001-01-01', '9999-01-01', 1)",
        "SELECT * FROM sleep_agg('0001-01-01', '9999-01-01', '1m')",
        "SELECT * FROM sleep_stages(1)",
        "SELECT series('HeartRate', '1d')",
    ] {
        super::wrong(&person, text).await;
    }
}

#[tokio::test]
async fn local_day_is_the_date_where_the_clocks_of_the_zone_are() {
    let person = person();
    let beats = ["2024-05-01T21:59:59Z", "2024-05-01T22:00:00Z"];
    let beats: Vec<Value> = (0..)
        .zip(beats)
        .map(|(n, time)| heart_rate(id(n), time, 60.0))
        .collect();
    person.records("HeartRate", &beats).await;
    let found = rows(
        &person,
        "SELECT local_day(start_date, 'Europe/Berlin') AS there, local_day(start_date, 'UTC') AS utc, \
         local_day(start_date) AS plain FROM heart_rate ORDER BY start_date",
    )
    .await;
    let day = |there: &str| json!({"there": there, "utc": "2024-05-01", "plain": "2024-05-01"});
    assert_eq!(found, [day("2024-05-01"), day("2024-05-02")]);
}

#[tokio::test]
async fn the_average_resting_heart_rate_of_the_day_after_short_nights_is_one_query() {
    let person = person();
    let night = |n: u32, start: &str, end: &str| {
        json!({
            "uuid": id(n), "start_date": start, "end_date": end, "value": 3,
        })
    };
    person
        .records(
            "SleepStage",
            &[
                night(1, "2024-05-01T23:00:00Z", "2024-05-02T04:00:00Z"),
                night(2, "2024-05-02T22:00:00Z", "2024-05-03T06:00:00Z"),
                night(3, "2024-05-04T01:00:00Z", "2024-05-04T06:30:00Z"),
            ],
        )
        .await;
    let beats = [
        ("2024-05-02T12:00:00Z", 64.0),
        ("2024-05-03T12:00:00Z", 50.0),
        ("2024-05-04T12:00:00Z", 60.0),
    ];
    let beats: Vec<Value> = (10..)
        .zip(beats)
        .map(|(n, (time, value))| heart_rate(id(n), time, value))
        .collect();
    person.records("RestingHeartRate", &beats).await;
    let text = "WITH night AS (
            SELECT local_day(end_time, 'UTC') AS day FROM sleep_cycles('2024-05-01', '2024-05-08')
            WHERE end_time - start_time < INTERVAL '6 hours'
        )
        SELECT avg(value) AS resting FROM resting_heart_rate
        JOIN night ON local_day(start_date, 'UTC') = night.day";
    assert_eq!(rows(&person, text).await, [json!({"resting": 62.0})]);
}

#[tokio::test]
async fn seconds_of_moments_and_spans_keep_their_fractions() {
    let person = person();
    let tea = person.define("Event", &json!({"name": "Tea"})).await;
    let cup = |number: u32, start: &str| json!({"id": id(number), "start_time": start});
    let moments = ["2023-11-14T22:16:40Z", "2023-11-16T22:16:41.75Z"];
    person
        .records(&tea, &[cup(1, moments[0]), cup(2, moments[1])])
        .await;
    for (asked, expected) in [
        (
            "extract(epoch FROM max(start_time) - min(start_time))",
            172_801.75,
        ),
        ("extract(epoch FROM max(start_time))", 1_700_173_001.75),
        (
            "date_part('epoch', max(start_time) - TIMESTAMP '1900-01-01')",
            3_909_161_801.75,
        ),
        (
            "extract(epoch FROM TIMESTAMP '2023-11-16T22:16:41.75')",
            1_700_173_001.75,
        ),
        ("extract(EPOCH FROM '2023-11-16T22:16:41.75')", 1_700_173_001.75),
        ("extract(year FROM max(start_time))", 2023.0),
    ] {
        let found = rows(&person, &format!("SELECT {asked} AS seconds FROM tea")).await;
        assert_eq!(found[0]["seconds"].as_f64(), Some(expected), "{asked}");
    }
}

#[tokio::test]
async fn what_is_chosen_is_what_was_looked_at() {
    let person = person();
    let rows_of_64 = "(VALUES (1), (2), (3), (4)) AS a(x), (VALUES (1), (2), (3), (4)) AS b(y), \
                      (VALUES (1), (2), (3), (4)) AS c(z)";
    for choice in [
        "coalesce(tossed, 7)",
        "coalesce(NULL, tossed, 7)",
        "nvl(tossed, 7)",
    ] {
        let choice = choice.replace("tossed", "nullif(CAST(random() < 0.5 AS INT), 0)");
        let text = format!("SELECT count(*) AS n FROM {rows_of_64} WHERE {choice} > 0");
        assert_eq!(rows(&person, &text).await, [json!({"n": 64})], "{text}");
    }
}

#[tokio::test]
async fn texts_are_filled_up_and_repeated() {
    let person = person();
    let text = "SELECT lpad(CAST(n AS TEXT), 2, '0') AS left, rpad(t, 4, 'é') AS right, \
                repeat(t, n) AS times FROM (VALUES (7, 'a'), (12, 'bé'), (NULL, 'c')) AS v (n, t)";
    assert_eq!(
        rows(&person, text).await,
        [
            json!({"left": "07", "right": "aééé", "times": "aaaaaaa"}),
            json!({"left": "12", "right": "bééé", "times": "bé".repeat(12)}),
            json!({"left": null, "right": "cééé", "times": null}),
        ]
    );
    let cut = "SELECT lpad('abcdef', 3) AS a, rpad('', 0, 'x') AS b, repeat('a', -1) AS c";
    assert_eq!(rows(&person, cut).await, [json!({"a": "abc", "b": "", "c": ""})]);
}
