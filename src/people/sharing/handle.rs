//! The handle through which everybody uses shares, groups and memberships, and what all changes of them have
//! in common. Knows nothing of what is shared.

use std::sync::Arc;

use super::access_log::AccessLog;
use super::errors::SharingError;
use crate::catalog::documents::{Change, Changed};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::ids::IdSource;
use crate::people::limits::{LimitReached, PersonLimits};

/// Shares, groups and memberships. Lives as long as the process.
pub struct Sharing {
    pub(super) catalog: Catalog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) log: AccessLog,
    pub(super) limits: PersonLimits,
}

impl Sharing {
    #[must_use]
    pub fn new(
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        log: AccessLog,
        limits: PersonLimits,
    ) -> Self {
        Self {
            catalog,
            clock,
            ids,
            log,
            limits,
        }
    }

    /// The log of reads and of changes to shares.
    #[must_use]
    pub const fn log(&self) -> &AccessLog {
        &self.log
    }

    /// Makes, changes or removes something, unless another change of it came first or no more may be made.
    pub(super) async fn commit(&self, change: Change) -> Result<(), SharingError> {
        done(&self.catalog.change_documents(vec![change]).await?)
    }
}

/// Whether a change was made, or why it was not.
pub(super) fn done(changed: &Changed) -> Result<(), SharingError> {
    match *changed {
        Changed::Done => Ok(()),
        Changed::LimitReached { kind, limit } => Err(LimitReached { kind, limit }.into()),
        Changed::Overtaken | Changed::NameTaken { .. } => Err(SharingError::Overtaken),
    }
}

/// The JSON text of a body.
pub(super) fn body_of<T: serde::Serialize>(body: &T) -> Result<String, SharingError> {
    serde_json::to_string(body).map_err(|error| {
        SharingError::Catalog(CatalogError::Corrupt {
            what: format!("a document has no JSON: {error}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::documents::DocumentKind;
    use crate::people::attempts::MayBeOvertaken as _;

    #[test]
    fn what_is_beyond_a_limit_is_not_tried_again() {
        let kind = DocumentKind::Group;
        let beyond = done(&Changed::LimitReached { kind, limit: 1 }).unwrap_err();
        assert!(!beyond.is_overtaken(), "{beyond}");
        assert!(done(&Changed::Overtaken).unwrap_err().is_overtaken());
    }
}
