//! Closes what was put together, in the order in which one part needs another.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::assembly::Assembly;
use super::broken_part::NamedTask;

/// How long the collector may take for the last traces.
const LAST_TRACES_WAIT: Duration = Duration::from_secs(3);

/// Waits for the background work, each task with its name, and then closes what it worked with.
pub(super) async fn stop_in_order(assembly: Assembly, tasks: Vec<NamedTask>) {
    let limit = assembly.app.settings.shutdown_limit;
    for (what, task) in tasks {
        finished(what, task, limit).await;
    }
    close(assembly, limit).await;
}

/// Stops the background work after the last request, and waits at most `limit` for each part.
pub(super) async fn close(assembly: Assembly, limit: Duration) {
    // The commit task ends when its queue has no senders left.
    drop(assembly.app);
    finished("the committing task", assembly.committing, limit).await;
    finished("the access log", assembly.logging, limit).await;
    if let Some(sending) = assembly.sending {
        finished("the sending of traces", sending, limit.min(LAST_TRACES_WAIT)).await;
    }
    if tokio::time::timeout(limit, assembly.stores.catalog.close())
        .await
        .is_err()
    {
        tracing::warn!("the catalogue did not close in time");
    }
    drop(assembly.computing);
    drop(assembly.spill);
}

/// Waits for a task that was told to end, at most for `limit`.
async fn finished(what: &str, mut task: JoinHandle<()>, limit: Duration) {
    match tokio::time::timeout(limit, &mut task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{what} failed"),
        Err(_) => {
            tracing::warn!("{what} did not end in time and is dropped");
            task.abort();
        }
    }
}
