//! The threads that work is done on: those of a short command, of one that does much, and of questions.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::Failed;

/// Bytes that are set aside for the stack of a thread that computes, and used as far as it goes down: an
/// expression in SQL has up to four hundred steps.
const COMPUTE_STACK: usize = 16 << 20;
/// How long a thread that waits for disks stays without work. They take turns, and each of them keeps memory
/// for what it did last, so a few that come and go hold far less than many that stay. Measured in
/// docs/decisions/0099.
const KEEP_ALIVE: Duration = Duration::from_millis(20);

/// For a command that does one thing.
pub(super) fn one_thread() -> Result<Runtime, Failed> {
    made(&mut Builder::new_current_thread())
}

/// For a command that does many things at once.
pub(super) fn many_threads() -> Result<Runtime, Failed> {
    made(&mut Builder::new_multi_thread())
}

/// For questions and upkeep, away from the threads that answer requests. `threads`: how many; 0: as many as
/// there are processors.
pub(super) fn computing(threads: usize) -> Result<Runtime, Failed> {
    // One question can keep a thread busy for seconds, however often it gives way; a second thread is for
    // everybody else.
    let usual = || std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    made(
        Builder::new_multi_thread()
            .worker_threads(if threads > 0 { threads } else { usual() })
            .thread_name("compute")
            .thread_stack_size(COMPUTE_STACK),
    )
}

fn made(builder: &mut Builder) -> Result<Runtime, Failed> {
    builder
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .map_err(Failed::from_error)
}
