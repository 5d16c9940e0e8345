//! The handle through which everybody uses shares, groups and memberships, and what all changes of them have
//! in common. Knows nothing of what is shared.

use std::sync::Arc;

use super::access_log::AccessLog;
use super::errors::SharingError;
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::ids::IdSource;
use crate::people::limits::PersonLimits;

/// How often a change is attempted. An attempt fails only where another change came first, so that this many
/// at once all succeed: clients have up to twenty in progress.
pub(super) const ATTEMPTS: usize = 32;

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
}

/// The JSON text of a body.
pub(super) fn body_of<T: serde::Serialize>(body: &T) -> Result<String, SharingError> {
    serde_json::to_string(body).map_err(|error| {
        SharingError::Catalog(CatalogError::Corrupt {
            what: format!("a document has no JSON: {error}"),
        })
    })
}
