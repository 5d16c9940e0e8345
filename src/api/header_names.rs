//! The names of headers that `axum` has no names for, and what each header says.

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

/// The id of a request, of the client's or made here. It is on the answer, too.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How much of each rate is left.
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The rates that there are.
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// How long it took to plan and to begin an answer, and whether it was kept from a moment ago.
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// The parameters that the route does not know.
pub const X_IGNORED_PARAMETERS: HeaderName = HeaderName::from_static("x-ignored-parameters");
/// The range that was asked for, with dates and zones resolved: `start/end`, an open end as two dots.
pub const X_SVC_RANGE: HeaderName = HeaderName::from_static("x-svc-range");
/// The windows that an answer is about.
pub const X_SVC_EFFECTIVE_RANGE: HeaderName = HeaderName::from_static("x-svc-effective-range");
/// How many periods an answer over all participants of a group leaves out because too few participants have
/// records in them.
pub const X_SVC_PERIODS_LEFT_OUT: HeaderName = HeaderName::from_static("x-svc-periods-left-out");
/// The cursor of the next page. Without this header there is no next page.
pub const X_SVC_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-svc-next-cursor");
