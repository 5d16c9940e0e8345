//! What became of a rebuild.

use uuid::Uuid;

/// The result of a rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Describes what was done.
    pub done: Vec<String>,
    /// Describes what is damaged and was left out, though the rebuild may be finished.
    pub wrong: Vec<String>,
    /// Describes what could not be done. If there is anything, the rebuild is unfinished.
    pub failed: Vec<String>,
    /// The identity of the store, if the catalogue is made from that.
    pub store: Option<Uuid>,
}
