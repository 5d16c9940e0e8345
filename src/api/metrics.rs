//! The service's metrics, for operators.
//!
//! One registry per service, made at start. Requests are counted here; the rooms below count their own
//! events. Labels hold declared routes, never the values of their parameters.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::api::layers::overload::Overload;
use crate::api::traces::TraceMeters;
use crate::model::meters::{Meters, latency_histogram};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// All metrics of the service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    panics: Counter,
    /// Requests that were refused for lack of room.
    pub overload: Overload,
    pub traces: TraceMeters,
    /// Handles for the rooms below.
    pub meters: Meters,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("almanac");
        let requests = Family::default();
        let seconds =
            Family::<RouteLabels, Histogram, fn() -> Histogram>::new_with_constructor(latency_histogram);
        let in_flight = Gauge::default();
        let panics = Counter::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register(
            "http_request_seconds",
            "Time until the head of the answer was ready",
            seconds.clone(),
        );
        registry.register("http_in_flight", "Requests being answered", in_flight.clone());
        registry.register("http_panics", "Requests that ended in a panic", panics.clone());
        let traces = TraceMeters::default();
        traces.register(registry.sub_registry_with_prefix("traces"));
        let meters = Meters::registered(&mut registry);
        Self {
            registry,
            requests,
            seconds,
            in_flight,
            panics,
            overload: Overload::default(),
            traces,
            meters,
        }
    }

    /// Counts a request as in flight for as long as the result lives.
    #[must_use]
    pub fn request_begins(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    pub fn request_ended(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let labels = RequestLabels {
            route: route.to_owned(),
            method: known_method(method),
            status: status.as_u16(),
        };
        self.requests.get_or_create(&labels).inc();
        self.seconds
            .get_or_create(&RouteLabels { route: labels.route })
            .observe(took.as_secs_f64());
    }

    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// All metrics as `OpenMetrics` text.
    pub(super) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// A request being answered.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Method names come from the client: only standard ones become labels.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
