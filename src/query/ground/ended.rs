//! What work within one batch has to know of its question: whether anybody still waits for the answer; and
//! how it leaves its thread to others.
//!
//! A task can be stopped, and others have their turn, only where it yields, and a function yields nowhere
//! within a batch.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::common::{DataFusionError, Result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
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

/// Whether nobody waits for what the tasks of a question compute.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Arc<Question>);

#[derive(Debug, Default)]
struct Question {
    has_ended: AtomicBool,
    /// Held while one of its tasks does what takes long: others of them wait, and take no processor from
    /// other questions.
    turn: Mutex<()>,
}

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
        self.0.0.has_ended.store(true, Ordering::Relaxed);
    }
}

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        self.end();
    }
}

/// Fails if nobody waits any more for what the current task computes.
pub(in crate::query) fn refuse_ended() -> Result<()> {
    match ENDED.try_with(|ended| ended.0.has_ended.load(Ordering::Relaxed)) {
        Ok(true) => deadline_passed(),
        _ => Ok(()),
    }
}

/// Whether the current task knows the question that it works for.
#[cfg(test)]
pub(super) fn knows_question() -> bool {
    ENDED.try_with(|_| ()).is_ok()
}

/// Does `work` that may take a second or more, while another thread takes over the other tasks of this one.
/// Of the tasks that know their question, only one at a time does such work; it must not do any within it.
pub(in crate::query) fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    let in_turn = || match ENDED.try_with(Ended::clone) {
        Ok(ended) => {
            let _turn = ended.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
            work()
        }
        Err(_) => work(),
    };
    let has_threads = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(has_threads) {
        tokio::task::block_in_place(in_turn)
    } else {
        in_turn()
    }
}

/// Hands what a task knows of its question to the tasks that the engine spawns in it. The engine has one such
/// hook for the whole process.
pub(super) fn hand_down() {
    let _was_there_before = set_join_set_tracer(&HandedDown);
}

struct HandedDown;

impl JoinSetTracer for HandedDown {
    fn trace_future(
        &self,
        work: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match ENDED.try_with(Ended::clone) {
            Ok(ended) => ended.noticed_by(work).boxed(),
            Err(_) => work,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match ENDED.try_with(Ended::clone) {
            Ok(ended) => Box::new(move || ENDED.sync_scope(ended, work)),
            Err(_) => work,
        }
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

    #[tokio::test]
    async fn tasks_that_the_engine_spawns_notice_it_too() {
        hand_down();
        let ended = Ended::default();
        let waiting = ended.when_dropped();
        ended
            .noticed_by(async move {
                drop(waiting);
                let mut tasks = datafusion::common::runtime::JoinSet::new();
                tasks.spawn(async { refuse_ended().is_err() });
                tasks.spawn_blocking(|| refuse_ended().is_err());
                while let Some(noticed) = tasks.join_next().await {
                    assert!(noticed.unwrap());
                }
            })
            .await;
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
