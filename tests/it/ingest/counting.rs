//! What an accepted body says it did: how many records it stored, replaced, left as they were and deleted.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Backends, Setup, at, heart_rate, id, instant, person};

fn samples(ids: impl Iterator<Item = u32>, value: u32) -> Vec<Value> {
    ids.map(|n| heart_rate(id(n), &instant(n), value)).collect()
}

fn tombstone(n: u32) -> Value {
    json!({"deleted_id": id(n), "deleted_type": "HeartRate"})
}

#[tokio::test]
async fn a_batch_that_overlaps_the_one_before_says_what_was_new() {
    let person = person();
    let first = samples(0..10, 60);
    assert_eq!(person.lines("HeartRate", &first).await.counts(), [10, 0, 0, 0]);
    assert_eq!(person.lines("HeartRate", &first).await.counts(), [0, 0, 10, 0]);
    let mut second = samples(5..12, 60);
    second[0] = heart_rate(id(5), &instant(5), 61);
    assert_eq!(person.lines("HeartRate", &second).await.counts(), [2, 1, 4, 0]);
    let gone = [tombstone(0), tombstone(0), tombstone(500)];
    assert_eq!(person.lines("DeletedRecord", &gone).await.counts(), [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_record_counts_once_by_what_is_different_afterwards() {
    let person = person();
    let line = |value: u32| heart_rate(id(1), &at("10:00"), value);
    let counts = |values: &[u32]| {
        let lines: Vec<Value> = values.iter().map(|value| line(*value)).collect();
        let call = person.lines("HeartRate", &lines);
        async move { call.await.counts() }
    };
    assert_eq!(counts(&[60, 61, 62]).await, [1, 0, 0, 0]);
    assert_eq!(counts(&[61, 62]).await, [0, 1, 0, 0]);
    assert_eq!(counts(&[62, 62]).await, [0, 0, 1, 0]);
    let wrapped = |data_type: &str, data: &Value| {
        json!({
            "data": data.to_string(), "metadata": {"data_type": data_type, "source": [], "tags": []},
        })
    };
    // Recorded and deleted in one body.
    let lines = [
        wrapped("HeartRate", &heart_rate(id(2), &at("11:00"), 60)),
        wrapped("DeletedRecord", &tombstone(2)),
        wrapped("HeartRate", &heart_rate(id(3), &at("11:00"), 60)),
        wrapped("DeletedRecord", &tombstone(1)),
        wrapped(
            "StepCount",
            &json!({"start_date": at("11:00"), "end_date": at("11:01"), "value": 5}),
        ),
    ];
    let reply = person
        .post("/ingest/v1/record/batch", &Value::from(lines.to_vec()))
        .await;
    assert_eq!(reply.counts(), [2, 0, 0, 1]);
}

#[tokio::test]
async fn rule_8_5_what_a_body_adds_and_deletes_again_is_among_the_updates() {
    let wrapped = |data_type: &str, data: &Value| {
        json!({
            "data": data.to_string(), "metadata": {"data_type": data_type, "source": [], "tags": []},
        })
    };
    let sample = |n: u32| wrapped("HeartRate", &heart_rate(id(n), &at("11:00"), 60));
    let gone = |n: u32| wrapped("DeletedRecord", &tombstone(n));
    let nothing = [gone(1), gone(2)];
    let (alone, with_another) = ([sample(1), gone(1)], [sample(1), gone(1), sample(2)]);
    for (lines, counts, updates) in [
        (nothing.as_slice(), [0, 0, 0, 0], 0),
        (alone.as_slice(), [0, 0, 0, 0], 2),
        (with_another.as_slice(), [1, 0, 0, 0], 3),
    ] {
        let person = person();
        let call = person.post("/ingest/v1/record/batch", &Value::from(lines.to_vec()));
        assert_eq!(call.await.counts(), counts);
        assert_eq!(person.updates("HeartRate").await, updates, "{lines:?}");
        // What comes afterwards finds the type as it should be.
        person.records("HeartRate", &samples(5..7, 60)).await;
        assert_eq!(person.updates("HeartRate").await, updates + 2, "{lines:?}");
    }
}

#[tokio::test]
async fn a_large_body_counts_as_a_small_one_does() {
    let person = person();
    let many = samples(0..9_000, 60);
    assert_eq!(person.lines("HeartRate", &many).await.counts(), [9_000, 0, 0, 0]);
    person
        .records("DeletedRecord", &[tombstone(1), tombstone(2)])
        .await;
    person.records("HeartRate", &samples(100..110, 61)).await;
    let mut again = samples(0..9_500, 60);
    again.push(again[0].clone());
    again.push(json!({"start_date": at("10:00"), "value": 60}));
    assert_eq!(
        person.lines("HeartRate", &again).await.counts(),
        [503, 10, 8_988, 0]
    );
}

#[tokio::test]
async fn rule_8_5_a_body_too_large_for_memory_counts_every_change() {
    let line = |value: u32| heart_rate(id(1), &at("10:00"), value);
    for others in [3, 9_000] {
        let person = person();
        person.records("HeartRate", &[line(5)]).await;
        let mut body = vec![line(6), line(5)];
        body.extend(samples(100..100 + others, 60));
        // A new record that is named twice.
        body.push(heart_rate(id(100), &instant(100), 61));
        let counts = person.lines("HeartRate", &body).await.counts();
        assert_eq!(counts, [u64::from(others), 1, 0, 0]);
        assert_eq!(person.updates("HeartRate").await, 1 + 2 + i64::from(others) + 1);
    }
}

#[tokio::test]
async fn rule_8_2_an_object_is_the_same_in_whatever_order_its_members_come() {
    let person = person();
    let definition = json!({
        "name": "Trip",
        "record_spec": {"schema": {"properties": {"open": {"type": "object"}, "list": {"type": "array"}}}},
    });
    let own = person.define("Event", &definition).await;
    let send = async |data_type: &str, lines: &[String]| {
        let call = person
            .ingest(data_type)
            .header("content-type", "application/x-jsonl");
        call.body(lines.join("\n")).await.counts()
    };
    for (data_type, member) in [
        ("Note", "other"),
        ("Note", "extras"),
        (own.as_str(), "open"),
        (own.as_str(), "other"),
    ] {
        let line = |n: u32, value: &str| {
            let (id, time) = (id(n), instant(n));
            format!(r#"{{"id":"{id}","start_time":"{time}","body":"x","{member}":{value}}}"#)
        };
        let (one, other) = (
            r#"{"a":1.50,"b":[{"x":1,"y":null}]}"#,
            r#"{ "b": [{"y":null,"x":1}], "\u0061": 1.50 }"#,
        );
        let n = if member == "other" { 1 } else { 2 };
        assert_eq!(send(data_type, &[line(n, one)]).await, [1, 0, 0, 0], "{member}");
        assert_eq!(send(data_type, &[line(n, other)]).await, [0, 0, 1, 0], "{member}");
        let both = [line(n, other), line(n, one), line(n, other)];
        assert_eq!(send(data_type, &both).await, [0, 0, 1, 0], "{member}");
        let changed = one.replace("1.50", "1.5");
        assert_eq!(
            send(data_type, &[line(n, &changed)]).await,
            [0, 1, 0, 0],
            "{member}"
        );
        let new = [line(n + 10, one), line(n + 10, other)];
        assert_eq!(send(data_type, &new).await, [1, 0, 0, 0], "{member}");
    }
    // A body that is too large for one transaction is compared in another way.
    let line = |n: u32, open: &str| {
        let (id, time) = (id(n), instant(n));
        format!(r#"{{"id":"{id}","start_time":"{time}","open":{open},"list":[{open}]}}"#)
    };
    let lines = |open: &str| -> Vec<String> { (100..9_100).map(|n| line(n, open)).collect() };
    let (one, other) = (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
    assert_eq!(send(&own, &lines(one)).await, [9_000, 0, 0, 0]);
    assert_eq!(send(&own, &lines(other)).await, [0, 0, 9_000, 0]);
}

#[tokio::test]
async fn a_key_that_is_sent_again_gets_the_counts_of_the_first_time() {
    let person = person();
    person.records("HeartRate", &samples(0..2, 60)).await;
    let lines = samples(1..4, 60);
    let send = || {
        person
            .lines("HeartRate", &lines)
            .header("idempotency-key", "counted")
    };
    let first = send().await;
    assert_eq!(first.counts(), [2, 0, 1, 0]);
    person.records("DeletedRecord", &[tombstone(3)]).await;
    assert_eq!(send().await.json(), first.json());
}

async fn many_writers_of_the_same_records_share_what_was_new(backends: Backends) {
    const WRITERS: u32 = 24;
    let server = Setup::default().on(backends).start();
    let person = server.person();
    let writers = (0..WRITERS).map(|writer| {
        let lines: Vec<Value> = (0..8)
            .map(|n| heart_rate(id(n), &instant(n), 60 + writer % 3))
            .collect();
        let call = person.lines("HeartRate", &lines);
        async move { call.await.counts() }
    });
    let counts = join_all(writers).await;
    let sum = |at: usize| counts.iter().map(|counts| counts[at]).sum::<u64>();
    assert_eq!(sum(0), 8, "{counts:?}");
    assert_eq!(sum(1) + sum(2), u64::from(WRITERS - 1) * 8, "{counts:?}");
    assert_eq!(
        person.updates("HeartRate").await as u64,
        sum(0) + sum(1),
        "{counts:?}"
    );
}

#[tokio::test]
async fn many_writers_share_what_was_new_on_sqlite_and_a_local_directory() {
    many_writers_of_the_same_records_share_what_was_new(Backends::embedded()).await;
}

#[tokio::test]
async fn many_writers_share_what_was_new_on_postgresql_and_s3() {
    if let Some(backends) = Backends::networked() {
        many_writers_of_the_same_records_share_what_was_new(backends).await;
    }
}
