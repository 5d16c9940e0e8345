//! What one person may have, and how much they may ask for.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::files::{announce, send, upload};
use crate::harness::{Almanac, Call, Person, Setup, heart_rate, id, instant};

#[tokio::test]
async fn own_types_and_sources_are_counted_shown_and_limited() {
    let server = Setup::default()
        .with("ALMANAC_LIMIT_DEFINITIONS", "2")
        .with("ALMANAC_LIMIT_SOURCES", "3")
        .start();
    let person = server.person();
    let definition = |name: &str| json!({"name": name, "record_spec": {}});
    for name in ["one", "two"] {
        person.define("Event", &definition(name)).await;
    }
    let refused = person
        .post("/input/v1/data_type/Metric", &definition("three"))
        .await;
    assert_eq!(refused.faults(), ["body"]);

    let from = |n: u32, source: String| {
        let mut record = heart_rate(id(n), &instant(n), 60);
        record["sources"] = json!([source]);
        record
    };
    let many: Vec<_> = (0..4).map(|n| from(n, format!("com.example.{n}"))).collect();
    assert_eq!(person.lines("HeartRate", &many).await.faults(), ["body"]);
    person.records("HeartRate", &many[..3]).await;
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(info["limits"]["definitions"], json!({"limit": 2, "used": 2}));
    assert_eq!(info["limits"]["sources"], json!({"limit": 3, "used": 3}));

    let others = server.person();
    others.define("Event", &definition("one")).await;
    others.records("HeartRate", &many[..3]).await;
}

#[tokio::test]
async fn bodies_at_the_same_time_name_no_more_sources_than_one_after_the_other() {
    let server = Setup::default().with("ALMANAC_LIMIT_SOURCES", "100").start();
    let person = server.person();
    let body = |of: u32| {
        let records = (0..60).map(|n| {
            let mut record = heart_rate(id(of * 100 + n), &instant(n), 60);
            record["sources"] = json!([format!("com.example.{of}.{n}")]);
            record
        });
        records.collect::<Vec<_>>()
    };
    let bodies: Vec<_> = (0..8).map(body).collect();
    let sent = futures::future::join_all(
        bodies
            .iter()
            .map(|body| async { person.lines("HeartRate", body).await.status }),
    );
    let sent = sent.await;
    let taken = sent.iter().filter(|status| **status == 201).count();
    assert!(
        taken <= 1 && sent.iter().all(|status| [201, 422].contains(status)),
        "{sent:?}"
    );
    // What is refused counts no more.
    let retried = person.lines("HeartRate", &bodies[0]).await.status;
    assert_eq!(retried, if taken == 0 || sent[0] == 201 { 201 } else { 422 });
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(info["limits"]["sources"], json!({"limit": 100, "used": 60}));
}

#[tokio::test]
async fn keys_are_counted_and_what_is_sent_again_takes_none() {
    let server = Setup::default().with("ALMANAC_LIMIT_KEYS", "2").start();
    let person = server.person();
    let send = |key: &'static str, value: u32| {
        person
            .record("HeartRate", &heart_rate(id(value), &instant(value), value))
            .header("idempotency-key", key)
    };
    let first = send("one", 1).await.upload();
    send("two", 2).await.upload();
    assert_eq!(send("three", 3).await.faults(), ["header.idempotency-key"]);
    assert_eq!(send("one", 1).await.upload(), first, "it has its key already");
    assert_eq!(person.all_samples("HeartRate").await.len(), 2);
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(info["limits"]["keys"], json!({"limit": 2, "used": 2}));
    person
        .record("HeartRate", &heart_rate(id(3), &instant(3), 3))
        .await
        .upload();
    let others = server.person();
    others
        .record("HeartRate", &heart_rate(id(3), &instant(3), 3))
        .header("idempotency-key", "three")
        .await
        .upload();
}

#[tokio::test]
async fn a_key_counts_once_however_often_it_is_sent() {
    let server = Setup::default().with("ALMANAC_LIMIT_KEYS", "3").start();
    let send = |person: &Person, key: &str| {
        let call = person.record("HeartRate", &heart_rate(id(1), &instant(1), 60));
        call.header("idempotency-key", key)
    };
    let person = server.person();
    // Each time the last one that there is room for is repeated too.
    for key in ["one", "one", "one", "two", "one", "two", "three", "three", "one"] {
        send(&person, key).await.upload();
    }
    assert_eq!(send(&person, "four").await.faults(), ["header.idempotency-key"]);
    send(&person, "three").await.upload();

    let person = server.person();
    let same = (0..12).map(|_| async { send(&person, "same").await.upload() });
    let uploads = futures::future::join_all(same).await;
    assert!(uploads.iter().all(|upload| *upload == uploads[0]), "{uploads:?}");
    for key in ["two", "three"] {
        send(&person, key).await.upload();
    }

    let person = server.person();
    let keys: Vec<_> = (0..12).map(|n| format!("key {n}")).collect();
    let sent = keys.iter().map(|key| async { send(&person, key).await.status });
    let sent = futures::future::join_all(sent).await;
    let taken = sent.iter().filter(|status| **status == 201).count();
    assert_eq!(taken, 3, "{sent:?}");
}

/// Sends a request, and goes away as soon as it waits to be committed.
async fn send_and_go_away(server: &Almanac, call: Call) {
    let waiting = async || server.metrics().await.sum(&["almanac_commit_queue_waiting"]);
    let before = waiting().await;
    let sent = tokio::spawn(call.attempt());
    while waiting().await <= before {
        assert!(
            !sent.is_finished(),
            "it was answered before anybody could go away"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sent.abort();
    // The request for these numbers is one of those that are being answered.
    while server.metrics().await.sum(&["almanac_http_in_flight"]) > 1.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_request_counts_until_it_is_committed_though_its_caller_has_gone() {
    let server = Setup::default()
        .with("ALMANAC_LIMIT_KEYS", "1")
        .with("ALMANAC_LIMIT_SOURCES", "1")
        // Longer than what is done meanwhile takes.
        .with("ALMANAC_COMMIT_WINDOW", "4s")
        .start();
    let (by_key, by_source) = (server.person(), server.person());
    let with_key = |key: &str| {
        let call = by_key.record("HeartRate", &heart_rate(id(1), &instant(1), 60));
        call.header("idempotency-key", key)
    };
    let from = |source: &str| {
        let mut record = heart_rate(id(1), &instant(1), 60);
        record["sources"] = json!([source]);
        by_source.record("HeartRate", &record)
    };
    send_and_go_away(&server, with_key("one")).await;
    assert_eq!(with_key("two").await.faults(), ["header.idempotency-key"]);
    send_and_go_away(&server, from("com.example.one")).await;
    assert_eq!(from("com.example.two").await.faults(), ["body"]);
    // Both are committed all the same, and may be repeated.
    with_key("one").await.upload();
    from("com.example.one").await.upload();
    for (person, limit) in [(&by_key, "keys"), (&by_source, "sources")] {
        let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
        assert_eq!(info["limits"][limit], json!({"limit": 1, "used": 1}), "{limit}");
    }
}

#[tokio::test]
async fn the_keys_that_are_shown_are_those_that_are_kept() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    for key in ["one", "two", "three"] {
        let call = person.record("HeartRate", &heart_rate(id(1), &instant(1), 60));
        call.header("idempotency-key", key).await.upload();
    }
    server.stop();
    // As if other nodes had accepted more than the limit at the same time.
    let server = Setup::default()
        .with("ALMANAC_LIMIT_KEYS", "2")
        .in_dir(server.data_dir())
        .start();
    let person = server.person_called(person.id);
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(info["limits"]["keys"], json!({"limit": 2, "used": 3}));
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_back_and_others_are_not() {
    let server = Setup::default()
        .with("ALMANAC_RATE_READS", "5")
        .with("ALMANAC_RATE_WRITES", "3")
        .start();
    let (eager, other) = (server.person(), server.person());
    for left in [4, 3, 2, 1, 0] {
        let reply = eager.get("/data/v0/metrics_catalog").await.must_be(200);
        assert_eq!(reply.header("ratelimit-policy"), Some("\"reads\";q=5;w=60"));
        let level = reply.header("ratelimit").unwrap().to_owned();
        assert!(level.starts_with(&format!("\"reads\";r={left};t=")), "{level}");
    }
    let refused = eager.get("/data/v0/metrics_catalog").await;
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=12).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"reads\";q=5;w=60"));
    assert!(
        refused
            .header("ratelimit")
            .unwrap()
            .starts_with("\"reads\";r=0;t=")
    );
    refused.problem(429);
    // Writing is counted apart, and nobody else is concerned.
    eager
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    other.get("/data/v0/metrics_catalog").await.must_be(200);
    server.nobody().get("/health/live").await.must_be(200);
}

#[tokio::test]
async fn a_question_counts_as_a_read_by_whatever_method_it_is_asked() {
    let server = Setup::default()
        .with("ALMANAC_RATE_READS", "3")
        .with("ALMANAC_RATE_WRITES", "1")
        .start();
    let person = server.person();
    let query = json!({"query": "SELECT 1 AS one"});
    for _ in 0..2 {
        person.post("/data/v1/sql", &query).await.must_be(200);
    }
    let frame = json!({"question": "/data/v1/catalog"});
    person.post("/data/v1/frames", &frame).await.must_be(201);
    person.post("/data/v1/sql", &query).await.problem(429);
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
}

#[tokio::test]
async fn bytes_count_on_both_ways() {
    let server = Setup::default().with("ALMANAC_RATE_BYTES", "20000").start();
    let person = server.person();
    let records: Vec<_> = (0..400).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &records).await;
    person.get("/data/v0/metrics_catalog").await.problem(429);
}

#[tokio::test]
async fn an_address_is_counted_whoever_asks() {
    let server = Setup::default()
        .with("ALMANAC_RATE_ADDRESS", "4")
        .with("ALMANAC_TRUSTED_PROXIES", "127.0.0.0/8")
        .start();
    let nobody = server.nobody().showing("rubbish");
    let from = |address: &str| {
        nobody
            .get("/data/v0/metrics_catalog")
            .header("x-forwarded-for", address)
    };
    for _ in 0..4 {
        from("198.51.100.7").await.must_be(401);
    }
    from("198.51.100.7").await.problem(429);
    from("203.0.113.1, 198.51.100.7").await.problem(429);
    from("198.51.100.8").await.must_be(401);
}

#[tokio::test]
async fn an_address_that_tries_tickets_is_counted() {
    let server = Setup::default()
        .with("ALMANAC_RATE_ADDRESS", "4")
        .with("ALMANAC_TRUSTED_PROXIES", "127.0.0.0/8")
        .start();
    let nobody = server.nobody();
    let from = |method: Method, path: &str, address: &str| {
        nobody.call(method, path).header("x-forwarded-for", address)
    };
    let (frame, file) = ("/data/v1/frame/guessed/answer.csv", "/input/v1/upload/guessed");
    for _ in 0..2 {
        from(Method::GET, frame, "198.51.100.7").await.must_be(403);
        from(Method::PUT, file, "198.51.100.7").await.must_be(403);
    }
    from(Method::GET, frame, "198.51.100.7").await.problem(429);
    from(Method::PUT, file, "198.51.100.7").await.problem(429);
    from(Method::GET, frame, "198.51.100.8").await.must_be(403);
    nobody.get("/health/live").await.must_be(200);
}

#[tokio::test]
async fn the_bytes_that_a_ticket_moves_are_those_of_the_person_whom_it_is_from() {
    let server = Setup::default().with("ALMANAC_RATE_BYTES", "200000").start();
    let sender = server.person();
    let (_, url) = announce(&sender, "/", "a", 300_000).await;
    upload(&url, vec![7; 300_000]).await.must_be(200);
    sender.get("/data/v0/metrics_catalog").await.problem(429);

    let reader = server.person();
    let records: Vec<_> = (0..50).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    reader.records("HeartRate", &records).await;
    let question = format!(
        "/data/v0/{}/metric_samples?metric=HeartRate&start_time=2024-05-01&end_time=2024-06-01",
        reader.id
    );
    let frame = json!({"question": question, "format": "csv"});
    let frame = reader.post("/data/v1/frames", &frame).await.must_be(201).json();
    let url = frame["url"].as_str().unwrap();
    let mut fetched = 0;
    while send(Method::GET, url).await.status == 200 {
        fetched += 1;
        assert!(fetched < 1_000, "nobody counts");
    }
    assert!(fetched > 0);
    send(Method::GET, url).await.problem(429);
    reader.get("/data/v0/metrics_catalog").await.problem(429);
}
