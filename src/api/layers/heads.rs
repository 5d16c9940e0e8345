//! Heads without bodies: a HEAD request gets the head that a GET would get, and nothing is run for it.
//!
//! A handler that has decided, planned and knows its head leaves the rest undone, as a future. This layer,
//! the innermost one, runs it for a GET and drops it for a HEAD, together with the place that the question
//! had. A head names a length only if it is known.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::RANGE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use hyper::body::Frame;

use crate::api::problem::ApiError;

type Making = BoxFuture<'static, Result<Response, ApiError>>;

/// The unfinished part of an answer; travels beside its head.
#[derive(Clone)]
struct Undone(Arc<Mutex<Option<Making>>>);

impl fmt::Debug for Undone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Undone(..)")
    }
}

/// Marks an answer whose body nobody made, so that nobody knows how long it is.
#[derive(Clone, Copy, Debug)]
pub struct HeadAlone;

/// Answers with `head` now, and with the result of `making` if the body is wanted: its status and headers
/// replace those of the head.
pub fn deferred<F>(head: impl IntoResponse, making: F) -> Response
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    let (mut parts, _empty) = head.into_response().into_parts();
    let making: Making = Box::pin(making);
    parts
        .extensions
        .insert(Undone(Arc::new(Mutex::new(Some(making)))));
    Response::from_parts(parts, Body::new(Withheld))
}

/// The layer's function.
pub async fn heads(mut request: Request, next: Next) -> Response {
    let is_wanted = request.method() != Method::HEAD;
    if !is_wanted {
        // A range is a range of the body.
        request.headers_mut().remove(RANGE);
    }
    let mut head = next.run(request).await;
    let undone = head.extensions_mut().remove::<Undone>();
    if undone.is_some() && !is_wanted {
        head.extensions_mut().insert(HeadAlone);
    }
    let Some(making) = undone.filter(|_| is_wanted).and_then(|Undone(making)| {
        let mut making = making.lock().unwrap_or_else(PoisonError::into_inner);
        making.take()
    }) else {
        let is_known = !is_wanted && head.status() == StatusCode::NOT_MODIFIED;
        return if is_known { without_length(head) } else { head };
    };
    match making.await {
        Ok(made) => joined(head, made),
        Err(error) => error.into_response(),
    }
}

/// What is known already is as long as it was. Without a body, its length would be told as 0.
fn without_length(known: Response) -> Response {
    known.map(|_empty| Body::new(Withheld))
}

fn joined(head: Response, made: Response) -> Response {
    let (mut parts, _withheld) = head.into_parts();
    let (made, body) = made.into_parts();
    parts.status = made.status;
    for (name, value) in &made.headers {
        parts.headers.insert(name.clone(), value.clone());
    }
    parts.extensions.extend(made.extensions);
    Response::from_parts(parts, body)
}

/// A body that does not exist, of unknown length. Reading it fails, so that nobody mistakes the answer for an
/// empty one.
#[derive(Clone, Copy, Debug)]
struct Withheld;

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("only the head of this answer was made")]
struct NotMade;

impl HttpBody for Withheld {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Err(NotMade.into())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::HeaderValue;
    use axum::http::header::{ETAG, SERVER};
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    /// The answer of a route that leaves its body undone, and how often the body was made.
    async fn asked(method: Method, result: fn() -> Result<Response, ApiError>) -> (Response, usize) {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let route = move || async move {
            deferred([(ETAG, HeaderValue::from_static("\"1\""))], async move {
                counted.fetch_add(1, Ordering::Relaxed);
                result()
            })
        };
        let router = Router::new()
            .route("/", get(route))
            .layer(axum::middleware::from_fn(heads));
        let request = Request::builder()
            .method(method)
            .uri("/")
            .body(Body::empty())
            .unwrap();
        let response = router.oneshot(request).await.unwrap();
        (response, made.load(Ordering::Relaxed))
    }

    fn rows() -> Response {
        ([(SERVER, HeaderValue::from_static("made"))], "rows").into_response()
    }

    #[tokio::test]
    async fn a_head_is_answered_and_its_body_is_not_made() {
        let (response, made) = asked(Method::HEAD, || Ok(rows())).await;
        assert_eq!((response.status(), made), (StatusCode::OK, 0));
        assert_eq!(response.headers()[ETAG], "\"1\"");
        assert_eq!(response.headers().get("content-length"), None);
        assert!(response.extensions().get::<HeadAlone>().is_some());
    }

    #[tokio::test]
    async fn a_body_that_is_wanted_comes_with_both_heads() {
        let (response, made) = asked(Method::GET, || Ok(rows())).await;
        assert_eq!(made, 1);
        assert_eq!(response.headers()[ETAG], "\"1\"");
        assert_eq!(response.headers()[SERVER], "made");
        assert!(response.extensions().get::<HeadAlone>().is_none());
        let body = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
        assert_eq!(body, "rows");
    }

    #[tokio::test]
    async fn what_fails_while_the_body_is_made_is_the_answer() {
        let (response, _) = asked(Method::GET, || Err(ApiError::not_found("nothing"))).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers().get(ETAG), None);
    }

    #[tokio::test]
    async fn a_body_that_nobody_made_is_no_empty_answer() {
        let undone = deferred((), async { Ok(rows()) });
        assert!(axum::body::to_bytes(undone.into_body(), 100).await.is_err());
    }
}
