//! Long work on a thread that does not answer requests.

use super::errors::StoreError;

/// Runs `work` on a blocking thread.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Unavailable {
            detail: error.to_string(),
        })?
}
