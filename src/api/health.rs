//! Health checks and metrics for operators: whether the service lives, whether it is ready, and its numbers.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::AppState;
use crate::api::extract::Checked;
use crate::api::problem::{ApiError, Problem};
use crate::api::query_params::NoParams;
use crate::api::readiness::NotReady;

/// How long to wait before asking again for a part that is not ready.
const RETRY_AFTER: Duration = Duration::from_secs(5);
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
}

const FINE: Health = Health { status: "ok" };

/// The process is alive.
#[utoipa::path(get, path = "/health/live", tag = "operation", security(()), params(Checked<NoParams>),
    responses((status = 200, body = Health), (status = 422)))]
pub async fn live(_query: Checked<NoParams>) -> Json<Health> {
    Json(FINE)
}

/// The catalogue answers and takes writes, the object store answers and holds its `store.json`, and the
/// service commits what it accepts and is not about to stop.
#[utoipa::path(get, path = "/health/ready", tag = "operation", security(()), params(Checked<NoParams>),
    responses((status = 200, body = Health), (status = 422),
        (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn ready(State(app): State<AppState>, _query: Checked<NoParams>) -> Response {
    if !app.commits.is_working() {
        let not_ready = NotReady {
            part: "the committing task",
            reason: "it ended".to_owned(),
        };
        return ApiError::unavailable(not_ready, RETRY_AFTER).into_response();
    }
    match app.readiness.check().await {
        Ok(()) => Json(FINE).into_response(),
        Err(not_ready) => ApiError::unavailable(not_ready, RETRY_AFTER).into_response(),
    }
}

/// The service's numbers, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()), params(Checked<NoParams>),
    responses((status = 200, description = "Numbers", body = String,
        content_type = "application/openmetrics-text"), (status = 422)))]
pub async fn metrics(State(app): State<AppState>, _query: Checked<NoParams>) -> Response {
    // These two are read from their queues now; everything else was counted as it happened.
    app.metrics.meters.commits.waiting.set(app.commits.depth() as i64);
    app.metrics
        .meters
        .queries
        .memory_bytes
        .set(app.engine.memory_reserved() as i64);
    match app.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => ApiError::internal(error).into_response(),
    }
}
