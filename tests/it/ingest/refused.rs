//! What bad input gets: an answer that says where it is wrong, and nothing stored.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Person, Reply, at, heart_rate, id, jsonl, person};

/// Posts a JSON text as one object.
async fn post(person: &Person, data_type: &str, body: impl Into<reqwest::Body>) -> Reply {
    person
        .ingest(data_type)
        .header("content-type", "application/json")
        .body(body)
        .await
}

async fn nothing_stored(person: &Person) {
    assert!(
        person.all_samples("HeartRate").await.is_empty(),
        "something was stored"
    );
    assert_eq!(person.updates("HeartRate").await, 0, "something was counted");
}

#[tokio::test]
async fn malformed_json_is_422() {
    let person = person();
    let whole = heart_rate(id(1), &at("10:00"), 60).to_string();
    let cut = &whole[..whole.len() - 1];
    let nothing = person
        .ingest("HeartRate")
        .header("content-type", "application/json");
    nothing.header("content-length", "0").await.faults();
    for body in [
        " ",
        "{",
        cut,
        "[1]",
        "null",
        "5",
        "\"text\"",
        "{'value': 1}",
        "{\"value\": 1,}",
        "{\"value\": 01}",
        "{\"a\": \"\u{1}\"}",
        "{\"a\": \"\\ud800\"}",
        &format!("{whole} trailing"),
    ] {
        let faults = post(&person, "HeartRate", body.to_owned()).await.faults();
        assert!(faults[0].starts_with("body"), "{body}: {faults:?}");
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_422() {
    let person = person();
    for bytes in [
        &b"{\"value\": \"\xff\"}"[..],
        b"\x00\x01\x02",
        b"\xff\xfe{\x00}\x00",
    ] {
        post(&person, "HeartRate", bytes.to_vec()).await.faults();
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn an_empty_body_of_lines_is_422_or_stores_nothing() {
    let person = person();
    let nothing = person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl");
    let reply = nothing.header("content-length", "0").await;
    assert!(matches!(reply.status, 201 | 422), "{reply}");
    for body in ["\n", "\n\n\n"] {
        let reply = person
            .ingest("HeartRate")
            .header("content-type", "application/x-jsonl")
            .body(body)
            .await;
        assert!(matches!(reply.status, 201 | 422), "{reply}");
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn a_batch_without_anything_is_no_json_and_no_lines() {
    let person = person();
    let send = async |media_type: &str, body: &str| {
        let call = person.call(Method::POST, "/ingest/v1/record/batch");
        let call = call.header("content-type", media_type);
        // Where there are no bytes, the client does not say so by itself.
        let call = call.header("content-length", &body.len().to_string());
        call.body(body.to_owned()).await
    };
    for blank in ["", " ", "\n\n", "\u{feff}", "\u{feff}\r\n"] {
        let refused = send("application/json", blank).await;
        assert_eq!(refused.faults(), ["body"], "{blank:?}");
        assert_eq!(
            send("application/x-jsonl", blank).await.counts(),
            [0; 4],
            "{blank:?}"
        );
    }
    assert_eq!(send("application/json", "[]").await.counts(), [0; 4]);
    nothing_stored(&person).await;
}

#[tokio::test]
async fn rule_8_4_a_fault_is_told_with_its_line_and_field_and_nothing_is_stored() {
    let person = person();
    let mut records: Vec<Value> = (0..100).map(|n| heart_rate(id(n), &at("10:00"), n)).collect();
    records[41]["value"] = json!("fast");
    records[73].as_object_mut().unwrap().remove("start_date");
    let faults = person.lines("HeartRate", &records).await.faults();
    assert_eq!(faults[0], "body.41.value");
    nothing_stored(&person).await;
}

#[tokio::test]
async fn rule_8_4_a_line_that_is_no_json_is_told_with_its_line() {
    let person = person();
    let lines = format!(
        "{}{{\"value\": \n{}",
        jsonl(&[heart_rate(id(1), &at("10:00"), 60)]),
        jsonl(&[heart_rate(id(2), &at("10:01"), 61)])
    );
    let reply = person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(lines)
        .await;
    let faults = reply.faults();
    assert!(faults[0].starts_with("body.1"), "{faults:?}");
    nothing_stored(&person).await;
}

#[tokio::test]
async fn an_answer_does_not_grow_with_what_was_sent() {
    let person = person();
    let long = "x".repeat(500_000);
    let mut records = vec![heart_rate(id(1), &at("10:00"), 60); 8];
    for record in &mut records {
        record["unit"] = json!(long);
    }
    let in_a_path = "x".repeat(5000);
    let in_a_query = format!("SELECT '{}' FROM nowhere", "x".repeat(50_000));
    let definition = json!({"name": "Tea", "record_spec": {"scale": long, "schema": [long]}});
    for call in [
        person.lines("HeartRate", &records),
        person.post("/user/v1alpha1/preferences", &json!({(long.as_str()): 1})),
        person.post("/user/v1/group", &json!({(long.as_str()): 1, "name": [long]})),
        person.post("/data/v1/sql", &json!({"query": long, "output": long})),
        person.post("/data/v1/sql", &json!({"query": in_a_query})),
        person.post("/input/v1/data_type/Metric", &definition),
        person.get(&format!("/data/v1alpha1/metric/{in_a_path}")),
        person.read("metric", "HeartRate").with("output", &in_a_path),
        person.read("metric", "HeartRate").with("columns", &in_a_path),
        person.read("metric", "HeartRate").with("limit", &in_a_path),
    ] {
        let reply = call.await;
        assert!((400..500).contains(&reply.status), "{reply}");
        assert!(reply.body.len() < 5000, "{} bytes: {reply}", reply.body.len());
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn wrong_types_are_422_with_the_field() {
    let person = person();
    for (field, value) in [
        ("value", json!("60")),
        ("value", json!(true)),
        ("value", json!([60])),
        ("value", json!({})),
        ("uuid", json!("not-a-uuid")),
        ("uuid", json!(17)),
        ("start_date", json!(1_714_557_600)),
        ("start_date", json!(true)),
        ("unit", json!(5)),
        ("source_properties", json!("watch")),
        ("source_properties", json!({"name": 5})),
        ("device_properties", json!([])),
    ] {
        let mut record = heart_rate(id(1), &at("10:00"), 60);
        record[field] = value.clone();
        let faults = post(&person, "HeartRate", record.to_string()).await.faults();
        assert!(
            faults.iter().all(|place| place.contains(field)),
            "{field} = {value}: {faults:?}"
        );
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn a_missing_field_is_422_with_the_field() {
    let person = person();
    for field in ["value", "start_date"] {
        let mut record = heart_rate(id(1), &at("10:00"), 60);
        record.as_object_mut().unwrap().remove(field);
        let faults = post(&person, "HeartRate", record.to_string()).await.faults();
        assert!(
            faults.iter().any(|place| place.contains(field)),
            "{field}: {faults:?}"
        );
        record[field] = Value::Null;
        post(&person, "HeartRate", record.to_string()).await.faults();
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn bad_dates_are_422() {
    let person = person();
    for date in [
        "yesterday",
        "",
        "2024",
        "2024-05",
        "2024-02-30T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-05-01T24:00:00Z",
        "2024-05-01T10:60:00Z",
        "2024-05-01T10:00:60Z",
        " 2024-05-01T10:00:00Z",
        "2024-05-01T10:00:00Z ",
        "2024-05-01T10:00:00 UTC",
        "1714557600",
        "05/01/2024",
        "2024-05-01T10:00:00+25:00",
    ] {
        let faults = post(&person, "HeartRate", heart_rate(id(1), date, 60).to_string())
            .await
            .faults();
        assert!(
            faults.iter().any(|place| place.contains("_date")),
            "{date}: {faults:?}"
        );
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn every_spelling_of_a_moment_is_understood() {
    let person = person();
    let spellings = [
        "2024-05-01T10:00:00Z",
        "2024-05-01t10:00:00z",
        "2024-05-01 10:00:00Z",
        "2024-05-01T10:00Z",
        "2024-05-01T10:00:00.000000000Z",
        "2024-05-01T10:00:00.0000009Z",
        "2024-05-01T10:00:00",
        "2024-05-01 10:00:00+00:00",
        "2024-05-01T12:30:00+02:30",
        "2024-05-01T12:30:00+0230",
        "2024-05-01T03:00:00-07",
        "2024-05-01T09:59:59.9999999999+00:00",
    ];
    for (n, spelling) in spellings.iter().enumerate() {
        person
            .records("HeartRate", &[heart_rate(id(n as u32), spelling, 60)])
            .await;
    }
    person
        .records("HeartRate", &[heart_rate(id(99), "2024-05-02", 60)])
        .await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(samples.len(), spellings.len() + 1);
    for sample in &samples {
        let start = sample["start_date"].as_str().unwrap();
        let known = [
            "2024-05-01T09:59:59.999999Z",
            "2024-05-01T10:00:00Z",
            "2024-05-01T10:00:00.000000Z",
            "2024-05-02T00:00:00Z",
            "2024-05-02T00:00:00.000000Z",
        ];
        assert!(known.contains(&start), "{sample}");
    }
}

#[tokio::test]
async fn an_end_before_the_start_is_422() {
    let person = person();
    let record = json!({"uuid": id(1), "start_date": at("10:00"), "end_date": at("09:59:59"), "value": 60});
    let faults = post(&person, "HeartRate", record.to_string()).await.faults();
    assert!(faults[0].contains("_date"), "{faults:?}");
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    let faults = person
        .record(&own, &json!({"start_time": at("10:00"), "end_time": at("09:00")}))
        .await
        .faults();
    assert!(faults[0].contains("_time"), "{faults:?}");
    nothing_stored(&person).await;
}

#[tokio::test]
async fn rule_8_6_samples_of_the_day_after_tomorrow_are_422_and_events_are_not() {
    let person = person();
    let far = "2999-01-01T00:00:00Z";
    post(&person, "HeartRate", heart_rate(id(1), far, 60).to_string())
        .await
        .faults();
    let fix = json!({"timestamp": far, "latitude_degrees": 1.0, "longitude_degrees": 1.0});
    person.record("PlatformLocationUpdate", &fix).await.faults();
    person.record("Event", &json!({"start_time": far})).await.upload();
    nothing_stored(&person).await;
}

#[tokio::test]
async fn values_out_of_the_schema_are_422() {
    let person = person();
    let fix = |latitude: f64, longitude: f64| {
        json!({
            "timestamp": at("10:00"), "latitude_degrees": latitude, "longitude_degrees": longitude,
        })
    };
    for (latitude, longitude) in [(90.1, 0.0), (-91.0, 0.0), (0.0, 180.5), (0.0, -181.0)] {
        person
            .record("PlatformLocationUpdate", &fix(latitude, longitude))
            .await
            .faults();
    }
    person
        .record("PlatformLocationUpdate", &fix(90.0, -180.0))
        .await
        .upload();
    person
        .record("StateOfMind", &json!({"start_time": at("10:00"), "valence": 1.5}))
        .await
        .faults();
    person
        .record(
            "BooleanAnnotation",
            &json!({"recorded_at": at("10:00"), "value": "yes"}),
        )
        .await
        .faults();
    person
        .record(
            "ScaleAnnotation",
            &json!({"recorded_at": at("10:00"), "value": 2.5}),
        )
        .await
        .faults();
}

#[tokio::test]
async fn nan_and_infinity_are_422() {
    let person = person();
    for value in [
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "1e999",
        "-1e999",
        "\"NaN\"",
    ] {
        let body = format!("{{\"start_date\": \"{}\", \"value\": {value}}}", at("10:00"));
        post(&person, "HeartRate", body).await.faults();
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn unknown_types_are_404() {
    let person = person();
    for data_type in [
        "NoSuchType",
        "heartrate",
        "HeartRate/0191f000-0000-7000-8000-000000000001",
        "Event/0191f000-0000-7000-8000-000000000001",
        "Event/not-a-uuid",
        "%00",
        "..%2f..%2fetc",
    ] {
        let reply = person
            .record(data_type, &json!({"start_time": at("10:00"), "value": 1}))
            .await;
        reply.problem(404);
    }
}

#[tokio::test]
async fn a_type_that_cannot_be_recorded_is_refused() {
    let person = person();
    let reply = person.record("FileInput", &json!({"name": "x"})).await;
    assert!((400..500).contains(&reply.status), "{reply}");
}

#[tokio::test]
async fn nesting_10_000_deep_is_422() {
    let person = person();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        post(&person, "HeartRate", deep.clone()).await.faults();
        let body = format!(
            "{{\"start_date\": \"{}\", \"value\": 1, \"extras\": {{\"deep\": {deep}}}}}",
            at("10:00")
        );
        post(&person, "HeartRate", body.clone()).await.faults();
        let line = person
            .ingest("HeartRate")
            .header("content-type", "application/x-jsonl")
            .body(format!("{body}\n"))
            .await;
        line.faults();
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn wrong_media_types_are_415() {
    let person = person();
    let body = heart_rate(id(1), &at("10:00"), 60).to_string();
    for media_type in [
        "text/csv",
        "text/plain",
        "image/png",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "rubbish",
    ] {
        person
            .ingest("HeartRate")
            .header("content-type", media_type)
            .body(body.clone())
            .await
            .problem(415);
    }
    nothing_stored(&person).await;
}

#[tokio::test]
async fn a_fault_shows_no_more_than_a_part_of_a_large_value() {
    let person = person();
    let mut record = heart_rate(id(1), &at("10:00"), 60);
    record["value"] = json!("x".repeat(1 << 20));
    let reply = post(&person, "HeartRate", record.to_string()).await;
    reply.faults();
    assert!(
        reply.body.len() < 64 << 10,
        "an answer of {} bytes",
        reply.body.len()
    );
}

#[tokio::test]
async fn a_body_of_faults_gets_an_answer_of_bounded_size() {
    let person = person();
    let lines = "{}\n".repeat(100_000);
    let reply = person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(lines)
        .await;
    reply.faults();
    assert!(
        reply.body.len() < 1 << 20,
        "an answer of {} bytes",
        reply.body.len()
    );
}

#[tokio::test]
async fn a_list_of_faults_that_ends_early_says_so() {
    let person = person();
    let send = async |path: &str, lines: String| {
        person
            .call(Method::POST, path)
            .header("content-type", "application/x-jsonl")
            .body(lines)
            .await
    };
    let wrapped = r#"{"data": "{}", "metadata": {}}"#;
    for (path, line) in [
        ("/ingest/v1/record/Note", r#"{"start_time":"x"}"#),
        ("/ingest/v1/record/DeletedRecord", "{}"),
        ("/ingest/v1/record/batch", wrapped),
    ] {
        let reply = send(path, format!("{line}\n").repeat(5000)).await;
        let places = reply.faults();
        assert_eq!((places.len(), places[100].as_str()), (101, "body"), "{path}");
        let kinds: Vec<Value> = reply.json()["detail"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fault| fault["type"].clone())
            .collect();
        let is_note = |kind: &&Value| **kind == "more_faults";
        assert_eq!(kinds.iter().filter(is_note).count(), 1, "{path}");
        let whole = send(path, format!("{line}\n").repeat(10)).await;
        assert!(!whole.text().contains("more_faults"), "{path}: {whole}");
    }
    nothing_stored(&person).await;
}
