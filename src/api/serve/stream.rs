//! A connection that fails when its client does not take what it asked for, and that is reset when it ends
//! before an answer does whose end nothing else marks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;

use super::usage::Usage;

/// The beginning of an HTTP/2 connection. Until it is known whether the client sends this, no other timeout
/// applies.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The stream under a connection.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the connection end with a reset, which no client takes for the end of an answer.
    fn reset_at_end(&self);
}

impl Transport for TcpStream {
    fn reset_at_end(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "a connection ends in good order though its answer did not");
        }
    }
}

impl Transport for TlsStream<TcpStream> {
    fn reset_at_end(&self) {
        self.get_ref().0.reset_at_end();
    }
}

/// Fails when nothing can be written for too long, or nothing arrives at first. Without it, a client that
/// stops reading would hold its place, and the rows being sent to it, for ever.
pub(super) struct WatchedStream<S: Transport> {
    stream: S,
    usage: Arc<Usage>,
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    /// Whether something waits to be written. The client's time only runs then.
    blocked: bool,
    /// The rest of the preface, as long as everything read so far belongs to it.
    opening: Option<&'static [u8]>,
}

impl<S: Transport> WatchedStream<S> {
    pub(super) fn new(stream: S, limit: Duration, usage: Arc<Usage>) -> Self {
        Self {
            stream,
            usage,
            limit,
            alarm: Box::pin(tokio::time::sleep(limit)),
            blocked: false,
            opening: Some(PREFACE),
        }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.blocked {
                self.blocked = false;
                self.usage.note_blocked(false);
            }
            return outcome;
        }
        if !self.blocked {
            self.blocked = true;
            self.usage.note_blocked(true);
            let deadline = Instant::now() + self.limit;
            self.alarm.as_mut().reset(deadline);
        }
        match self.alarm.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client takes nothing",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: Transport> Drop for WatchedStream<S> {
    fn drop(&mut self) {
        if self.usage.is_unproven() {
            self.stream.reset_at_end();
        }
    }
}

impl<S: Transport> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(expected) = self.opening else {
            return outcome;
        };
        if outcome.is_ready() {
            let read = buffer.filled().get(before..).unwrap_or_default();
            self.opening = expected.strip_prefix(read).filter(|rest| !rest.is_empty());
            return outcome;
        }
        match self.alarm.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client says nothing",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: Transport> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.usage.is_broken() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        // Nobody shuts a connection down before everything is written.
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        if let Poll::Ready(Ok(())) = outcome {
            self.usage.ended_in_good_order();
        }
        self.watch(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    impl Transport for tokio::io::DuplexStream {
        fn reset_at_end(&self) {}
    }

    fn watched(stream: tokio::io::DuplexStream, limit: Duration) -> WatchedStream<tokio::io::DuplexStream> {
        WatchedStream::new(stream, limit, Usage::begin())
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut connection = watched(ours, Duration::from_millis(1));
        connection.write_all(b"12345678").await.unwrap();
        let error = connection.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_never_gets_past_a_greeting_is_given_up() {
        for greeting in ["", "PRI"] {
            let (ours, mut theirs) = tokio::io::duplex(64);
            theirs.write_all(greeting.as_bytes()).await.unwrap();
            let mut connection = watched(ours, Duration::from_millis(1));
            let error = connection.read_to_end(&mut Vec::new()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{greeting:?}");
        }
    }

    #[tokio::test]
    async fn a_request_ends_the_watch_over_the_opening() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        theirs.write_all(b"POST").await.unwrap();
        let mut connection = watched(ours, Duration::from_mins(1));
        connection.read_exact(&mut [0; 4]).await.unwrap();
        assert_eq!(connection.opening, None);
    }
}
