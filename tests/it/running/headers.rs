//! What every answer carries, and what the wrong requests get.

use reqwest::Method;
use serde_json::json;

use crate::harness::{ALL_TIME, Reply, Setup, at, heart_rate, id, person, shared};

async fn one_of_each() -> Vec<Reply> {
    let person = person();
    vec![
        person.get("/data/v0/metrics_catalog").await,
        person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1).await,
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("output", "arrow")
            .await,
        person
            .read("event", "MomentAnnotation")
            .with("format", "csv")
            .await,
        person
            .lines("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
            .await,
        person.record("HeartRate", &json!({})).await,
        person.get("/no/such/route").await,
        shared().nobody().get("/data/v0/metrics_catalog").await,
        shared().nobody().get("/health/live").await,
        shared().nobody().get("/metrics").await,
        shared().nobody().get("/openapi.json").await,
    ]
}

#[tokio::test]
async fn every_answer_forbids_sniffing_and_shared_caches_and_names_no_product_version() {
    for reply in one_of_each().await {
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply}");
        assert_eq!(
            reply.header("cache-control"),
            Some("private, no-cache"),
            "{reply}"
        );
        let server = reply.header("server").unwrap_or_default();
        assert!(!server.contains(char::is_numeric), "{server}");
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_echoes_the_callers() {
    let mut made = std::collections::BTreeSet::new();
    let replies = one_of_each().await;
    for reply in &replies {
        made.insert(
            reply
                .header("x-request-id")
                .unwrap_or_else(|| panic!("no request id: {reply}"))
                .to_owned(),
        );
    }
    assert_eq!(made.len(), replies.len(), "two requests have one id");
    let echoed = person()
        .get("/data/v0/metrics_catalog")
        .header("x-request-id", "mine-0001")
        .await;
    assert_eq!(echoed.header("x-request-id"), Some("mine-0001"));
    let refused = shared()
        .nobody()
        .get("/data/v0/metrics_catalog")
        .header("x-request-id", "mine-0002")
        .await;
    assert_eq!(refused.header("x-request-id"), Some("mine-0002"));
}

#[tokio::test]
async fn reads_tell_their_planning_and_execution() {
    let reply = person()
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .await
        .must_be(200);
    let timing = reply
        .header("server-timing")
        .unwrap_or_else(|| panic!("no Server-Timing: {reply}"));
    assert!(timing.contains("dur="), "{timing}");
}

#[tokio::test]
async fn parameters_that_a_route_does_not_know_are_named() {
    let person = person();
    let reply = person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .with("colour", "red")
        .with("depth", "5")
        .await
        .must_be(200);
    let ignored = reply
        .header("x-ignored-parameters")
        .unwrap_or_else(|| panic!("nothing is named: {reply}"));
    assert!(
        ignored.contains("colour") && ignored.contains("depth") && !ignored.contains("metric"),
        "{ignored}"
    );
    let reply = person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .await
        .must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), None);
    let reply = person
        .get("/data/v1/catalog")
        .with("class", "metric")
        .await
        .must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), Some("class"));
}

#[tokio::test]
async fn unknown_routes_are_404_problems() {
    let person = person();
    for path in [
        "/",
        "/nothing",
        "/data",
        "/data/v0",
        "/data/v2/catalog",
        "/data/v1/catalog/",
        "/ingest/v1/records",
    ] {
        person.get(path).await.problem(404);
    }
}

#[tokio::test]
async fn wrong_methods_are_405_and_name_the_right_ones() {
    let person = person();
    for (method, path, allowed) in [
        (Method::DELETE, "/data/v1/catalog", "GET"),
        (Method::POST, "/data/v0/metrics_catalog", "GET"),
        (Method::GET, "/ingest/v1/record/HeartRate", "POST"),
        (Method::PUT, "/health/live", "GET"),
    ] {
        let reply = person.call(method, path).await;
        assert!(
            reply
                .header("allow")
                .is_some_and(|methods| methods.contains(allowed)),
            "{reply}"
        );
        reply.problem(405);
    }
}

#[tokio::test]
async fn accept_is_never_required() {
    let person = person();
    for accept in [
        "",
        "text/html",
        "image/png",
        "application/vnd.apache.arrow.file",
        "*/*;q=0",
    ] {
        person
            .get("/data/v0/metrics_catalog")
            .header("accept", accept)
            .await
            .must_be(200);
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .header("accept", accept)
            .await
            .must_be(200);
    }
}

#[tokio::test]
async fn without_origins_there_is_no_cors() {
    let person = person();
    let reply = person
        .get("/data/v0/metrics_catalog")
        .header("origin", "https://app.example")
        .await
        .must_be(200);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn configured_origins_get_their_preflight_and_others_do_not() {
    let server = Setup::default()
        .with("ALMANAC_CORS_ORIGINS", "https://app.example")
        .start();
    let person = server.person();
    let preflight = |origin: &str| {
        let call = server
            .nobody()
            .call(Method::OPTIONS, "/ingest/v1/record/HeartRate")
            .header("origin", origin);
        call.header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type")
    };
    let reply = preflight("https://app.example").await;
    assert!(matches!(reply.status, 200 | 204), "{reply}");
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert!(
        reply
            .header("access-control-allow-headers")
            .is_some_and(|headers| headers.to_lowercase().contains("authorization") || headers == "*"),
        "{:?}",
        reply.headers
    );
    assert_eq!(
        preflight("https://evil.example")
            .await
            .header("access-control-allow-origin"),
        None
    );
    let read = person
        .get("/data/v0/metrics_catalog")
        .header("origin", "https://app.example")
        .await
        .must_be(200);
    assert_eq!(
        read.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let refused = server
        .nobody()
        .get("/data/v0/metrics_catalog")
        .header("origin", "https://app.example")
        .await
        .must_be(401);
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some("https://app.example"),
        "a script cannot see why it was refused"
    );
}

#[tokio::test]
async fn very_long_urls_and_headers_do_not_harm() {
    let person = person();
    let long = "x".repeat(200_000);
    if let Ok(reply) = person
        .get("/data/v1/catalog")
        .with("data_type", &long)
        .attempt()
        .await
    {
        assert!((400..500).contains(&reply.status), "{}", reply.status);
    }
    if let Ok(reply) = person
        .get("/data/v1/catalog")
        .header("x-request-id", &long)
        .attempt()
        .await
    {
        assert!(reply.status < 500, "{}", reply.status);
    }
    person.get("/data/v1/catalog").await.must_be(200);
}
