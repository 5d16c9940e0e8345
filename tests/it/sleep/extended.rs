//! Cycles with what other metrics did in them.

use serde_json::{Value, json};

use super::answers::CYCLE_COLUMNS;
use super::golden::A_NIGHT_AND_A_NAP;
use super::{LIGHT, ask, ask_about, ask_as, may, slept};
use crate::harness::{Call, METHODS, Person, Table, heart_rate, id, person, steps};

const MAY: (&str, &str) = ("2024-05-01T00:00:00Z", "2024-06-01T00:00:00Z");

fn extended(person: &Person, metrics: &[&str]) -> Call {
    metrics
        .iter()
        .fold(ask(person, "sleep_cycles_extended"), |call, metric| {
            call.with("metrics", metric)
        })
}

fn points(expected: &[(&str, f64)]) -> Value {
    expected
        .iter()
        .map(|(time, value)| json!({"time": may(time), "value": value}))
        .collect()
}

#[tokio::test]
async fn without_metrics_they_are_sleep_cycles() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let plain = ask(&person, "sleep_cycles").await.must_be(200).rows();
    assert_eq!(extended(&person, &[]).await.must_be(200).rows(), plain);
}

#[tokio::test]
async fn each_metric_is_a_column_of_minutes_that_have_a_value() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let rates = [
        ("01 00:29:59", 50),
        ("01 00:30:10", 60),
        ("01 00:30:50", 70),
        ("01 06:59:59", 52),
        ("01 07:00", 99),
        ("01 14:00:30", 48),
    ];
    let rates = (100..)
        .zip(rates)
        .map(|(number, (moment, value))| heart_rate(id(number), &may(moment), value));
    person.records("HeartRate", &rates.collect::<Vec<_>>()).await;
    person
        .records(
            "StepCount",
            &[steps(id(1), &may("01 06:59:30"), &may("01 07:00:30"), 60)],
        )
        .await;
    let cycles = extended(&person, &["HeartRate", "StepCount"])
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        cycles[0]["heart_rate"],
        points(&[("01 00:30", 65.0), ("01 06:59", 52.0)])
    );
    assert_eq!(cycles[0]["step_count"], points(&[("01 06:59", 30.0)]));
    assert_eq!(cycles[1]["heart_rate"], points(&[("01 14:00", 48.0)]));
    assert_eq!(cycles[1]["step_count"], json!([]));
    let names: Vec<&str> = cycles[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [&CYCLE_COLUMNS[..], &["heart_rate", "step_count"]].concat()
    );

    let wider = extended(&person, &["HeartRate,StepCount"])
        .with("metric_seconds_before", "30")
        .with("metric_seconds_after", "60")
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        wider[0]["heart_rate"],
        points(&[
            ("01 00:29:30", 55.0),
            ("01 00:30:30", 70.0),
            ("01 06:59:30", 75.5)
        ]),
        "bins count from the start of the window"
    );
    assert_eq!(wider[0]["step_count"], points(&[("01 06:59:30", 60.0)]));
}

#[tokio::test]
async fn calculations_stand_in_each_bin() {
    let person = person();
    slept(&person, &[(LIGHT, "01 01:00", "01 02:00")]).await;
    let rates = [("01 01:00:05", 60), ("01 01:00:45", 70), ("01 01:02:10", 90)];
    let rates = (100..)
        .zip(rates)
        .map(|(number, (moment, value))| heart_rate(id(number), &may(moment), value));
    person.records("HeartRate", &rates.collect::<Vec<_>>()).await;
    let names = [
        "max",
        "min",
        "delta",
        "mean",
        "uniques",
        "allpoints",
        "rollingmean",
        "count",
    ];
    let call = names
        .iter()
        .fold(extended(&person, &["HeartRate"]), |call, name| {
            call.with("metric_calculations", name)
        });
    let cycles = call.await.must_be(200).rows();
    assert_eq!(
        cycles[0]["heart_rate"],
        json!([
            {
                "time": may("01 01:00"), "value": 65.0, "max": 70.0, "min": 60.0, "delta": 10.0, "mean": 65.0,
                "uniques": [60.0, 70.0], "allpoints": [60.0, 70.0], "rollingmean": 65.0, "count": 2,
            },
            {
                "time": may("01 01:02"), "value": 90.0, "max": 90.0, "min": 90.0, "delta": 0.0, "mean": 90.0,
                "uniques": [90.0], "allpoints": [90.0], "rollingmean": 220.0 / 3.0, "count": 1,
            },
        ])
    );
}

/// A cycle of nearly two thousand years, as a broken device may send it.
async fn slept_for_ages(person: &Person) {
    let forever = json!({
        "uuid": id(1), "start_date": "2024-05-01T00:00:00Z", "end_date": "4001-01-01T00:00:00Z",
        "value": LIGHT,
    });
    person.records("SleepStage", &[forever]).await;
}

#[tokio::test]
async fn rule_1_2c_a_window_without_measure_is_refused_by_the_limit() {
    let person = person();
    slept_for_ages(&person).await;
    let asked = |metric: &str| {
        ask_about(
            &person,
            "sleep_cycles_extended",
            ("2024-05-01T00:00:00Z", "4001-05-02T00:00:00Z"),
        )
        .with("metrics", metric)
    };
    let reply = asked("SleepStage").await;
    assert_eq!(reply.faults(), ["query.metrics"], "{reply}");
    assert!(reply.text().contains("exceed the limit of 50000000"), "{reply}");
    // What is seldom takes little room, however long the night.
    let rates = [
        heart_rate(id(1), &may("02 00:00"), 60),
        heart_rate(id(2), "2026-01-01T00:00:00Z", 61),
    ];
    person.records("HeartRate", &rates).await;
    let rows = asked("HeartRate").await.must_be(200).rows();
    assert_eq!(rows[0]["heart_rate"].as_array().unwrap().len(), 2);
}

/// Ten nights with a heart rate each four minutes, steps of two sources, and stages that two sources disagree
/// on.
async fn ten_nights(person: &Person) {
    let mut stages = Vec::new();
    let mut rates = Vec::new();
    let mut walked = Vec::new();
    for day in 1..=10_u32 {
        for part in 0..12_u32 {
            let (hour, minute) = (part / 3, part % 3 * 20);
            let start = format!("2024-05-{day:02}T{hour:02}:{minute:02}:00Z");
            let end = format!("2024-05-{day:02}T{hour:02}:{:02}:30Z", minute + 18 + part % 2);
            stages.push(json!({
                "uuid": id(day * 100 + part), "start_date": start, "end_date": end,
                "value": 1 + (day + part) % 5,
            }));
            let source = if part % 2 == 0 { "Watch6,1" } else { "iPhone14,2" };
            let mut some = steps(id(day * 100 + part), &start, &end, f64::from(part * 3 + 1));
            some["source_properties"] = json!({"name": source, "productType": source});
            walked.push(some);
            let mut more = steps(
                id(5000 + day * 100 + part),
                &start,
                &format!("2024-05-{day:02}T{:02}:00:00Z", hour + 1),
                40,
            );
            more["source_properties"] = json!({"name": "iPhone14,2", "productType": "iPhone14,2"});
            walked.push(more);
        }
        for beat in 0..360_u32 {
            let (hour, minute, second) = (beat * 4 / 60, beat * 4 % 60, beat % 60);
            rates.push(heart_rate(
                id(day * 1000 + beat),
                &format!("2024-05-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
                50 + beat % 17,
            ));
        }
    }
    person.records("SleepStage", &stages).await;
    person.records("HeartRate", &rates).await;
    person.records("StepCount", &walked).await;
}

#[tokio::test]
async fn windows_hold_what_a_series_of_the_same_time_holds() {
    let person = person();
    ten_nights(&person).await;
    let metrics = [
        ("HeartRate", "heart_rate"),
        ("StepCount", "step_count"),
        ("SleepStage", "sleep_stage"),
    ];
    // Within the cycle, beyond it, and so far that windows overlap each other.
    for (before, after) in [(0, 0), (90, 3600), (100_000, 20)] {
        let call = ask_about(&person, "sleep_cycles_extended", MAY)
            .with("cycle_gap", "1h")
            .with("metric_seconds_before", &before.to_string())
            .with("metric_seconds_after", &after.to_string());
        let call = metrics
            .iter()
            .fold(call, |call, (metric, _)| call.with("metrics", metric));
        let cycles = call.await.must_be(200).rows();
        assert_eq!(cycles.len(), 10);
        for cycle in &cycles {
            let moved = |name: &str, seconds: i64| {
                let moment = super::refused::seconds(cycle[name].as_str().unwrap()) + seconds;
                // Seconds since the last day of April.
                let (day, rest) = (moment.div_euclid(86_400), moment.rem_euclid(86_400));
                let (month, day) = if day < 1 { (4, day + 30) } else { (5, day) };
                format!(
                    "2024-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
                    rest / 3600,
                    rest / 60 % 60,
                    rest % 60
                )
            };
            let (start, end) = (moved("start_time", -before), moved("end_time", after));
            for (metric, column) in metrics {
                let series = person
                    .get(&format!("/data/v0/{}/metric_time_series", person.id))
                    .with("metric", metric)
                    .with("start_time", &start)
                    .with("end_time", &end)
                    .with("drop_nulls", "1")
                    .with("output", "jstable")
                    .await
                    .must_be(200)
                    .rows();
                let expected: Value = series
                    .iter()
                    .map(|row| json!({"time": row["time"], "value": row[column]}))
                    .collect();
                assert_eq!(cycle[column], expected, "{metric} from {start} to {end}");
            }
        }
    }
}

#[tokio::test]
async fn all_eight_output_methods_carry_attached_metrics() {
    let person = person();
    ten_nights(&person).await;
    for (range, any) in [(MAY, true), (("2023-01-01", "2023-02-01"), false)] {
        for method in METHODS {
            let reply = ask_as(&person, "sleep_cycles_extended", method)
                .with("start_time", range.0)
                .with("end_time", range.1)
                .with("metrics", "HeartRate")
                .with("metrics", "StepCount")
                .with("metric_calculations", "count")
                .await
                .must_be(200);
            let table = Table::read(method, &reply.body);
            assert_eq!(table.rows.is_empty(), !any, "{method}");
            if any || !matches!(method, "ndjson" | "jstable") {
                assert_eq!(
                    table.columns,
                    [&CYCLE_COLUMNS[..], &["heart_rate", "step_count"]].concat(),
                    "{method}"
                );
            }
            for row in &table.rows {
                let list = match &row["heart_rate"] {
                    Value::String(text) => serde_json::from_str(text).unwrap(),
                    list => list.clone(),
                };
                let first = &list[0];
                let names: Vec<&String> = first.as_object().unwrap().keys().collect();
                assert_eq!(names, ["time", "value", "count"], "{method}");
                assert_eq!(first["count"], json!(1), "{method}");
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_attached_is_422() {
    let person = person();
    for (name, value, told) in [
        ("metrics", "NoSuchMetric", "NoSuchMetric"),
        ("metrics", "HeartRate,HeartRate", "twice"),
        ("metrics", "PlatformLocationUpdate", "not a time series"),
        ("metric_calculations", "average", "rollingmean"),
        ("metric_calculations", "max", "cumulative"),
        ("metric_seconds_before", "-1", "from 0"),
        ("metric_seconds_after", "1e12", "30 days"),
        ("metric_seconds_after", "soon", "number"),
    ] {
        let call = extended(&person, if name == "metrics" { &[] } else { &["StepCount"] });
        let reply = call.with(name, value).await;
        assert_eq!(reply.faults(), [format!("query.{name}")], "{reply}");
        assert!(reply.text().contains(told), "{told:?} is not told: {reply}");
    }
}

#[tokio::test]
async fn metrics_are_told_in_the_units_and_by_the_names_that_people_chose() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let sample = |value: f64, unit: &str| {
        json!({
            "uuid": id(1), "start_date": may("01 00:30:10"), "end_date": may("01 00:30:10"), "value": value,
            "unit": unit,
        })
    };
    person.records("Weight", &[sample(80.0, "kg")]).await;
    person.records("BodyTemperature", &[sample(37.0, "degC")]).await;
    let ask = |units: &str| {
        extended(&person, &["Weight", "BodyTemperature"])
            .with("metric_calculations", "mean,delta")
            .with("units", units)
    };
    for method in METHODS {
        let reply = ask("metric").with("output", method).await.must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.rows[0]["weight_unit"], "kg", "{method}");
        let Some(schema) = table.schema else { continue };
        let held = schema.field_with_name("weight").unwrap();
        assert_eq!(held.metadata()["unit"], "kg", "{method}");
    }
    let told = ask("us").await.must_be(200).rows().swap_remove(0);
    let first = &told["body_temperature"][0];
    assert_eq!((first["value"].as_f64().unwrap() * 10.0).round(), 986.0, "{told}");
    assert_eq!(
        (first["mean"].as_f64(), first["delta"].as_f64()),
        (first["value"].as_f64(), Some(0.0)),
        "what lies between two values is not moved: {told}"
    );
    assert_eq!(told["body_temperature_unit"], "degF");
    assert_eq!(
        (told["weight"][0]["value"].as_f64().unwrap() * 10.0).round(),
        1764.0,
        "{told}"
    );
    let sums = extended(&person, &["BodyTemperature"])
        .with("metric_calculations", "sum")
        .with("units", "metric");
    assert_eq!(sums.await.faults(), ["query.metric_calculations"]);
    // Nobody asked: the columns are those there always were.
    let plain = extended(&person, &["Weight"]).await.must_be(200).rows();
    assert!(plain[0].get("weight_unit").is_none(), "{plain:?}");

    let mood =
        json!({"name": "Mood", "description": "x", "record_spec": {"unit": "u", "aggregation": "discrete"}});
    let own = person.define("Metric", &mood).await;
    let record =
        json!({"id": id(2), "start_time": may("01 00:30:10"), "end_time": may("01 00:30:10"), "value": 3});
    person.records(&own, &[record]).await;
    let by_name = extended(&person, &["Mood"]).await.must_be(200).rows();
    assert_eq!(by_name, extended(&person, &[&own]).await.must_be(200).rows());
    assert!(by_name[0].to_string().contains("\"value\":3"), "{by_name:?}");
}
