//! What an import needs, and why one is refused.

use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError};
use crate::ingest::errors::AssembleError;
use crate::ingest::queue::{CommitError, CommitQueue};
use crate::ingest::stores::IntakeStores;
use crate::people::documents::{DocumentError, Documents};
use crate::people::files::{BringBackError, Files, FilesError};
use crate::people::takeout::archive::ArchiveError;
use crate::people::types::{Types, TypesError};

/// Why an archive was not brought in, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// It does not fit what is here. Nothing was changed.
    #[error("nothing was changed: {0}")]
    Refused(String),
    /// Something in it could not have been sent. Nothing was changed.
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

/// The dependencies of an import.
pub struct Importer {
    pub catalog: Catalog,
    pub documents: Documents,
    pub types: Types,
    pub files: Files,
    pub intake: IntakeStores,
    pub commits: CommitQueue,
    /// The prefix of the sources of annotations here.
    pub source_prefix: Arc<str>,
}
