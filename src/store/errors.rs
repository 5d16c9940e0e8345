//! What can go wrong with stored bytes, in terms of what the caller can do: try later, make room, repair, or
//! correct the call.

use arrow::error::ArrowError;
use object_store::client::HttpError;
use parquet::errors::ParquetError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::catalog::CatalogError;

/// S3's word for a bucket that does not exist, with the same status as for an object.
const NO_BUCKET: &str = "NoSuchBucket";

#[derive(Debug, Error)]
pub enum StoreError {
    /// Nothing is known to be damaged; the same call may succeed later.
    #[error("the object store cannot be reached or refused: {detail}; try again later")]
    Unavailable { detail: String },
    #[error("the object store has no room left: {detail}; free disk space, then try again")]
    Full { detail: String },
    /// Stored bytes are not those that were written. Nothing derived from them was returned.
    #[error("stored data is damaged: {what}; run `almanac check`")]
    Corrupt { what: String },
    #[error("object {path} does not exist")]
    Missing { path: String },
    #[error("object {path} already exists")]
    Exists { path: String },
    #[error("the object store settings are wrong: {detail}")]
    Settings { detail: String },
    /// Rows that cannot be stored as they were given.
    #[error("rows cannot be stored: {detail}")]
    Rows { detail: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl StoreError {
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }

    /// Whether stored bytes, here or in the catalogue, are not those that were written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. } | Self::Catalog(CatalogError::Corrupt { .. })
        )
    }

    /// Whether the same call may succeed later although what it is about has not changed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } => true,
            Self::Catalog(_) => !self.is_damage(),
            Self::Corrupt { .. }
            | Self::Missing { .. }
            | Self::Exists { .. }
            | Self::Settings { .. }
            | Self::Rows { .. } => false,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
    pub(super) fn rows(detail: impl ToString) -> Self {
        Self::Rows {
            detail: detail.to_string(),
        }
    }

    /// What `error` means when it occurred while reading bytes that were verified, or should have been.
    #[must_use]
    pub fn reading(path: &str, error: &ParquetError) -> Self {
        match find::<Self>(error) {
            Some(Self::Unavailable { detail }) => Self::Unavailable {
                detail: detail.clone(),
            },
            Some(Self::Missing { path }) => Self::Missing { path: path.clone() },
            _ => Self::corrupt(format!("object {path}: {error}")),
        }
    }
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        let full = find::<std::io::Error>(&error).is_some_and(|error| {
            matches!(
                error.kind(),
                std::io::ErrorKind::StorageFull
                    | std::io::ErrorKind::QuotaExceeded
                    | std::io::ErrorKind::FileTooLarge
            )
        });
        if let Some(Self::Corrupt { what }) = find::<Self>(&error) {
            return Self::corrupt(what.clone());
        }
        let detail = error.to_string();
        match error {
            // Without its bucket no object can be said to be lost.
            object_store::Error::NotFound { source, .. } if source.to_string().contains(NO_BUCKET) => {
                Self::Unavailable { detail }
            }
            object_store::Error::NotFound { path, .. } => Self::Missing { path },
            object_store::Error::AlreadyExists { path, .. } => Self::Exists { path },
            _ if full => Self::Full { detail },
            _ => Self::Unavailable { detail },
        }
    }
}

/// Work broke off on its thread.
impl From<JoinError> for StoreError {
    fn from(error: JoinError) -> Self {
        Self::Unavailable {
            detail: error.to_string(),
        }
    }
}

impl From<ArrowError> for StoreError {
    fn from(error: ArrowError) -> Self {
        Self::rows(error)
    }
}

/// Whether a store answered: what failed on the way to it or back says nothing of an object.
pub(super) fn was_answered(error: &object_store::Error) -> bool {
    find::<HttpError>(error).is_none()
}

/// The first error of a kind among `error` and its causes.
fn find<'e, E: std::error::Error + 'static>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e E> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        current = error.source();
    }
    None
}
