//! For tests: a database whose transactions wait, break off, or end otherwise than it says.
//!
//! Nothing in the product makes one. A disturbed catalogue is one in an SQLite file; its writers wait for a
//! lock of the disturbance, so that a simulation of several nodes decides whose turn it is.

use std::fmt;

use futures::future::BoxFuture;

use super::errors::CatalogError;
use crate::model::release_guard::ReleaseGuard;

/// How a transaction that was asked to commit ends.
pub enum Ending {
    /// As it should.
    Commits,
    /// The connection breaks, and it never happens.
    Breaks,
    /// It happens, but the answer is lost.
    Unheard,
    /// The connection breaks, and this decides whether the database finishes the commit or gives it up.
    Later(BoxFuture<'static, bool>),
}

/// Decides what happens to transactions.
pub trait Disturbance: fmt::Debug + Send + Sync {
    /// Before a transaction, or a statement that is one, begins. The guard is held until it is over; without
    /// one there is no connection.
    fn begins(&self, writes: bool) -> BoxFuture<'_, Option<ReleaseGuard>>;

    /// A transaction that writes is about to commit.
    fn ends(&self) -> BoxFuture<'_, Ending>;

    /// The database works, on a thread of its own, until the guard is dropped.
    fn works(&self) -> ReleaseGuard;
}

/// The error that a caller gets when a connection broke.
pub(super) fn broken() -> CatalogError {
    CatalogError::Unavailable {
        detail: "the connection to the database broke".to_owned(),
    }
}
