//! `/data/v0`: the catalogue of metrics, and raw samples.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{ALL_TIME, METHODS, Person, Table, at, heart_rate, id, number, person, steps, texts};

#[tokio::test]
async fn metrics_catalog_lists_every_metric_with_its_unit_and_column() {
    let metrics = person().get("/data/v0/metrics_catalog").await.must_be(200).rows();
    assert!(metrics.len() >= 200, "{} metrics", metrics.len());
    for metric in &metrics {
        for name in ["description", "name", "unit", "value_column"] {
            assert!(metric[name].is_string(), "{name} of {metric}");
        }
        assert!(metric["is_time_series"].is_boolean(), "{metric}");
        assert!(
            matches!(
                metric["metric_kind"].as_str(),
                Some("cumulative" | "discrete") | None
            ),
            "{metric}"
        );
    }
    let heart_rate = metrics
        .iter()
        .find(|metric| metric["name"] == json!("HeartRate"))
        .unwrap();
    assert_eq!(
        (
            &heart_rate["unit"],
            &heart_rate["value_column"],
            &heart_rate["metric_kind"]
        ),
        (&json!("bpm"), &json!("heart_rate"), &json!("discrete"))
    );
    let mood = metrics
        .iter()
        .find(|metric| metric["name"] == json!("ReportedMood"))
        .unwrap();
    assert!(mood["metric_kind"].is_null(), "{mood}");
}

const SAMPLE_FIELDS: [&str; 10] = [
    "uuid",
    "start_date",
    "end_date",
    "value",
    "unit",
    "count",
    "has_undetermined_duration",
    "extras",
    "source_properties",
    "device_properties",
];

fn full_sample() -> Value {
    json!({
        "uuid": id(1), "start_date": at("10:00"), "end_date": at("10:01"), "value": 61.5, "unit": "bpm",
        "count": 3, "has_undetermined_duration": false,
        "extras": {"context": "sitting", "n": 1},
        "source_properties": {
            "name": "Watch", "version": "10.1", "productType": "Watch6,1",
            "operatingSystemVersion": [10, 1, 0], "sourceBundleIdentifier": "com.example.health",
        },
        "device_properties": {
            "name": "Watch", "model": "Watch", "manufacturer": "Example", "hardwareVersion": "Watch6,1",
            "softwareVersion": "10.1",
        },
    })
}

#[tokio::test]
async fn a_sample_has_the_published_shape() {
    let person = person();
    person
        .records("HeartRate", &[full_sample(), heart_rate(id(2), &at("10:05"), 70)])
        .await;
    let samples = person.all_samples("HeartRate").await;
    for sample in &samples {
        let keys: Vec<&String> = sample.as_object().unwrap().keys().collect();
        assert_eq!(keys, SAMPLE_FIELDS);
    }
    let full = &samples[0];
    for name in [
        "source_properties",
        "device_properties",
        "extras",
        "count",
        "value",
        "unit",
        "uuid",
        "has_undetermined_duration",
    ] {
        assert_eq!(full[name], full_sample()[name], "{name}");
    }
    assert!(samples[1]["device_properties"].is_null(), "{}", samples[1]);
}

#[tokio::test]
async fn golden_m01_samples_that_intersect_are_in_range_and_touching_is_not_intersecting() {
    let person = person();
    let spans = [
        ("13:30", "14:30"),
        ("13:00", "14:00"),
        ("15:00", "15:30"),
        ("14:00", "14:00"),
        ("15:00", "15:00"),
        ("12:00", "16:00"),
    ];
    let records: Vec<Value> = spans
        .iter()
        .enumerate()
        .map(|(n, (start, end))| steps(id(n as u32), &at(start), &at(end), 1))
        .collect();
    person.records("StepCount", &records).await;
    let samples = person.samples("StepCount", &at("14:00"), &at("15:00")).await;
    assert_eq!(
        texts(&samples, "uuid"),
        [5, 0, 3].map(|n| id(n).to_string()),
        "F, A, D in the order of their starts"
    );
}

#[tokio::test]
async fn rows_come_by_start_then_end_then_id() {
    let person = person();
    let mut records = Vec::new();
    for n in (0..40).rev() {
        records.push(steps(
            id(n),
            &at(if n % 2 == 0 { "10:00" } else { "09:00" }),
            &at(if n % 3 == 0 { "12:00" } else { "11:00" }),
            1,
        ));
    }
    for half in records.chunks(7) {
        person.records("StepCount", half).await;
    }
    let samples = person.all_samples("StepCount").await;
    let key =
        |row: &Value| ["start_date", "end_date", "uuid"].map(|name| row[name].as_str().unwrap().to_owned());
    let keys: Vec<[String; 3]> = samples.iter().map(key).collect();
    assert_eq!(keys.len(), 40);
    assert!(keys.is_sorted(), "{keys:?}");
}

#[tokio::test]
async fn no_data_is_an_empty_answer_in_every_method() {
    let person = person();
    assert!(
        person
            .samples("HeartRate", &at("10:00"), &at("11:00"))
            .await
            .is_empty()
    );
    for method in METHODS {
        let reply = person
            .metric_samples("HeartRate", &at("10:00"), &at("11:00"))
            .with("output", method)
            .await
            .must_be(200);
        if method == "ndjson" {
            assert!(reply.body.is_empty(), "{reply}");
        }
        assert!(Table::read(method, &reply.body).rows.is_empty(), "{method}");
    }
}

#[tokio::test]
async fn an_empty_range_is_200_without_rows_and_an_inverted_one_422() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert!(
        person
            .samples("HeartRate", &at("10:00"), &at("10:00"))
            .await
            .is_empty()
    );
    let faults = person
        .metric_samples("HeartRate", &at("11:00"), &at("10:00"))
        .await
        .faults();
    assert!(faults.iter().any(|place| place.contains("_time")), "{faults:?}");
}

#[tokio::test]
async fn missing_and_malformed_parameters_are_422_with_their_names() {
    let person = person();
    let path = format!("/data/v0/{}/metric_samples", person.id);
    let whole = [
        ("metric", "HeartRate"),
        ("start_time", "2024-05-01"),
        ("end_time", "2024-05-02"),
    ];
    for (missing, _) in whole {
        let call = whole
            .iter()
            .filter(|(name, _)| *name != missing)
            .fold(person.get(&path), |call, (name, value)| call.with(name, value));
        let faults = call.await.faults();
        assert!(
            faults.iter().any(|place| place == &format!("query.{missing}")),
            "{missing}: {faults:?}"
        );
    }
    for value in [
        "1714557600",
        "yesterday",
        "2024-02-30",
        "2024-05-01T24:00:00Z",
        "2024-05-01T10:00:60Z",
        "2024-05-01T00:00:00 UTC",
        "",
    ] {
        let call = person
            .get(&path)
            .with("metric", "HeartRate")
            .with("start_time", value)
            .with("end_time", "2030-01-01");
        let faults = call.await.faults();
        assert!(
            faults.iter().any(|place| place == "query.start_time"),
            "{value}: {faults:?}"
        );
    }
}

#[tokio::test]
async fn every_spelling_of_a_moment_is_understood_in_a_query() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let path = format!(
        "/data/v0/{}/metric_samples?metric=HeartRate&end_time=2024-05-01T10:00:01Z",
        person.id
    );
    for (spelling, found) in [
        ("2024-05-01T10:00:00Z", true),
        ("2024-05-01%2010:00:00%2B00:00", true),
        ("2024-05-01+10:00:00%2B00:00", true),
        ("2024-05-01T12:00:00+02:00", true),
        ("2024-05-01T12:00:00%2B0200", true),
        ("2024-05-01T03:00-07", true),
        ("2024-05-01T10:00Z", true),
        ("2024-05-01T10:00:00.000000Z", true),
        ("2024-05-01T10:00:00.000001Z", false),
        ("2024-05-01T10:00:00", true),
        ("2024-05-01", true),
    ] {
        let reply = person
            .get(&format!("{path}&start_time={spelling}"))
            .await
            .must_be(200);
        assert_eq!(reply.rows().len(), usize::from(found), "{reply}");
    }
}

#[tokio::test]
async fn an_unknown_metric_is_refused() {
    let reply = person()
        .metric_samples("NoSuchMetric", &at("10:00"), &at("11:00"))
        .await;
    assert!(matches!(reply.status, 404 | 422), "{reply}");
}

#[tokio::test]
async fn an_unknown_output_is_422_and_names_those_that_exist() {
    let reply = person()
        .metric_samples("HeartRate", &at("10:00"), &at("11:00"))
        .with("output", "xml")
        .await;
    assert!(
        reply.faults().iter().any(|place| place == "query.output"),
        "{reply}"
    );
    for method in METHODS {
        assert!(reply.text().contains(method), "{method} is not named: {reply}");
    }
}

#[tokio::test]
async fn a_watch_and_a_phone_both_appear() {
    let person = person();
    let from = |n: u32, name: &str| {
        let mut record = steps(id(n), &at("10:00"), &at("10:10"), 100);
        record["source_properties"] = json!({"name": name, "productType": name});
        record
    };
    person
        .records("StepCount", &[from(1, "Watch6,1"), from(2, "iPhone14,2")])
        .await;
    assert_eq!(person.all_samples("StepCount").await.len(), 2);
}

/// Records that have every kind of value in them.
async fn record_a_little_of_everything(person: &Person) -> usize {
    let mut records: Vec<Value> = (0..200)
        .map(|n| heart_rate(id(100 + n), &crate::harness::instant(36_001 + n), 60.5))
        .collect();
    records.push(full_sample());
    let mut awkward = heart_rate(id(2), &at("10:00"), 0.1 + 0.2);
    awkward["extras"] = json!({"note": "comma, \"quote\"\nline", "list": [1, null]});
    awkward["source_properties"] = json!({"name": "=Ümläut, \"Co\"\r\n"});
    records.push(awkward);
    person.records("HeartRate", &records).await;
    records.len()
}

#[tokio::test]
async fn all_eight_output_methods_carry_the_same_rows() {
    let person = person();
    let count = record_a_little_of_everything(&person).await;
    let expected = person.all_samples("HeartRate").await;
    assert_eq!(expected.len(), count);
    for method in METHODS {
        let reply = person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", method)
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.columns, SAMPLE_FIELDS, "{method}");
        assert_eq!(table.rows.len(), count, "{method}");
        for (row, expected) in table.rows.iter().zip(&expected) {
            for name in SAMPLE_FIELDS {
                assert!(
                    same(&row[name], &expected[name]),
                    "{method}: {name} is {} and not {}",
                    row[name],
                    expected[name]
                );
            }
        }
    }
}

/// Whether a cell means the same as the JSON answer's, given that a method may spell it as text, and that
/// structs of nothing are null in some of them.
fn same(cell: &Value, expected: &Value) -> bool {
    if cell == expected {
        return true;
    }
    match (cell, expected) {
        (Value::String(text), Value::Null) => text.is_empty(),
        (Value::String(text), Value::Bool(_)) => text == &expected.to_string(),
        (Value::String(text), Value::Number(number)) => text.parse::<f64>().ok() == number.as_f64(),
        (Value::Number(cell), Value::Number(number)) => cell.as_f64() == number.as_f64(),
        (Value::String(text), Value::Object(_) | Value::Array(_)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|cell| same(&cell, expected))
        }
        (Value::String(cell), Value::String(text)) => {
            cell.trim_end_matches('Z').trim_end_matches('0')
                == text.trim_end_matches('Z').trim_end_matches('0')
        }
        (Value::Object(cell), Value::Object(object)) => {
            cell.len() == object.len()
                && cell
                    .iter()
                    .all(|(name, value)| object.get(name).is_some_and(|other| same(value, other)))
        }
        _ => false,
    }
}

#[tokio::test]
async fn arrow_and_parquet_carry_real_types() {
    let person = person();
    record_a_little_of_everything(&person).await;
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for method in ["arrow", "arrowraw", "parquet"] {
        let reply = person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", method)
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.data_type("start_date"), moment, "{method}");
        assert_eq!(table.data_type("end_date"), moment, "{method}");
        assert_eq!(table.data_type("value"), DataType::Float64, "{method}");
        assert_eq!(table.data_type("unit"), DataType::Utf8, "{method}");
        assert!(table.data_type("count").is_integer(), "{method}");
        assert_eq!(
            table.data_type("has_undetermined_duration"),
            DataType::Boolean,
            "{method}"
        );
        for nested in ["source_properties", "device_properties"] {
            assert!(
                matches!(table.data_type(nested), DataType::Struct(_)),
                "{method}: {nested} is {}",
                table.data_type(nested)
            );
        }
    }
}

#[tokio::test]
async fn content_types_say_what_the_body_is() {
    let person = person();
    for (method, expected) in [
        ("jstable", "application/json"),
        ("jscolumns", "application/json"),
        ("csv", "text/csv"),
        ("quotecsv", "text/csv"),
    ] {
        let reply = person
            .metric_samples("HeartRate", &at("10:00"), &at("11:00"))
            .with("output", method)
            .await
            .must_be(200);
        let given = reply.header("content-type").unwrap_or_default();
        assert!(given.starts_with(expected), "{method}: {given}");
    }
    let kinds: std::collections::BTreeSet<String> = {
        let mut kinds = std::collections::BTreeSet::new();
        for method in ["ndjson", "arrow", "arrowraw", "parquet"] {
            let reply = person
                .metric_samples("HeartRate", &at("10:00"), &at("11:00"))
                .with("output", method)
                .await
                .must_be(200);
            kinds.insert(reply.header("content-type").expect("a content type").to_owned());
        }
        kinds
    };
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[tokio::test]
async fn csv_quotes_where_needed_and_quotecsv_everywhere() {
    let person = person();
    record_a_little_of_everything(&person).await;
    let csv = person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .with("output", "csv")
        .await
        .must_be(200);
    assert!(csv.text().starts_with("uuid,start_date,end_date,value,"), "{csv}");
    let quoted = person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .with("output", "quotecsv")
        .await
        .must_be(200);
    assert!(
        quoted
            .text()
            .starts_with("\"uuid\",\"start_date\",\"end_date\",\"value\","),
        "{quoted}"
    );
    let second = quoted.text().lines().nth(1).unwrap();
    assert!(second.starts_with('"') && second.contains("\",\""), "{second}");
}

#[tokio::test]
async fn rule_6_1_the_misspelt_names_serve_and_are_never_listed() {
    let person = person();
    let metrics = person.get("/data/v0/metrics_catalog").await.must_be(200).rows();
    let names = texts(&metrics, "name");
    assert!(
        names.iter().all(|name| !name.contains("Incraese")),
        "a misspelt name is listed"
    );
    let misspelt: Vec<String> = names
        .iter()
        .filter(|name| name.contains("Increase"))
        .map(|name| name.replace("Increase", "Incraese"))
        .collect();
    assert!(!misspelt.is_empty());
    for (alias, proper) in misspelt
        .iter()
        .zip(names.iter().filter(|name| name.contains("Increase")))
    {
        let record =
            json!({"uuid": Uuid::new_v4(), "start_date": at("10:00"), "end_date": at("10:01"), "value": 0});
        person.record(alias, &record).await.upload();
        assert_eq!(person.all_samples(alias).await.len(), 1);
        assert_eq!(number(&person.all_samples(proper).await[0], "value"), 0.0);
    }
}
