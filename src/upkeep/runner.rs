//! Runs the jobs: each in a loop of its own, so that a long compaction delays no flush, and each on one node
//! at a time.
//!
//! Lives as long as the process. A job that fails is logged, counted, and tried again in the next round.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::collect;
use super::collect_files::remove_unnamed_parts;
use super::compact::{self, Limits, compact};
use super::flush::{self, flush};
use super::lease::Leases;
use super::scrub::Scrub;
use super::settings::UpkeepSettings;
use super::stores::{PartitionKey, UpkeepStores};
use crate::model::meters::Meters;
use crate::store::StoreError;

/// Between two searches for what interrupted writes left behind, which list the whole store.
const ORPHAN_SEARCH: Duration = Duration::from_hours(1);
/// Between two counts of all objects.
const COUNTING: Duration = Duration::from_mins(1);
/// A pause that is shorter is taken for this long, so that no setting makes a node spin.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The background work of one node.
#[derive(Clone)]
pub struct Upkeep {
    settings: UpkeepSettings,
    stores: UpkeepStores,
    meters: Meters,
    leases: Leases,
    stop: CancellationToken,
}

/// Partitions in which compaction found nothing to do, with the version it looked at.
pub type Settled = HashMap<PartitionKey, i64>;

impl Upkeep {
    #[must_use]
    pub fn new(
        settings: UpkeepSettings,
        stores: UpkeepStores,
        meters: Meters,
        stop: CancellationToken,
    ) -> Self {
        let leases = Leases::new(stores.catalog.clone(), stores.ids.next().to_string());
        Self {
            settings,
            stores,
            meters,
            leases,
            stop,
        }
    }

    /// Works on `runtime`, which should answer nobody, until `stop` is called, then ends what can be dropped
    /// without loss, which is everything, and gives its leases back.
    #[must_use]
    pub fn start(
        settings: UpkeepSettings,
        stores: UpkeepStores,
        meters: Meters,
        stop: CancellationToken,
        runtime: &Handle,
    ) -> JoinHandle<()> {
        let upkeep = Self::new(settings, stores, meters, stop);
        runtime.spawn(async move {
            if upkeep.settings.enabled {
                tokio::join!(
                    upkeep.flushing(),
                    upkeep.compacting(),
                    upkeep.collecting(),
                    upkeep.searching(),
                    upkeep.scrubbing(),
                    upkeep.counting()
                );
            } else {
                upkeep.stop.cancelled().await;
            }
        })
    }

    async fn flushing(&self) {
        while self.pause(self.settings.interval).await {
            Box::pin(self.attempt("flush", self.flush_due())).await;
        }
    }

    async fn compacting(&self) {
        let mut settled = Settled::new();
        while self.pause(self.settings.interval).await {
            Box::pin(self.attempt("compact", self.compact_due(&mut settled))).await;
        }
    }

    async fn collecting(&self) {
        while self.pause(self.settings.interval).await {
            Box::pin(self.attempt("collect", self.collect_due())).await;
        }
    }

    async fn searching(&self) {
        while self.pause(ORPHAN_SEARCH).await {
            Box::pin(self.attempt("search for orphans", self.search_orphans())).await;
        }
    }

    async fn scrubbing(&self) {
        let mut scrub = Scrub::default();
        while self.pause(super::scrub::PAUSE).await {
            let work = async {
                let step = scrub.step(&self.stores, &self.meters.store.corrupt);
                Box::pin(self.leases.alone("scrub", &self.stop, step)).await?;
                Ok(())
            };
            Box::pin(self.attempt("scrub", work)).await;
        }
    }

    async fn counting(&self) {
        loop {
            Box::pin(self.attempt("count", self.count_objects())).await;
            if !self.pause(COUNTING).await {
                return;
            }
        }
    }

    /// Flushes every tail that is due.
    pub async fn flush_due(&self) -> Result<(), StoreError> {
        let backlog = self.stores.catalog.tail_backlog().await?;
        self.meters
            .store
            .tail_rows
            .set(backlog.iter().map(|tail| tail.rows).sum());
        self.meters
            .store
            .tail_bytes
            .set(backlog.iter().map(|tail| tail.bytes).sum());
        let now = self.stores.clock.now();
        let due: Vec<PartitionKey> = backlog
            .into_iter()
            .filter(|tail| flush::is_due(tail, &self.settings, now))
            .map(|tail| PartitionKey {
                person: tail.person,
                data_type: tail.data_type,
            })
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        let work = async {
            for key in &due {
                if self.is_sound(key, flush(&self.stores, key).await)?.unwrap_or(0) > 0 {
                    self.meters.upkeep.flushes.inc();
                }
            }
            Ok(())
        };
        Box::pin(self.leases.alone("flush", &self.stop, work))
            .await
            .map(drop)
    }

    /// Compacts until there is nothing left to do.
    pub async fn compact_due(&self, settled: &mut Settled) -> Result<(), StoreError> {
        let candidates = self
            .stores
            .catalog
            .compaction_candidates(compact::FEWEST_OBJECTS as i64)
            .await?;
        let open: HashMap<PartitionKey, i64> = candidates
            .into_iter()
            .map(|candidate| {
                (
                    PartitionKey {
                        person: candidate.person,
                        data_type: candidate.data_type,
                    },
                    candidate.version,
                )
            })
            .collect();
        settled.retain(|key, version| open.get(key) == Some(version));
        let open: Vec<(PartitionKey, i64)> = open
            .into_iter()
            .filter(|(key, _)| !settled.contains_key(key))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let limits = Limits::default();
        let work = async {
            for (key, version) in open {
                while self
                    .is_sound(&key, compact(&self.stores, &key, &limits).await)?
                    .unwrap_or(false)
                {
                    self.meters.upkeep.compactions.inc();
                }
                // If the version has moved on, the next round looks again.
                settled.insert(key, version);
            }
            Ok(())
        };
        Box::pin(self.leases.alone("compact", &self.stop, work))
            .await
            .map(drop)
    }

    /// Removes retired objects whose grace is over.
    pub async fn collect_due(&self) -> Result<(), StoreError> {
        let limit = self.stores.ago(self.settings.grace_period);
        if self.stores.catalog.retired_objects(limit).await?.is_empty() {
            return Ok(());
        }
        let work = collect::remove_retired(&self.stores, self.settings.grace_period);
        let removed = Box::pin(self.leases.alone("collect", &self.stop, work))
            .await?
            .unwrap_or(0);
        self.meters.upkeep.collected_objects.inc_by(removed as u64);
        Ok(())
    }

    /// Removes what interrupted writes left behind, and old receipts.
    pub async fn search_orphans(&self) -> Result<(), StoreError> {
        let work = async {
            collect::remove_remains(&self.stores).await?;
            let parts = remove_unnamed_parts(&self.stores).await?;
            Ok(parts + collect::remove_orphans(&self.stores).await?)
        };
        let removed = Box::pin(self.leases.alone("orphans", &self.stop, work))
            .await?
            .unwrap_or(0);
        self.meters.upkeep.collected_objects.inc_by(removed as u64);
        Ok(())
    }

    async fn count_objects(&self) -> Result<(), StoreError> {
        let totals = self.stores.catalog.object_totals().await?;
        self.meters.store.objects.set(totals.objects);
        self.meters.store.object_bytes.set(totals.bytes);
        Ok(())
    }

    /// Damage in one partition is reported and does not keep the others from being looked after; any other
    /// error ends the round.
    fn is_sound<T>(
        &self,
        key: &PartitionKey,
        outcome: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(StoreError::Corrupt { what }) => {
                self.meters.store.corrupt.inc();
                self.meters.upkeep.failures.inc();
                tracing::error!(person = %key.person, data_type = %key.data_type, what, "stored data is damaged; run `almanac check`");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn attempt(&self, job: &'static str, work: impl Future<Output = Result<(), StoreError>>) {
        self.meters.upkeep.running.inc();
        // What a job holds across a panic is dropped with it; what it shares with others is the catalogue.
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.meters.upkeep.failures.inc();
                tracing::warn!(job, %error, "background work failed and will be tried again");
            }
            Err(_) => {
                self.meters.upkeep.failures.inc();
                tracing::error!(job, "background work panicked and will be tried again");
            }
        }
        self.meters.upkeep.running.dec();
    }

    /// Waits; `false` when it is time to stop.
    async fn pause(&self, length: Duration) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(length.max(SHORTEST_PAUSE)) => true,
        }
    }
}
