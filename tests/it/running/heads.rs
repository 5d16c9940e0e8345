//! `HEAD`: what a GET would say of itself, without the question being run.

use reqwest::Method;
use serde_json::json;

use crate::harness::{ALL_TIME, Call, Person, at, heart_rate, id, person};
use crate::sharing::{share, share_of};

async fn with_samples() -> Person {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
}

/// One read by both methods.
fn both(person: &Person, path: &str, parameters: &[(&str, &str)]) -> [Call; 2] {
    [Method::GET, Method::HEAD].map(|method| {
        let call = person.call(method, path);
        parameters
            .iter()
            .fold(call, |call, (name, value)| call.with(name, value))
    })
}

#[tokio::test]
async fn a_head_says_what_a_get_says_and_runs_nothing() {
    let person = with_samples().await;
    let range = [("start_time", ALL_TIME.0), ("end_time", ALL_TIME.1)];
    let samples = format!("/data/v0/{}/metric_samples", person.id);
    let series = format!("/data/v0/{}/metric_time_series", person.id);
    let day = [("start_time", "2024-05-01"), ("end_time", "2024-05-02")];
    let asked = [
        (
            samples.as_str(),
            [&range[..], &[("metric", "HeartRate"), ("output", "parquet")]].concat(),
        ),
        (
            samples.as_str(),
            [&range[..], &[("metric", "HeartRate"), ("output", "csv")]].concat(),
        ),
        (
            series.as_str(),
            [&day[..], &[("metric", "HeartRate"), ("output", "arrow")]].concat(),
        ),
        ("/data/v1alpha1/metric/HeartRate", range.to_vec()),
        (
            "/data/v1alpha1/metric/HeartRate/agg/day",
            [&range[..], &[("function", "max")]].concat(),
        ),
        ("/data/v1/records", vec![("q", "HeartRate[1h] @ 1714558000")]),
    ];
    for (path, parameters) in asked {
        let [get, head] = both(&person, path, &parameters);
        let (get, head) = (get.await.must_be(200), head.await.must_be(200));
        assert!(head.body.is_empty() && !get.body.is_empty(), "{get}");
        for name in ["content-type", "etag", "content-disposition"] {
            assert!(get.header(name).is_some(), "{name} of {get}");
            assert_eq!(head.header(name), get.header(name), "{name} of {head}");
        }
        assert!(get.header("server-timing").is_some(), "{get}");
        assert_eq!(head.header("server-timing"), None, "it was run: {head}");
        assert_eq!(head.header("content-length"), None, "{head}");
    }
}

#[tokio::test]
async fn what_is_only_computed_whole_is_not_computed_for_a_head() {
    let person = with_samples().await;
    let bounds = format!("/data/v0/{}/maps_location_updates/bounds", person.id);
    let fix = json!({"uuid": id(9), "timestamp": at("10:00"), "latitude_degrees": 52.5,
        "longitude_degrees": 13.4, "horizontal_accuracy_meters": 8, "source_id": "a"});
    for (path, more) in [
        (
            "/data/v1alpha1/insight",
            &[("timestamp", "2024-05-02T12:00:00Z")][..],
        ),
        ("/data/v1alpha1/event/HeartRate/summary", &[][..]),
        (bounds.as_str(), &[][..]),
        (bounds.as_str(), &[("source", "a")][..]),
    ] {
        for form in [&[][..], &[("output", "csv")], &[("output", "parquet")]] {
            let asked = [more, form].concat();
            let [get, head] = both(&person, path, &asked);
            let (get, head) = (get.await.must_be(200), head.await.must_be(200));
            assert!(get.header("etag").is_some(), "{get}");
            for name in ["content-type", "etag", "content-disposition", "vary"] {
                assert_eq!(head.header(name), get.header(name), "{name} of {head}");
            }
            assert_eq!(head.header("content-length"), None, "it was computed: {head}");
            assert_eq!(
                get.header("content-disposition").is_some(),
                !form.is_empty(),
                "{get}"
            );
            let tag = get.header("etag").unwrap();
            for call in both(&person, path, &asked) {
                let unchanged = call.header("if-none-match", tag).await.must_be(304);
                assert_eq!(unchanged.header("etag"), Some(tag));
            }
            for call in both(&person, path, &asked) {
                call.header("if-match", tag).await.must_be(200);
            }
        }
    }
    // What has changed has another tag, and only that.
    let tag = async |path: &str| {
        let [get, _] = both(&person, path, &[("timestamp", "2024-05-02T12:00:00Z")]);
        get.await.must_be(200).header("etag").unwrap().to_owned()
    };
    let summary = "/data/v1alpha1/event/HeartRate/summary";
    let insight = "/data/v1alpha1/insight";
    let before = [tag(summary).await, tag(insight).await, tag(&bounds).await];
    person.records("MapsLocationUpdate", &[fix]).await;
    let moved = [tag(summary).await, tag(insight).await, tag(&bounds).await];
    assert_eq!(moved[..2], before[..2]);
    assert_ne!(moved[2], before[2]);
    person
        .records("HeartRate", &[heart_rate(id(2), &at("11:00"), 70)])
        .await;
    let beaten = [tag(summary).await, tag(insight).await, tag(&bounds).await];
    assert_ne!(beaten[0], moved[0]);
    assert_ne!(beaten[1], moved[1]);
    assert_eq!(beaten[2], moved[2]);
    let targets = json!({"insight_targets": {"daily_steps": 9000}});
    person
        .post("/user/v1alpha1/preferences", &targets)
        .await
        .must_be(200);
    assert_ne!(tag(insight).await, beaten[1]);
}

#[tokio::test]
async fn a_column_that_there_is_not_is_refused_for_a_head_and_for_who_has_the_answer_too() {
    let person = with_samples().await;
    let bounds = format!("/data/v0/{}/maps_location_updates/bounds", person.id);
    let samples = format!("/data/v0/{}/metric_samples", person.id);
    let range = [
        ("start_time", ALL_TIME.0),
        ("end_time", ALL_TIME.1),
        ("metric", "HeartRate"),
    ];
    for (path, more) in [
        ("/data/v1alpha1/insight", &[][..]),
        ("/data/v1alpha1/event/HeartRate/summary", &[]),
        (bounds.as_str(), &[]),
        (samples.as_str(), &range),
    ] {
        let asked = [more, &[("columns", "nobody_knows_this")]].concat();
        for call in both(&person, path, &asked) {
            call.await.must_be(422);
        }
        for call in both(&person, path, &asked) {
            call.header("if-none-match", "*").await.must_be(422);
        }
    }
}

#[tokio::test]
async fn a_head_whose_length_is_not_known_does_not_say_that_it_is_compressed() {
    let person = with_samples().await;
    let calendars = format!("/data/v0/{}/calendars", person.id);
    for path in [calendars.as_str(), "/data/v1alpha1/event/HeartRate"] {
        let range = [("start_time", ALL_TIME.0), ("end_time", ALL_TIME.1)];
        let [_, head] = both(&person, path, &range);
        let head = head.header("accept-encoding", "gzip").await.must_be(200);
        assert_eq!(head.header("content-encoding"), None, "{head}");
        let vary = head.header("vary").unwrap_or_default();
        assert!(vary.contains("accept-encoding"), "{head}");
    }
}

#[tokio::test]
async fn what_is_not_as_seen_is_refused_before_it_is_found_to_be_known() {
    let person = with_samples().await;
    let range = [("start_time", ALL_TIME.0), ("end_time", ALL_TIME.1)];
    for path in ["/data/v1alpha1/event/HeartRate", "/data/v0/metrics_catalog"] {
        let [get, _] = both(&person, path, &range);
        let tag = get.await.must_be(200).header("etag").unwrap().to_owned();
        for call in both(&person, path, &range) {
            let call = call
                .header("if-match", "\"before\"")
                .header("if-none-match", &tag);
            call.await.must_be(412);
        }
    }
}

#[tokio::test]
async fn what_is_known_at_once_has_its_length_in_its_head() {
    let person = with_samples().await;
    let [get, head] = both(&person, "/data/v0/metrics_catalog", &[]);
    let (get, head) = (get.await.must_be(200), head.await.must_be(200));
    assert!(head.body.is_empty());
    assert_eq!(
        head.header("content-length"),
        Some(get.body.len().to_string().as_str())
    );
}

#[tokio::test]
async fn a_head_is_refused_as_a_get_is() {
    let (owner, reader) = (with_samples().await, person());
    let path = format!("/data/v0/{}/metric_samples", owner.id);
    let asked = [
        ("start_time", ALL_TIME.0),
        ("end_time", ALL_TIME.1),
        ("metric", "HeartRate"),
    ];
    for call in both(&reader, &path, &asked) {
        call.await.must_be(403);
    }
    for call in both(&owner, &path, &asked[1..]) {
        call.await.must_be(422);
    }
    for call in both(&owner.showing("nonsense"), &path, &asked) {
        call.await.must_be(401);
    }
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    for call in both(&reader, &path, &asked) {
        let reply = call.await.must_be(200);
        assert!(reply.header("x-svc-effective-range").is_some(), "{reply}");
    }
    let log = owner.get("/user/v1alpha1/access_log").await.must_be(200).json();
    let outcomes = format!("{log}");
    assert!(outcomes.contains("HEAD /data/v0/"), "{outcomes}");
    assert!(!outcomes.contains("broken_off"), "{outcomes}");
}

#[tokio::test]
async fn a_known_tag_is_304_for_a_head_too() {
    let person = with_samples().await;
    let [get, head] = both(
        &person,
        "/data/v1alpha1/metric/HeartRate",
        &[("start_time", ALL_TIME.0), ("end_time", ALL_TIME.1)],
    );
    let tag = get.await.must_be(200).header("etag").unwrap().to_owned();
    let unchanged = head.header("if-none-match", &tag).await.must_be(304);
    assert_eq!(unchanged.header("content-length"), None, "{unchanged}");
}

#[tokio::test]
async fn a_head_of_a_file_reads_nothing_of_it_and_knows_its_length() {
    let person = person();
    let file = crate::files::put(&person, "/", "a", b"some bytes").await;
    let path = format!("{}/download", crate::files::file_path(&file));
    let reply = person.call(Method::HEAD, &path).await.must_be(200);
    assert_eq!(reply.header("content-length"), Some("10"));
    assert_eq!(reply.header("accept-ranges"), Some("bytes"));
    let part = person
        .call(Method::HEAD, &path)
        .header("range", "bytes=2-4")
        .await
        .must_be(200);
    assert_eq!(
        part.header("content-length"),
        Some("10"),
        "a range is one of a body"
    );
}
