//! Leases: a job runs only while its node holds the lease of that name.
//!
//! A lease is not a lock. A node that stalls may lose it and not notice, so every job ends by comparing with
//! the present state; the lease only avoids doing everything twice. It ends by the database's clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, CatalogError};
use crate::model::meters::UpkeepMeters;
use crate::store::StoreError;

/// After this time another node may do the work of a node that died.
const LEASE_LENGTH: Duration = Duration::from_secs(30);
/// A lease is renewed this often, well before it ends.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// How soon a renewal that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Work that takes longer has hung: it is dropped, and others may try.
const LONGEST_WORK: Duration = Duration::from_hours(6);
/// Work that leases of others have delayed for this long counts as failed.
const LONGEST_REFUSAL: Duration = Duration::from_mins(10);
/// Refusals that are further apart say nothing of the time between them: the lease may have been free. Jobs
/// that begin more rarely are never counted as delayed; the node that does their work too long says so.
const SAME_DELAY: Duration = Duration::from_secs(2 * LEASE_LENGTH.as_secs());

/// The leases of one node.
#[derive(Clone)]
pub struct Leases {
    catalog: Catalog,
    holder: String,
    meters: UpkeepMeters,
    /// How long the lease of a name has been refused.
    refused: Arc<Mutex<HashMap<String, LeaseRefusals>>>,
}

/// Refusals of one lease, with nothing else between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseRefusals {
    since: Moment,
    last: Moment,
}

impl LeaseRefusals {
    pub(super) const fn first(now: Moment) -> Self {
        Self {
            since: now,
            last: now,
        }
    }

    /// Counts one more; returns whether they have now lasted for too long, and then begins anew.
    pub(super) fn again(&mut self, now: Moment) -> bool {
        if now.duration_since(self.last) > SAME_DELAY {
            self.since = now;
        }
        self.last = now;
        let is_too_long = now.duration_since(self.since) >= LONGEST_REFUSAL;
        if is_too_long {
            self.since = now;
        }
        is_too_long
    }
}

impl Leases {
    /// `holder`: a name that no other node has.
    #[must_use]
    pub fn new(catalog: Catalog, holder: String, meters: UpkeepMeters) -> Self {
        Self {
            catalog,
            holder,
            meters,
            refused: Arc::default(),
        }
    }

    /// Does `work` if nobody else holds the lease called `name`. The work is dropped midway when `stop` is
    /// called, the lease is lost, or it takes too long; `None` means that it was not done, or not completed.
    pub async fn alone<T>(
        &self,
        name: &str,
        stop: &CancellationToken,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Option<T>, StoreError> {
        let asked = Moment::now();
        if !self
            .catalog
            .acquire_lease(name, &self.holder, LEASE_LENGTH)
            .await?
        {
            self.was_refused(name);
            return Ok(None);
        }
        self.lock().remove(name);
        let done = tokio::select! {
            done = work => done.map(Some),
            () = stop.cancelled() => Ok(None),
            lost = self.renew_until_lost(name, asked) => {
                self.meters.lost_leases.inc();
                lost.map(|()| None)
            }
            () = tokio::time::sleep(LONGEST_WORK) => Err(StoreError::Unavailable {
                detail: format!("{name} took longer than {} hours", LONGEST_WORK.as_secs() / 3600),
            }),
        };
        self.catalog.release_lease(name, &self.holder).await?;
        done
    }

    /// Counts work that failed, for whoever goes on with it themselves.
    pub fn note_failure(&self) {
        self.meters.failures.inc();
    }

    /// Ends when somebody else may have had the lease, or with an error once it is over, also while a renewal
    /// is under way. `renewed`: when it was asked for.
    pub(super) async fn renew_until_lost(&self, name: &str, mut renewed: Moment) -> Result<(), StoreError> {
        let mut due = renewed + RENEWAL_INTERVAL;
        loop {
            let renewal = async {
                tokio::time::sleep_until(due.into()).await;
                let asked = Moment::now();
                let outcome = self.catalog.renew_lease(name, &self.holder, LEASE_LENGTH).await;
                (asked, outcome)
            };
            let over = renewed + LEASE_LENGTH;
            let Ok((asked, outcome)) = tokio::time::timeout_at(over.into(), renewal).await else {
                let detail = format!("the lease of {name} could not be renewed before it was over");
                return Err(CatalogError::Unavailable { detail }.into());
            };
            match outcome {
                Ok(true) => (renewed, due) = (asked, asked + RENEWAL_INTERVAL),
                Ok(false) => return Ok(()),
                Err(error) => {
                    tracing::warn!(job = name, %error, "a lease is not renewed yet");
                    due = Moment::now() + RETRY_PAUSE;
                }
            }
        }
    }

    /// Another node may well be at work, but not for ever.
    fn was_refused(&self, name: &str) {
        let now = Moment::now();
        let mut refused = self.lock();
        let refused = refused
            .entry(name.to_owned())
            .or_insert(LeaseRefusals::first(now));
        if refused.again(now) {
            self.meters.failures.inc();
            tracing::warn!(
                job = name,
                "another node has held the lease of this work for very long"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LeaseRefusals>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
