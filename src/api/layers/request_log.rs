//! The outermost layer: gives a request its id, counts and logs it, catches panics, and adds the headers that
//! every answer carries.
//!
//! The log names the declared route, the id, and who asked with which token, so that access can be
//! reconstructed; never a query or a header of the request. An operator can leave people out of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tracing::{Instrument, Span};

use crate::api::app::{App, AppState};
use crate::api::extract::{Notes, RequestId};
use crate::api::header_names::{X_IGNORED_PARAMETERS, X_REQUEST_ID, X_SVC_RANGE};
use crate::api::layers::arrival::awaited;
use crate::api::layers::compression::overlook_refusals;
use crate::api::problem::{ApiError, Failure, FailureCause};
use crate::api::serve::Peer;
use crate::api::traces::{Context, Head};
use crate::model::time::{Instant, TimeRange};

/// Longer ids are replaced: they are attempts at something else.
const LONGEST_REQUEST_ID: usize = 128;

const NO_ROUTE: &str = "none";

/// The layer's function.
pub async fn log_request(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let stopwatch = Stopwatch::now();
    let _in_flight = app.metrics.request_begins();
    let id = RequestId(given_id(request.headers()).unwrap_or_else(|| app.ids.next().to_string().into()));
    let notes = Notes::default();
    let traces = app.traces.as_ref();
    let followed = traces.and_then(|traces| traces.follow(Context::of(request.headers()), stopwatch));
    overlook_refusals(request.headers_mut());
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(notes.clone());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    // Filters leave out spans by their level too, and the line of a failure must have the id.
    let span = tracing::error_span!("request", id = %id.0);

    let request = awaited(request, app.settings.slow_client_limit);
    let answered = async {
        match one_host(&request) {
            Ok(()) => next.run(request).await,
            Err(error) => error.into_response(),
        }
    };
    let answered = AssertUnwindSafe(answered.instrument(span.clone()))
        .catch_unwind()
        .await;
    let mut response = answered.unwrap_or_else(|_cause| {
        app.metrics.panicked();
        // The message of a panic may quote what somebody sent or stored. Its location was logged when it
        // happened.
        ApiError::internal("a panic").into_response()
    });
    if let Some(failure) = response.extensions_mut().remove::<Failure>() {
        note_failure(&app, route, &failure, &span);
        response = told(&failure, &id, response);
    }
    dress(response.headers_mut(), &id, &notes);
    let (status, took) = (response.status(), stopwatch.elapsed());
    app.metrics.request_ended(route, &method, status, took);
    let asked_by = notes.asked_by().filter(|_| app.settings.log_people);
    span.in_scope(|| {
        let person = asked_by.map(|(person, _)| tracing::field::display(person));
        let token = asked_by.and_then(|(_, token)| token.as_deref());
        let microseconds = took.as_micros() as u64;
        tracing::info!(route, %method, status = status.as_u16(), microseconds, person, token, "answered");
    });
    match followed {
        None => response,
        Some(followed) => followed.until_the_end(
            Head {
                method,
                route,
                request: id.0,
            },
            response,
        ),
    }
}

/// The answer to a failed request, which names it. The layers within this one have dressed the answer that it
/// replaces: without their headers a page of another origin could read neither the status nor the reason.
fn told(failure: &Failure, id: &RequestId, mut replaced: Response) -> Response {
    let mut response = failure.response(Some(&id.0));
    let mut kept = std::mem::take(replaced.headers_mut());
    for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
        kept.remove(name);
    }
    for name in response.headers().keys() {
        kept.remove(name);
    }
    response.headers_mut().extend(kept);
    response
}

/// Logs and counts why a request failed.
fn note_failure(app: &App, route: &str, failure: &Failure, span: &Span) {
    if failure.cause == FailureCause::Overload {
        app.metrics.overload.note(&failure.reason);
    } else {
        span.in_scope(|| tracing::error!(route, reason = %failure.reason, "the request failed"));
    }
    let meters = &app.metrics.meters;
    match failure.cause {
        FailureCause::Damage => {
            meters.store.corrupt.inc();
        }
        FailureCause::Late => {
            meters.queries.deadlines_passed.inc();
        }
        FailureCause::Fault | FailureCause::Overload | FailureCause::OutcomeUnknown => {}
    }
}

/// Refuses a request that came over a connection and names no host, or two: two servers on its way could each
/// read another name.
fn one_host(request: &Request) -> Result<(), ApiError> {
    let came_over_a_connection = request.extensions().get::<Peer>().is_some();
    let hosts = request.headers().get_all(HOST).iter().count();
    let is_sound = match request.version() {
        Version::HTTP_11 => hosts == 1,
        _ => hosts <= 1,
    };
    if is_sound || !came_over_a_connection {
        return Ok(());
    }
    Err(ApiError::bad_request("expected the header `host`, once"))
}

/// The client's own id, if it is safe to repeat.
fn given_id(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    let harmless = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'=')
    };
    ((1..=LONGEST_REQUEST_ID).contains(&text.len()) && text.bytes().all(harmless)).then(|| text.into())
}

fn dress(headers: &mut HeaderMap, id: &RequestId, notes: &Notes) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(X_REQUEST_ID, id);
    }
    if let Some(Ok(range)) = notes.range().map(|range| HeaderValue::from_str(&written(range))) {
        headers.insert(X_SVC_RANGE, range);
    }
    if let Some(Ok(ignored)) = notes.ignored().map(HeaderValue::from_str) {
        headers.insert(X_IGNORED_PARAMETERS, ignored);
    }
}

fn written(range: TimeRange) -> String {
    let end = |moment: Instant, open: Instant| {
        if moment == open {
            "..".to_owned()
        } else {
            moment.to_rfc3339()
        }
    };
    format!(
        "{}/{}",
        end(range.start(), TimeRange::ALWAYS.start()),
        end(range.end(), TimeRange::ALWAYS.end())
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::StatusCode;
    use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, RETRY_AFTER, VARY};

    use super::*;

    #[test]
    fn a_failure_keeps_what_other_layers_say_to_the_client() {
        let mut replaced = ApiError::unavailable("full", Duration::from_secs(7)).into_response();
        let failure = replaced.extensions_mut().remove::<Failure>().unwrap();
        let head = replaced.headers_mut();
        head.insert(
            ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("https://app.example"),
        );
        head.append(VARY, HeaderValue::from_static("origin"));
        head.append(VARY, HeaderValue::from_static("accept-encoding"));
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        head.insert(CONTENT_LENGTH, HeaderValue::from_static("1"));

        let told = told(&failure, &RequestId("one".into()), replaced);
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        let headers = told.headers();
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
        assert_eq!(headers.get_all(VARY).iter().count(), 2);
        assert_eq!(headers.get_all(RETRY_AFTER).iter().collect::<Vec<_>>(), ["7"]);
        assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
        assert!(!headers.contains_key(CONTENT_ENCODING));
        assert_ne!(headers.get(CONTENT_LENGTH), Some(&HeaderValue::from_static("1")));
    }
}
