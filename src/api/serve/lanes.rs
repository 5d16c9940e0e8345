//! The threads that connections run on. Each connection stays on one of them, and each of them waits for its
//! own connections alone, so that whatever arrives wakes one thread and never a second one to share the work.
//!
//! Knows nothing of what is said on a connection.

use std::sync::Arc;

use hyper::rt::Executor;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The lanes of a service. Cheap to clone; all clones share the lanes.
#[derive(Clone, Debug)]
pub struct Lanes(Arc<[Lane]>);

#[derive(Clone, Debug)]
struct Lane {
    runtime: Handle,
    /// Held once by the lane, and once by everything that runs on it.
    running: Arc<()>,
}

impl Lanes {
    /// One lane for each runtime, which should have a single thread. Without any, everything runs where it is
    /// started.
    #[must_use]
    pub fn on(runtimes: impl IntoIterator<Item = Handle>) -> Self {
        let lane = |runtime| Lane {
            runtime,
            running: Arc::default(),
        };
        Self(runtimes.into_iter().map(lane).collect())
    }

    /// Runs a connection on the lane that has the fewest.
    pub(super) fn spawn(
        &self,
        open: &mut JoinSet<()>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        match self.quietest() {
            Some(lane) => open.spawn_on(lane.holding(connection), &lane.runtime),
            None => open.spawn(connection),
        };
    }

    fn quietest(&self) -> Option<&Lane> {
        self.0.iter().min_by_key(|lane| Arc::strong_count(&lane.running))
    }
}

impl Lane {
    fn holding<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let running = Arc::clone(&self.running);
        async move {
            let output = work.await;
            drop(running);
            output
        }
    }
}

/// A connection that carries several requests at a time may use all lanes for them.
impl<F> Executor<F> for Lanes
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, request: F) {
        match self.quietest() {
            Some(lane) => lane.runtime.spawn(lane.holding(request)),
            None => tokio::spawn(request),
        };
    }
}
