//! `If-Match`: whoever has seen a resource changes it only if it still is what they saw, and reads it again
//! only then.
//!
//! What a resource is, is what a GET of its address answers, so that is asked, and its tag compared. Tags are
//! weak here, since equal ones do not promise equal bytes; of what is to be changed they say enough. Between
//! the look and the change somebody else may still come; what would then be lost is a change of the same
//! moment. Files compare tags of their own, in the change itself. Knows tags; knows nothing of resources.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{ACCEPT, ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;

use crate::api::extract::Notes;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;

/// Addresses whose handlers look for themselves.
const LOOKS_ITSELF: &str = "/input/v1/file";

/// The routes by which it is looked at what is there, once somebody has a condition. Who asks is known to
/// them.
#[derive(Clone)]
pub struct PrecheckRoutes(Arc<LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>>);

/// A look at what is to be changed only if it is what the caller has seen.
pub(super) struct Precheck {
    request: Request,
    reader: Reader,
    seen: Vec<HeaderValue>,
}

/// What the caller of a request that only reads has seen, if the answer depends on it.
pub(super) fn seen(request: &Request) -> Option<Vec<HeaderValue>> {
    let is_asked = request.method().is_safe() && request.headers().contains_key(IF_MATCH);
    is_asked.then(|| conditions(request))
}

/// The answer to a request that only reads, if it is about what was `seen`.
pub(super) fn still(seen: &[HeaderValue], response: Response) -> Response {
    if !response.status().is_success() || is_among(seen, response.headers()) {
        return response;
    }
    ApiError::precondition_failed("it has changed; read it again without the header `if-match`")
        .into_response()
}

fn conditions(request: &Request) -> Vec<HeaderValue> {
    request.headers().get_all(IF_MATCH).iter().cloned().collect()
}

/// Whether what has these headers is what was seen.
fn is_among(seen: &[HeaderValue], headers: &HeaderMap) -> bool {
    let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    let texts = seen.iter().filter_map(|value| value.to_str().ok());
    let mut seen = texts.flat_map(|value| value.split(',')).map(str::trim);
    seen.any(|seen| seen == "*" || tag.is_some_and(|tag| bare(tag) == bare(seen)))
}

/// The look that goes before a request, if it has such a condition.
pub(super) fn look(request: &Request) -> Option<Precheck> {
    if request.method().is_safe() || !request.headers().contains_key(IF_MATCH) {
        return None;
    }
    let route = request.extensions().get::<MatchedPath>();
    if route.is_some_and(|route| route.as_str().starts_with(LOOKS_ITSELF)) {
        return None;
    }
    let mut look = Request::new(Body::empty());
    look.uri_mut().clone_from(request.uri());
    let reader = request.extensions().get::<Reader>()?;
    look.extensions_mut().insert(reader.clone());
    // What is noted of the look is no part of the answer.
    look.extensions_mut().insert(Notes::default());
    if let Some(accepted) = request.headers().get(ACCEPT) {
        look.headers_mut().insert(ACCEPT, accepted.clone());
    }
    Some(Precheck {
        request: look,
        reader: reader.clone(),
        seen: conditions(request),
    })
}

impl PrecheckRoutes {
    /// `routes`: made when they are needed for the first time.
    #[must_use]
    pub fn new(routes: impl FnOnce() -> Router + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(routes))))
    }

    /// Whether what is there is what was seen. What cannot be looked at, is not there, or is somebody else's,
    /// is left to the change itself.
    pub(super) async fn hold(&self, look: Precheck) -> Result<(), ApiError> {
        let routes = Router::clone(LazyLock::force(&self.0));
        let found = routes.oneshot(look.request).await;
        let found = found.unwrap_or_else(|never| match never {});
        let is_others = !look.reader.disclosures().given().is_empty();
        if is_others || !found.status().is_success() || is_among(&look.seen, found.headers()) {
            return Ok(());
        }
        Err(ApiError::precondition_failed(
            "it has changed; read it again before changing it",
        ))
    }
}

fn bare(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}
