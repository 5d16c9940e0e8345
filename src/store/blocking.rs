//! Long work on a thread that does not answer requests.

use tokio::task::JoinError;

/// Runs `work` on a blocking thread.
pub async fn run_blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<JoinError> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await?
}
