//! For tests: a database whose transactions wait, break off, or end otherwise than it says.
//!
//! Nothing in the product makes one. A disturbed catalogue is one in an SQLite file; the lock that its
//! writers wait for is the disturbance's, so that whoever simulates several nodes decides whose turn it is.

use std::any::Any;
use std::fmt;

use futures::future::BoxFuture;

use super::errors::CatalogError;

/// Something that is held until a transaction or a statement is over.
pub type Held = Box<dyn Any + Send>;

/// How a transaction ends that was asked to commit.
pub enum Ending {
    /// As it should.
    Commits,
    /// The connection breaks, and it never happens.
    Breaks,
    /// It happens, and nobody is told.
    Unheard,
    /// The connection breaks, and the database finishes what it was asked for when this says so, or gives it
    /// up.
    Later(BoxFuture<'static, bool>),
}

/// What befalls transactions.
pub trait Disturbance: fmt::Debug + Send + Sync {
    /// Before a transaction, or a statement that is one, begins. `None`: there is no connection.
    fn begins(&self, writes: bool) -> BoxFuture<'_, Option<Held>>;

    /// A transaction that writes is about to commit.
    fn ends(&self) -> BoxFuture<'_, Ending>;

    /// The database is at work, on a thread of its own, until what is returned is dropped.
    fn works(&self) -> Held;
}

/// What a caller hears of a connection that broke.
pub(super) fn broken() -> CatalogError {
    CatalogError::Unavailable {
        detail: "the connection to the database broke".to_owned(),
    }
}
