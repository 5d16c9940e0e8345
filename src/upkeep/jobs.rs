//! The jobs as one node does them: what is due is found, and done under the lease of its job; what was done
//! is counted, and what could not be done is set aside.
//!
//! Each call is one round, and ends when nothing more is due. Lives as long as the process. Must not know
//! when a round begins, or what becomes of a job that fails altogether.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::choose_objects::{FEWEST_OBJECTS, Limits};
use super::collect;
use super::erase::{self, erase};
use super::flush::{self, DueTails, Room, flush};
use super::job::Job;
use super::lease::Leases;
use super::lost_manifests::write_lost;
use super::manifest::{self, write_manifest};
use super::past_years::{MergeOutcome, compact_or_merge_past_year, year_at};
use super::purge::{self, purge_deleted};
use super::round::{Round, SetAside};
use super::scour::Scouring;
use super::settings::UpkeepSettings;
use super::settled_partitions::SettledPartitions;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::{Sound, Subject};
use crate::model::ids::PersonId;
use crate::model::meters::Meters;
use crate::store::StoreError;

/// How many manifests are written at once. Each holds a connection to the database while it is read.
const MANIFESTS_AT_ONCE: usize = 4;
/// After so many people the sweep lets others go on: those without changes are found on this thread, without
/// waiting for anything.
const PEOPLE_IN_A_ROW: usize = 16;

/// The background work of one node.
#[derive(Clone)]
pub struct Upkeep {
    pub(super) settings: UpkeepSettings,
    pub(super) stores: UpkeepStores,
    pub(super) meters: Meters,
    pub(super) leases: Leases,
    pub(super) stop: CancellationToken,
    set_aside: SetAside,
}

/// What became of the tails of one person.
struct FlushedPerson {
    person: PersonId,
    /// How many pieces of each are gone.
    partitions: Vec<(PartitionKey, Result<usize, StoreError>)>,
    /// Whether a manifest was written, if one was due.
    manifest: Option<Result<bool, StoreError>>,
}

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
            set_aside: SetAside::new(meters.clone()),
            settings,
            stores,
            meters,
            leases,
            stop,
        }
    }

    /// Flushes every tail that is due.
    pub async fn flush_due(&self) -> Result<(), StoreError> {
        let Sound {
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
        let now = self.stores.catalog.now().await?;
        let mut due = flush::due(backlog, &self.settings, now);
        if due.is_empty() {
            self.set_aside.replace(Job::Flush, set_aside);
            return Ok(());
        }
        let work = async {
            // A flush removes dead rows, but not from older manifests.
            self.stores.catalog.notice_deletions().await?;
            let (mut round, room) = (self.set_aside.round(Job::Flush, set_aside), Room::default());
            let had_its_turn = round.had_its_turn();
            for of_person in &mut due {
                of_person
                    .partitions
                    .retain(|key| !had_its_turn.contains(&whose_partition(key)));
            }
            let people = due.into_iter().map(|due| self.flush_person(due, &room));
            let mut people = stream::iter(people).buffer_unordered(flush::PEOPLE_AT_ONCE);
            while let Some(flushed) = people.next().await {
                for (key, pieces) in flushed.partitions {
                    if round.judge(&whose_partition(&key), pieces)?.unwrap_or(0) > 0 {
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
        self.under_lease(Job::Flush, work).await
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
    pub async fn compact_due(&self, settled: &mut SettledPartitions) -> Result<(), StoreError> {
        let Sound {
            sound: candidates,
            mut set_aside,
        } = self
            .stores
            .catalog
            .compaction_candidates(FEWEST_OBJECTS as i64)
            .await?;
        let year = year_at(self.stores.catalog.now().await?);
        let open = settled.open(candidates, year);
        set_aside.extend(settled.damaged().map(whose_partition));
        if open.is_empty() {
            self.set_aside.replace(Job::Compact, set_aside);
            return Ok(());
        }
        let limits = Limits::default();
        let work = async {
            let mut round = self.set_aside.round(Job::Compact, set_aside);
            let had_its_turn = round.had_its_turn();
            for (key, version) in open {
                let whose = whose_partition(&key);
                if had_its_turn.contains(&whose) {
                    continue;
                }
                loop {
                    let merged = compact_or_merge_past_year(&self.stores, &key, &limits).await;
                    settled.note(&key, version, year, &merged);
                    if round.judge(&whose, merged)? != Some(MergeOutcome::Some) {
                        break;
                    }
                    self.meters.upkeep.compactions.inc();
                }
            }
            round.end();
            Ok(())
        };
        self.under_lease(Job::Compact, work).await
    }

    /// Removes retired objects whose grace period is over.
    pub async fn collect_due(&self) -> Result<(), StoreError> {
        // Taking a lease is a write, which a service with nothing to do should not make again and again.
        if !collect::has_retired(&self.stores, self.settings.grace_period).await? {
            self.set_aside.replace(Job::Collect, BTreeSet::new());
            return Ok(());
        }
        let work = async {
            let mut round = self.set_aside.round(Job::Collect, BTreeSet::new());
            let had_its_turn = round.had_its_turn();
            let whose = |person: Option<PersonId>| person.map_or(Subject::ObjectsOfNobody, Subject::Person);
            let removing = collect::remove_retired(
                &self.stores,
                self.settings.grace_period,
                collect::PATHS_AT_ONCE,
                |person| had_its_turn.contains(&whose(person)),
                |person, removed| {
                    let removed = round.judge(&whose(person), removed)?;
                    let count = removed.unwrap_or(0) as u64;
                    self.meters.upkeep.collected_objects.inc_by(count);
                    Ok(removed.is_some())
                },
            );
            Box::pin(removing).await?;
            round.end();
            Ok(())
        };
        self.under_lease(Job::Collect, work).await
    }

    /// Removes what interrupted writes left behind, and old receipts.
    pub async fn search_orphans(&self) -> Result<(), StoreError> {
        if let Some(reason) = collect::forbidden(&self.stores).await? {
            tracing::info!(reason, "nothing is collected");
            return Ok(());
        }
        let work = async {
            collect::remove_remains(&self.stores).await?;
            let written = write_lost(&self.stores).await?;
            self.meters.upkeep.manifests.inc_by(written.sound.len() as u64);
            let contents = self.stores.contents();
            let forgotten = contents.forget_expired(collect::CONTENT_PATIENCE).await?;
            let mut searched = collect::remove_orphans(&self.stores, self.settings.collect_anyway).await?;
            let mut set_aside = std::mem::take(&mut searched.set_aside);
            set_aside.extend(written.set_aside);
            set_aside.extend(forgotten.set_aside);
            set_aside.extend(searched.beyond.people().map(Subject::Person));
            self.set_aside.replace(Job::Orphans, set_aside);
            Ok(searched)
        };
        let searched = Box::pin(self.leases.alone(Job::Orphans.name(), &self.stop, work))
            .await?
            .unwrap_or_default();
        self.meters
            .upkeep
            .collected_objects
            .inc_by(searched.removed as u64);
        if let Some(first) = searched.beyond.people().next() {
            tracing::error!(
                people = searched.beyond.people().count(),
                %first,
                "the store has manifests of people that the catalogue lacks, or remembers their erasure: the \
                 catalogue is older, and nothing of theirs is written down or collected until that is \
                 decided; run `almanac check`"
            );
        }
        if let Some((orphans, all)) = searched.refused {
            self.meters.upkeep.refused_collections.inc();
            tracing::error!(
                orphans,
                all,
                "{orphans} of {all} objects are named by nothing; so many orphans are implausible, so none \
                 was deleted. Is this the right catalogue, and is it whole? If it is, \
                 ALMANAC_COLLECT_ANYWAY=true removes them"
            );
        }
        Ok(())
    }

    /// Writes manifests of people who have changed since their last one.
    pub async fn write_manifests(&self) -> Result<(), StoreError> {
        let work = async {
            let mut round = self.set_aside.round(Job::Manifests, BTreeSet::new());
            let had_its_turn = round.had_its_turn();
            let mut people = self.stores.catalog.people_ids().await?;
            people.retain(|person| !had_its_turn.contains(&Subject::Person(*person)));
            let written = people
                .into_iter()
                .map(|person| async move { (person, write_manifest(&self.stores, person).await) });
            let mut written = stream::iter(written).buffer_unordered(MANIFESTS_AT_ONCE);
            let mut looked_at: usize = 0;
            while let Some((person, written)) = written.next().await {
                self.has_written_manifest(&mut round, person, written)?;
                looked_at += 1;
                if looked_at.is_multiple_of(PEOPLE_IN_A_ROW) {
                    tokio::task::yield_now().await;
                }
            }
            round.end();
            Ok(())
        };
        self.under_lease(Job::Manifests, work).await
    }

    /// Begins erasures that the store remembers and the catalogue does not.
    pub async fn heed_erasures(&self) -> Result<(), StoreError> {
        let mut round = self.set_aside.round(Job::HeedErasures, BTreeSet::new());
        let had_its_turn = round.had_its_turn();
        let passes_over = |mark| had_its_turn.contains(&Subject::Erasure(mark));
        let judge = |mark, outcome| round.judge(&Subject::Erasure(mark), outcome).map(drop);
        let set_aside = erase::heed_notes(&self.stores, passes_over, judge).await?;
        round.leave_alone(set_aside);
        round.end();
        Ok(())
    }

    /// Continues erasures that are not over.
    pub async fn erase_due(&self) -> Result<(), StoreError> {
        // Before the lease is taken, which is a write. Each is read again when it is its turn.
        let now = self.stores.catalog.now().await?;
        let Sound {
            sound: under_way,
            set_aside,
        } = self.stores.catalog.sound_erasures_under_way().await?;
        // Apart from those that failed when they had their turn, of whom none may be due now.
        self.set_aside.replace(Job::FindErasures, set_aside);
        let mut due = Vec::new();
        for erasure in under_way {
            if erase::is_due(&erase::as_dated(&self.stores, &erasure, now).await?, now) {
                due.push(erasure);
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let work = async {
            let mut round = self.set_aside.round(Job::Erase, BTreeSet::new());
            let had_its_turn = round.had_its_turn();
            for erasure in &due {
                let whose = Subject::Erasure(erasure.mark);
                if had_its_turn.contains(&whose) {
                    continue;
                }
                round.judge(&whose, Box::pin(erase(&self.stores, erasure)).await)?;
            }
            round.end();
            Ok(())
        };
        self.under_lease(Job::Erase, work).await
    }

    /// Notices deletions, and purges those that were noticed long enough ago.
    pub async fn purge_due(&self) -> Result<(), StoreError> {
        let work = async {
            let dated = self.stores.catalog.date_anew().await?;
            if dated > 0 {
                tracing::warn!(
                    dated,
                    "a clock was ahead and was put right: what it noted to be removed later waits from now on"
                );
            }
            while self.stores.catalog.notice_deletions().await? > 0 {}
            let now = self.stores.catalog.now().await?;
            let moment = purge::due_before(&self.settings, now);
            let Sound {
                sound: mut due,
                set_aside,
            } = self.stores.catalog.deletions_before(moment).await?;
            let mut round = self.set_aside.round(Job::Purge, set_aside);
            let had_its_turn = round.had_its_turn();
            let passes_over = |person: PersonId| had_its_turn.contains(&Subject::Person(person));
            due.retain(|deletion| !passes_over(deletion.person));
            let within = self.settings.purge_deleted_after;
            let scouring = Scouring::of(Job::Purge.name(), &self.stores.catalog, within);
            if !due.is_empty() || purge::has_older_manifests(&self.stores, moment).await? {
                scouring.expect_removal().await?;
            }
            due.sort_by(|one, other| (one.person, &one.data_type).cmp(&(other.person, &other.data_type)));
            for of_person in due.chunk_by(|one, other| one.person == other.person) {
                let Some(first) = of_person.first() else { continue };
                let purged = Box::pin(purge_deleted(&self.stores, of_person)).await;
                round.judge(&Subject::Person(first.person), purged)?;
            }
            let judge = |person, outcome| round.judge(&Subject::Person(person), outcome).map(drop);
            let forgetting = purge::forget_older_manifests(&self.stores, Some(moment), passes_over, judge);
            let set_aside = Box::pin(forgetting).await?;
            round.leave_alone(set_aside);
            round.end();
            Ok(scouring.scour_due().await?)
        };
        self.under_lease(Job::Purge, work).await
    }

    /// Does the work of one round, if no other node has the lease of `job`.
    fn under_lease(
        &self,
        job: Job,
        work: impl Future<Output = Result<(), StoreError>>,
    ) -> impl Future<Output = Result<(), StoreError>> {
        let alone = Box::pin(self.leases.alone(job.name(), &self.stop, work));
        async move { alone.await.map(drop) }
    }

    fn has_written_manifest(
        &self,
        round: &mut Round<'_>,
        person: PersonId,
        written: Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        if round.judge(&Subject::Person(person), written)? == Some(true) {
            self.meters.upkeep.manifests.inc();
        }
        Ok(())
    }

    /// Counts all objects, and those that nothing names.
    pub(super) async fn count_objects(&self) -> Result<(), StoreError> {
        let totals = self.stores.catalog.object_totals().await?;
        self.meters.store.objects.set(totals.objects);
        self.meters.store.object_bytes.set(totals.bytes);
        let orphans = self.stores.catalog.orphan_totals().await?;
        self.meters.store.condemned_objects.set(orphans.condemned);
        Ok(())
    }
}

fn whose_partition(key: &PartitionKey) -> Subject {
    Subject::Partition(key.person, key.data_type.clone())
}
