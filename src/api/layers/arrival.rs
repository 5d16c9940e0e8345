//! Bodies that stop arriving. A client that has sent nothing for a while gives its place back.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// The request, with a body that fails when nothing of it arrives for so long.
#[must_use]
pub fn awaited(request: Request, limit: Duration) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(Patient::new(body, limit)))
}

/// The body's next part did not arrive in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body of the request stopped arriving")]
pub struct Stalled;

/// Whether reading a body failed because nothing of it arrived any more.
#[must_use]
pub fn is_stalled(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Stalled>)
}

/// A body that fails when nothing of it arrives for too long.
struct Patient {
    body: Body,
    limit: Duration,
    /// While somebody waits for the next part. Only then does the client's time run; most bodies are there at
    /// once.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    const fn new(body: Body, limit: Duration) -> Self {
        Self {
            body,
            limit,
            alarm: None,
        }
    }
}

impl HttpBody for Patient {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.alarm = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(limit)));
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
        let body = Body::new(Patient::new(Body::from_stream(parts), Duration::from_millis(1)));
        let mut parts = body.into_data_stream();
        assert_eq!(parts.next().await.unwrap().unwrap(), "half");
        let error = parts.next().await.unwrap().unwrap_err();
        assert!(is_stalled(&error), "{error}");
    }
}
