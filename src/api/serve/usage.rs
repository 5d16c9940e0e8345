//! What a connection is used for: requests that are being answered, and answers that their client does not
//! take.
//!
//! A client of HTTP/2 can ask for an answer and leave it no room, and go on answering pings: nothing of TCP
//! tells that from patience. So every body says here when a part of it was handed over and nobody came for
//! the next, and whoever drives the connection looks here now and then. Lives as long as its connection.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InUse,
    /// Nobody asked for anything for too long.
    Idle,
    /// An answer, or a part of it, was not taken for too long.
    Stalled,
}

/// The use of one connection.
#[derive(Debug)]
pub(super) struct Usage(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// Requests that are not answered to the end.
    open: usize,
    /// Whether an answer broke off whose end is that of the connection.
    broken: bool,
    /// When the last of them was, or when the connection began.
    quiet_since: Instant,
    /// Since when bodies wait for their client.
    waiting: HashMap<u64, Instant>,
    next: u64,
}

impl Usage {
    #[must_use]
    pub(super) fn begin() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            open: 0,
            broken: false,
            quiet_since: Instant::now(),
            waiting: HashMap::new(),
            next: 0,
        })))
    }

    /// A request arrives. It is over when the result, or the answer that it is given to, is dropped.
    #[must_use]
    pub(super) fn request(self: &Arc<Self>) -> Asked {
        let mut inner = self.lock();
        inner.open += 1;
        inner.next += 1;
        Asked {
            usage: Arc::clone(self),
            id: inner.next,
        }
    }

    /// What is to become of it `now`, where a client may keep us waiting for `limit`.
    #[must_use]
    pub(super) fn state(&self, now: Instant, limit: Duration) -> State {
        let inner = self.lock();
        let is_over = |since: Instant| now.duration_since(since) > limit;
        if inner.waiting.values().any(|since| is_over(*since)) {
            State::Stalled
        } else if inner.open == 0 && is_over(inner.quiet_since) {
            State::Idle
        } else {
            State::InUse
        }
    }

    /// Whether an answer broke off whose end is that of the connection, so that nothing else says so.
    #[must_use]
    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not answered to the end.
#[derive(Debug)]
pub(super) struct Asked {
    usage: Arc<Usage>,
    id: u64,
}

impl Asked {
    /// The answer, whose body tells how it is taken. `ends_connection`: nothing but the end of the connection
    /// tells where it ends.
    #[must_use]
    pub(super) fn answered(self, response: Response, ends_connection: bool) -> Response {
        if response.body().is_end_stream() {
            return response;
        }
        self.waits_for_client();
        response.map(|body| {
            Body::new(Taken {
                body,
                asked: self,
                ends_connection,
            })
        })
    }

    fn waits_for_client(&self) {
        self.usage.lock().waiting.insert(self.id, Instant::now());
    }

    fn breaks_off(&self) {
        self.waits_for_us();
        self.usage.lock().broken = true;
    }

    fn waits_for_us(&self) {
        self.usage.lock().waiting.remove(&self.id);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut inner = self.usage.lock();
        inner.waiting.remove(&self.id);
        inner.open = inner.open.saturating_sub(1);
        inner.quiet_since = Instant::now();
    }
}

/// A body that tells when it is asked for more.
struct Taken {
    body: Body,
    asked: Asked,
    ends_connection: bool,
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        match &next {
            // The next part is asked for when there is room for it.
            Poll::Ready(Some(Ok(_))) => self.asked.waits_for_client(),
            Poll::Ready(Some(Err(_))) if self.ends_connection => self.asked.breaks_off(),
            _ => self.asked.waits_for_us(),
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn now(usage: &Usage) -> State {
        usage.state(Instant::now(), LIMIT)
    }

    fn later(usage: &Usage) -> State {
        usage.state(Instant::now() + LIMIT * 2, LIMIT)
    }

    #[tokio::test]
    async fn a_connection_without_requests_is_idle_after_a_while() {
        let usage = Usage::begin();
        assert_eq!((now(&usage), later(&usage)), (State::InUse, State::Idle));
        let asked = usage.request();
        assert_eq!(later(&usage), State::InUse, "an answer may take its time");
        drop(asked);
        assert_eq!((now(&usage), later(&usage)), (State::InUse, State::Idle));
    }

    #[tokio::test]
    async fn a_body_that_nobody_takes_stalls_its_connection() {
        let usage = Usage::begin();
        let parts = futures::stream::iter(["one", "two"].map(Ok::<_, std::io::Error>));
        let body = Body::from_stream(parts.chain(futures::stream::pending()));
        let response = usage.request().answered(Response::new(body), false);
        let mut parts = response.into_body().into_data_stream();
        for _ in 0..2 {
            assert_eq!((now(&usage), later(&usage)), (State::InUse, State::Stalled));
            parts.next().await.unwrap().unwrap();
        }
        assert_eq!(later(&usage), State::Stalled);
        // It is us who are slow now.
        assert!(futures::poll!(parts.next()).is_pending());
        assert_eq!(later(&usage), State::InUse);
        drop(parts);
        assert_eq!(later(&usage), State::Idle);
    }
}
