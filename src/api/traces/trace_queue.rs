//! The queue in which traces wait until they are sent. One that finds it full is dropped and counted, so that
//! nothing ever waits for a place.

use tokio::sync::mpsc;

use super::trace::{Trace, TraceMeters};

/// Where traces are put to be sent. Cheap to clone.
#[derive(Clone)]
pub(super) struct TraceQueue {
    pub(super) waiting: mpsc::Sender<Trace>,
    pub(super) meters: TraceMeters,
}

impl TraceQueue {
    pub(super) fn put(&self, trace: Trace) {
        if self.waiting.try_send(trace).is_err() {
            self.meters.dropped.inc();
        }
    }
}
