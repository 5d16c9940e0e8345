//! What is told of requests to who gathers traces.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Almanac, Setup, at, heart_rate, id};

const TRACEPARENT: &str = "traceparent";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A receiver of traces, for as long as the runtime of the test lives.
struct Receiver {
    url: String,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    /// How often a request is refused before one is taken.
    refusing: Mutex<u32>,
    spans: Mutex<Vec<Value>>,
    headers: Mutex<HeaderMap>,
}

impl Receiver {
    async fn start(refusing: u32) -> Self {
        let taken = Arc::new(Taken::default());
        *taken.refusing.lock().unwrap() = refusing;
        let routes = Router::new()
            .route("/v1/traces", post(take))
            .with_state(Arc::clone(&taken));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, taken }
    }

    fn server(&self) -> Almanac {
        Setup::default()
            .with("OTEL_EXPORTER_OTLP_ENDPOINT", &self.url)
            .with(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Basic%20abc,x-tenant=me",
            )
            .start()
    }

    fn spans(&self) -> Vec<Value> {
        self.taken.spans.lock().unwrap().clone()
    }

    /// The spans that are sent until the service, told to stop, has ended.
    fn until_the_end(&self, server: &Almanac) -> Vec<Value> {
        assert_eq!(server.stop().code(), Some(0));
        self.spans()
    }
}

async fn take(State(taken): State<Arc<Taken>>, headers: HeaderMap, Json(sent): Json<Value>) -> StatusCode {
    {
        let mut refusing = taken.refusing.lock().unwrap();
        if *refusing > 0 {
            *refusing -= 1;
            return StatusCode::SERVICE_UNAVAILABLE;
        }
    }
    let resource = &sent["resourceSpans"][0];
    assert_eq!(
        resource["resource"]["attributes"][0],
        json!({"key": "service.name", "value": {"stringValue": "almanac"}})
    );
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    taken.spans.lock().unwrap().extend(spans.iter().cloned());
    *taken.headers.lock().unwrap() = headers;
    StatusCode::OK
}

fn attribute<'a>(span: &'a Value, name: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    let value = found.unwrap_or_else(|| panic!("no {name}: {span}"))["value"]
        .as_object()
        .unwrap();
    value.values().next().unwrap()
}

fn moment(span: &Value, name: &str) -> u64 {
    span[name].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_a_trace_with_its_plan_and_its_run() {
    let receiver = Receiver::start(0).await;
    let server = receiver.server();
    let person = server.person();
    let records: Vec<_> = (0..100).map(|n| heart_rate(id(n), &at("10:00"), 60)).collect();
    person.records("HeartRate", &records).await;
    let reply = person
        .metric_samples("HeartRate", &at("09:00"), &at("11:00"))
        .with("output", "ndjson")
        .header(TRACEPARENT, &format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .header("x-request-id", "mine")
        .await
        .must_be(200);
    let spans = receiver.until_the_end(&server);
    let mut ours = spans.iter().filter(|span| span["traceId"] == TRACE);
    let request = ours.next().expect("a span of the request");
    assert_eq!(request["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(request["kind"], 2);
    let route = attribute(request, "http.route").as_str().unwrap();
    assert!(route.contains("{svc_userid}"), "{route}");
    assert_eq!(request["name"], format!("GET {route}"));
    assert_eq!(attribute(request, "http.response.status_code"), "200");
    assert_eq!(
        attribute(request, "http.response.body.size"),
        &json!(reply.body.len().to_string())
    );
    assert_eq!(attribute(request, "almanac.request_id"), "mine");
    assert_eq!(request.get("status"), None);
    let (began, ended) = (
        moment(request, "startTimeUnixNano"),
        moment(request, "endTimeUnixNano"),
    );
    let phases: Vec<&Value> = ours.collect();
    assert_eq!(
        phases.iter().map(|phase| &phase["name"]).collect::<Vec<_>>(),
        ["plan", "run"]
    );
    for phase in phases {
        assert_eq!(phase["parentSpanId"], request["spanId"]);
        let (from, until) = (
            moment(phase, "startTimeUnixNano"),
            moment(phase, "endTimeUnixNano"),
        );
        assert!(
            began <= from && from <= until && until <= ended,
            "{phase} of {request}"
        );
    }
    let headers = receiver.taken.headers.lock().unwrap().clone();
    assert_eq!(headers["authorization"], "Basic abc");
    assert_eq!(headers["x-tenant"], "me");
    let all = format!("{spans:?}");
    assert!(
        !all.contains(&person.id.to_string()),
        "a trace tells of a person: {all}"
    );
    assert!(!all.contains("ndjson"), "a trace tells of a query: {all}");
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span["spanId"].to_string()).collect();
    assert_eq!(ids.len(), spans.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_keeps_is_not_told_and_what_nobody_began_begins_here() {
    let receiver = Receiver::start(0).await;
    let server = receiver.server();
    let person = server.person();
    person
        .get("/data/v0/metrics_catalog")
        .header(TRACEPARENT, &format!("00-{TRACE}-00f067aa0ba902b7-00"))
        .await
        .must_be(200);
    person
        .get("/no/such/route")
        .header(TRACEPARENT, "nonsense")
        .await
        .problem(404);
    let spans = receiver.until_the_end(&server);
    assert!(spans.iter().all(|span| span["traceId"] != TRACE), "{spans:?}");
    let lost: Vec<&Value> = spans
        .iter()
        .filter(|span| span["attributes"].is_array() && attribute(span, "http.response.status_code") == "404")
        .collect();
    assert_eq!(lost.len(), 1, "{spans:?}");
    assert_eq!(lost[0].get("parentSpanId"), None);
    assert_eq!(lost[0]["traceId"].as_str().unwrap().len(), 32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_away_is_tried_again_and_holds_up_nobody() {
    let receiver = Receiver::start(2).await;
    let server = receiver.server();
    let person = server.person();
    let begun = Instant::now();
    person.get("/data/v0/metrics_catalog").await.must_be(200);
    assert!(begun.elapsed() < Duration::from_secs(5), "it was waited for");
    server
        .until("nothing was sent again", async || !receiver.spans().is_empty())
        .await;
    let metrics = server.metrics().await;
    assert!(metrics.sum(&["almanac_traces_sent_total"]) >= 1.0);
    assert_eq!(metrics.sum(&["almanac_traces_dropped_total"]), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_receiver_a_service_answers_and_ends_all_the_same() {
    // Nobody listens there.
    let server = Setup::default()
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .start();
    server.person().get("/data/v0/metrics_catalog").await.must_be(200);
    let begun = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
