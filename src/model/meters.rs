//! Counters of the service itself.
//!
//! Counters are cheap handles to shared atomics. They are made once at start, registered once, and handed to
//! the rooms that do the work; the code that shows them knows none of those rooms. No label ever carries a
//! person's id.

mod caches;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use caches::CacheMeters;

/// Buckets from 100 µs to about 26 s, each twice the one before.
#[must_use]
pub fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 19))
}

fn size_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 12))
}

/// Everything that is counted below the interface.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    pub commits: CommitMeters,
    pub reads: QueueMeters,
    pub queries: QueryMeters,
    pub store: StoreMeters,
    pub upkeep: UpkeepMeters,
    pub geocoder: GeocoderMeters,
    pub caches: CacheMeters,
    /// Partitions that background work leaves alone, because they are damaged or cannot be read.
    pub set_aside_partitions: Gauge,
}

impl Meters {
    /// Creates meters and registers them with `registry`.
    pub fn registered(registry: &mut Registry) -> Self {
        let meters = Self::default();
        meters
            .commits
            .register(registry.sub_registry_with_prefix("commit"));
        meters
            .reads
            .register(registry.sub_registry_with_prefix("query_queue"));
        meters
            .queries
            .register(registry.sub_registry_with_prefix("query"));
        meters.store.register(registry.sub_registry_with_prefix("store"));
        meters
            .upkeep
            .register(registry.sub_registry_with_prefix("upkeep"));
        meters
            .geocoder
            .register(registry.sub_registry_with_prefix("geocoder"));
        meters.caches.register(registry.sub_registry_with_prefix("cache"));
        registry.register(
            "set_aside_partitions",
            "Partitions that background work leaves alone, because they are damaged or cannot be read",
            meters.set_aside_partitions.clone(),
        );
        meters
    }
}

/// Group commits.
#[derive(Clone, Debug)]
pub struct CommitMeters {
    /// Requests that wait to be committed.
    pub waiting: Gauge,
    /// Requests that went into one commit.
    pub requests: Histogram,
    pub records: Histogram,
    pub seconds: Histogram,
    pub failures: Counter,
    /// Commits that had to be prepared again because a partition changed meanwhile.
    pub stale: Counter,
}

impl Default for CommitMeters {
    fn default() -> Self {
        Self {
            waiting: Gauge::default(),
            requests: size_histogram(),
            records: size_histogram(),
            seconds: latency_histogram(),
            failures: Counter::default(),
            stale: Counter::default(),
        }
    }
}

impl CommitMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "queue_waiting",
            "Requests waiting to be committed",
            self.waiting.clone(),
        );
        registry.register("requests", "Requests per group commit", self.requests.clone());
        registry.register("records", "Records per group commit", self.records.clone());
        registry.register("seconds", "Duration of group commits", self.seconds.clone());
        registry.register("failures", "Group commits that failed", self.failures.clone());
        registry.register(
            "stale",
            "Group commits repeated because a partition had changed",
            self.stale.clone(),
        );
    }
}

/// A queue in front of a limited number of places.
#[derive(Clone, Debug, Default)]
pub struct QueueMeters {
    pub waiting: Gauge,
    pub running: Gauge,
    pub turned_away: Counter,
}

impl QueueMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register("waiting", "Requests waiting for a place", self.waiting.clone());
        registry.register("running", "Requests that hold a place", self.running.clone());
        registry.register(
            "turned_away",
            "Requests refused because the queue was full or slow",
            self.turned_away.clone(),
        );
    }
}

/// Questions that are being answered.
#[derive(Clone, Debug, Default)]
pub struct QueryMeters {
    /// Bytes reserved from the memory pool.
    pub memory_bytes: Gauge,
    pub spilled_bytes: Counter,
    pub deadlines_passed: Counter,
}

impl QueryMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "memory_bytes",
            "Memory reserved by running queries",
            self.memory_bytes.clone(),
        );
        registry.register(
            "spilled_bytes",
            "Bytes that queries wrote to disk for lack of memory",
            self.spilled_bytes.clone(),
        );
        registry.register(
            "deadlines_passed",
            "Queries stopped by their deadline",
            self.deadlines_passed.clone(),
        );
    }
}

/// What is stored.
#[derive(Clone, Debug, Default)]
pub struct StoreMeters {
    pub tail_rows: Gauge,
    pub tail_bytes: Gauge,
    pub objects: Gauge,
    pub object_bytes: Gauge,
    /// Objects that no commit may name any more and that still exist.
    pub condemned_objects: Gauge,
    /// Objects or blobs whose checksum did not match.
    pub corrupt: Counter,
}

impl StoreMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register("tail_rows", "Rows in the tail", self.tail_rows.clone());
        registry.register("tail_bytes", "Bytes of the tail", self.tail_bytes.clone());
        registry.register("objects", "Live objects", self.objects.clone());
        registry.register("object_bytes", "Bytes of live objects", self.object_bytes.clone());
        registry.register(
            "condemned_objects",
            "Objects that nothing names and that are about to be deleted",
            self.condemned_objects.clone(),
        );
        registry.register("corrupt", "Objects and blobs found damaged", self.corrupt.clone());
    }
}

/// Background jobs.
#[derive(Clone, Debug, Default)]
pub struct UpkeepMeters {
    pub running: Gauge,
    pub flushes: Counter,
    pub compactions: Counter,
    pub collected_objects: Counter,
    /// Searches for garbage that would have removed an improbably large part of the store.
    pub refused_collections: Counter,
    pub manifests: Counter,
    pub lost_leases: Counter,
    pub failures: Counter,
}

impl UpkeepMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register("running_jobs", "Background jobs at work", self.running.clone());
        registry.register("flushes", "Tails written as objects", self.flushes.clone());
        registry.register(
            "compactions",
            "Groups of objects rewritten as one",
            self.compactions.clone(),
        );
        registry.register(
            "collected_objects",
            "Objects deleted because nothing refers to them",
            self.collected_objects.clone(),
        );
        registry.register(
            "refused_collections",
            "Collections that did not happen because an improbable part of the store would have gone",
            self.refused_collections.clone(),
        );
        registry.register(
            "manifests",
            "Manifests written: what is known of a person, beside their data",
            self.manifests.clone(),
        );
        registry.register(
            "lost_leases",
            "Background jobs that lost their lease while they worked",
            self.lost_leases.clone(),
        );
        registry.register("failures", "Background jobs that failed", self.failures.clone());
    }
}

/// Place names requested from an outside service.
#[derive(Clone, Debug, Default)]
pub struct GeocoderMeters {
    pub asked: Counter,
    pub failures: Counter,
}

impl GeocoderMeters {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "asked",
            "Positions sent to the outside geocoder",
            self.asked.clone(),
        );
        registry.register(
            "failures",
            "Positions that it gave no usable answer for",
            self.failures.clone(),
        );
    }
}
