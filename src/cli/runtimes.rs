//! The threads of the program: those of a short command, those of one that does much, and those of questions.

use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::failed::Failed;

/// Bytes reserved for the stack of a compute thread, used only as deep as needed: an SQL expression nests up
/// to four hundred steps.
const COMPUTE_STACK: usize = 16 << 20;
/// How long an idle thread for disk access is kept. Such threads take turns, and each keeps memory from its
/// last work, so a few that come and go hold far less than many that stay. Measured in docs/decisions/0099.
const KEEP_ALIVE: Duration = Duration::from_millis(20);

/// For a command that does one thing.
pub(super) fn one_thread() -> Result<Runtime, Failed> {
    made(&mut Builder::new_current_thread())
}

/// For a command that does many things at once.
pub(super) fn many_threads() -> Result<Runtime, Failed> {
    made(&mut Builder::new_multi_thread())
}

/// For connections: one of a single thread for each processor. A runtime of several threads wakes a second
/// thread whenever it wakes one, in case there is more to do (docs/decisions/0128).
pub(super) fn lanes() -> Result<Vec<Runtime>, Failed> {
    let lane = || {
        made(
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("connections"),
        )
    };
    (0..processors()).map(|_| lane()).collect()
}

/// For questions and upkeep, apart from the threads that answer requests. `threads`: how many; 0: one for
/// each processor.
pub(super) fn computing(threads: usize) -> Result<Computing, Failed> {
    // One question can keep a thread busy for seconds, even though it yields; a second thread serves
    // everybody else.
    let usual = || processors().max(2);
    let runtime = made(
        Builder::new_multi_thread()
            .worker_threads(if threads > 0 { threads } else { usual() })
            .thread_name("compute")
            .thread_stack_size(COMPUTE_STACK),
    )?;
    Ok(Computing {
        handle: runtime.handle().clone(),
        runtime: Some(runtime),
    })
}

/// The threads for questions and upkeep. When this is dropped, anywhere, they end, and nobody waits for them.
pub(super) struct Computing {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Computing {
    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        // A runtime must not be dropped inside another one, because it waits for its threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

fn made(builder: &mut Builder) -> Result<Runtime, Failed> {
    builder
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .map_err(Failed::from_error)
}
