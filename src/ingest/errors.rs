//! Errors between decoded rows and a commit.

use arrow::error::ArrowError;
use tokio::task::JoinError;

use crate::store::StoreError;

/// Why changes could not be turned into a commit.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("rows could not be assembled: {0}")]
    Rows(#[from] ArrowError),
    /// A thread that assembled rows broke, or rows do not fit each other.
    #[error("rows could not be assembled: {0}")]
    Broken(String),
}

impl From<JoinError> for AssembleError {
    fn from(error: JoinError) -> Self {
        Self::Broken(error.to_string())
    }
}
