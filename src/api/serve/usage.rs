//! The use of a connection: requests that are being answered, and answers that their client does not take.
//!
//! An HTTP/2 client can ask for an answer, leave no room for it, and go on answering pings: TCP cannot tell
//! that from patience. So every body reports here when a part of it was handed over and the next was not
//! requested, and the task that drives the connection checks now and then. Lives as long as its connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ahash::{HashMap, HashMapExt};
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// Whether a connection is in use or should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InUse,
    /// No request arrived for too long.
    Idle,
    /// An answer, or a part of it, was not taken for too long.
    Stalled,
}

/// What the end of a connection says of an answer whose end nothing else marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// There is no such answer, or all of it was sent.
    Proven,
    /// Such an answer has begun. Its client would take any end in good order for the end of the answer.
    Unproven,
    /// Such an answer broke off.
    Broken,
}

/// The use of one connection.
#[derive(Debug)]
pub(super) struct Usage(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// Requests whose answers are not complete.
    open: usize,
    /// Whether something waits to be written: the end of an answer may be among it.
    is_blocked: bool,
    ending: Ending,
    /// When the last request ended, or when the connection began.
    quiet_since: Instant,
    /// The bodies that wait for their client, each since when.
    waiting: HashMap<u64, Instant>,
    next: u64,
}

impl Usage {
    #[must_use]
    pub(super) fn begin() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            open: 0,
            is_blocked: false,
            ending: Ending::Proven,
            quiet_since: Instant::now(),
            waiting: HashMap::new(),
            next: 0,
        })))
    }

    /// Counts an arriving request. It ends when the result, or the answer that takes it, is dropped.
    #[must_use]
    pub(super) fn request(self: &Arc<Self>) -> OpenRequest {
        let mut inner = self.lock();
        inner.open += 1;
        inner.next += 1;
        OpenRequest {
            usage: Arc::clone(self),
            id: inner.next,
        }
    }

    /// The state at `now`, if a client may keep us waiting for `limit`.
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

    /// Whether everything is answered and written, and nothing was asked for `patience`, which counts from
    /// `since` on at the earliest.
    #[must_use]
    pub(super) fn is_quiet(&self, since: Instant, patience: Duration) -> bool {
        let inner = self.lock();
        let quiet_for = inner.quiet_since.max(since).elapsed();
        inner.open == 0 && !inner.is_blocked && quiet_for >= patience
    }

    /// Notes whether something waits to be written.
    pub(super) fn note_blocked(&self, is_blocked: bool) {
        self.lock().is_blocked = is_blocked;
    }

    /// Whether an answer broke off whose end only the end of the connection marks, so the client cannot know.
    #[must_use]
    pub(super) fn is_broken(&self) -> bool {
        self.lock().ending == Ending::Broken
    }

    /// Whether the client would take the end of the connection for the end of an answer that was perhaps not
    /// sent whole.
    #[must_use]
    pub(super) fn is_unproven(&self) -> bool {
        self.lock().ending != Ending::Proven
    }

    /// Notes that everything was sent, and the end of the connection after it.
    pub(super) fn ended_in_good_order(&self) {
        let mut inner = self.lock();
        if inner.ending == Ending::Unproven {
            inner.ending = Ending::Proven;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose answer is not complete.
#[derive(Debug)]
pub(super) struct OpenRequest {
    usage: Arc<Usage>,
    id: u64,
}

impl OpenRequest {
    /// The answer, whose body reports how it is taken. `ends_connection`: only the end of the connection
    /// marks its end.
    #[must_use]
    pub(super) fn watch_response(self, response: Response, ends_connection: bool) -> Response {
        if response.body().is_end_stream() {
            return response;
        }
        if ends_connection {
            self.usage.lock().ending = Ending::Unproven;
        }
        self.waits_for_client();
        response.map(|body| {
            Body::new(TakenBody {
                body,
                request: self,
                ends_connection,
            })
        })
    }

    fn waits_for_client(&self) {
        self.usage.lock().waiting.insert(self.id, Instant::now());
    }

    fn breaks_off(&self) {
        self.waits_for_us();
        self.usage.lock().ending = Ending::Broken;
    }

    fn waits_for_us(&self) {
        self.usage.lock().waiting.remove(&self.id);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut inner = self.usage.lock();
        inner.waiting.remove(&self.id);
        inner.open = inner.open.saturating_sub(1);
        inner.quiet_since = Instant::now();
    }
}

/// A body that reports when it is polled for more.
struct TakenBody {
    body: Body,
    request: OpenRequest,
    ends_connection: bool,
}

impl HttpBody for TakenBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        match &next {
            // The next part is requested when there is room for it.
            Poll::Ready(Some(Ok(_))) => self.request.waits_for_client(),
            Poll::Ready(Some(Err(_))) if self.ends_connection => self.request.breaks_off(),
            _ => self.request.waits_for_us(),
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
        let request = usage.request();
        assert_eq!(later(&usage), State::InUse, "an answer may take its time");
        drop(request);
        assert_eq!((now(&usage), later(&usage)), (State::InUse, State::Idle));
    }

    #[tokio::test]
    async fn a_connection_is_quiet_when_nothing_is_asked_and_nothing_waits_to_be_written() {
        let usage = Usage::begin();
        let long_ago = Instant::now();
        let is_quiet = || usage.is_quiet(long_ago, Duration::ZERO);
        assert!(is_quiet());
        assert!(!usage.is_quiet(long_ago, LIMIT), "something may still come");
        let request = usage.request();
        assert!(!is_quiet());
        usage.note_blocked(true);
        drop(request);
        assert!(!is_quiet(), "the end of the answer was not sent");
        usage.note_blocked(false);
        assert!(is_quiet());
    }

    #[tokio::test]
    async fn an_answer_that_ends_its_connection_is_whole_when_that_has_ended_in_good_order() {
        let answered = |usage: &Arc<Usage>, parts: [Result<&'static str, std::io::Error>; 1], ends: bool| {
            let body = Body::from_stream(futures::stream::iter(parts));
            let response = usage.request().watch_response(Response::new(body), ends);
            response.into_body().into_data_stream()
        };
        let marked = Usage::begin();
        drop(answered(&marked, [Ok("whole")], false));
        assert!(
            !marked.is_unproven(),
            "a length or a last chunk says where it ends"
        );

        let given_up = Usage::begin();
        drop(answered(&given_up, [Ok("whole")], true));
        assert!(given_up.is_unproven() && !given_up.is_broken());

        let whole = Usage::begin();
        let mut parts = answered(&whole, [Ok("whole")], true);
        while parts.next().await.is_some() {}
        assert!(whole.is_unproven(), "what was handed over may not have been sent");
        whole.ended_in_good_order();
        assert!(!whole.is_unproven());

        let broken = Usage::begin();
        let mut parts = answered(&broken, [Err(std::io::Error::other("broken"))], true);
        assert!(parts.next().await.unwrap().is_err());
        broken.ended_in_good_order();
        assert!(broken.is_unproven() && broken.is_broken());
    }

    #[tokio::test]
    async fn a_body_that_nobody_takes_stalls_its_connection() {
        let usage = Usage::begin();
        let parts = futures::stream::iter(["one", "two"].map(Ok::<_, std::io::Error>));
        let body = Body::from_stream(parts.chain(futures::stream::pending()));
        let response = usage.request().watch_response(Response::new(body), false);
        let mut parts = response.into_body().into_data_stream();
        for _ in 0..2 {
            assert_eq!((now(&usage), later(&usage)), (State::InUse, State::Stalled));
            parts.next().await.unwrap().unwrap();
        }
        assert_eq!(later(&usage), State::Stalled);
        // Now the service is slow, not the client.
        assert!(futures::poll!(parts.next()).is_pending());
        assert_eq!(later(&usage), State::InUse);
        drop(parts);
        assert_eq!(later(&usage), State::Idle);
    }
}
