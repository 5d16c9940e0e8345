//! What archives are brought into, and why one is not.

use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError};
use crate::ingest::errors::AssembleError;
use crate::ingest::queue::{CommitError, CommitQueue};
use crate::ingest::stores::IntakeStores;
use crate::people::documents::{DocumentError, Documents};
use crate::people::files::{BringBackError, Files, FilesError};
use crate::people::takeout::archive::ArchiveError;
use crate::people::types::{Types, TypesError};

/// Why an archive was not brought in, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// It does not fit to what is here. Nothing was changed.
    #[error("nothing was changed: {0}")]
    Refused(String),
    /// Something in it is not as anybody could have sent it. Nothing was changed.
    #[error(
        "nothing was changed: {member} of the archive holds something that cannot be stored: {place}: \
             {reason}"
    )]
    Unfit {
        member: String,
        place: String,
        reason: String,
    },
    #[error("{0} cannot be imported: {1}")]
    Records(String, String),
    #[error("a file cannot be imported: {0}")]
    Bytes(#[from] BringBackError<std::io::Error>),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Documents(#[from] DocumentError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Types(#[from] TypesError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// What archives are brought into.
pub struct Importer {
    pub catalog: Catalog,
    pub documents: Documents,
    pub types: Types,
    pub files: Files,
    pub intake: IntakeStores,
    pub commits: CommitQueue,
    /// What sources of annotations begin with here.
    pub source_prefix: Arc<str>,
}
