//! Why an operation on files failed.

use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::people::attempts::MayBeOvertaken;
use crate::store::StoreError;

/// Why an operation on files failed.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{0} is not one of your files")]
    Unknown(Uuid),
    #[error("a file at {0} already exists")]
    Exists(String),
    #[error("the file has changed; read it again and retry")]
    Changed,
    #[error("the bytes of this file have not arrived yet")]
    NotUploaded,
    #[error("this file was deleted; restore it to read it")]
    Deleted,
    #[error("this file is still being scanned; try again soon")]
    Unscanned,
    #[error("this file is harmful and cannot be downloaded")]
    Infected,
    #[error("you have reached the limit of {0} files, each version counted")]
    TooMany(u64),
    #[error("the limit for one file is {0} bytes")]
    TooLarge(u64),
    #[error("the limit for all of your files together is {limit} bytes, of which {taken} are used")]
    NoRoom { limit: u64, taken: u64 },
    #[error("your files were changed by another request; read them again and retry")]
    Overtaken,
    #[error("the stored file {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MayBeOvertaken for FilesError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

impl From<CatalogError> for FilesError {
    fn from(error: CatalogError) -> Self {
        Self::Store(error.into())
    }
}
