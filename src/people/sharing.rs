//! Sharing: what people let others read, the groups that shares are given to, and the log of what was read.
//!
//! A share names types and files, a window of time, and people and groups. It allows only reading, and only
//! what it names. Knows documents and types; knows nothing of HTTP, and makes no permits.

pub mod access_log;
pub mod groups;
pub mod members;
pub mod received;
pub mod shares;
pub mod terms;
mod text;

use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::faults::Fault;
use crate::model::ids::{IdSource, PersonId};

use access_log::AccessLog;

use super::condition::Outdated;
use super::limits::PersonLimits;

/// How often a change is attempted. An attempt fails only where another change came first, so that this many
/// at once all succeed: clients have up to twenty in progress.
const ATTEMPTS: usize = 32;

/// Shares, groups and memberships. Lives as long as the process.
pub struct Sharing {
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    log: AccessLog,
    limits: PersonLimits,
}

/// The receiver of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grantee {
    Person(PersonId),
    Group(Uuid),
}

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
    #[error("you have reached the limit of {limit} {what}")]
    TooMany { what: &'static str, limit: u64 },
    #[error("it was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
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

/// The id under which a receiver knows a share. It is derived from share and grantee, so sharing again after
/// a revocation yields the same id.
#[must_use]
pub fn grant_id(share: Uuid, grantee: Grantee) -> Uuid {
    let (kind, target) = match grantee {
        Grantee::Person(person) => ("person", person.0),
        Grantee::Group(group) => ("group", group),
    };
    Uuid::new_v5(&share, format!("{kind} {target}").as_bytes())
}

/// The JSON text of a body.
fn body_of<T: serde::Serialize>(body: &T) -> Result<String, SharingError> {
    serde_json::to_string(body).map_err(|error| {
        SharingError::Catalog(CatalogError::Corrupt {
            what: format!("a document has no JSON: {error}"),
        })
    })
}
