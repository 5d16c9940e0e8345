//! Totals by period.

use serde_json::{Value, json};

use super::{AWAKE, DEEP, LIGHT, Span, ask, ask_about, may, slept};
use crate::harness::{Person, id, person};

const HOUR: i64 = 3_600_000;

/// A night over midnight, a nap, and an evening until midnight.
const NIGHT_NAP_EVENING: &[Span] = &[
    (LIGHT, "01 22:00", "02 02:00"),
    (DEEP, "02 02:00", "02 03:00"),
    (LIGHT, "02 13:00", "02 13:30"),
    (LIGHT, "02 22:30", "03 00:00"),
];

const THREE_DAYS: (&str, &str) = ("2024-05-01T00:00:00Z", "2024-05-04T00:00:00Z");

/// period, stage, cycles, sum, avg, min, max.
fn totals(rows: &[Value]) -> Vec<(String, i64, i64, i64, f64, i64, i64)> {
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} in {row}"));
    rows.iter()
        .map(|row| {
            (
                row["period_start_time"].as_str().unwrap().to_owned(),
                number(row, "value"),
                number(row, "cycles"),
                number(row, "sum_ms"),
                row["avg_ms"].as_f64().unwrap(),
                number(row, "min_ms"),
                number(row, "max_ms"),
            )
        })
        .collect()
}

async fn aggregated(mode: &str) -> Vec<(String, i64, i64, i64, f64, i64, i64)> {
    let person = person();
    slept(&person, NIGHT_NAP_EVENING).await;
    let call = ask_about(&person, "sleep_agg", THREE_DAYS)
        .with("mode", mode)
        .with("period", "1d")
        .with("tz", "UTC");
    let call = ["sum", "avg", "min", "max"]
        .iter()
        .fold(call, |call, name| call.with("agg_functions", name));
    totals(&call.await.must_be(200).rows())
}

fn total(
    day: &str,
    stage: i64,
    cycles: i64,
    sum: i64,
    min: i64,
    max: i64,
) -> (String, i64, i64, i64, f64, i64, i64) {
    (
        may(&format!("{day} 00:00")),
        stage,
        cycles,
        sum,
        sum as f64 / cycles as f64,
        min,
        max,
    )
}

#[tokio::test]
async fn golden_s16_a_cycle_belongs_to_the_period_of_its_start() {
    assert_eq!(
        aggregated("start").await,
        [
            total("01", LIGHT, 1, 4 * HOUR, 4 * HOUR, 4 * HOUR),
            total("01", DEEP, 1, HOUR, HOUR, HOUR),
            total("02", LIGHT, 2, 2 * HOUR, HOUR / 2, HOUR * 3 / 2),
        ]
    );
}

#[tokio::test]
async fn golden_s16_or_to_that_of_its_last_instant() {
    assert_eq!(
        aggregated("end").await,
        [
            total("02", LIGHT, 3, 6 * HOUR, HOUR / 2, 4 * HOUR),
            total("02", DEEP, 1, HOUR, HOUR, HOUR),
        ]
    );
}

#[tokio::test]
async fn golden_s16_or_to_each_the_part_in_it() {
    assert_eq!(
        aggregated("split").await,
        [
            total("01", LIGHT, 1, 2 * HOUR, 2 * HOUR, 2 * HOUR),
            total("02", LIGHT, 3, 4 * HOUR, HOUR / 2, 2 * HOUR),
            total("02", DEEP, 1, HOUR, HOUR, HOUR),
        ]
    );
}

#[tokio::test]
async fn a_mean_lies_between_the_shortest_and_the_longest_as_they_are_shown() {
    let person = person();
    let spans = [
        (LIGHT, "01 01:00", "01 01:00:01.000900"),
        (LIGHT, "01 10:00", "01 10:00:01.000900"),
        (DEEP, "01 20:00", "01 20:00:01.000900"),
    ];
    slept(&person, &spans).await;
    let call = ["sum", "avg", "min", "max"]
        .iter()
        .fold(ask_about(&person, "sleep_agg", THREE_DAYS), |call, name| {
            call.with("agg_functions", name)
        });
    let day = may("01 00:00");
    assert_eq!(
        totals(&call.await.must_be(200).rows()),
        [
            (day.clone(), LIGHT, 2, 2001, 1000.0, 1000, 1000),
            (day, DEEP, 1, 1000, 1000.0, 1000, 1000),
        ]
    );
}

#[tokio::test]
async fn defaults_are_sums_of_utc_days_by_the_end_of_cycles() {
    let person = person();
    slept(&person, NIGHT_NAP_EVENING).await;
    let rows = ask_about(&person, "sleep_agg", THREE_DAYS)
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        rows,
        [
            json!({
                "period_start_time": may("02 00:00"), "value": LIGHT, "sum_ms": 6 * HOUR,
                "min_start_time": may("01 22:00"), "max_end_time": may("03 00:00"), "cycles": 3,
            }),
            json!({
                "period_start_time": may("02 00:00"), "value": DEEP, "sum_ms": HOUR,
                "min_start_time": may("02 02:00"), "max_end_time": may("02 03:00"), "cycles": 1,
            }),
        ]
    );
}

/// One sample given as two moments in full.
async fn slept_from(person: &Person, stage: i64, start: &str, end: &str) {
    let sample = json!({"uuid": id(1), "start_date": start, "end_date": end, "value": stage});
    person.records("SleepStage", &[sample]).await;
}

async fn in_new_york(person: &Person, range: (&str, &str), mode: &str) -> Vec<Value> {
    ask_about(person, "sleep_agg", range)
        .with("mode", mode)
        .with("tz", "America/New_York")
        .await
        .must_be(200)
        .rows()
}

#[tokio::test]
async fn golden_s17_the_hour_that_comes_twice_is_slept_twice() {
    let person = person();
    slept_from(
        &person,
        LIGHT,
        "2024-11-03T00:30:00-04:00",
        "2024-11-03T03:30:00-05:00",
    )
    .await;
    for mode in ["start", "end", "split"] {
        let rows = in_new_york(&person, ("2024-11-01", "2024-11-06"), mode).await;
        assert_eq!(rows.len(), 1, "{mode}");
        assert_eq!(
            rows[0]["period_start_time"],
            json!("2024-11-03T00:00:00-04:00"),
            "{mode}"
        );
        assert_eq!(rows[0]["sum_ms"], json!(4 * HOUR), "{mode}");
        assert_eq!(
            rows[0]["max_end_time"],
            json!("2024-11-03T03:30:00-05:00"),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn golden_s17_the_hour_that_is_skipped_is_not_slept() {
    let person = person();
    slept_from(
        &person,
        DEEP,
        "2024-03-09T22:00:00-05:00",
        "2024-03-10T06:00:00-04:00",
    )
    .await;
    let range = ("2024-03-08", "2024-03-13");
    let split = in_new_york(&person, range, "split").await;
    let parts: Vec<(&Value, &Value)> = split
        .iter()
        .map(|row| (&row["period_start_time"], &row["sum_ms"]))
        .collect();
    assert_eq!(
        parts,
        [
            (&json!("2024-03-09T00:00:00-05:00"), &json!(2 * HOUR)),
            (&json!("2024-03-10T00:00:00-05:00"), &json!(5 * HOUR)),
        ]
    );
    let whole = in_new_york(&person, range, "end").await;
    assert_eq!(whole[0]["sum_ms"], json!(7 * HOUR));
}

#[tokio::test]
async fn days_from_noon_to_noon_keep_a_night_together() {
    let person = person();
    slept(
        &person,
        &[(LIGHT, "01 22:00", "02 06:00"), (LIGHT, "02 23:00", "03 05:00")],
    )
    .await;
    for period in ["1d@12h", "1d|12h"] {
        let rows = ask_about(&person, "sleep_agg", THREE_DAYS)
            .with("period", period)
            .with("mode", "split")
            .await
            .must_be(200)
            .rows();
        let found: Vec<(&Value, &Value)> = rows
            .iter()
            .map(|row| (&row["period_start_time"], &row["sum_ms"]))
            .collect();
        assert_eq!(
            found,
            [
                (&json!(may("01 12:00")), &json!(8 * HOUR)),
                (&json!(may("02 12:00")), &json!(6 * HOUR))
            ],
            "{period}"
        );
    }
}

#[tokio::test]
async fn weeks_and_months_are_periods_and_functions_stand_as_asked() {
    let person = person();
    slept(&person, NIGHT_NAP_EVENING).await;
    for (period, start) in [
        ("1w", "2024-04-29T00:00:00Z"),
        ("1mo", "2024-05-01T00:00:00Z"),
        ("P1M", "2024-05-01T00:00:00Z"),
    ] {
        let rows = ask_about(&person, "sleep_agg", THREE_DAYS)
            .with("period", period)
            .with("agg_functions", "max,sum")
            .with("stages", "3")
            .await
            .must_be(200)
            .rows();
        assert_eq!(rows.len(), 1, "{period}");
        let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "period_start_time",
                "value",
                "max_ms",
                "sum_ms",
                "min_start_time",
                "max_end_time",
                "cycles"
            ]
        );
        assert_eq!(rows[0]["period_start_time"], json!(start), "{period}");
    }
}

#[tokio::test]
async fn a_cycle_without_the_stage_does_not_count_as_none_of_it() {
    let person = person();
    slept(
        &person,
        &[
            (LIGHT, "01 01:00", "01 02:00"),
            (DEEP, "01 02:00", "01 03:00"),
            (LIGHT, "01 12:00", "01 12:30"),
            (AWAKE, "01 12:30", "01 12:40"),
        ],
    )
    .await;
    let rows = ask(&person, "sleep_agg")
        .with("agg_functions", "avg,min")
        .await
        .must_be(200)
        .rows();
    let deep = rows.iter().find(|row| row["value"] == json!(DEEP)).unwrap();
    assert_eq!((&deep["cycles"], &deep["min_ms"]), (&json!(1), &json!(HOUR)));
    let light = rows.iter().find(|row| row["value"] == json!(LIGHT)).unwrap();
    assert_eq!(
        (&light["cycles"], &light["avg_ms"]),
        (&json!(2), &json!(HOUR as f64 * 0.75))
    );
}
