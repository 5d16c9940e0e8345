//! Work that would hold up other requests if it ran among them.

use crate::api::problem::ApiError;

/// Runs long work on a thread that serves no requests.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(ApiError::internal)
}
