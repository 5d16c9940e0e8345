//! `Idempotency-Key`: a request that is sent again has one effect.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;

use crate::harness::{Person, Reply, at, heart_rate, id, number, person};

async fn keyed(person: &Person, key: &str, value: u32) -> Reply {
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), value))
        .header("idempotency-key", key)
        .await
}

#[tokio::test]
async fn rule_8_1_the_same_key_has_one_effect_and_the_same_upload_id() {
    let person = person();
    let without_id = serde_json::json!({"start_date": at("10:00"), "value": 60});
    let send = || {
        person
            .record("HeartRate", &without_id)
            .header("idempotency-key", "once")
    };
    let first = send().await.upload();
    let second = send().await.upload();
    assert_eq!(first, second);
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
    assert_eq!(person.updates("HeartRate").await, 1);
}

fn gzip(text: &str, level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(text.as_bytes()).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

#[tokio::test]
async fn rule_8_1_a_body_that_is_compressed_again_is_the_same_body() {
    let person = person();
    let record = serde_json::json!({"start_date": at("10:00"), "value": 60}).to_string();
    let mut uploads = Vec::new();
    for level in [None, Some(Compression::none()), Some(Compression::best())] {
        let call = person
            .ingest("HeartRate")
            .header("content-type", "application/json")
            .header("idempotency-key", "compressed");
        let call = match level {
            None => call.body(record.clone()),
            Some(level) => call.header("content-encoding", "gzip").body(gzip(&record, level)),
        };
        uploads.push(call.await.upload());
    }
    assert_eq!([uploads[0]; 3], uploads[..]);
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn a_repetition_does_not_undo_what_came_between() {
    let person = person();
    let first = keyed(&person, "a", 60).await.upload();
    keyed(&person, "b", 70).await.upload();
    assert_eq!(keyed(&person, "a", 60).await.upload(), first);
    assert_eq!(number(&person.all_samples("HeartRate").await[0], "value"), 70.0);
}

#[tokio::test]
async fn keys_belong_to_people() {
    let (one, other) = (person(), person());
    let first = keyed(&one, "same", 60).await.upload();
    let second = keyed(&other, "same", 70).await.upload();
    assert_ne!(first, second);
    assert_eq!(number(&other.all_samples("HeartRate").await[0], "value"), 70.0);
}

#[tokio::test]
async fn a_key_with_another_request_is_refused_and_changes_nothing() {
    let person = person();
    keyed(&person, "mine", 60).await.upload();
    let reply = keyed(&person, "mine", 99).await;
    assert!(matches!(reply.status, 409 | 422), "{reply}");
    assert_eq!(number(&person.all_samples("HeartRate").await[0], "value"), 60.0);
}

#[tokio::test]
async fn a_key_with_other_parameters_is_refused_as_one_with_another_body_is() {
    let person = person();
    let record = serde_json::json!({"start_date": at("10:00"), "value": 60});
    let asked = [
        &[][..],
        &[("dedupe", "natural")],
        &[("coerce", "true")],
        &[("coerce", "true"), ("epoch", "seconds")],
        &[("coerce", "true"), ("epoch", "milliseconds")],
        &[("coerce", "true"), ("dedupe", "natural")],
    ];
    let send = |key: usize, parameters: &[(&str, &str)]| {
        let call = person
            .record("HeartRate", &record)
            .header("idempotency-key", &key.to_string());
        parameters
            .iter()
            .fold(call, |call, (name, value)| call.with(name, value))
    };
    for (key, mine) in asked.iter().enumerate() {
        let first = send(key, mine).await.upload();
        for others in asked {
            if others == *mine {
                assert_eq!(send(key, others).await.upload(), first);
            } else {
                let refused = send(key, others).await;
                assert_eq!(
                    refused.faults(),
                    ["header.idempotency-key"],
                    "{mine:?} {others:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_key_is_made_of_printable_characters() {
    let person = person();
    let longest = "k".repeat(255);
    for key in ["a\tb", "", &format!("{longest}k")] {
        let refused = keyed(&person, key, 60).await;
        assert_eq!(refused.faults(), ["header.idempotency-key"], "{key:?}");
    }
    for key in ["!~", "a b", &longest] {
        keyed(&person, key, 60).await.upload();
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused_before_a_wrapped_body_is_read() {
    let person = person();
    for path in ["/ingest/v1/record", "/ingest/v1/record/batch"] {
        let unreadable = person
            .call(Method::POST, path)
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body("{");
        let refused = unreadable.header("idempotency-key", "").await;
        assert_eq!(refused.faults(), ["header.idempotency-key"], "{path}");
    }
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let person = person();
    let bad = person
        .record("HeartRate", &serde_json::json!({"value": 1}))
        .header("idempotency-key", "again")
        .await;
    bad.faults();
    keyed(&person, "again", 60).await.upload();
}

#[tokio::test]
async fn what_was_recorded_is_confirmed_after_its_annotation_is_deleted() {
    let person = person();
    let tea = serde_json::json!({"annotation_type": "moment", "name": "tea", "description": "", "tags": []});
    let tea = person
        .post("/user/v1alpha1/annotation", &tea)
        .await
        .must_be(201)
        .json();
    let tea = tea["id"].as_str().unwrap();
    let wrapped = |time: &str| {
        serde_json::json!({
            "specversion": 1,
            "data": serde_json::json!({"recorded_at": time}).to_string(),
            "metadata": {"data_type": format!("MomentAnnotation/{tea}"), "recorded_at": time},
        })
    };
    let once = |time: &str| {
        person
            .record(
                &format!("MomentAnnotation/{tea}"),
                &serde_json::json!({"recorded_at": time}),
            )
            .header("idempotency-key", "once")
    };
    let older = |time: &str| {
        person
            .post("/ingest/v1/record", &wrapped(time))
            .header("idempotency-key", "older")
    };
    let (first, second) = (
        once(&at("10:00")).await.upload(),
        older(&at("11:00")).await.upload(),
    );
    person
        .call(Method::DELETE, &format!("/user/v1alpha1/annotation/{tea}"))
        .await
        .must_be(200);
    assert_eq!(once(&at("10:00")).await.upload(), first);
    assert_eq!(older(&at("11:00")).await.upload(), second);
    once(&at("12:00")).await.faults();
    older(&at("12:00"))
        .header("idempotency-key", "new")
        .await
        .problem(409);
    person
        .record(
            &format!("MomentAnnotation/{tea}"),
            &serde_json::json!({"recorded_at": at("12:00")}),
        )
        .await
        .problem(409);
}

#[tokio::test]
async fn repetitions_at_the_same_time_have_one_effect() {
    let person = person();
    let record = serde_json::json!({"start_date": at("10:00"), "value": 60});
    let calls = (0..16).map(|_| {
        let call = person
            .record("HeartRate", &record)
            .header("idempotency-key", "together");
        async move { call.await.upload() }
    });
    let uploads = futures::future::join_all(calls).await;
    assert!(uploads.iter().all(|upload| *upload == uploads[0]), "{uploads:?}");
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn a_key_survives_a_restart() {
    let server = crate::harness::Almanac::start();
    let person = server.person();
    let record = serde_json::json!({"start_date": at("10:00"), "value": 60});
    let first = person
        .record("HeartRate", &record)
        .header("idempotency-key", "kept")
        .await
        .upload();
    server.kill();
    server.launch();
    assert_eq!(
        person
            .record("HeartRate", &record)
            .header("idempotency-key", "kept")
            .await
            .upload(),
        first
    );
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}
