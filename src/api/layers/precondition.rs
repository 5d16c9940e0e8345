//! `If-Match`: a client changes a resource only if it still is what the client saw, and reads it again only
//! then.
//!
//! A resource is what a GET of its address answers, so that is asked, and its tag compared. Tags are weak
//! here, since equal ones do not promise equal bytes; for what is to be changed they say enough. A look
//! before the change refuses most that have to be, whatever is changed. Another change may come after it, so
//! the request takes the look with it as the [`Condition`] of its change. Files compare tags of their own, in
//! the change itself. Knows tags; knows nothing of resources.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{ACCEPT, ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::future::{BoxFuture, FutureExt as _};
use tower::ServiceExt as _;

use crate::api::extract::Notes;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::people::condition::{Condition, Look, Outdated};

/// Addresses whose handlers check the condition themselves.
const LOOKS_ITSELF: &str = "/input/v1/file";

/// The routes that read a resource for a conditional change. They are given the reader.
#[derive(Clone)]
pub struct PrecheckRoutes(Arc<LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>>);

/// Looks at a resource that is to be changed only if it still is what the caller has seen.
pub(super) struct Precheck {
    routes: PrecheckRoutes,
    address: Uri,
    accepted: Option<HeaderValue>,
    reader: Reader,
    seen: Vec<HeaderValue>,
}

/// The tags that the caller of a read has seen, if the answer depends on them.
pub(super) fn seen(request: &Request) -> Option<Vec<HeaderValue>> {
    let is_asked = request.method().is_safe() && request.headers().contains_key(IF_MATCH);
    is_asked.then(|| conditions(request))
}

/// The answer to a read, if its tag is among those `seen`: also that the caller has it unchanged (304).
pub(super) fn still(seen: &[HeaderValue], response: Response) -> Response {
    let is_found = response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED;
    if !is_found || has_one(seen, response.headers()) {
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

/// The condition of a change, if the request has one.
pub(super) fn condition(request: &Request, routes: &PrecheckRoutes) -> Option<Condition> {
    if request.method().is_safe() || !request.headers().contains_key(IF_MATCH) {
        return None;
    }
    let route = request.extensions().get::<MatchedPath>();
    if route.is_some_and(|route| route.as_str().starts_with(LOOKS_ITSELF)) {
        return None;
    }
    Some(Condition::of(Arc::new(Precheck {
        routes: routes.clone(),
        address: request.uri().clone(),
        accepted: request.headers().get(ACCEPT).cloned(),
        reader: request.extensions().get::<Reader>()?.clone(),
        seen: conditions(request),
    })))
}

impl PrecheckRoutes {
    /// `routes`: made when they are first needed.
    #[must_use]
    pub fn new(routes: impl FnOnce() -> Router + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(routes))))
    }
}

impl Precheck {
    fn request(&self) -> Request {
        let mut look = Request::new(Body::empty());
        look.uri_mut().clone_from(&self.address);
        look.extensions_mut().insert(self.reader.clone());
        // Notes made during the look do not belong on the answer.
        look.extensions_mut().insert(Notes::default());
        if let Some(accepted) = &self.accepted {
            look.headers_mut().insert(ACCEPT, accepted.clone());
        }
        look
    }
}

impl Look for Precheck {
    fn look(&self) -> BoxFuture<'_, Result<(), Outdated>> {
        let routes = Router::clone(LazyLock::force(&self.routes.0));
        let look = async move {
            let found = routes.oneshot(self.request()).await;
            let found = found.unwrap_or_else(|never| match never {});
            let is_others = !self.reader.disclosures().given().is_empty();
            if is_others {
                Ok(())
            } else {
                judged(&self.seen, &found)
            }
        };
        look.boxed()
    }
}

/// What a look means for a change by somebody who has `seen` these tags. Where there is nothing to be seen,
/// the change itself decides.
fn judged(seen: &[HeaderValue], found: &Response) -> Result<(), Outdated> {
    match found.status() {
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(()),
        status if status.is_success() && has_one(seen, found.headers()) => Ok(()),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(Outdated::Unknown)
        }
        _ => Err(Outdated::Changed),
    }
}

fn bare(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_what_is_not_as_seen_is_refused_also_where_the_caller_has_it() {
        let answered = |status: StatusCode, seen: &'static str| {
            let response = (status, [(ETAG, "W/\"now\"")]).into_response();
            still(&[HeaderValue::from_static(seen)], response).status()
        };
        for status in [StatusCode::OK, StatusCode::NOT_MODIFIED] {
            assert_eq!(answered(status, "\"before\", W/\"now\""), status);
            assert_eq!(answered(status, "*"), status);
            assert_eq!(answered(status, "\"before\""), StatusCode::PRECONDITION_FAILED);
        }
        assert_eq!(
            answered(StatusCode::NOT_FOUND, "\"before\""),
            StatusCode::NOT_FOUND
        );
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_changed() {
        let judge = |status: StatusCode, seen: &'static str| {
            let found = (status, [(ETAG, "W/\"now\"")]).into_response();
            judged(&[HeaderValue::from_static(seen)], &found)
        };
        assert_eq!(judge(StatusCode::OK, "\"now\""), Ok(()));
        assert_eq!(judge(StatusCode::OK, "\"before\""), Err(Outdated::Changed));
        for nothing in [
            StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND,
            StatusCode::METHOD_NOT_ALLOWED,
        ] {
            assert_eq!(judge(nothing, "\"before\""), Ok(()), "{nothing}");
        }
        for unknown in [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ] {
            assert_eq!(judge(unknown, "*"), Err(Outdated::Unknown), "{unknown}");
        }
        let refused = judge(StatusCode::UNPROCESSABLE_ENTITY, "\"now\"");
        assert_eq!(refused, Err(Outdated::Changed));
    }
}
