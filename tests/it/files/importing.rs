//! Which records were read from a file: they say so in their sources.

use reqwest::Method;
use serde_json::{Value, json};

use super::{FILES, file_path, get, put};
use crate::harness::{Backends, Person, Setup, id, person};

fn source_of(file: &Value) -> String {
    format!("com.almanac.file.{}", file["id"].as_str().unwrap())
}

fn imported(types: &[&str]) -> Value {
    types
        .iter()
        .map(|data_type| json!({"data_type": data_type, "state": "imported"}))
        .collect()
}

fn heart_rate(number: u32, sources: &[&str]) -> Value {
    json!({"id": id(number), "start_date": "2024-05-01T10:00:00Z", "value": 60, "sources": sources})
}

#[tokio::test]
async fn a_file_shows_the_types_of_the_records_that_name_it() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let file = put(&person, "/", "export.csv", b"1;2").await;
        let other = put(&person, "/", "other.csv", b"3;4").await;
        assert_eq!(file["source_data_types"], Value::Null);
        let source = source_of(&file);
        person
            .records(
                "HeartRate",
                &[
                    heart_rate(1, &["com.example.app"]),
                    heart_rate(2, &["com.example.app", &source]),
                    heart_rate(3, &[&source]),
                ],
            )
            .await;
        assert_eq!(
            get(&person, &file).await["source_data_types"],
            imported(&["HeartRate"])
        );
        let moment = json!({"recorded_at": "2024-05-01T10:00:00Z", "note": "tea", "sources": [source]});
        person.record("MomentAnnotation", &moment).await.upload();
        person.record(
            "Event",
            &json!({
                "start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:00:00Z", "sources": [source],
            }),
        ).await.upload();
        // Once is enough, however often it comes.
        person.records("HeartRate", &[heart_rate(3, &[&source])]).await;
        let all = imported(&["Event", "HeartRate", "MomentAnnotation"]);
        assert_eq!(get(&person, &file).await["source_data_types"], all);
        assert_eq!(get(&person, &other).await["source_data_types"], Value::Null);
        server.restart();
        let listed = person.get(FILES).await.must_be(200).json();
        assert_eq!(listed["files"][0]["source_data_types"], all);
        let restored = person.call(Method::POST, &format!("{}/restore", file_path(&file)));
        let restored = restored.await.must_be(200).json();
        assert_eq!(restored["source_data_types"], all, "the same bytes");
    }
}

#[tokio::test]
async fn wrapped_records_name_files_too() {
    let person = person();
    let file = put(&person, "/", "a", b"1").await;
    let wrapped = json!({"specversion": 1, "data": json!({"note": "tea"}).to_string(),
        "metadata": {"data_type": "MomentAnnotation", "source": [source_of(&file)], "tags": []}});
    let call = person.post("/ingest/v1/record", &wrapped);
    call.await.upload();
    assert_eq!(
        get(&person, &file).await["source_data_types"],
        imported(&["MomentAnnotation"])
    );
}

#[tokio::test]
async fn a_file_that_nobody_has_or_somebody_else_has_is_no_hindrance() {
    let (one, other) = (person(), person());
    let theirs = put(&other, "/", "a", b"1").await;
    let nobodys = format!("com.almanac.file.{}", uuid::Uuid::new_v4());
    for source in [
        source_of(&theirs),
        nobodys,
        "com.almanac.file.x".to_owned(),
        "com.almanac.file.".to_owned(),
    ] {
        one.records("HeartRate", &[heart_rate(1, &[&source])]).await;
    }
    assert_eq!(get(&other, &theirs).await["source_data_types"], Value::Null);
}

#[tokio::test]
async fn what_is_refused_was_read_from_nothing() {
    let person = person();
    let file = put(&person, "/", "a", b"1").await;
    let mut wrong = heart_rate(2, &[]);
    wrong["value"] = json!("fast");
    let lines = [heart_rate(1, &[&source_of(&file)]), wrong];
    person.lines("HeartRate", &lines).await.must_be(422);
    assert_eq!(get(&person, &file).await["source_data_types"], Value::Null);
}

#[tokio::test]
async fn a_body_may_name_a_thousand_files() {
    let person = person();
    let naming = |count: u128| -> Vec<Value> {
        let source = |number| format!("com.almanac.file.{}", uuid::Uuid::from_u128(number));
        (0..count)
            .map(|number| heart_rate(number as u32, &[&source(number)]))
            .collect()
    };
    person.records("HeartRate", &naming(1000)).await;
    let refused = person.lines("HeartRate", &naming(1001)).await.must_be(422);
    assert_eq!(refused.json()["detail"][0]["type"], "limit_reached");
}

#[tokio::test]
async fn those_with_whom_a_file_is_shared_are_not_told_of_types() {
    let server = Setup::default().start();
    let (owner, reader): (Person, Person) = (server.person(), server.person());
    let file = put(&owner, "/notes", "a", b"1").await;
    owner
        .records("HeartRate", &[heart_rate(1, &[&source_of(&file)])])
        .await;
    let share = json!({"datashare_name": "notes", "svc_data_types": ["file:/notes"],
        "permissions": [{"allowed_svc_userid": reader.id}]});
    owner.post("/user/v1/datashare", &share).await.must_be(201);
    let seen = reader
        .get(&file_path(&file))
        .with("svc_userid", &owner.id.to_string());
    assert_eq!(seen.await.must_be(200).json()["source_data_types"], Value::Null);
}
