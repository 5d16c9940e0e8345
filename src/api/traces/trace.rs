//! The trace of a request, as it is collected and sent, and how many traces were.
//!
//! Plain data: knows nothing of how it comes about, nor of the form in which it is sent.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::context::Context;

/// Counters of traces.
#[derive(Clone, Debug, Default)]
pub struct TraceMeters {
    pub sent: Counter,
    pub dropped: Counter,
}

impl TraceMeters {
    pub(in crate::api) fn register(&self, registry: &mut Registry) {
        registry.register("sent", "Requests whose traces were sent", self.sent.clone());
        registry.register(
            "dropped",
            "Requests whose traces nobody took in time",
            self.dropped.clone(),
        );
    }
}

/// The trace of one request.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) context: Context,
    /// The request's own span.
    pub(super) span: u64,
    /// Microseconds since 1970.
    pub(super) began_at: i64,
    pub(super) method: Method,
    pub(super) route: String,
    pub(super) request: Arc<str>,
    pub(super) status: StatusCode,
    /// From the request's head to the last byte of its answer.
    pub(super) took: Duration,
    pub(super) bytes: u64,
    pub(super) broke_off: bool,
    pub(super) phases: Vec<Phase>,
}

/// A part of a request's time.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) span: u64,
    /// Since the request's head.
    pub(super) after: Duration,
    pub(super) took: Duration,
}
