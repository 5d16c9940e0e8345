//! Why preferences cannot be read or changed.

use crate::catalog::CatalogError;
use crate::model::faults::Fault;
use crate::model::ids::PersonId;
use crate::people::attempts::MayBeOvertaken;
use crate::people::condition::Outdated;
use crate::people::documents::DocumentError;
use crate::people::sharing::SharingError;
use crate::people::types::TypesError;

/// Why preferences cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum PreferencesError {
    #[error("the preferences are not valid")]
    Invalid(Vec<Fault>),
    #[error("the preferences were changed by another request; read them again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error("the stored preferences of {person} cannot be read: {reason}")]
    Damaged { person: PersonId, reason: String },
    #[error(transparent)]
    Types(#[from] TypesError),
    #[error(transparent)]
    Annotations(#[from] DocumentError),
    #[error(transparent)]
    Sharing(#[from] SharingError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl MayBeOvertaken for PreferencesError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}
