//! The pages that people see in a browser: the front door, and the interface to browse and try.
//!
//! Everything on them comes from the binary. Their links are relative, so that they also work behind a proxy
//! that adds a prefix to the path.

use axum::Router;
use axum::http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::api::problem::ApiError;

pub(super) const DOCUMENT_PATH: &str = "/openapi.json";
const PAGES_PATH: &str = "/docs";
const FRONT_PATH: &str = "/";
/// The script that says what the pages show and how.
const BEGIN_PATH: &str = "/docs/swagger-initializer.js";
const BEGIN: &str = include_str!("begin.js");
const FRONT: &str = include_str!("front.html");
const FRONT_AS_TEXT: &str = include_str!("front.txt");
/// The address of the pages, relative to the same address without its final slash.
const WITH_SLASH: HeaderValue = HeaderValue::from_static("docs/");

/// The pages may run what comes with them and call this service, and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The routes of the pages.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let script = || async { ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], BEGIN) };
    Router::new()
        .merge(SwaggerUi::new(PAGES_PATH).config(Config::from(DOCUMENT_PATH)))
        .route(BEGIN_PATH, get(script))
        .route(FRONT_PATH, get(front))
        .layer(map_response(guarded))
}

/// What this service is and where to go: a page for browsers, text for other clients.
async fn front(headers: HeaderMap) -> Response {
    let accepted = headers.get_all(ACCEPT).iter();
    let wants_page = accepted
        .filter_map(|types| types.to_str().ok())
        .any(|types| types.contains("text/html"));
    let (media_type, body) = if wants_page {
        ("text/html; charset=utf-8", FRONT)
    } else {
        ("text/plain; charset=utf-8", FRONT_AS_TEXT)
    };
    ([(CONTENT_TYPE, media_type), (VARY, "accept")], body).into_response()
}

async fn guarded(mut response: Response) -> Response {
    if response.status() == StatusCode::NOT_FOUND {
        // The pages' own answer is empty.
        response =
            ApiError::not_found("there is no such page; /docs/ has those that there are").into_response();
    }
    let headers = response.headers_mut();
    if headers.contains_key(LOCATION) {
        headers.insert(LOCATION, WITH_SLASH);
    }
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}
