//! A round of one job over many people: what becomes of it when some of the work fails, and what is left
//! alone afterwards.
//!
//! A failure of one does not affect the others, unless so many fail that the cause must be elsewhere. Then
//! the round ends early, and the next one goes on with those who have not had their turn, or a few who fail
//! for ever would keep everybody behind them waiting. Lives as long as the node, whose jobs share it. Must
//! not know what the jobs do, when they run, or under which lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::job::Job;
use crate::catalog::{CatalogError, Subject};
use crate::model::meters::Meters;
use crate::store::StoreError;

/// When work on what belongs to different people fails so many times in a row, the cause is not what it works
/// on.
pub const FAILURES_IN_A_ROW: usize = 5;

/// What each job of a node leaves alone, because it is damaged or cannot be read.
#[derive(Clone)]
pub(super) struct SetAside {
    meters: Meters,
    of_jobs: Arc<Mutex<BTreeMap<Job, OfJob>>>,
}

/// What the rounds of one job leave to the next.
#[derive(Default)]
struct OfJob {
    set_aside: BTreeSet<Subject>,
    /// What rounds that ended early had set aside, since the last one that did not.
    had_its_turn: BTreeSet<Subject>,
    /// The damage that was reported last, by whose it is, until work on that succeeds.
    told: BTreeMap<Subject, String>,
}

impl SetAside {
    pub(super) fn new(meters: Meters) -> Self {
        Self {
            meters,
            of_jobs: Arc::default(),
        }
    }

    /// Begins a round of `job`, which leaves alone what is `set_aside` already.
    pub(super) fn round(&self, job: Job, mut set_aside: BTreeSet<Subject>) -> Round<'_> {
        let of_job = self.lock().get(&job).map(|of_job| of_job.had_its_turn.clone());
        let had_its_turn = of_job.unwrap_or_default();
        set_aside.extend(had_its_turn.iter().cloned());
        Round {
            of_node: self,
            job,
            set_aside,
            had_its_turn,
            failures_in_a_row: 0,
        }
    }

    /// Replaces what `job` leaves alone.
    pub(super) fn replace(&self, job: Job, set_aside: BTreeSet<Subject>) {
        let mut of_jobs = self.lock();
        let of_job = of_jobs.entry(job).or_default();
        of_job.set_aside = set_aside;
        of_job.had_its_turn.clear();
        self.count(&of_jobs);
    }

    /// Adds what a round of `job` left alone that ended early.
    fn add(&self, job: Job, set_aside: BTreeSet<Subject>) {
        let mut of_jobs = self.lock();
        let of_job = of_jobs.entry(job).or_default();
        of_job.set_aside.extend(set_aside.iter().cloned());
        of_job.had_its_turn = set_aside;
        self.count(&of_jobs);
    }

    /// Whether this is not what was reported last. Rounds follow each other within seconds, and damage stays.
    fn is_news(&self, job: Job, whose: &Subject, damage: &StoreError) -> bool {
        let damage = damage.to_string();
        let mut of_jobs = self.lock();
        let told = &mut of_jobs.entry(job).or_default().told;
        if told.get(whose) == Some(&damage) {
            return false;
        }
        told.insert(whose.clone(), damage);
        true
    }

    /// Notes that work on something succeeded.
    fn is_well(&self, job: Job, whose: &Subject) {
        if let Some(of_job) = self.lock().get_mut(&job) {
            of_job.told.remove(whose);
        }
    }

    fn count(&self, of_jobs: &BTreeMap<Job, OfJob>) {
        let all: BTreeSet<&Subject> = of_jobs.values().flat_map(|of_job| &of_job.set_aside).collect();
        self.meters.set_aside_partitions.set(all.len() as i64);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Job, OfJob>> {
        self.of_jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round that has begun, with what it has set aside so far. One that is dropped before its end ended early.
pub(super) struct Round<'s> {
    of_node: &'s SetAside,
    job: Job,
    set_aside: BTreeSet<Subject>,
    had_its_turn: BTreeSet<Subject>,
    failures_in_a_row: usize,
}

impl Round<'_> {
    /// What was set aside by the rounds before that ended early. This one passes over it, so that the others
    /// have their turn.
    pub(super) fn had_its_turn(&self) -> BTreeSet<Subject> {
        self.had_its_turn.clone()
    }

    /// Takes the outcome of work on something that belongs to a person. Damage and failures are counted,
    /// reported, and set aside; an error here means that everything fails.
    pub(super) fn judge<T>(
        &mut self,
        whose: &Subject,
        outcome: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let error = match outcome {
            Ok(done) => {
                self.failures_in_a_row = 0;
                self.of_node.is_well(self.job, whose);
                return Ok(Some(done));
            }
            Err(error) => error,
        };
        if let StoreError::Catalog(CatalogError::Contended { detail }) = &error {
            let whose = whose.to_string();
            tracing::info!(
                job = self.job.name(),
                whose,
                detail,
                "put off: others use what it needs"
            );
            return Ok(None);
        }
        if matches!(
            error,
            StoreError::Catalog(CatalogError::Unavailable { .. } | CatalogError::Full { .. })
        ) {
            return Err(error);
        }
        self.set_aside.insert(whose.clone());
        let meters = &self.of_node.meters;
        let mut is_news = true;
        if error.is_damage() {
            meters.store.corrupt.inc();
            is_news = self.of_node.is_news(self.job, whose, &error);
        } else {
            self.failures_in_a_row += 1;
            if self.failures_in_a_row >= FAILURES_IN_A_ROW {
                return Err(error);
            }
        }
        meters.upkeep.failures.inc();
        let whose = whose.to_string();
        if matches!(error, StoreError::Unavailable { .. } | StoreError::Full { .. }) {
            tracing::warn!(job = self.job.name(), whose, %error, "set aside until the next round");
        } else if is_news {
            tracing::error!(job = self.job.name(), whose, %error, "set aside; run `almanac check`");
        }
        Ok(None)
    }

    /// Leaves alone what turned out to be damaged without anybody working on it.
    pub(super) fn leave_alone(&mut self, set_aside: BTreeSet<Subject>) {
        self.set_aside.extend(set_aside);
    }

    /// Ends the round: what it set aside replaces what earlier rounds did.
    pub(super) fn end(mut self) {
        self.of_node
            .replace(self.job, std::mem::take(&mut self.set_aside));
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        // What earlier rounds set aside still holds for everything that this one did not reach.
        self.of_node.add(self.job, std::mem::take(&mut self.set_aside));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::ids::PersonId;

    #[test]
    fn the_same_damage_is_news_once_until_work_succeeds() {
        let of_node = SetAside::new(Meters::default());
        let [one, other] = [1, 2].map(|id| Subject::Person(PersonId(Uuid::from_u128(id))));
        let is_news = |job, what: &str| of_node.is_news(job, &one, &StoreError::corrupt(what));
        assert!(is_news(Job::Flush, "a row"));
        of_node.replace(Job::Flush, BTreeSet::new());
        assert!(!is_news(Job::Flush, "a row"));
        assert!(is_news(Job::Collect, "a row"));
        assert!(is_news(Job::Flush, "another row"));
        of_node.is_well(Job::Flush, &other);
        assert!(!is_news(Job::Flush, "another row"));
        of_node.is_well(Job::Flush, &one);
        assert!(is_news(Job::Flush, "another row"));
    }
}
