//! `If-Match`: a client changes a resource only if it still is what the client saw, and reads it again only
//! then.
//!
//! A resource is what a GET of its address answers, so that is asked, and its tag compared. Tags are weak
//! here, since equal ones do not promise equal bytes; for what is to be changed they say enough. Another
//! change may still come between the look and the change; what is then lost is a change of the same moment.
//! Files compare tags of their own, in the change itself. Knows tags; knows nothing of resources.

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

/// Addresses whose handlers check the condition themselves.
const LOOKS_ITSELF: &str = "/input/v1/file";

/// The routes that read a resource before a conditional change. They are given the reader.
#[derive(Clone)]
pub struct PrecheckRoutes(Arc<LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>>);

/// A look at a resource that is to be changed only if it still is what the caller has seen.
pub(super) struct Precheck {
    request: Request,
    reader: Reader,
    seen: Vec<HeaderValue>,
}

/// The tags that the caller of a read has seen, if the answer depends on them.
pub(super) fn seen(request: &Request) -> Option<Vec<HeaderValue>> {
    let is_asked = request.method().is_safe() && request.headers().contains_key(IF_MATCH);
    is_asked.then(|| conditions(request))
}

/// The answer to a read, if its tag is among those `seen`.
pub(super) fn still(seen: &[HeaderValue], response: Response) -> Response {
    if !response.status().is_success() || has_one(seen, response.headers()) {
        return response;
    }
    changed().into_response()
}

/// Refuses a read of something with `tag` if the caller has seen others only: for routes outside of this
/// layer, and before anything is read.
pub fn must_be_seen(headers: &HeaderMap, tag: &str) -> Result<(), ApiError> {
    if !headers.contains_key(IF_MATCH) || is_among(headers.get_all(IF_MATCH), Some(tag)) {
        return Ok(());
    }
    Err(changed())
}

fn changed() -> ApiError {
    ApiError::precondition_failed("it has changed; read it again without the header `if-match`")
}

fn conditions(request: &Request) -> Vec<HeaderValue> {
    request.headers().get_all(IF_MATCH).iter().cloned().collect()
}

/// Whether these headers have a tag among those seen.
fn has_one(seen: &[HeaderValue], headers: &HeaderMap) -> bool {
    is_among(seen, headers.get(ETAG).and_then(|tag| tag.to_str().ok()))
}

fn is_among<'a>(seen: impl IntoIterator<Item = &'a HeaderValue>, tag: Option<&str>) -> bool {
    let texts = seen.into_iter().filter_map(|value| value.to_str().ok());
    let mut seen = texts.flat_map(|value| value.split(',')).map(str::trim);
    seen.any(|seen| seen == "*" || tag.is_some_and(|tag| bare(tag) == bare(seen)))
}

/// The look that precedes a change, if the request has such a condition.
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
    // Notes made during the look do not belong on the answer.
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
    /// `routes`: made when they are first needed.
    #[must_use]
    pub fn new(routes: impl FnOnce() -> Router + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(routes))))
    }

    /// Whether the resource is what was seen. If it cannot be read, does not exist, or belongs to somebody
    /// else, the change itself decides.
    pub(super) async fn hold(&self, look: Precheck) -> Result<(), ApiError> {
        let routes = Router::clone(LazyLock::force(&self.0));
        let found = routes.oneshot(look.request).await;
        let found = found.unwrap_or_else(|never| match never {});
        let is_others = !look.reader.disclosures().given().is_empty();
        if is_others || !found.status().is_success() || has_one(&look.seen, found.headers()) {
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
