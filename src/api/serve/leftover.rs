//! Handles what is left of a request's body when its answer is ready, and bodies that their client gave up.
//!
//! A request may be answered before its body is read: a stranger's records are not read. The rest then stands
//! where the connection's next request would begin, and closing a connection under a client that is still
//! sending loses the answer. So the rest is read and thrown away, up to a limit of bytes and of time; if that
//! is not enough, the answer says that the connection ends with it.
//!
//! In HTTP/2 a stream ends without its neighbours, but a client that is still sending may take the end of its
//! stream for the loss of its answer; so there the rest is thrown away too.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tower::ServiceExt;

/// The most bytes of one body that are thrown away. Several times the usual body limit, so that a client that
/// exceeds it gets the refusal.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// How long an answer waits for the rest of its request. After that it is sent while the rest still arrives,
/// and the connection ends with it.
const HOLD_TIME: Duration = Duration::from_secs(1);

/// The router's answer to `request`, after which its connection can be reused or ends. Waits for no client
/// longer than `patience`.
pub(super) async fn answer(router: Router, request: Request<Incoming>, patience: Duration) -> Response {
    // In HTTP/2, ending the connection would end the other streams.
    let one_at_a_time = request.version() < Version::HTTP_2;
    if request.body().is_end_stream() {
        return run(router, request.map(Body::new)).await;
    }
    let waits_to_be_asked = expects_to_be_asked(request.headers());
    let (sender, mut left) = oneshot::channel();
    let watched = request.map(|body| {
        let mut watched = Watched::new(Body::new(body), sender);
        watched.says_its_end = !one_at_a_time;
        Body::new(watched)
    });
    let mut response = run(router, watched).await;
    let Ok(mut rest) = left.try_recv() else {
        return response;
    };
    // Reading a body that its client holds back would ask for it, and a body that stopped arriving has been
    // waited for already.
    let comes = rest.begun || !waits_to_be_asked;
    if comes && response.status() != StatusCode::REQUEST_TIMEOUT {
        let deadline = Instant::now() + patience;
        let fits = rest.body.size_hint().lower() <= MOST_BYTES;
        if fits && let Ok(true) = timeout(HOLD_TIME.min(patience), rest.discard()).await {
            return response;
        }
        // Ends with the connection, if that ends earlier.
        tokio::spawn(timeout_at(deadline, async move { rest.discard().await }));
    }
    if one_at_a_time {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn run(router: Router, request: Request<Body>) -> Response {
    let Ok(response) = router.oneshot(request).await;
    response
}

/// Whether the client waits for `100 Continue` before it sends the body.
fn expects_to_be_asked(headers: &HeaderMap) -> bool {
    headers
        .get(EXPECT)
        .is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The unread part of a body.
struct Rest {
    body: Body,
    /// Whether some of it was read.
    begun: bool,
    /// Bytes that may still be thrown away.
    spare: u64,
}

impl Rest {
    /// Reads and throws away the rest; `true` if nothing is left.
    async fn discard(&mut self) -> bool {
        loop {
            let next = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let Some(Ok(frame)) = next else { return true };
            let length = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(spare) = self.spare.checked_sub(length) else {
                return false;
            };
            self.spare = spare;
        }
    }
}

/// The client gave the request up while it sent the body.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request was given up before its body had ended")]
struct GivenUp;

/// A body that hands over its unread part when it is dropped, and fails if its client gives it up.
struct Watched {
    body: Option<Body>,
    /// Whether a body that has ended says so. In HTTP/2 a client that gives a request up without calling it
    /// an error (`NO_ERROR`) ends the body as if it were complete.
    says_its_end: bool,
    begun: bool,
    left: Option<oneshot::Sender<Rest>>,
}

impl Watched {
    const fn new(body: Body, left: oneshot::Sender<Rest>) -> Self {
        Self {
            body: Some(body),
            says_its_end: false,
            begun: false,
            left: Some(left),
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.begun = true;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let next = ready!(Pin::new(&mut *body).poll_frame(context));
        let is_given_up = next.is_none() && !body.is_end_stream() && self.says_its_end;
        if !matches!(next, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(if is_given_up {
            Some(Err(axum::Error::new(GivenUp)))
        } else {
            next
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let (begun, left) = (self.begun, self.left.take());
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Some(left)) = (unread, left) {
            let rest = Rest {
                body,
                begun,
                spare: MOST_BYTES,
            };
            // If the request was given up, nobody wants the rest.
            let _unwanted = left.send(rest);
        }
    }
}
