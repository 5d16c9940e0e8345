//! What commits need, and the outcomes of a request for one.

use std::time::Duration;

use crate::catalog::records::Effect;
use crate::catalog::{Catalog, CatalogError};
use crate::ingest::errors::AssembleError;
use crate::ingest::pressure::TailPressure;
use crate::ingest::stores::IntakeStores;
use crate::model::ids::UploadId;
use crate::store::StoreError;

/// What the committing task works with.
pub struct Committer {
    pub catalog: Catalog,
    pub shared: IntakeStores,
    pub tail: TailPressure,
    pub report: Box<dyn Fn(GroupReport) + Send + Sync>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub upload: UploadId,
    /// The same request was accepted before; nothing was done now.
    pub repeated: bool,
    /// What the request did, now or earlier. `None` if a version that did not count accepted it.
    pub effect: Option<Effect>,
}

/// Why a request was not committed. Nothing of it is or will become visible, except for `Unknown`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    #[error("too many writes are waiting; try again soon")]
    Busy,
    #[error("too many rows are waiting to become objects; try again later")]
    Backlog,
    #[error("this Idempotency-Key was used with another request")]
    KeyReused,
    #[error("the disk is full")]
    Full,
    #[error("the store cannot be written now: {0}")]
    Unavailable(String),
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The commit may have happened.
    #[error("whether this was committed is not known: {0}")]
    Unknown(String),
    /// An internal error.
    #[error("the work for this commit failed midway: {0}")]
    Broken(String),
    #[error("the person is being erased")]
    Erased,
    #[error("the service is stopping")]
    Stopping,
}

/// What happened in one transaction, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct GroupReport {
    pub requests: usize,
    pub rows: i64,
    pub bytes: i64,
    pub elapsed: Duration,
    pub outcome: GroupOutcome,
}

/// How one transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOutcome {
    Committed,
    Failed,
    /// Nothing was committed, because somebody else came first: so often, by now, for the same job.
    Overtaken(usize),
}

impl From<CatalogError> for CommitError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Full { .. } => Self::Full,
            CatalogError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            CatalogError::Unknown { .. } => Self::Unknown(error.to_string()),
            CatalogError::Refused { .. } => Self::Broken(error.to_string()),
            CatalogError::Erased { .. } => Self::Erased,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::Full,
            StoreError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            StoreError::Catalog(error) => error.into(),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<AssembleError> for CommitError {
    fn from(error: AssembleError) -> Self {
        match error {
            AssembleError::Store(error) => error.into(),
            AssembleError::Rows(error) => Self::Broken(error.to_string()),
            AssembleError::Broken(reason) => Self::Broken(reason),
        }
    }
}
