//! A node: everything of the service but HTTP, over the shared catalogue and store, in weather of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::chance::ChanceIds;
use super::gates::{Gates, Weather};
use crate::auth::grants::Grants;
use crate::catalog::Catalog;
use crate::ingest::compile::CompiledTypes;
use crate::ingest::pressure::TailPressure;
use crate::ingest::queue::{CommitQueue, Committer, GroupOutcome, QueueSettings};
use crate::ingest::stores::IntakeStores;
use crate::model::clock::{Clock, ManualClock};
use crate::model::ids::{IdSource, SystemIds};
use crate::model::meters::Meters;
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::people::limits::PersonLimits;
use crate::people::sharing::Sharing;
use crate::people::sharing::access_log::AccessLog;
use crate::people::types::Types;
use crate::store::faults::FaultyStore;
use crate::store::files::PieceFiles;
use crate::store::objects::ObjectStorage;
use crate::store::snapshot::Snapshots;
use crate::upkeep::identity;
use crate::upkeep::settings::UpkeepSettings;
use crate::upkeep::{Upkeep, UpkeepStores};

/// More than anything in a simulation comes to.
const MEMORY: u64 = 64 << 20;
/// How long replaced objects stay.
pub(super) const GRACE: Duration = Duration::from_mins(10);
/// How long what was deleted may still be on disk.
const PURGE: Duration = Duration::from_hours(1);

/// A clock that differs from the time.
pub(super) struct Skewed {
    time: Arc<ManualClock>,
    ahead: AtomicI64,
}

impl Skewed {
    pub(super) fn jump(&self, ahead: Duration, is_ahead: bool) {
        let micros = ahead.as_micros() as i64;
        self.ahead
            .store(if is_ahead { micros } else { -micros }, Ordering::SeqCst);
    }
}

impl Clock for Skewed {
    fn now(&self) -> Instant {
        Instant::from_micros(self.time.now().micros() + self.ahead.load(Ordering::SeqCst))
    }
}

/// What all nodes share.
#[derive(Clone)]
pub(super) struct Shared {
    pub gates: Arc<Gates>,
    /// The database's.
    pub time: Arc<ManualClock>,
    pub objects: Arc<dyn ObjectStore>,
    pub address: String,
    pub registry: Arc<Registry>,
    pub compiled: Arc<CompiledTypes>,
}

/// One life of a node.
pub(super) struct Node {
    pub life: usize,
    pub clock: Arc<Skewed>,
    pub stores: UpkeepStores,
    pub intake: IntakeStores,
    pub commits: CommitQueue,
    pub upkeep: Upkeep,
    pub types: Types,
    pub sharing: Sharing,
    pub grants: Grants,
    /// How often one write was overtaken, at the most.
    overtaken: Arc<AtomicUsize>,
    tasks: [JoinHandle<()>; 2],
}

impl Node {
    /// Starts on what is there.
    pub(super) async fn start(shared: &Shared, life: usize, seed: u64) -> Self {
        let clock = Arc::new(Skewed {
            time: Arc::clone(&shared.time),
            ahead: AtomicI64::new(0),
        });
        let weather = Arc::new(Weather {
            gates: Arc::clone(&shared.gates),
            life,
        });
        let catalog = Catalog::open(&shared.address, clock.clone())
            .await
            .unwrap()
            .keeping_time(shared.time.clone())
            .disturbed_by(weather.clone());
        let store = FaultyStore::new(Arc::clone(&shared.objects), weather);
        Self::over(
            shared,
            catalog,
            ObjectStorage::over(Arc::new(store)),
            clock,
            life,
            seed,
        )
    }

    /// One that nothing befalls and that waits for nobody.
    pub(super) async fn undisturbed(shared: &Shared) -> Self {
        let clock = Arc::new(Skewed {
            time: Arc::clone(&shared.time),
            ahead: AtomicI64::new(0),
        });
        let catalog = Catalog::open(&shared.address, shared.time.clone()).await.unwrap();
        let objects = ObjectStorage::over(Arc::clone(&shared.objects));
        Self::over(shared, catalog, objects, clock, 0, 0)
    }

    /// Makes catalogue and store a pair. `insists`: the operator knows that they are.
    pub(super) async fn settle(&self, insists: bool) {
        let (catalog, objects) = (&self.stores.catalog, self.stores.objects());
        let settled = identity::settle(catalog, objects, &SystemIds::default(), insists).await;
        settled.unwrap();
    }

    fn over(
        shared: &Shared,
        catalog: Catalog,
        objects: ObjectStorage,
        clock: Arc<Skewed>,
        life: usize,
        seed: u64,
    ) -> Self {
        let ids: Arc<dyn IdSource> = Arc::new(ChanceIds::new(seed, clock.clone()));
        let files = PieceFiles::new(objects, MEMORY);
        let snapshots = Snapshots::new(catalog.clone(), MEMORY);
        let stores = UpkeepStores {
            catalog: catalog.clone(),
            snapshots: snapshots.clone(),
            files: files.clone(),
            clock: clock.clone(),
            ids: Arc::clone(&ids),
        };
        let intake = IntakeStores::new(snapshots, files, MEMORY, Arc::clone(&ids));
        let overtaken = Arc::new(AtomicUsize::new(0));
        let committer = Committer {
            catalog: catalog.clone(),
            shared: intake.clone(),
            tail: TailPressure::new(catalog.clone(), usize::MAX),
            report: {
                let overtaken = Arc::clone(&overtaken);
                Box::new(move |report| {
                    if let GroupOutcome::Overtaken(times) = report.outcome {
                        overtaken.fetch_max(times, Ordering::SeqCst);
                    }
                })
            },
        };
        let queue = QueueSettings {
            waiting: 1_000,
            waiting_bytes: 1 << 30,
            group: 64,
            window: Duration::ZERO,
            size: 1 << 20,
            at_once: 4,
        };
        let (commits, committing) = CommitQueue::start(queue, committer);
        let (log, logging) = AccessLog::start(catalog.clone(), clock.clone(), Arc::clone(&ids));
        let settings = UpkeepSettings {
            enabled: true,
            interval: Duration::from_secs(1),
            flush_age: Duration::from_mins(1),
            flush_size: 1 << 20,
            grace_period: GRACE,
            search_interval: GRACE,
            purge_deleted_after: PURGE,
            collect_anyway: false,
        };
        Self {
            life,
            upkeep: Upkeep::new(
                settings,
                stores.clone(),
                Meters::default(),
                CancellationToken::new(),
            ),
            types: Types::new(
                Arc::clone(&shared.registry),
                catalog.clone(),
                clock.clone(),
                Arc::clone(&ids),
                u64::MAX,
            ),
            sharing: Sharing::new(catalog.clone(), clock.clone(), ids, log, PersonLimits::GENEROUS),
            grants: Grants::new(catalog, Arc::clone(&shared.registry)),
            clock,
            stores,
            intake,
            commits,
            overtaken,
            tasks: [committing, logging],
        }
    }

    pub(super) fn overtaken(&self) -> usize {
        self.overtaken.load(Ordering::SeqCst)
    }

    /// The process ends without a chance to do anything.
    pub(super) fn die(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
