//! The format in which traces are sent: OTLP, as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::trace::{Phase, Trace};

/// Kinds of spans, by their OTLP numbers.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
/// The status of a span that failed.
const FAILED: u8 = 2;

/// The body of one OTLP request.
pub(super) fn document(traces: &[Trace]) -> Value {
    let spans: Vec<Value> = traces.iter().flat_map(spans).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "almanac"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{"scope": {"name": "almanac"}, "spans": spans}],
    }]})
}

/// The span of a request, and those of its phases.
fn spans(trace: &Trace) -> impl Iterator<Item = Value> {
    let phases = trace.phases.iter().map(|phase| span_of_phase(trace, phase));
    std::iter::once(span(trace)).chain(phases)
}

fn span(trace: &Trace) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", trace.context.trace),
        "spanId": format!("{:016x}", trace.span),
        "name": format!("{} {}", trace.method, trace.route),
        "kind": SERVER,
        "startTimeUnixNano": nanoseconds(trace.began_at, Duration::ZERO),
        "endTimeUnixNano": nanoseconds(trace.began_at, trace.took),
        "attributes": [
            text("http.request.method", trace.method.as_str()),
            text("http.route", &trace.route),
            number("http.response.status_code", trace.status.as_u16().into()),
            number("http.response.body.size", trace.bytes),
            text("almanac.request_id", &trace.request),
        ],
    });
    if let Some(parent) = trace.context.parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if trace.broke_off {
        span["status"] = json!({"code": FAILED, "message": "the answer was not read to its end"});
    } else if trace.status.is_server_error() {
        span["status"] = json!({"code": FAILED});
    }
    span
}

fn span_of_phase(trace: &Trace, phase: &Phase) -> Value {
    json!({
        "traceId": format!("{:032x}", trace.context.trace),
        "spanId": format!("{:016x}", phase.span),
        "parentSpanId": format!("{:016x}", trace.span),
        "name": phase.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(trace.began_at, phase.after),
        "endTimeUnixNano": nanoseconds(trace.began_at, phase.after + phase.took),
    })
}

/// OTLP's JSON writes whole numbers as strings, so that no digit is lost.
fn nanoseconds(since: i64, later: Duration) -> String {
    (i128::from(since) * 1000 + later.as_nanos() as i128).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
