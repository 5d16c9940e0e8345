//! A body that collects the trace of its request when it ends, however it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant as Moment;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Method;
use hyper::body::{Frame, SizeHint};

use super::trace::Trace;
use super::trace_queue::TraceQueue;

pub(super) struct TracedBody {
    pub body: Body,
    /// `None` once it is collected.
    pub trace: Option<Trace>,
    pub stopwatch: Moment,
    pub queue: TraceQueue,
    pub bytes: u64,
    pub is_whole: bool,
}

impl HttpBody for TracedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64,
            Some(Err(_)) => {}
            None => self.is_whole = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TracedBody {
    fn drop(&mut self) {
        let Some(mut trace) = self.trace.take() else {
            return;
        };
        (trace.took, trace.bytes) = (self.stopwatch.elapsed(), self.bytes);
        // A body of known length is not polled after its end, and the body of a HEAD answer is never polled.
        let is_read = self.is_whole || self.body.is_end_stream() || trace.method == Method::HEAD;
        trace.broke_off = !is_read;
        self.queue.put(trace);
    }
}
