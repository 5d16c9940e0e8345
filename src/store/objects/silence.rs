//! Bounds how long S3 may be silent, and not how long an answer takes.
//!
//! The library that speaks to S3 bounds a request only as a whole, its answer included. That is a least
//! speed: what is too large for the way to the store would fail, however often it is tried. So an answer is
//! read here for as long as more of it keeps coming. How much of a request has been sent does not show, so a
//! large one gets more time. Knows nothing of what is asked for.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, Result};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long an answer, or more of it, is waited for. What the store does before it answers, such as putting
/// an object together from its parts, takes seconds. Twice as long is well before a question must be answered
/// (`ALMANAC_QUERY_DEADLINE`), or that would hide what it waited for.
const LONGEST_SILENCE: Duration = Duration::from_secs(20);
/// For each of so many bytes of a request its answer is waited for a second longer: 84 seconds for a part of
/// 8 MiB. Four of them are sent at once, so uploads need 3 Mbit/s.
const SENT_IN_A_SECOND: usize = 128 << 10;

/// Makes clients that do not wait longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedSilence;

impl HttpConnector for BoundedSilence {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Listener {
            client: ReqwestConnector::default().connect(options)?,
            silence: LONGEST_SILENCE,
        }))
    }
}

/// A client that gives up when nothing comes.
#[derive(Debug)]
struct Listener {
    client: HttpClient,
    silence: Duration,
}

#[async_trait]
impl HttpService for Listener {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let silence = self.silence;
        let seconds = request.body().content_length() / SENT_IN_A_SECOND;
        let patience = silence + Duration::from_secs(seconds as u64);
        let answer = timeout(patience, self.client.execute(request)).await;
        let answer = answer.map_err(|_| silent(patience))??;
        Ok(answer.map(|body| {
            HttpResponseBody::new(ListenedBody {
                body,
                silence,
                is_waiting: false,
                longest: Box::pin(sleep(silence)),
            })
        }))
    }
}

/// The body of an answer; it breaks off when nothing more of it comes. The time in which nobody asks for more
/// does not count.
struct ListenedBody {
    body: HttpResponseBody,
    silence: Duration,
    is_waiting: bool,
    /// Ends with the longest silence, while something is waited for. It is made once, because whoever reads
    /// the body may do so on a thread that has no timer.
    longest: Pin<Box<Sleep>>,
}

impl Body for ListenedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        if next.is_ready() {
            self.is_waiting = false;
            return next;
        }
        let silence = self.silence;
        if !self.is_waiting {
            self.is_waiting = true;
            self.longest.as_mut().reset(Instant::now() + silence);
        }
        let longest = self.longest.as_mut().poll(context);
        longest.map(|()| Some(Err(silent(silence))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("nothing came for {0:?}")]
struct Silent(Duration);

/// The error after so long a silence. Whoever gets it may ask again.
fn silent(silence: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Silent(silence))
}

#[cfg(test)]
mod tests {
    use std::task::ready;

    use super::*;

    const SILENCE: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_mins(1);

    /// A store that answers after a while, with eight parts and a pause before each.
    #[derive(Clone, Copy, Debug)]
    struct SlowStore {
        before: Duration,
        pause: Duration,
    }

    #[async_trait]
    impl HttpService for SlowStore {
        async fn call(&self, _request: HttpRequest) -> Result<HttpResponse, HttpError> {
            sleep(self.before).await;
            Ok(HttpResponse::new(HttpResponseBody::new(SlowBody {
                left: 8,
                pause: self.pause,
                next: Box::pin(sleep(self.pause)),
            })))
        }
    }

    struct SlowBody {
        left: usize,
        pause: Duration,
        next: Pin<Box<Sleep>>,
    }

    impl Body for SlowBody {
        type Data = Bytes;
        type Error = HttpError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            ready!(self.next.as_mut().poll(context));
            self.left -= 1;
            self.next = Box::pin(sleep(self.pause));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"part")))))
        }
    }

    /// The answer to a request with so many bytes.
    async fn answer(store: SlowStore, bytes: usize) -> Result<Bytes, HttpError> {
        let listener = Listener {
            client: HttpClient::new(store),
            silence: SILENCE,
        };
        let request = HttpRequest::new(vec![0_u8; bytes].into());
        listener.call(request).await?.into_body().bytes().await
    }

    #[tokio::test]
    async fn an_answer_that_keeps_coming_is_read_to_its_end_however_long_it_takes() {
        let slow = SlowStore {
            before: Duration::ZERO,
            pause: SILENCE / 2,
        };
        assert_eq!(answer(slow, 0).await.unwrap(), b"part".repeat(8));
    }

    #[tokio::test]
    async fn silence_ends_an_answer_before_it_begins_and_within_it() {
        for (before, pause) in [(LONG, Duration::ZERO), (Duration::ZERO, LONG)] {
            let error = answer(SlowStore { before, pause }, 0).await.unwrap_err();
            assert_eq!(error.kind(), HttpErrorKind::Timeout);
            assert!(error.to_string().contains("nothing came for 50ms"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_large_request_is_given_time_to_be_sent() {
        let late = SlowStore {
            before: 4 * SILENCE,
            pause: Duration::ZERO,
        };
        answer(late, 2 * SENT_IN_A_SECOND).await.unwrap();
    }
}
