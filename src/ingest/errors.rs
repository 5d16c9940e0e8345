//! Errors between decoded rows and a commit.

use arrow::error::ArrowError;

use crate::store::StoreError;

/// Why changes could not be turned into a commit.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("rows could not be assembled: {0}")]
    Rows(#[from] ArrowError),
    /// A thread that assembled rows broke.
    #[error("rows could not be assembled: {0}")]
    Broken(String),
}
