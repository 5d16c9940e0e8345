//! Planning for many partitions, apart from what shares its thread.
//!
//! Questions are planned on the thread of a connection, which waits for nothing else meanwhile. That is quick
//! for the few partitions of most questions, but a base has one for each type that a person defined. Knows
//! futures; knows nothing of plans.

use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// The most partitions that a thread plans for among its other work.
const FEW: usize = 8;

/// What `planning` for so many `partitions` comes to. Where they are many, its runtime is told to do without
/// the thread while it plans.
pub(in crate::query) async fn apart<F: Future>(partitions: usize, planning: F) -> F::Output {
    let mut planning = pin!(planning);
    if partitions <= FEW || !can_do_without() {
        return planning.await;
    }
    poll_fn(|context| block_in_place(|| planning.as_mut().poll(context))).await
}

/// Whether the runtime has other threads to go on with.
fn can_do_without() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;

    /// Whether something else on a runtime with one thread goes on while something is planned for so many
    /// `partitions`, which takes no longer than `most`.
    fn others_go_on(partitions: usize, most: Duration) -> bool {
        let lane = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let lane = lane.unwrap();
        let (went_on, sees) = mpsc::channel();
        let planning = async move {
            tokio::spawn(async move { went_on.send(()).is_ok() });
            sees.recv_timeout(most).is_ok()
        };
        let planned = lane.spawn(apart(partitions, planning));
        lane.block_on(planned).unwrap()
    }

    #[test]
    fn what_shares_the_thread_goes_on_while_many_partitions_are_planned() {
        assert!(others_go_on(FEW + 1, Duration::from_secs(30)));
        assert!(!others_go_on(FEW, Duration::from_millis(200)));
    }

    #[tokio::test]
    async fn a_runtime_without_other_threads_plans_all_the_same() {
        assert_eq!(apart(FEW + 1, async { 7 }).await, 7);
    }
}
