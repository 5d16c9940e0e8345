//! Which night it was.

use serde_json::Value;

use super::{DEEP, IN_BED, LIGHT, Span, ask_about, slept};
use crate::harness::{METHODS, Person, Table, person, texts};

const HOUR: i64 = 3_600_000;

/// A night from before midnight, one from after it until after noon, and an evening.
const NIGHTS: &[Span] = &[
    (IN_BED, "01 21:30", "01 22:00"),
    (LIGHT, "01 22:00", "02 06:00"),
    (LIGHT, "03 04:00", "03 10:00"),
    (DEEP, "03 10:00", "03 12:30"),
    (LIGHT, "03 20:00", "03 22:00"),
];

const DAYS: (&str, &str) = ("2024-05-01T00:00:00Z", "2024-05-05T00:00:00Z");

async fn sleeper() -> Person {
    let person = person();
    slept(&person, NIGHTS).await;
    person
}

fn nights(rows: &[Value]) -> Vec<String> {
    texts(rows, "night_of")
}

#[tokio::test]
async fn a_cycle_is_of_the_night_in_which_it_begins_noon_to_noon() {
    let person = sleeper().await;
    let ask = |route: &str| ask_about(&person, route, DAYS).with("night_of", "true");
    let cycles = ask("sleep_cycles").with("tz", "UTC").await.must_be(200);
    assert_eq!(nights(&cycles.rows()), ["2024-05-01", "2024-05-02", "2024-05-03"]);
    // Tokyo is nine hours ahead: 07:00 on the second, 13:00 on the third, 05:00 on the fourth.
    let there = ask("sleep_cycles").with("tz", "Asia/Tokyo").await.must_be(200);
    assert_eq!(nights(&there.rows()), ["2024-05-01", "2024-05-03", "2024-05-03"]);
    let stages = ask("sleep_stages").with("tz", "UTC").await.must_be(200);
    let expected = [
        "2024-05-01",
        "2024-05-01",
        "2024-05-02",
        "2024-05-02",
        "2024-05-03",
    ];
    assert_eq!(nights(&stages.rows()), expected);
    let shown = ask("sleep_stages")
        .with("tz", "UTC")
        .with("stages", "4")
        .await
        .must_be(200);
    assert_eq!(nights(&shown.rows()), ["2024-05-02"]);
    let extended = ask("sleep_cycles_extended")
        .with("tz", "UTC")
        .with("metrics", "HeartRate")
        .await
        .must_be(200);
    assert_eq!(nights(&extended.rows()), nights(&cycles.rows()));
}

#[tokio::test]
async fn totals_of_nights_are_those_of_their_cycles() {
    let person = sleeper().await;
    let ask = || {
        ask_about(&person, "sleep_agg", DAYS)
            .with("night_of", "true")
            .with("tz", "UTC")
            .with("stages", "3,4")
    };
    let sums = |rows: Vec<Value>| -> Vec<(String, i64, i64)> {
        rows.iter()
            .map(|row| {
                let number = |name: &str| row[name].as_i64().unwrap();
                (
                    row["night_of"].as_str().unwrap().to_owned(),
                    number("value"),
                    number("sum_ms"),
                )
            })
            .collect()
    };
    let night = |day: &str, stage, sum| (format!("2024-05-{day}"), stage, sum);
    let totals = ask().await.must_be(200);
    assert_eq!(
        sums(totals.rows()),
        [
            night("01", LIGHT, 8 * HOUR),
            night("02", LIGHT, 6 * HOUR),
            night("02", DEEP, 5 * HOUR / 2),
            night("03", LIGHT, 2 * HOUR),
        ]
    );
    let by_end = ask()
        .with("mode", "end")
        .with("period", "1d@12h")
        .await
        .must_be(200);
    assert_eq!(sums(by_end.rows())[1], night("03", LIGHT, 8 * HOUR));
    assert_eq!(ask().with("period", "1d").await.faults(), ["query.period"]);
}

#[tokio::test]
async fn nights_are_named_where_that_is_asked_and_in_a_zone() {
    let person = sleeper().await;
    let plain = ask_about(&person, "sleep_cycles", DAYS).await.must_be(200);
    assert!(plain.rows()[0].get("night_of").is_none());
    let nowhere = ask_about(&person, "sleep_cycles", DAYS)
        .with("night_of", "true")
        .await;
    assert_eq!(nowhere.faults(), ["query.night_of"]);
    for method in METHODS {
        let reply = super::ask_as(&person, "sleep_cycles", method)
            .with("start", DAYS.0)
            .with("end", DAYS.1)
            .with("night_of", "1")
            .with("tz", "UTC")
            .with("columns", "number,night_of")
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.rows[2]["night_of"], "2024-05-03", "{method}");
    }
}
