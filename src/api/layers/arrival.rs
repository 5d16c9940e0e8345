//! Fails bodies that stop arriving, or hardly arrive. A client that has sent nothing for a while loses its
//! place, and so does one that makes us wait much longer than the slowest of lines would need for what it
//! sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes per second on the slowest line that anybody still has.
const SLOWEST_RATE: u64 = 1 << 10;

/// The request, with a body that fails when nothing of it arrives for `limit`, or too little.
#[must_use]
pub fn awaited(request: Request, limit: Duration) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(WatchedBody::new(body, limit)))
}

/// The body's next part did not arrive in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body of the request stopped arriving")]
pub struct Stalled;

/// Whether reading a body failed because it stopped arriving.
#[must_use]
pub fn is_stalled(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Stalled>)
}

/// A body that fails when nothing of it arrives for too long, or too little.
struct WatchedBody {
    body: Body,
    limit: Duration,
    arrived: u64,
    /// How long we have waited for its client so far.
    waited: Duration,
    /// When the wait for the next part began, and when it ends. The client's time only runs while we wait;
    /// most bodies are there at once.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl WatchedBody {
    const fn new(body: Body, limit: Duration) -> Self {
        Self {
            body,
            limit,
            arrived: 0,
            waited: Duration::ZERO,
            waiting: None,
        }
    }

    /// How much longer to wait for the next part.
    fn patience(&self) -> Duration {
        let in_all = self.limit + Duration::from_secs(self.arrived / SLOWEST_RATE);
        self.limit.min(in_all.saturating_sub(self.waited))
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some((since, _)) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            if let Some(part) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                self.arrived += part.len() as u64;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = self.patience();
        let begin = || (Instant::now(), Box::pin(sleep(patience)));
        let (_, alarm) = self.waiting.get_or_insert_with(begin);
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Some(Err(Stalled.into())))
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
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_body_that_stops_arriving_fails() {
        let parts = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"half"))])
            .chain(futures::stream::pending());
        let body = Body::new(WatchedBody::new(
            Body::from_stream(parts),
            Duration::from_millis(1),
        ));
        let mut parts = body.into_data_stream();
        assert_eq!(parts.next().await.unwrap().unwrap(), "half");
        let error = parts.next().await.unwrap().unwrap_err();
        assert!(is_stalled(&error), "{error}");
    }

    #[test]
    fn a_client_may_take_the_time_that_the_slowest_line_takes_and_one_pause() {
        let patience = |arrived: u64, waited: u64| {
            let body = WatchedBody {
                arrived,
                waited: Duration::from_secs(waited),
                ..WatchedBody::new(Body::empty(), Duration::from_secs(30))
            };
            body.patience().as_secs()
        };
        assert_eq!((patience(0, 0), patience(20, 10), patience(30, 30)), (30, 20, 0));
        assert_eq!(
            (
                patience(SLOWEST_RATE * 100, 90),
                patience(SLOWEST_RATE * 100, 120)
            ),
            (30, 10)
        );
    }

    #[tokio::test]
    async fn a_body_that_trickles_is_given_up() {
        let parts = futures::stream::repeat(Bytes::from_static(b"x")).then(|part| async {
            sleep(Duration::from_millis(5)).await;
            Ok::<_, std::io::Error>(part)
        });
        let body = Body::new(WatchedBody::new(
            Body::from_stream(parts),
            Duration::from_millis(20),
        ));
        let mut parts = body.into_data_stream();
        let error = loop {
            if let Err(error) = parts.next().await.unwrap() {
                break error;
            }
        };
        assert!(is_stalled(&error), "{error}");
    }
}
