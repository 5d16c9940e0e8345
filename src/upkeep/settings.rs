//! The operator's settings for background work.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpkeepSettings {
    /// Whether this node does background work.
    pub enabled: bool,
    /// The pause between two searches for work.
    pub interval: Duration,
    /// The age at which the tail of a partition becomes an object.
    pub flush_age: Duration,
    /// The size in bytes at which it does so at any age.
    pub flush_size: usize,
    /// How long replaced objects stay for readers that began before.
    pub grace_period: Duration,
    /// The pause between two searches of the whole store for orphans.
    pub search_interval: Duration,
    /// How long deleted records may still be on disk.
    pub purge_deleted_after: Duration,
    /// Whether orphans are removed even if they are an improbably large part of the store.
    pub collect_anyway: bool,
}
