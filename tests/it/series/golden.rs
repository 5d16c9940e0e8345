//! The worked cases, through the interface.

use serde_json::Value;

use super::{assert_close, column, rows, sample, series};
use crate::harness::{Call, Person, at, id, person, texts};

fn case(name: &str) -> Value {
    let cases: Value = serde_json::from_str(include_str!("../../golden/series.json")).expect("the cases");
    let case = cases[name].clone();
    assert!(case.is_object(), "no case {name}");
    case
}

async fn record(person: &Person, metric: &str, case: &Value) {
    let text = |value: &Value| value.as_str().expect("a time").to_owned();
    let samples = case["input"]
        .as_array()
        .expect("samples")
        .iter()
        .enumerate()
        .map(|(n, given)| {
            let source = given["source_rank"].as_u64().unwrap_or(0);
            let value = given["value"].as_f64().expect("a value");
            sample(
                id(n as u32),
                source,
                &text(&given["start"]),
                &text(&given["end"]),
                value,
            )
        });
    let samples: Vec<Value> = samples.collect();
    person.records(metric, &samples).await;
}

fn asked(person: &Person, metric: &str, case: &Value) -> Call {
    let request = &case["request"];
    let text = |name: &str| request[name].as_str().expect("a time").to_owned();
    let mut call = series(person, metric, &text("start_time"), &text("end_time"));
    for name in ["samprate", "tz"] {
        match &request[name] {
            Value::Null => {}
            Value::String(text) => call = call.with(name, text),
            other => call = call.with(name, &other.to_string()),
        }
    }
    for name in request["calculations"].as_array().into_iter().flatten() {
        call = call.with("calculations", name.as_str().expect("a name"));
    }
    call
}

/// The case's samples are recorded as `metric`; its answer must be the expected one.
async fn check(name: &str, metric: &str, value_column: &str) {
    let (case, person) = (case(name), person());
    record(&person, metric, &case).await;
    let found = rows(asked(&person, metric, &case)).await;
    let expected = case["expected"].as_array().expect("rows");
    assert_eq!(texts(&found, "time"), texts(expected, "time"), "{name}");
    assert_close_to_digits(&column(&found, value_column), &column(expected, "value"));
    for (calculation, prefix) in [
        ("max", "max"),
        ("min", "min"),
        ("delta", "delta"),
        ("mean", "mean"),
        ("rollingmean", "rollingmean"),
    ] {
        if expected[0].get(format!("value_{calculation}")).is_some() {
            let found = column(&found, &format!("{prefix}_{value_column}"));
            assert_close(&found, &column(expected, &format!("value_{calculation}")));
        }
    }
    for (calculation, prefix) in [("uniques", "uniq"), ("allpoints", "all")] {
        if expected[0].get(format!("value_{calculation}")).is_some() {
            let lists = |rows: &[Value], name: &str| -> Vec<Option<Vec<f64>>> {
                let list = |row: &Value| {
                    Some(
                        row[name]
                            .as_array()?
                            .iter()
                            .map(|item| item.as_f64().expect("a number"))
                            .collect(),
                    )
                };
                rows.iter().map(list).collect()
            };
            let found = lists(&found, &format!("{prefix}_{value_column}"));
            assert_eq!(
                found,
                lists(expected, &format!("value_{calculation}")),
                "{name} {calculation}"
            );
        }
    }
}

/// Sound levels are given with six digits behind the point.
#[track_caller]
fn assert_close_to_digits(found: &[Option<f64>], expected: &[Option<f64>]) {
    let rounded = |number: &Option<f64>| number.map(|number| (number * 1e6).round() / 1e6);
    let found: Vec<Option<f64>> = found.iter().map(rounded).collect();
    assert_eq!(found, expected.iter().map(rounded).collect::<Vec<_>>());
}

#[tokio::test]
async fn rule_1_3_and_1_4_amounts_are_spread_evenly_and_sources_compete() {
    for name in ["M02", "M03", "M04", "M06", "M08", "M10"] {
        check(name, "StepCount", "step_count").await;
    }
    check("M05", "CaloriesConsumed", "calories_consumed").await;
}

#[tokio::test]
async fn rule_1_3_parts_of_the_largest_amounts_are_numbers() {
    for value in [1.7e308, 1e308] {
        let person = person();
        let walk = sample(id(1), 0, &at("11:00"), &at("13:00"), value);
        person.records("StepCount", &[walk]).await;
        let call = series(&person, "StepCount", &at("11:00"), &at("13:00")).with("samprate", "1h");
        assert_close(&column(&rows(call).await, "step_count"), &[Some(value / 2.0); 2]);
    }
}

#[tokio::test]
async fn rule_1_5b_sound_has_a_level_whose_power_is_no_number() {
    let person = person();
    let sounds = [
        ("10:00", "10:30", 5000.0),
        ("10:30", "11:00", -5000.0),
        ("11:00", "11:30", -5000.0),
        ("11:30", "12:00", -4000.0),
        ("12:10", "12:10", 1e308),
    ];
    let sounds: Vec<Value> = (1..)
        .zip(sounds)
        .map(|(n, (start, end, level))| sample(id(n), 0, &at(start), &at(end), level))
        .collect();
    person.records("EnvironmentalAudioLevel", &sounds).await;
    let call = series(&person, "EnvironmentalAudioLevel", &at("10:00"), &at("13:00")).with("samprate", "1h");
    assert_close(
        &column(&rows(call).await, "environmental_audio_level"),
        &[4_996.989_700_043_36, -4_003.010_299_956_64, 1e308].map(Some),
    );
}

#[tokio::test]
async fn rule_1_5_levels_hold_for_their_span_and_sound_means_its_energy() {
    check("M11", "HeartRate", "heart_rate").await;
    check("M14", "MenstrualFlow", "menstrual_flow").await;
    check("M16", "EnvironmentalAudioLevel", "environmental_audio_level").await;
}

#[tokio::test]
async fn rule_1_5d_m12_dropped_first_then_replaced() {
    let (case, expected, person) = (case("M11"), case("M12"), person());
    record(&person, "HeartRate", &case).await;
    let bare = Value::from_iter([("request", case["request"].clone())]);
    let mut request = bare;
    request["request"]["calculations"] = Value::Null;
    let call = asked(&person, "HeartRate", &request).with("calculations", "max");
    let found = rows(call.with("drop_nulls", "1").with("replace_nulls", "1")).await;
    let expected = expected["expected"].as_array().expect("rows");
    assert_eq!(texts(&found, "time"), texts(expected, "time"));
    assert_eq!(column(&found, "heart_rate"), column(expected, "value"));
    assert_eq!(column(&found, "max_heart_rate"), column(expected, "value_max"));
}

/// One sample over all of the range counts its seconds, so that each bin says how long it is.
#[tokio::test]
async fn rule_2_2_calendar_bins() {
    for name in ["B01", "B02", "B03", "B05", "B07", "B10"] {
        let (case, person) = (case(name), person());
        let (start, end) = (&case["request"]["start_time"], &case["request"]["end_time"]);
        let seconds = |text: &Value| {
            let moment =
                chrono::DateTime::parse_from_rfc3339(text.as_str().expect("a time")).expect("a moment");
            moment.timestamp() as f64
        };
        let whole = sample(
            id(1),
            0,
            start.as_str().expect("a time"),
            end.as_str().expect("a time"),
            seconds(end) - seconds(start),
        );
        person.records("StepCount", &[whole]).await;
        let found = rows(asked(&person, "StepCount", &case)).await;
        let expected = case["expected"].as_array().expect("rows");
        let labels: Vec<String> = texts(expected, "time")
            .iter()
            .map(|time| time.replace("+00:00", "Z"))
            .collect();
        assert_eq!(texts(&found, "time"), labels, "{name}");
        let first_is_whole = seconds(&expected[0]["time"]) >= seconds(start);
        for (n, (row, expected)) in found.iter().zip(expected).enumerate() {
            if let (Some(elapsed), true) = (expected["elapsed_s"].as_f64(), n > 0 || first_is_whole) {
                assert_close(&[row["step_count"].as_f64()], &[Some(elapsed)]);
            }
        }
    }
}

#[tokio::test]
async fn rule_1_2_b12_numbers_count_from_the_start_and_durations_follow_the_calendar() {
    let (case, person) = (case("B12"), person());
    for (rate, expected) in [("3600", "numeric"), ("1h", "string")] {
        let call = series(
            &person,
            "HeartRate",
            "2024-05-01T00:10:00Z",
            "2024-05-01T02:30:00Z",
        )
        .with("samprate", rate);
        let labels: Vec<&str> = case[expected]
            .as_array()
            .expect("labels")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(texts(&rows(call).await, "time"), labels);
    }
}
