//! Why nothing was changed of what people share.

use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::model::faults::Fault;
use crate::people::attempts::MayBeOvertaken;
use crate::people::condition::Outdated;
use crate::people::limits::LimitReached;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    #[error("what was sent is not valid")]
    Invalid(Vec<Fault>),
    #[error("there is no group {0} that you can share with")]
    UnknownGroup(Uuid),
    #[error("there is no {0} here")]
    Unknown(&'static str),
    /// It exists and is visible, but belongs to somebody else.
    #[error("only its owner may do this")]
    NotYours,
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error("it was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl MayBeOvertaken for SharingError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}
