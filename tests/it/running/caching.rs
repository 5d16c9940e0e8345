//! `ETag` from the versions of what was read, and compression of text.

use std::io::Read as _;

use reqwest::Method;

use crate::harness::{ALL_TIME, Call, Person, Reply, at, heart_rate, id, instant, person};

async fn with_samples(count: u32) -> Person {
    let person = person();
    let records: Vec<_> = (0..count).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &records).await;
    person
}

fn reads(person: &Person) -> Vec<Call> {
    vec![
        person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1),
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", "parquet"),
        person.read("metric", "HeartRate"),
        person.read("metric", "HeartRate").with("format", "csv"),
        person
            .get("/data/v1alpha1/data_available")
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1),
    ]
}

#[tokio::test]
async fn what_is_unchanged_is_304_and_what_changed_is_not() {
    let person = with_samples(3).await;
    let mut tags = Vec::new();
    for call in reads(&person) {
        let reply = call.await.must_be(200);
        tags.push(
            reply
                .header("etag")
                .unwrap_or_else(|| panic!("no ETag: {reply}"))
                .to_owned(),
        );
    }
    for (call, tag) in reads(&person).into_iter().zip(&tags) {
        let reply = call.header("if-none-match", tag).await.must_be(304);
        assert!(reply.body.is_empty());
        assert_eq!(reply.header("etag"), Some(tag.as_str()));
    }
    person
        .records("RestingHeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    for (call, tag) in reads(&person).into_iter().zip(&tags).take(4) {
        call.header("if-none-match", tag).await.must_be(304);
    }
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 99)])
        .await;
    for (call, tag) in reads(&person).into_iter().zip(&tags) {
        let reply = call.header("if-none-match", tag).await.must_be(200);
        assert_ne!(reply.header("etag"), Some(tag.as_str()));
    }
}

#[tokio::test]
async fn listings_of_every_kind_are_304_while_they_are_the_same() {
    let person = with_samples(3).await;
    person.define("Event", &serde_json::json!({"name": "Walk"})).await;
    let listings = || {
        vec![
            person.get("/data/v0/metrics_catalog"),
            person.get("/data/v1alpha1/event/HeartRate/summary"),
            person.get("/input/v1/data_type"),
        ]
    };
    let mut tags = Vec::new();
    for call in listings() {
        let reply = call.await.must_be(200);
        tags.push(
            reply
                .header("etag")
                .unwrap_or_else(|| panic!("no ETag: {reply}"))
                .to_owned(),
        );
    }
    for (call, tag) in listings().into_iter().zip(&tags) {
        assert!(
            call.header("if-none-match", tag)
                .await
                .must_be(304)
                .body
                .is_empty()
        );
    }
    person
        .records("HeartRate", &[heart_rate(id(7), &instant(7), 60)])
        .await;
    person.define("Event", &serde_json::json!({"name": "Run"})).await;
    for (call, tag) in listings().into_iter().zip(&tags).skip(1) {
        call.header("if-none-match", tag).await.must_be(200);
    }
}

#[tokio::test]
async fn different_questions_have_different_tags() {
    let person = with_samples(3).await;
    let mut tags = std::collections::BTreeSet::new();
    let questions = [
        person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1),
        person.metric_samples("HeartRate", ALL_TIME.0, &at("12:00")),
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", "csv"),
        person.metric_samples("StepCount", ALL_TIME.0, ALL_TIME.1),
        person.read("metric", "HeartRate").with("sort", "desc"),
    ];
    let count = questions.len();
    for call in questions {
        tags.insert(
            call.await
                .must_be(200)
                .header("etag")
                .expect("an ETag")
                .to_owned(),
        );
    }
    assert_eq!(tags.len(), count);
}

#[tokio::test]
async fn several_tags_and_any_tag_match() {
    let person = with_samples(1).await;
    let read = || person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1);
    let reply = read().await.must_be(200);
    let tag = reply.header("etag").unwrap();
    read()
        .header("if-none-match", &format!("\"other\", {tag}"))
        .await
        .must_be(304);
    read().header("if-none-match", "\"other\"").await.must_be(200);
}

#[tokio::test]
async fn text_is_compressed_when_asked_for() {
    let person = with_samples(2000).await;
    let read = |method: &str| {
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", method)
    };
    for method in ["ndjson", "jstable", "jscolumns", "csv", "quotecsv"] {
        let plain = read(method).await.must_be(200);
        assert_eq!(plain.header("content-encoding"), None);
        for coding in ["gzip", "zstd"] {
            let packed = read(method).header("accept-encoding", coding).await.must_be(200);
            assert_eq!(packed.header("content-encoding"), Some(coding), "{method}");
            assert!(
                packed
                    .header("vary")
                    .is_some_and(|vary| vary.to_lowercase().contains("accept-encoding")),
                "{method}"
            );
            assert!(
                packed.body.len() * 2 < plain.body.len(),
                "{method}: {} of {}",
                packed.body.len(),
                plain.body.len()
            );
            let mut unpacked = Vec::new();
            if coding == "gzip" {
                flate2::read::MultiGzDecoder::new(&packed.body[..])
                    .read_to_end(&mut unpacked)
                    .unwrap();
            } else {
                unpacked = zstd::decode_all(&packed.body[..]).unwrap();
            }
            assert!(unpacked == plain.body, "{method} as {coding} says something else");
        }
    }
}

#[tokio::test]
async fn what_may_be_compressed_says_so_however_short_it_is() {
    let person = with_samples(3).await;
    let file = crate::files::put(&person, "/", "a", b"some bytes").await;
    let file = crate::files::file_path(&file);
    let samples = format!("/data/v0/{}/metric_samples", person.id);
    let range = format!(
        "metric=HeartRate&start_time={}&end_time={}",
        ALL_TIME.0, ALL_TIME.1
    );
    for (address, is_text) in [
        (format!("{samples}?{range}&output=ndjson"), true),
        (format!("{samples}?{range}&output=csv"), true),
        (format!("{samples}?{range}&output=arrow"), false),
        ("/data/v1alpha1/event/HeartRate/latest".to_owned(), true),
        ("/data/v0/metrics_catalog".to_owned(), true),
        ("/data/v0/metrics_catalog?output=parquet".to_owned(), false),
        (format!("{file}?output=csv"), true),
        (file.clone(), true),
        (format!("{file}/download"), false),
        ("/data/v1/nowhere".to_owned(), true),
    ] {
        let says_so = |reply: &Reply| {
            let vary = reply.header("vary").unwrap_or_default();
            assert_eq!(vary.contains("accept-encoding"), is_text, "{address}: {reply}");
        };
        // The second answer is one that is kept, and so is the 304.
        let replies = [person.get(&address).await, person.get(&address).await];
        replies.iter().for_each(says_so);
        says_so(&person.call(Method::HEAD, &address).await);
        says_so(&person.get(&address).header("accept-encoding", "gzip").await);
        if let Some(tag) = replies[0].header("etag") {
            for method in [Method::GET, Method::HEAD] {
                let call = person.call(method, &address).header("if-none-match", tag);
                let unchanged = call.await.must_be(304);
                says_so(&unchanged);
                assert_eq!(unchanged.header("content-type"), None, "{unchanged}");
            }
        }
    }
}

#[tokio::test]
async fn arrow_and_parquet_compress_themselves() {
    let person = with_samples(2000).await;
    for method in ["arrow", "arrowraw", "parquet"] {
        let reply = person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", method)
            .header("accept-encoding", "gzip, zstd")
            .await;
        assert_eq!(reply.must_be(200).header("content-encoding"), None, "{method}");
    }
}
