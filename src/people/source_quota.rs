//! Limits the sources that one person's records may name.
//!
//! A source is known for as long as its person is, and every question about amounts ranks them all. What
//! requests name that are admitted and not committed yet counts as if it were known, so that requests of one
//! process at the same time do not exceed the limit. Knows sources; knows nothing of HTTP.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ahash::{HashMap, HashSet};

use crate::catalog::Catalog;
use crate::catalog::records::SeenSource;
use crate::ingest::named_sources::MostSources;
use crate::model::ids::PersonId;

use super::quota::{Limited, Quota, QuotaError};

/// The quota of all people. Lives as long as the process.
#[derive(Clone)]
pub struct SourceQuota {
    catalog: Catalog,
    quota: Quota,
    admitted: Admitted,
    hashes: RandomState,
}

/// The requests that are admitted, by person.
type Admitted = Arc<Mutex<HashMap<PersonId, OfPerson>>>;

#[derive(Debug, Default)]
struct OfPerson {
    namings: Vec<Weak<Naming>>,
    exactly: Arc<tokio::sync::Mutex<()>>,
}

/// What an admitted request names, by hash. To be kept until it is known whether its records are committed,
/// even if nobody waits for the answer any more.
#[derive(Debug)]
#[must_use]
pub struct Naming {
    person: PersonId,
    hashes: Vec<u64>,
    admitted: Admitted,
}

impl SourceQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        Self {
            catalog,
            quota: Quota::new(Limited::Sources, limit),
            admitted: Arc::default(),
            hashes: RandomState::new(),
        }
    }

    /// Lets records of `person` name `sources`, or says why not.
    pub async fn admit(&self, person: PersonId, sources: &[SeenSource]) -> Result<Arc<Naming>, QuotaError> {
        let hashes = sources.iter().map(|source| self.hashes.hash_one(&source.key));
        let naming = Arc::new(Naming {
            person,
            hashes: hashes.collect(),
            admitted: Arc::clone(&self.admitted),
        });
        if sources.is_empty() {
            return Ok(naming);
        }
        let exactly = self.enter(&naming);
        let counted = self.counted(person, Some(&naming)).await?;
        let (named, most) = (sources.len() as u64, self.quota.most);
        // As if all were new, until that makes too many.
        if counted.fetch_add(named, Ordering::Relaxed).saturating_add(named) <= most {
            return Ok(naming);
        }
        let _exactly = exactly.lock().await;
        // Whoever is counted from now on sees what is counted here.
        let before = counted.load(Ordering::Relaxed);
        let others = self.others(person, Some(&naming));
        let known = self.catalog.sources_of(person).await?;
        let known = known.iter().map(|source| self.hashes.hash_one(&source.key));
        let named_by_others = others.iter().flat_map(|other| other.hashes.iter().copied());
        let mut all: HashSet<u64> = known.chain(named_by_others).collect();
        let has = all.len() as u64;
        all.extend(naming.hashes.iter().copied());
        let has_then = all.len() as u64;
        // Known sources may always be named.
        let may_be_named = has_then == has || has_then <= most;
        let counts = if may_be_named { has_then } else { has };
        counted.fetch_sub(before.saturating_sub(counts), Ordering::Relaxed);
        if may_be_named {
            Ok(naming)
        } else {
            Err(self.quota.reached())
        }
    }

    /// How many sources the records of one body may name at most. More are not admitted, whichever they are.
    pub async fn most_named(&self, person: PersonId) -> Result<MostSources, QuotaError> {
        let known = self.counted(person, None).await?;
        Ok(MostSources {
            limit: self.quota.most,
            known: known.load(Ordering::Relaxed),
        })
    }

    /// How many sources the person has and other requests name.
    async fn counted(
        &self,
        person: PersonId,
        naming: Option<&Arc<Naming>>,
    ) -> Result<Arc<AtomicU64>, QuotaError> {
        let count = async {
            // In this order: whoever is committed meanwhile is among one or the other.
            let others = self.others(person, naming);
            let others = others.iter().map(|other| other.hashes.len()).sum::<usize>();
            let known = self.catalog.registered_counts(person).await?.sources;
            Ok(known + others as u64)
        };
        Ok(self.quota.used(person, count).await?)
    }

    /// Adds what a request names. Only one request of a person at a time counts exactly.
    fn enter(&self, naming: &Arc<Naming>) -> Arc<tokio::sync::Mutex<()>> {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_person = admitted.entry(naming.person).or_default();
        of_person.namings.push(Arc::downgrade(naming));
        Arc::clone(&of_person.exactly)
    }

    /// What other requests of the person name.
    fn others(&self, person: PersonId, naming: Option<&Arc<Naming>>) -> Vec<Arc<Naming>> {
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_person = admitted.get(&person).map(|of_person| &of_person.namings);
        let others = of_person.into_iter().flatten().filter_map(Weak::upgrade);
        let is_other = |other: &Arc<Naming>| naming.is_none_or(|naming| !Arc::ptr_eq(other, naming));
        others.filter(is_other).collect()
    }
}

impl Drop for Naming {
    fn drop(&mut self) {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_person) = admitted.get_mut(&self.person) {
            of_person.namings.retain(|naming| naming.strong_count() > 0);
            if of_person.namings.is_empty() {
                admitted.remove(&self.person);
            }
        }
    }
}
