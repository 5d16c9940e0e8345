//! The older ways to record: one wrapped record, and a batch of them.

use serde_json::{Value, json};

use crate::harness::{at, id, jsonl, number, person, texts};

/// A record in its wrapping.
fn wrapped(n: u32, value: f64, metadata: &Value) -> Value {
    let data = json!({"start_date": at("10:00"), "end_date": at("10:00"), "value": value}).to_string();
    let mut whole = json!({
        "specversion": 1, "data": data,
        "metadata": {
            "data_type": "HeartRate", "content_type": "application/json", "id": id(n),
            "source": ["com.example.watch"], "tags": [],
        },
    });
    for (name, value) in metadata.as_object().unwrap() {
        whole["metadata"][name] = value.clone();
    }
    whole
}

#[tokio::test]
async fn a_wrapped_record_is_recorded_under_its_metadatas_id() {
    let person = person();
    person
        .post("/ingest/v1/record", &wrapped(1, 60.0, &json!({})))
        .await
        .upload();
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(texts(&samples, "uuid"), [id(1).to_string()]);
    assert_eq!(number(&samples[0], "value"), 60.0);
    person
        .post("/ingest/v1/record", &wrapped(1, 61.0, &json!({})))
        .await
        .upload();
    assert_eq!(number(&person.all_samples("HeartRate").await[0], "value"), 61.0);
}

#[tokio::test]
async fn the_metadatas_moment_serves_where_the_record_has_none() {
    let person = person();
    let mut record = wrapped(
        1,
        60.0,
        &json!({
            "data_type": "MomentAnnotation", "recorded_at": at("11:30"), "tags": ["a"],
            "source": ["com.almanac.annotation.x"],
        }),
    );
    record["data"] = json!(json!({"note": "tea"}).to_string());
    person.post("/ingest/v1/record", &record).await.upload();
    let row = &person.rows("event", "MomentAnnotation").await[0];
    assert!(
        row["recorded_at"]
            .as_str()
            .unwrap()
            .starts_with("2024-05-01T11:30:00"),
        "{row}"
    );
    assert_eq!(
        (&row["note"], &row["tags"], &row["sources"]),
        (&json!("tea"), &json!(["a"]), &json!(["com.almanac.annotation.x"]))
    );
}

#[tokio::test]
async fn what_the_metadata_says_is_never_dropped() {
    let person = person();
    let own = json!({"uuid": id(2), "start_date": at("10:00"), "end_date": at("10:00"), "value": 60});
    let mut other = wrapped(1, 60.0, &json!({"recorded_at": at("11:00")}));
    other["data"] = json!(own.to_string());
    let faults = person.post("/ingest/v1/record", &other).await.faults();
    assert_eq!(faults, ["body.metadata.id", "body.metadata.recorded_at"]);
    assert!(person.all_samples("HeartRate").await.is_empty());
    let mut tea = wrapped(
        3,
        0.0,
        &json!({"data_type": "MomentAnnotation", "tags": ["a"], "source": ["x"]}),
    );
    tea["data"] = json!(json!({"id": id(3), "note": "tea", "tags": ["b"], "sources": ["y"]}).to_string());
    person.post("/ingest/v1/record", &tea).await.upload();
    let row = &person.rows("event", "MomentAnnotation").await[0];
    assert_eq!(
        (&row["tags"], &row["sources"]),
        (&json!(["b", "a"]), &json!(["y", "x"]))
    );
    tea["data"] = json!("{\"note\": 5}");
    let faults = person.post("/ingest/v1/record", &tea).await.faults();
    assert_eq!(faults, ["body.data.note"]);
    tea["metadata"]["id"] = json!("zz");
    let faults = person.post("/ingest/v1/record", &tea).await.faults();
    assert_eq!(faults, ["body.metadata.id"]);
}

#[tokio::test]
async fn what_only_one_of_could_be_kept_is_422_with_its_place() {
    let person = person();
    let data = r#"{\"start_date\":\"2024-05-01T10:00:00Z\",\"value\":60}"#;
    for (body, places) in [
        (
            format!(r#"{{"data":"{data}","data":"{data}","metadata":{{"data_type":"HeartRate"}}}}"#),
            &["body.data"][..],
        ),
        (
            format!(
                r#"{{"data":"{data}","metadata":{{"data_type":"HeartRate","tags":["a"],"tags":["b"]}},
                "x":1,"x":2}}"#
            ),
            &["body.x", "body.metadata.tags"][..],
        ),
        (
            format!(r#"{{"data":"{data}","metadata":{{"data_type":"HeartRate","x":1}},"x":2}}"#),
            &["body.metadata.x"][..],
        ),
        (
            format!(r#"{{"data":"{data}","metadata":{{"data_type":"HeartRate"}},"specversion":"abc"}}"#),
            &["body.specversion"][..],
        ),
    ] {
        for (path, at) in [
            ("/ingest/v1/record", "body"),
            ("/ingest/v1/record/batch", "body.0"),
        ] {
            let call = person
                .call(reqwest::Method::POST, path)
                .header("content-type", "application/json");
            let faults = call.body(body.clone()).await.faults();
            let expected: Vec<String> = places.iter().map(|place| place.replacen("body", at, 1)).collect();
            assert_eq!(faults, expected, "{body}");
        }
    }
    assert!(person.all_samples("HeartRate").await.is_empty());
    let mut kept = wrapped(1, 60.0, &json!({"x": 1}));
    kept["x"] = json!(1);
    kept["y"] = json!({"a": 2});
    person.post("/ingest/v1/record", &kept).await.upload();
    let extras = person.all_samples("HeartRate").await[0]["extras"].clone();
    assert_eq!((&extras["x"], &extras["y"]), (&json!(1), &json!({"a": 2})));
}

#[tokio::test]
async fn what_a_wrapped_record_lacks_is_422_with_its_place() {
    let person = person();
    for (field, place) in [("data", "data"), ("metadata", "metadata")] {
        let mut record = wrapped(1, 60.0, &json!({}));
        record.as_object_mut().unwrap().remove(field);
        let faults = person.post("/ingest/v1/record", &record).await.faults();
        assert!(
            faults.iter().any(|fault| fault.contains(place)),
            "{field}: {faults:?}"
        );
    }
    let mut record = wrapped(1, 60.0, &json!({}));
    record["data"] = json!("not json");
    person.post("/ingest/v1/record", &record).await.faults();
    let mut record = wrapped(1, 60.0, &json!({}));
    record["data"] = json!(json!({"start_date": at("10:00"), "value": "fast"}).to_string());
    let faults = person.post("/ingest/v1/record", &record).await.faults();
    assert!(faults[0].ends_with("value"), "{faults:?}");
    let reply = person
        .post(
            "/ingest/v1/record",
            &wrapped(1, 60.0, &json!({"data_type": "NoSuchType"})),
        )
        .await;
    assert!(matches!(reply.status, 404 | 422), "{reply}");
    assert!(person.all_samples("HeartRate").await.is_empty());
}

#[tokio::test]
async fn a_batch_is_accepted_whole_or_not_at_all() {
    let person = person();
    let send = |records: &[Value]| {
        let call = person
            .call(reqwest::Method::POST, "/ingest/v1/record/batch")
            .header("content-type", "application/x-jsonl");
        call.body(jsonl(records))
    };
    let mut records: Vec<Value> = (0..20).map(|n| wrapped(n, f64::from(n), &json!({}))).collect();
    records.push(wrapped(50, 1.0, &json!({"data_type": "RestingHeartRate"})));
    let mut broken = records.clone();
    broken[3]["data"] = json!("{}");
    send(&broken).await.faults();
    assert!(person.all_samples("HeartRate").await.is_empty());
    send(&records).await.upload();
    assert_eq!(person.all_samples("HeartRate").await.len(), 20);
    assert_eq!(person.all_samples("RestingHeartRate").await.len(), 1);
}
