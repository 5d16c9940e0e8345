//! `If-Match`: a client changes a resource only if it still is what the client saw, and reads it again only
//! then. `If-None-Match`: it changes one only if that is not as the header says, or not there at all.
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
use axum::http::header::{ACCEPT, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::future::{BoxFuture, FutureExt as _};
use tower::ServiceExt as _;

use crate::api::entity_tags::{Comparison, is_tag_named};
use crate::api::extract::Notes;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::people::condition::{Condition, Look, Outdated};

/// Addresses whose handlers check the condition themselves.
const LOOKS_ITSELF: &str = "/input/v1/file";
/// How the addresses end that a POST changes themselves. Elsewhere it creates something, and what is not
/// there yet has no tag.
const CHANGED_BY_POST: &str = "/preferences";

/// The routes that read a resource for a conditional change. They are given the reader.
#[derive(Clone)]
pub struct PrecheckRoutes(Arc<LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>>);

/// Looks at a resource that is to be changed only if it still is what the caller has seen.
pub(super) struct Precheck {
    routes: PrecheckRoutes,
    address: Uri,
    accepted: Option<HeaderValue>,
    reader: Reader,
    demand: Demand,
}

/// The tags of which what is to be changed must have one or none.
struct Demand {
    /// `None`: it may have any.
    seen: Option<Vec<HeaderValue>>,
    unwanted: Vec<HeaderValue>,
}

/// The tags that the caller of a read has seen, if the answer depends on them.
pub(super) fn seen(request: &Request) -> Option<Vec<HeaderValue>> {
    let is_asked = request.method().is_safe() && request.headers().contains_key(IF_MATCH);
    is_asked.then(|| values(request, &IF_MATCH))
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
    let is_seen = is_tag_named(headers.get_all(IF_MATCH), Some(tag), Comparison::Weak);
    if is_seen || !headers.contains_key(IF_MATCH) {
        return Ok(());
    }
    Err(changed())
}

/// Whether a change creates something: what is not there yet is as nobody names it in `If-None-Match`.
#[must_use]
pub fn creates(method: &Method, route: &str) -> bool {
    method == Method::POST && !route.ends_with(CHANGED_BY_POST)
}

fn changed() -> ApiError {
    ApiError::precondition_failed("it has changed; read it again without the header `if-match`")
}

fn values(request: &Request, name: &HeaderName) -> Vec<HeaderValue> {
    request.headers().get_all(name).iter().cloned().collect()
}

/// Whether these headers have a tag among those seen.
fn has_one(seen: &[HeaderValue], headers: &HeaderMap) -> bool {
    let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    is_tag_named(seen, tag, Comparison::Weak)
}

/// The condition of a change, if the request has one.
pub(super) fn condition(request: &Request, routes: &PrecheckRoutes) -> Option<Condition> {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    if request.method().is_safe() || route.starts_with(LOOKS_ITSELF) {
        return None;
    }
    let demand = Demand::of(request, route)?;
    Some(Condition::of(Arc::new(Precheck {
        routes: routes.clone(),
        address: request.uri().clone(),
        accepted: request.headers().get(ACCEPT).cloned(),
        reader: request.extensions().get::<Reader>()?.clone(),
        demand,
    })))
}

impl Demand {
    /// What a change demands, if it demands anything.
    fn of(request: &Request, route: &str) -> Option<Self> {
        let is_new = creates(request.method(), route);
        let demand = Self {
            seen: Some(values(request, &IF_MATCH)).filter(|seen| !seen.is_empty()),
            unwanted: if is_new {
                Vec::new()
            } else {
                values(request, &IF_NONE_MATCH)
            },
        };
        (demand.seen.is_some() || !demand.unwanted.is_empty()).then_some(demand)
    }

    /// What a look means for the change. Where there is nothing to be seen, the change itself decides.
    fn judge(&self, found: &Response) -> Result<(), Outdated> {
        match found.status() {
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(Outdated::Unknown)
            }
            status => {
                let is_there = status.is_success();
                let is_one_of = |tags: &[HeaderValue]| is_there && has_one(tags, found.headers());
                if self.seen.as_deref().is_some_and(|seen| !is_one_of(seen)) {
                    Err(Outdated::Changed)
                } else if is_one_of(&self.unwanted) {
                    Err(Outdated::Unwanted)
                } else {
                    Ok(())
                }
            }
        }
    }
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
            let Ok(found) = routes.oneshot(self.request()).await;
            let is_others = !self.reader.disclosures().given().is_empty();
            if is_others {
                Ok(())
            } else {
                self.demand.judge(&found)
            }
        };
        look.boxed()
    }
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

    /// What is told of a change with this header, where a look has this status.
    fn judged(
        status: StatusCode,
        method: Method,
        name: HeaderName,
        value: &'static str,
    ) -> Result<(), Outdated> {
        let found = (status, [(ETAG, "W/\"now\"")]).into_response();
        let mut change = Request::new(Body::empty());
        *change.method_mut() = method;
        change.headers_mut().insert(name, HeaderValue::from_static(value));
        let demand = Demand::of(&change, "/user/v1alpha1/annotation");
        demand.map_or(Ok(()), |demand| demand.judge(&found))
    }

    #[test]
    fn what_is_as_if_none_match_names_is_not_changed() {
        let judge = |status, value| judged(status, Method::PUT, IF_NONE_MATCH, value);
        assert_eq!(judge(StatusCode::OK, "\"before\""), Ok(()));
        for unwanted in ["*", "W/\"now\"", "\"before\", \"now\""] {
            assert_eq!(
                judge(StatusCode::OK, unwanted),
                Err(Outdated::Unwanted),
                "{unwanted}"
            );
            assert_eq!(judge(StatusCode::NOT_FOUND, unwanted), Ok(()), "{unwanted}");
        }
        assert_eq!(
            judge(StatusCode::SERVICE_UNAVAILABLE, "*"),
            Err(Outdated::Unknown)
        );
        // What is created is not there.
        assert_eq!(judged(StatusCode::OK, Method::POST, IF_NONE_MATCH, "*"), Ok(()));
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_changed() {
        let judge = |status, seen| judged(status, Method::PUT, IF_MATCH, seen);
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
