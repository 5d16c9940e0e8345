//! The operator's settings for background work.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpkeepSettings {
    /// Whether this node does background work.
    pub enabled: bool,
    /// The pause between two looks for work.
    pub interval: Duration,
    /// The age at which the tail of a partition becomes an object.
    pub flush_age: Duration,
    /// The size in bytes at which it does whatever its age.
    pub flush_size: usize,
    /// How long replaced objects stay for readers that began before.
    pub grace_period: Duration,
    /// The pause between two searches of the whole store for what nothing names.
    pub search_interval: Duration,
    /// How long what was deleted may still be on disk.
    pub purge_deleted_after: Duration,
    /// Whether objects that nothing names are removed even where they are an improbable part of the store.
    pub collect_anyway: bool,
}
