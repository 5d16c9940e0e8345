//! Refusals and failures, and the one place that turns them into answers.
//!
//! Handlers say what happened with a constructor; status, headers and body are derived from it here. What
//! fails validation is answered with 422 and the list of its faults, everything else with a problem document.
//! A failure of the service is kept apart from a refusal: its reason is logged under the request's id, and
//! the answer carries only that id.

use std::fmt::Display;
use std::time::Duration;

use axum::Json;
use axum::http::header::{CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::model::excerpt::without_middle;
use crate::model::faults::Fault;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// How long a client should wait when a room below does not answer or has no room.
pub(super) const TRY_LATER: Duration = Duration::from_secs(2);

/// Why a request fails.
#[derive(Debug)]
pub struct ApiError(Box<Inner>);

#[derive(Debug)]
enum Inner {
    Invalid(Vec<Fault>),
    Refusal(Refusal),
    Failure(Failure),
}

#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    detail: String,
    headers: HeaderMap,
}

/// A failure of the service. Travels beside the response as far as the log.
#[derive(Clone, Debug)]
pub struct Failure {
    status: StatusCode,
    /// For the log only.
    pub reason: String,
    pub cause: FailureCause,
    retry_after: Option<Duration>,
}

/// What a failure comes from, as far as it is answered or counted differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    Fault,
    /// Stored data is damaged.
    Damage,
    /// Nothing failed: there was no room.
    Overload,
    /// The deadline of a question passed.
    Late,
    /// The change may have happened all the same.
    OutcomeUnknown,
}

/// The problem document.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened in this case.
    pub detail: String,
    /// Identifies this occurrence in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// The answer to a request that fails validation, as the documentation shows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidationProblem {
    pub detail: Vec<ValidationFault>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ValidationFault {
    /// The path to the fault: `query` or `body`, then names and positions.
    pub loc: Vec<String>,
    pub msg: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// What was sent there, where showing it helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// One fault at `loc`, such as `["query", "output"]`.
pub fn invalid<const N: usize>(loc: [&str; N], message: impl Into<String>) -> ApiError {
    ApiError::invalid_all(vec![Fault::new(loc, "value_error", message)])
}

impl ApiError {
    fn refusal(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Inner::Refusal(Refusal {
            status,
            detail: without_middle(detail.into()),
            headers: HeaderMap::new(),
        })))
    }

    fn failure(status: StatusCode, reason: &dyn Display, retry_after: Option<Duration>) -> Self {
        Self(Box::new(Inner::Failure(Failure {
            status,
            reason: reason.to_string(),
            cause: FailureCause::Fault,
            retry_after,
        })))
    }

    fn with_cause(mut self, cause: FailureCause) -> Self {
        if let Inner::Failure(failure) = &mut *self.0 {
            failure.cause = cause;
        }
        self
    }

    fn with_header(mut self, name: axum::http::HeaderName, value: HeaderValue) -> Self {
        if let Inner::Refusal(refusal) = &mut *self.0 {
            refusal.headers.insert(name, value);
        }
        self
    }

    /// 422.
    #[must_use]
    pub fn invalid_all(faults: Vec<Fault>) -> Self {
        Self(Box::new(Inner::Invalid(faults)))
    }

    /// 422 for what would be one more than the limit on things of its kind.
    pub fn limit_reached(detail: impl Into<String>) -> Self {
        Fault::new(["body"], "limit_reached", detail).into()
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::BAD_REQUEST, detail)
    }

    /// 401, with the same text for every reason.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::refusal(StatusCode::UNAUTHORIZED, "a valid access token is needed")
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::FORBIDDEN, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::NOT_FOUND, detail)
    }

    /// The router adds `Allow` to answers of a route that lacks a method.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            "this method is not allowed here; see the header `allow`",
        )
    }

    /// 408.
    #[must_use]
    pub fn too_slow() -> Self {
        Self::refusal(
            StatusCode::REQUEST_TIMEOUT,
            "the body of the request stopped arriving",
        )
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::CONFLICT, detail)
    }

    #[must_use]
    pub fn length_required() -> Self {
        Self::refusal(
            StatusCode::LENGTH_REQUIRED,
            "the header `content-length` is required here",
        )
    }

    pub fn precondition_failed(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::PRECONDITION_FAILED, detail)
    }

    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let detail = format!("the body is larger than {limit} bytes, counted after decompression");
        Self::refusal(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 413 for records, of which some can come in another body.
    #[must_use]
    pub fn too_many_records(limit: usize) -> Self {
        let detail =
            format!("the body is larger than {limit} bytes, counted after decompression; send it in parts");
        Self::refusal(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 413, for reasons other than the body limit.
    pub fn content_too_large(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// 416, for something that has `length` bytes.
    #[must_use]
    pub fn out_of_range(length: u64) -> Self {
        let error = Self::refusal(
            StatusCode::RANGE_NOT_SATISFIABLE,
            format!("the file has {length} bytes, none of them in that range"),
        );
        match HeaderValue::from_str(&format!("bytes */{length}")) {
            Ok(size) => error.with_header(CONTENT_RANGE, size),
            Err(_) => error,
        }
    }

    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    /// 429: come back later.
    pub fn too_many(detail: impl Into<String>, retry_after: Duration) -> Self {
        Self::refusal(StatusCode::TOO_MANY_REQUESTS, detail).with_header(RETRY_AFTER, seconds(retry_after))
    }

    /// 503: the same request may succeed later. `reason` is for the log.
    pub fn unavailable(reason: impl Display, retry_after: Duration) -> Self {
        Self::failure(StatusCode::SERVICE_UNAVAILABLE, &reason, Some(retry_after))
    }

    /// 503 because there is no room now, although nothing is wrong. `reason` is for the log, which puts many
    /// into one line.
    pub fn overloaded(reason: impl Display, retry_after: Duration) -> Self {
        Self::unavailable(reason, retry_after).with_cause(FailureCause::Overload)
    }

    /// 503 of its own type: it is unknown whether the change happened. `reason` is for the log.
    pub fn outcome_unknown(reason: impl Display) -> Self {
        Self::unavailable(reason, TRY_LATER).with_cause(FailureCause::OutcomeUnknown)
    }

    /// 504: the deadline passed before there was an answer, which is counted. `reason` is for the log.
    pub fn deadline(reason: impl Display) -> Self {
        Self::failure(StatusCode::GATEWAY_TIMEOUT, &reason, None).with_cause(FailureCause::Late)
    }

    /// 500. `reason` is for the log.
    pub fn internal(reason: impl Display) -> Self {
        Self::failure(StatusCode::INTERNAL_SERVER_ERROR, &reason, None)
    }

    /// 500 because what is stored is damaged, which is counted. `reason` is for the log.
    pub fn damaged(reason: impl Display) -> Self {
        Self::internal(reason).with_cause(FailureCause::Damage)
    }

    /// 501, for parts of the interface that this service does not support.
    pub fn not_available(detail: impl Into<String>) -> Self {
        Self::refusal(StatusCode::NOT_IMPLEMENTED, detail)
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        match &*self.0 {
            Inner::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Inner::Refusal(refusal) => refusal.status,
            Inner::Failure(failure) => failure.status,
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Self::invalid_all(vec![fault])
    }
}

impl From<Vec<Fault>> for ApiError {
    fn from(faults: Vec<Fault>) -> Self {
        Self::invalid_all(faults)
    }
}

impl Failure {
    /// The answer to a failed request, which names the request as `incident`.
    #[must_use]
    pub fn response(&self, incident: Option<&str>) -> Response {
        let is_unknown = self.cause == FailureCause::OutcomeUnknown;
        let detail = match (self.status, incident) {
            _ if is_unknown => "the database broke off before it said whether this happened; it may have \
                                  happened, or may not: look, or send it again with the same ids or the same \
                                  Idempotency-Key"
                .to_owned(),
            (StatusCode::SERVICE_UNAVAILABLE, _) => {
                "the service cannot do this at the moment; try again later".to_owned()
            }
            (StatusCode::GATEWAY_TIMEOUT, _) => {
                "the answer took longer than is allowed here (ALMANAC_QUERY_DEADLINE); ask for less at \
                 once, or try again later"
                    .to_owned()
            }
            (_, Some(incident)) => format!("the service failed; its log has the reason under {incident}"),
            (_, None) => "the service failed; its log has the reason".to_owned(),
        };
        let instance = incident.map(|incident| format!("urn:request:{incident}"));
        let kind = is_unknown.then_some("outcome-unknown");
        let mut response = document(kind, self.status, detail, instance);
        if let Some(retry_after) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds(retry_after));
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match *self.0 {
            Inner::Invalid(faults) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Json(json!({ "detail": faults })),
            )
                .into_response(),
            Inner::Refusal(refusal) => {
                let mut response = document(None, refusal.status, refusal.detail, None);
                response.headers_mut().extend(refusal.headers);
                response
            }
            Inner::Failure(failure) => {
                let mut response = failure.response(None);
                response.extensions_mut().insert(failure);
                response
            }
        }
    }
}

/// `kind`: for cases that the status does not distinguish.
fn document(kind: Option<&str>, status: StatusCode, detail: String, instance: Option<String>) -> Response {
    let title = status.canonical_reason().unwrap_or("Problem").to_owned();
    let kind = kind.map_or_else(|| title.to_ascii_lowercase().replace(' ', "-"), ToOwned::to_owned);
    let kind = format!("urn:almanac:problem:{kind}");
    let problem = Problem {
        kind,
        title,
        status: status.as_u16(),
        detail,
        instance,
    };
    let body = serde_json::to_vec(&problem)
        .unwrap_or_else(|_| json!({ "status": status.as_u16() }).to_string().into_bytes());
    (status, [(CONTENT_TYPE, PROBLEM_JSON)], body).into_response()
}

/// Whole seconds, at least one: zero would invite a client to return at once.
fn seconds(duration: Duration) -> HeaderValue {
    HeaderValue::from(duration.as_secs().max(1))
}
