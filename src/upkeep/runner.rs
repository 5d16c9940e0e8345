//! Runs the jobs: each in a loop of its own, so that a long compaction delays no flush, and each on one node
//! at a time.
//!
//! Lives as long as the process. A job that fails is logged, counted, and tried again in the next round.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::collect;
use super::compact::{self, Limits};
use super::erase::{self, erase};
use super::flush::{self, DueTails, Room, flush};
use super::lease::Leases;
use super::manifest::{self, write_manifest};
use super::past_years::{Merged, compact_or_merge_past_year};
use super::purge::{self, purge_deleted};
use super::scrub::Scrub;
use super::settings::UpkeepSettings;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::{CatalogError, WithDamage};
use crate::model::ids::PersonId;
use crate::model::meters::Meters;
use crate::store::StoreError;

/// The pause between two searches for people with changes that no flush has put into a manifest.
const MANIFESTS: Duration = Duration::from_mins(10);
/// How many of them are written down at once. Each holds a connection to the database while it is read.
const MANIFESTS_AT_ONCE: usize = 4;
/// The pause between two searches for old deletions.
const DELETIONS: Duration = Duration::from_mins(10);
/// When work fails on this many partitions in a row, the cause is not the partitions.
const FAILURES_IN_A_ROW: usize = 5;
/// The pause between two counts of all objects.
const COUNTING: Duration = Duration::from_mins(1);
/// The store is asked once in so many rounds who was erased.
const HEEDING: u32 = 12;
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
    /// What each job leaves alone, because it is damaged or cannot be read.
    set_aside: Arc<Mutex<BTreeMap<&'static str, BTreeSet<String>>>>,
}

/// A round of one job over many partitions. A failure of one does not affect the others.
struct Round<'u> {
    upkeep: &'u Upkeep,
    job: &'static str,
    set_aside: BTreeSet<String>,
    failures_in_a_row: usize,
}

impl Round<'_> {
    /// Takes the outcome of work on something that belongs to a person. Damage and failures are counted,
    /// reported, and set aside; an error here means that everything fails.
    fn of<T>(&mut self, whose: &str, outcome: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        let error = match outcome {
            Ok(done) => {
                self.failures_in_a_row = 0;
                return Ok(Some(done));
            }
            Err(error) => error,
        };
        if let StoreError::Catalog(CatalogError::Contended { detail }) = &error {
            tracing::info!(job = self.job, whose, detail, "put off: others use what it needs");
            return Ok(None);
        }
        let meters = &self.upkeep.meters;
        if error.is_damage() {
            meters.store.corrupt.inc();
        } else {
            self.failures_in_a_row += 1;
            if self.failures_in_a_row >= FAILURES_IN_A_ROW
                || matches!(
                    error,
                    StoreError::Catalog(CatalogError::Unavailable { .. } | CatalogError::Full { .. })
                )
            {
                return Err(error);
            }
        }
        meters.upkeep.failures.inc();
        if matches!(error, StoreError::Unavailable { .. } | StoreError::Full { .. }) {
            tracing::warn!(job = self.job, whose, %error, "set aside until the next round");
        } else {
            tracing::error!(job = self.job, whose, %error, "set aside; run `almanac check`");
        }
        self.set_aside.insert(whose.to_owned());
        Ok(None)
    }

    /// Ends the round: what it set aside replaces what earlier rounds did.
    fn end(self) {
        self.upkeep.is_set_aside(self.job, self.set_aside);
    }
}

/// What became of the tails of one person.
struct FlushedPerson {
    person: PersonId,
    /// How many pieces of each are gone.
    partitions: Vec<(PartitionKey, Result<usize, StoreError>)>,
    /// Whether a manifest was written, if one was due.
    manifest: Option<Result<bool, StoreError>>,
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
        let leases = Leases::new(
            stores.catalog.clone(),
            stores.ids.next().to_string(),
            meters.upkeep.clone(),
        );
        Self {
            set_aside: Arc::default(),
            settings,
            stores,
            meters,
            leases,
            stop,
        }
    }

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
        while self.pause(self.settings.search_interval).await {
            Box::pin(self.attempt("search for orphans", self.search_orphans())).await;
        }
    }

    async fn writing_down(&self) {
        while self.pause(MANIFESTS).await {
            Box::pin(self.attempt("manifests", self.write_manifests())).await;
        }
    }

    async fn erasing(&self) {
        let mut heeded: Option<Moment> = None;
        loop {
            // Again and again: a database may be put back, or a replica that is behind take its place, under
            // a service that runs.
            if heeded.is_none_or(|heeded| heeded.elapsed() >= self.settings.interval * HEEDING) {
                let work = self.attempt("heed erasures", erase::heed_notes(&self.stores));
                heeded = Box::pin(work).await.then(Moment::now);
            }
            if !self.pause(self.settings.interval).await {
                return;
            }
            Box::pin(self.attempt("erase", self.erase_due())).await;
        }
    }

    async fn purging(&self) {
        // A short time limit is checked more often, so that it can be kept.
        let pause = DELETIONS.min(self.settings.purge_deleted_after / 20);
        while self.pause(pause.max(self.settings.interval)).await {
            Box::pin(self.attempt("purge", self.purge_due())).await;
        }
    }

    async fn scrubbing(&self) {
        let mut scrub = Scrub::default();
        while self.pause(super::scrub::PAUSE).await {
            let work = async {
                if scrub.is_due(&self.stores).await? {
                    let step = scrub.step(&self.stores, &self.meters.store.corrupt);
                    Box::pin(self.leases.alone("scrub", &self.stop, step)).await?;
                }
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
        let WithDamage {
            sound: backlog,
            set_aside,
        } = self.stores.catalog.tail_backlog().await?;
        self.meters
            .store
            .tail_rows
            .set(backlog.iter().map(|tail| tail.rows).sum());
        self.meters
            .store
            .tail_bytes
            .set(backlog.iter().map(|tail| tail.bytes).sum());
        let now = self.stores.clock.now();
        let due = flush::due(backlog, &self.settings, now);
        if due.is_empty() {
            self.is_set_aside("flush", set_aside);
            return Ok(());
        }
        let work = async {
            // A flush removes dead rows, but not from older manifests.
            self.stores.catalog.notice_deletions().await?;
            let (mut round, room) = (self.round("flush", set_aside), Room::default());
            let people = due.into_iter().map(|due| self.flush_person(due, &room));
            let mut people = stream::iter(people).buffer_unordered(flush::PEOPLE_AT_ONCE);
            while let Some(flushed) = people.next().await {
                for (key, pieces) in flushed.partitions {
                    if round.of(&whose(&key), pieces)?.unwrap_or(0) > 0 {
                        self.meters.upkeep.flushes.inc();
                    }
                }
                if let Some(written) = flushed.manifest {
                    self.has_written_manifest(&mut round, flushed.person, written)?;
                }
            }
            round.end();
            Ok(())
        };
        Box::pin(self.leases.alone("flush", &self.stop, work))
            .await
            .map(drop)
    }

    /// Flushes tails of one person, and writes a manifest after it.
    async fn flush_person(&self, due: DueTails, room: &Room) -> FlushedPerson {
        let _room = room.enter(&due).await;
        let mut partitions = Vec::with_capacity(due.partitions.len());
        for key in due.partitions {
            let pieces = flush(&self.stores, &key).await;
            partitions.push((key, pieces));
        }
        let has_changed = partitions.iter().any(|(_, pieces)| matches!(pieces, Ok(1..)));
        let manifest = if has_changed {
            Some(manifest::write_changed(&self.stores, due.person).await)
        } else {
            None
        };
        FlushedPerson {
            person: due.person,
            partitions,
            manifest,
        }
    }

    /// Compacts until there is nothing left to do.
    pub async fn compact_due(&self, settled: &mut Settled) -> Result<(), StoreError> {
        let WithDamage {
            sound: candidates,
            set_aside,
        } = self
            .stores
            .catalog
            .compaction_candidates(compact::FEWEST_OBJECTS as i64)
            .await?;
        let open: BTreeMap<PartitionKey, i64> = candidates
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
            let mut round = self.round("compact", set_aside);
            for (key, version) in open {
                let whose = whose(&key);
                let left = loop {
                    let merged = compact_or_merge_past_year(&self.stores, &key, &limits).await;
                    match round.of(&whose, merged)?.unwrap_or(Merged::Nothing) {
                        Merged::Some => self.meters.upkeep.compactions.inc(),
                        left => break left,
                    };
                };
                // If the version has changed, the next round looks again.
                if left == Merged::Nothing {
                    settled.insert(key, version);
                }
            }
            round.end();
            Ok(())
        };
        Box::pin(self.leases.alone("compact", &self.stop, work))
            .await
            .map(drop)
    }

    /// Removes retired objects whose grace period is over.
    pub async fn collect_due(&self) -> Result<(), StoreError> {
        // Taking a lease is a write, which a service with nothing to do should not make again and again.
        if !collect::has_retired(&self.stores, self.settings.grace_period).await? {
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
        if let Some(reason) = collect::forbidden(&self.stores).await? {
            tracing::info!(reason, "nothing is collected");
            return Ok(());
        }
        let work = async {
            collect::remove_remains(&self.stores).await?;
            let written = manifest::write_lost(&self.stores).await?;
            self.meters.upkeep.manifests.inc_by(written as u64);
            self.stores
                .contents()
                .forget_expired(collect::CONTENT_PATIENCE)
                .await?;
            collect::remove_orphans(&self.stores, self.settings.collect_anyway).await
        };
        let searched = Box::pin(self.leases.alone("orphans", &self.stop, work))
            .await?
            .unwrap_or_default();
        self.meters
            .upkeep
            .collected_objects
            .inc_by(searched.removed as u64);
        if let Some((orphans, all)) = searched.refused {
            self.meters.upkeep.refused_collections.inc();
            tracing::error!(
                orphans,
                all,
                "nothing names these of all objects, which is not believed: they stay. Is this the right \
                 catalogue, and is it whole? If it is, ALMANAC_COLLECT_ANYWAY=true removes them"
            );
        }
        Ok(())
    }

    /// Writes manifests of people who have changed since their last one.
    pub async fn write_manifests(&self) -> Result<(), StoreError> {
        let work = async {
            let mut round = self.round("manifests", BTreeSet::new());
            let people = self.stores.catalog.people_ids().await?.into_iter();
            let written =
                people.map(|person| async move { (person, write_manifest(&self.stores, person).await) });
            let mut written = stream::iter(written).buffer_unordered(MANIFESTS_AT_ONCE);
            while let Some((person, written)) = written.next().await {
                self.has_written_manifest(&mut round, person, written)?;
            }
            round.end();
            Ok(())
        };
        Box::pin(self.leases.alone("manifests", &self.stop, work))
            .await
            .map(drop)
    }

    /// Continues erasures that are not over.
    pub async fn erase_due(&self) -> Result<(), StoreError> {
        let now = self.stores.catalog.now().await?;
        let mut due = self.stores.catalog.erasures_under_way().await?;
        due.retain(|erasure| erase::is_due(erasure, now));
        if due.is_empty() {
            return Ok(());
        }
        let work = async {
            let mut round = self.round("erase", BTreeSet::new());
            for erasure in &due {
                // Without the person's name, which must not stay in the log.
                let whose = format!("erasure {}", erasure.mark);
                round.of(&whose, Box::pin(erase(&self.stores, erasure)).await)?;
            }
            round.end();
            Ok(())
        };
        Box::pin(self.leases.alone("erase", &self.stop, work))
            .await
            .map(drop)
    }

    /// Notices deletions, and purges those that were noticed long enough ago.
    pub async fn purge_due(&self) -> Result<(), StoreError> {
        let work = async {
            while self.stores.catalog.notice_deletions().await? > 0 {}
            let now = self.stores.catalog.now().await?;
            let moment = purge::due_before(&self.settings, now);
            let mut round = self.round("purge", BTreeSet::new());
            let mut due = self.stores.catalog.deletions_before(moment).await?;
            due.sort_by(|one, other| (one.person, &one.data_type).cmp(&(other.person, &other.data_type)));
            for of_person in due.chunk_by(|one, other| one.person == other.person) {
                let whose = of_person
                    .first()
                    .map_or_else(String::new, |first| format!("person {}", first.person));
                round.of(&whose, Box::pin(purge_deleted(&self.stores, of_person)).await)?;
            }
            let judge = |person, outcome| round.of(&format!("person {person}"), outcome).map(drop);
            Box::pin(purge::forget_older_manifests(&self.stores, Some(moment), judge)).await?;
            round.end();
            Ok(())
        };
        Box::pin(self.leases.alone("purge", &self.stop, work))
            .await
            .map(drop)
    }

    fn has_written_manifest(
        &self,
        round: &mut Round<'_>,
        person: PersonId,
        written: Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        if round.of(&format!("person {person}"), written)? == Some(true) {
            self.meters.upkeep.manifests.inc();
        }
        Ok(())
    }

    fn round(&self, job: &'static str, set_aside: BTreeSet<String>) -> Round<'_> {
        Round {
            upkeep: self,
            job,
            set_aside,
            failures_in_a_row: 0,
        }
    }

    fn is_set_aside(&self, job: &'static str, partitions: BTreeSet<String>) {
        let mut set_aside = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        set_aside.insert(job, partitions);
        let all: BTreeSet<&String> = set_aside.values().flatten().collect();
        self.meters.set_aside_partitions.set(all.len() as i64);
    }

    async fn count_objects(&self) -> Result<(), StoreError> {
        let totals = self.stores.catalog.object_totals().await?;
        self.meters.store.objects.set(totals.objects);
        self.meters.store.object_bytes.set(totals.bytes);
        let orphans = self.stores.catalog.orphan_totals().await?;
        self.meters.store.condemned_objects.set(orphans.condemned);
        Ok(())
    }

    /// Runs work; returns whether it was done.
    async fn attempt(&self, job: &'static str, work: impl Future<Output = Result<(), StoreError>>) -> bool {
        self.meters.upkeep.running.inc();
        // What a job holds is dropped with it on a panic; it shares only the catalogue with others.
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let is_done = matches!(outcome, Ok(Ok(())));
        match outcome {
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
        is_done
    }

    /// Waits; `false` when it is time to stop.
    async fn pause(&self, length: Duration) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(length.max(SHORTEST_PAUSE)) => true,
        }
    }
}

/// A partition in words.
fn whose(key: &PartitionKey) -> String {
    format!("person {}, {}", key.person, key.data_type)
}
