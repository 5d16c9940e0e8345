//! Runs the jobs: each in a loop of its own, so that a long compaction delays no flush, and each on one node
//! at a time.
//!
//! Lives as long as the process. A job that fails is logged, counted, and tried again in the next round.
//! Knows when each job begins; must not know what is due, or what becomes of one person's part of it.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant as Moment};

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::job::Job;
use super::jobs::Upkeep;
use super::pause::paused;
use super::scrub::{self, Scrub};
use super::settings::UpkeepSettings;
use super::settled_partitions::SettledPartitions;
use super::stores::UpkeepStores;
use crate::model::meters::Meters;
use crate::store::StoreError;

/// The pause between two searches for people with changes that no flush has put into a manifest.
const MANIFESTS_PAUSE: Duration = Duration::from_mins(10);
/// The pause between two searches for old deletions.
const DELETIONS_PAUSE: Duration = Duration::from_mins(10);
/// The pause between two counts of all objects.
const COUNT_PAUSE: Duration = Duration::from_mins(1);
/// How many rounds pass between two searches of the store for erasures.
const ROUNDS_BETWEEN_ERASURE_CHECKS: u32 = 12;

impl Upkeep {
    /// Works on `runtime`, which should not answer requests, until `stop` is called. Then drops all work,
    /// which loses nothing, and gives its leases back.
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
                    upkeep.writing_down(),
                    upkeep.erasing(),
                    upkeep.purging(),
                    upkeep.scrubbing(),
                    upkeep.counting()
                );
            } else {
                upkeep.stop.cancelled().await;
            }
        })
    }

    async fn flushing(&self) {
        while paused(&self.stop, self.settings.interval).await {
            Box::pin(self.attempt(Job::Flush, self.flush_due())).await;
        }
    }

    async fn compacting(&self) {
        let mut settled = SettledPartitions::default();
        while paused(&self.stop, self.settings.interval).await {
            Box::pin(self.attempt(Job::Compact, self.compact_due(&mut settled))).await;
        }
    }

    async fn collecting(&self) {
        while paused(&self.stop, self.settings.interval).await {
            Box::pin(self.attempt(Job::Collect, self.collect_due())).await;
        }
    }

    async fn searching(&self) {
        while paused(&self.stop, self.settings.search_interval).await {
            Box::pin(self.attempt(Job::Orphans, self.search_orphans())).await;
        }
    }

    async fn writing_down(&self) {
        while paused(&self.stop, MANIFESTS_PAUSE).await {
            Box::pin(self.attempt(Job::Manifests, self.write_manifests())).await;
        }
    }

    async fn erasing(&self) {
        let mut heeded: Option<Moment> = None;
        loop {
            // Again and again: a database may be put back, or a replica that is behind take its place, under
            // a service that runs.
            if heeded.is_none_or(|heeded| {
                heeded.elapsed() >= self.settings.interval * ROUNDS_BETWEEN_ERASURE_CHECKS
            }) {
                let work = self.attempt(Job::HeedErasures, self.heed_erasures());
                heeded = Box::pin(work).await.then(Moment::now);
            }
            if !paused(&self.stop, self.settings.interval).await {
                return;
            }
            Box::pin(self.attempt(Job::Erase, self.erase_due())).await;
        }
    }

    async fn purging(&self) {
        // A short time limit is checked more often, so that it can be kept.
        let pause = DELETIONS_PAUSE.min(self.settings.purge_deleted_after / 20);
        while paused(&self.stop, pause.max(self.settings.interval)).await {
            Box::pin(self.attempt(Job::Purge, self.purge_due())).await;
        }
    }

    async fn scrubbing(&self) {
        let mut scrub = Scrub::default();
        while paused(&self.stop, scrub::STEP_PAUSE).await {
            let work = async {
                if Scrub::is_due(&self.stores).await? {
                    let step = scrub.step(&self.stores, &self.meters.store.corrupt);
                    Box::pin(self.leases.alone(Job::Scrub.name(), &self.stop, step)).await?;
                }
                Ok(())
            };
            Box::pin(self.attempt(Job::Scrub, work)).await;
        }
    }

    async fn counting(&self) {
        loop {
            Box::pin(self.attempt(Job::Count, self.count_objects())).await;
            if !paused(&self.stop, COUNT_PAUSE).await {
                return;
            }
        }
    }

    /// Runs work; returns whether it was done.
    async fn attempt(&self, job: Job, work: impl Future<Output = Result<(), StoreError>>) -> bool {
        self.meters.upkeep.running.inc();
        // What a job holds is dropped with it on a panic; it shares only the catalogue with others.
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let is_done = matches!(outcome, Ok(Ok(())));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.meters.upkeep.failures.inc();
                tracing::warn!(job = job.name(), %error, "background work failed and will be tried again");
            }
            Err(_) => {
                self.meters.upkeep.failures.inc();
                tracing::error!(
                    job = job.name(),
                    "background work panicked and will be tried again"
                );
            }
        }
        self.meters.upkeep.running.dec();
        is_done
    }
}
