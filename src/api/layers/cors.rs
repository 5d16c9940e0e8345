//! Which pages of other origins may call the interface: none, unless the operator names them.

use std::time::Duration;

use axum::http::header::{
    ACCEPT, ACCEPT_RANGES, ALLOW, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, IF_RANGE, LOCATION, RANGE, RETRY_AFTER,
};
use axum::http::{HeaderValue, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::api::header_names::{
    IDEMPOTENCY_KEY, PREFER, RATE_LIMIT, RATE_LIMIT_POLICY, SERVER_TIMING, TRACEPARENT, TRACESTATE,
    X_IGNORED_PARAMETERS, X_REQUEST_ID, X_SVC_EFFECTIVE_RANGE, X_SVC_NEXT_CURSOR, X_SVC_PERIODS_LEFT_OUT,
    X_SVC_RANGE,
};

/// How long a browser may reuse a preflight answer.
const PREFLIGHT_AGE: Duration = Duration::from_hours(1);

/// The layer for these origins; `None` where none is named, so that nothing is said about origins at all.
///
/// Tokens come in a header that pages set themselves: cookies and other ambient credentials are never asked
/// for, so `*` is safe to allow.
#[must_use]
pub fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(
            origins
                .iter()
                .filter_map(|origin| HeaderValue::from_str(origin).ok()),
        )
    };
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers([
            // Browsers ask about it where a media type has parameters in quotes.
            ACCEPT,
            AUTHORIZATION,
            CONTENT_TYPE,
            CONTENT_ENCODING,
            CONTENT_RANGE,
            IF_MATCH,
            IF_NONE_MATCH,
            IF_RANGE,
            RANGE,
            IDEMPOTENCY_KEY,
            PREFER,
            TRACEPARENT,
            TRACESTATE,
            X_REQUEST_ID,
        ])
        .expose_headers([
            ACCEPT_RANGES,
            ALLOW,
            CONTENT_ENCODING,
            CONTENT_RANGE,
            RANGE,
            ETAG,
            LOCATION,
            RETRY_AFTER,
            RATE_LIMIT,
            RATE_LIMIT_POLICY,
            CONTENT_DISPOSITION,
            SERVER_TIMING,
            X_REQUEST_ID,
            X_IGNORED_PARAMETERS,
            X_SVC_RANGE,
            X_SVC_EFFECTIVE_RANGE,
            X_SVC_PERIODS_LEFT_OUT,
            X_SVC_NEXT_CURSOR,
        ])
        .max_age(PREFLIGHT_AGE);
    Some(layer)
}
