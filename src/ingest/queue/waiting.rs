//! Requests that wait to be committed, and the limits on them: each has a seat until it is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::committer::{CommitError, Receipt};
use crate::ingest::upload::Upload;

/// Counts the requests that are waiting or being worked on, with their limits.
#[derive(Debug)]
pub(super) struct Load {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    most_requests: usize,
    most_bytes: usize,
}

/// A request's place in the queue, until it is answered.
#[derive(Debug)]
pub(super) struct Seat {
    load: Arc<Load>,
    bytes: usize,
}

pub(super) type Reply = oneshot::Sender<Result<Receipt, CommitError>>;

#[derive(Debug)]
pub(super) struct Waiting {
    pub upload: Upload,
    pub reply: Reply,
    pub seat: Seat,
    /// It failed together with others, and is now tried individually.
    pub alone: bool,
}

impl Load {
    pub(super) fn new(most_requests: usize, most_bytes: usize) -> Self {
        Self {
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_requests: most_requests.max(1),
            most_bytes,
        }
    }

    /// Requests that are waiting or being worked on.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn seat(self: &Arc<Self>, bytes: usize) -> Result<Seat, CommitError> {
        let requests = self.requests.fetch_add(1, Ordering::Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let seat = Seat {
            load: Arc::clone(self),
            bytes,
        };
        // A single request larger than the limit may come when nothing else is there.
        let has_room = waiting == 0 || waiting.saturating_add(bytes) <= self.most_bytes;
        if requests < self.most_requests && has_room {
            Ok(seat)
        } else {
            Err(CommitError::Busy)
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.load.requests.fetch_sub(1, Ordering::Relaxed);
        self.load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
