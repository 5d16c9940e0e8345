//! Whether the process lives, and whether it can do its work now.

use std::pin::Pin;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::Shared;
use crate::api::problem::{ApiError, Problem};

/// What a part that is not ready is told to wait before the next look.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// A look at everything that requests depend on.
pub trait Readiness: Send + Sync {
    /// Says nothing when the service can do its work, and otherwise what is missing.
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>>;
}

#[derive(Debug, thiserror::Error)]
#[error("{part} is not ready: {reason}")]
pub struct NotReady {
    /// `catalogue`, `object store`.
    pub part: &'static str,
    pub reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
}

const FINE: Health = Health { status: "ok" };

/// The process answers.
#[utoipa::path(get, path = "/health/live", tag = "operation", security(()), responses((status = 200, body = Health)))]
pub async fn live() -> Json<Health> {
    Json(FINE)
}

/// The catalogue and the store answer.
#[utoipa::path(get, path = "/health/ready", tag = "operation", security(()),
    responses((status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json")))]
pub async fn ready(State(app): State<Shared>) -> Response {
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
