//! The names of headers that `axum` has no names for. What those of answers say, their documentation says:
//! `EXPLAINED` in `docs::headers`.

use axum::http::HeaderName;

/// The name by which a request that is sent again is recognised.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How a client wants to be understood (RFC 7240).
pub const PREFER: HeaderName = HeaderName::from_static("prefer");
/// The trace that a request belongs to (W3C Trace Context).
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Not read here. Clients that continue a trace send it beside `traceparent`.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// For whom a proxy speaks.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
pub const X_IGNORED_PARAMETERS: HeaderName = HeaderName::from_static("x-ignored-parameters");
pub const X_SVC_RANGE: HeaderName = HeaderName::from_static("x-svc-range");
pub const X_SVC_EFFECTIVE_RANGE: HeaderName = HeaderName::from_static("x-svc-effective-range");
pub const X_SVC_PERIODS_LEFT_OUT: HeaderName = HeaderName::from_static("x-svc-periods-left-out");
pub const X_SVC_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-svc-next-cursor");
