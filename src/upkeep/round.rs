//! A round of one job over many people: what becomes of it when some of the work fails, and what is left
//! alone afterwards.
//!
//! A failure of one does not affect the others, unless so many fail that the cause must be elsewhere. Lives
//! as long as the node, whose jobs share it. Must not know what the jobs do, when they run, or under which
//! lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::CatalogError;
use crate::model::meters::Meters;
use crate::store::StoreError;

/// When work on what belongs to different people fails so many times in a row, the cause is not what it works
/// on.
pub const FAILURES_IN_A_ROW: usize = 5;

/// What each job of a node leaves alone, because it is damaged or cannot be read.
#[derive(Clone)]
pub(super) struct SetAside {
    meters: Meters,
    of_jobs: Arc<Mutex<BTreeMap<&'static str, BTreeSet<String>>>>,
}

impl SetAside {
    pub(super) fn new(meters: Meters) -> Self {
        Self {
            meters,
            of_jobs: Arc::default(),
        }
    }

    /// Begins a round of `job`, which leaves alone what is `set_aside` already.
    pub(super) fn round(&self, job: &'static str, set_aside: BTreeSet<String>) -> Round<'_> {
        Round {
            of_node: self,
            job,
            set_aside,
            failures_in_a_row: 0,
        }
    }

    /// Replaces what `job` leaves alone.
    pub(super) fn replace(&self, job: &'static str, partitions: BTreeSet<String>) {
        let mut of_jobs = self.of_jobs.lock().unwrap_or_else(PoisonError::into_inner);
        of_jobs.insert(job, partitions);
        let all: BTreeSet<&String> = of_jobs.values().flatten().collect();
        self.meters.set_aside_partitions.set(all.len() as i64);
    }
}

/// A round that has begun, with what it has set aside so far.
pub(super) struct Round<'s> {
    of_node: &'s SetAside,
    job: &'static str,
    set_aside: BTreeSet<String>,
    failures_in_a_row: usize,
}

impl Round<'_> {
    /// Takes the outcome of work on something that belongs to a person. Damage and failures are counted,
    /// reported, and set aside; an error here means that everything fails.
    pub(super) fn of<T>(
        &mut self,
        whose: &str,
        outcome: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
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
        let meters = &self.of_node.meters;
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
    pub(super) fn end(self) {
        self.of_node.replace(self.job, self.set_aside);
    }
}
