//! What work within one batch has to know of its question: whether anybody still waits for the answer; and
//! how it leaves its thread to others.
//!
//! A task can be stopped, and others have their turn, only where it yields, and a function yields nowhere
//! within a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{DataFusionError, Result};
use tokio::runtime::{Handle, RuntimeFlavor};

tokio::task_local! {
    static ENDED: Ended;
}

/// The deadline of a question passed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the deadline of the question passed")]
pub struct DeadlinePassed;

/// The error that a late question ends with.
pub fn deadline_passed<T>() -> Result<T> {
    Err(DataFusionError::External(Box::new(DeadlinePassed)))
}

/// Whether nobody waits for what a task computes.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Arc<AtomicBool>);

impl Ended {
    /// `work`, whose functions can notice the end.
    pub(super) async fn noticed_by<W: Future>(self, work: W) -> W::Output {
        ENDED.scope(self, work).await
    }

    pub(super) fn when_dropped(&self) -> EndWhenDropped {
        EndWhenDropped(self.clone())
    }
}

/// Held by who waits.
#[derive(Debug)]
pub(super) struct EndWhenDropped(Ended);

impl EndWhenDropped {
    pub(super) fn end(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        self.end();
    }
}

/// Fails if nobody waits any more for what the current task computes.
pub(in crate::query) fn refuse_ended() -> Result<()> {
    match ENDED.try_with(|ended| ended.0.load(Ordering::Relaxed)) {
        Ok(true) => deadline_passed(),
        _ => Ok(()),
    }
}

/// Does `work` that may take a second or more, while another thread takes over the other tasks of this one.
pub(in crate::query) fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    let has_threads = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(has_threads) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_notices_that_nobody_waits() {
        let ended = Ended::default();
        let waiting = ended.when_dropped();
        ended
            .noticed_by(async move {
                assert!(refuse_ended().is_ok());
                drop(waiting);
                assert!(refuse_ended().is_err());
            })
            .await;
        assert!(refuse_ended().is_ok());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_beside_long_work() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let long = tokio::spawn(async move {
            tokio::spawn(async move { sender.send(()) });
            beside_others(move || receiver.recv())
        });
        // With one thread, the other task would never have its turn.
        assert_eq!(long.await.unwrap(), Ok(()));
    }
}
