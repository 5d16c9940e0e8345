//! Limits the idempotency keys that one person may have in use.
//!
//! A key is kept for a week, so that a repeated request is recognised. It counts once, however many requests
//! have it. From when a request is admitted until it is known whether it is committed, its key counts as if
//! it were kept, so that one process never accepts too many. Knows keys; knows nothing of HTTP.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::{Catalog, CatalogError};
use crate::model::cache::ShortLived;
use crate::model::ids::PersonId;

use super::quota::{Limited, MOST_PEOPLE, Quota, QuotaError, REMEMBERED_FOR};

/// How many people's keys may be counted exactly at the same time.
const COUNTED_AT_ONCE: usize = 64;

/// The quota of all people. Lives as long as the process.
#[derive(Clone)]
pub struct KeyQuota {
    catalog: Catalog,
    /// Its counts are never too small: between exact ones each request adds 1 whose key is not in use.
    quota: Quota,
    /// People whose kept keys alone reach the limit.
    full: ShortLived<PersonId, ()>,
    in_use: InUse,
    /// Each person has one of these, and holds it while counting exactly.
    counting: Arc<[tokio::sync::Mutex<()>]>,
    hashes: RandomState,
}

/// The keys of admitted requests, by person, and how many requests have each.
type InUse = Arc<Mutex<HashMap<PersonId, HashMap<String, usize>>>>;

/// The key of an admitted request. To be held until it is known whether the request is committed, even if
/// nobody waits for the answer any more.
#[derive(Debug)]
#[must_use]
pub struct Using {
    person: PersonId,
    key: String,
    in_use: InUse,
}

impl KeyQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        Self {
            catalog,
            quota: Quota::new(Limited::Keys, limit),
            full: ShortLived::of(MOST_PEOPLE, REMEMBERED_FOR),
            in_use: Arc::default(),
            counting: (0..COUNTED_AT_ONCE)
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
            hashes: RandomState::new(),
        }
    }

    /// Lets a request of `person` use this key, or says why not.
    pub async fn admit(&self, person: PersonId, key: &str) -> Result<Using, QuotaError> {
        if let Some(using) = self.enter(person, key) {
            return Ok(using);
        }
        let turn = self.hashes.hash_one(person) as usize % self.counting.len();
        // While it is held, nobody else makes the count smaller, and so nobody enters whom it would refuse.
        let _counting = self.counting[turn].lock().await;
        if let Some(using) = self.enter(person, key) {
            return Ok(using);
        }
        // A repeated request takes no new key. At the limit it is looked up first: that takes less than
        // counting.
        let is_counted = self.quota.recent(person).is_some();
        if is_counted && self.is_kept(person, key).await? {
            return Ok(self.hold(person, key));
        }
        if self.full.get(&person).is_none() {
            let (in_use, most) = (self.in_use_by(person), self.quota.most);
            let counted = self.catalog.key_count_with(person, &in_use, most).await?;
            let used = counted.kept + counted.others;
            if used < most {
                let using = self.hold(person, key);
                self.quota.remember(person, used + 1);
                return Ok(using);
            }
            self.quota.remember(person, used);
            // What is in use may be given up at any moment; what is kept hardly changes in the time for which
            // this is remembered.
            if counted.kept >= most {
                self.full.insert(person, ());
            }
        }
        if !is_counted && self.is_kept(person, key).await? {
            return Ok(self.hold(person, key));
        }
        Err(self.quota.reached())
    }

    /// Admits a request whose key is in use already, or that stays within the limit as if its key were new.
    fn enter(&self, person: PersonId, key: &str) -> Option<Using> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in_use = in_use.get(&person).is_some_and(|keys| keys.contains_key(key));
        if !is_in_use {
            let counted = self.quota.recent(person)?;
            if counted.load(Ordering::Relaxed) >= self.quota.most {
                return None;
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
        add(&mut in_use, person, key);
        Some(self.using(person, key))
    }

    fn hold(&self, person: PersonId, key: &str) -> Using {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut in_use, person, key);
        self.using(person, key)
    }

    fn using(&self, person: PersonId, key: &str) -> Using {
        Using {
            person,
            key: key.to_owned(),
            in_use: Arc::clone(&self.in_use),
        }
    }

    fn in_use_by(&self, person: PersonId) -> Vec<String> {
        let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = in_use.get(&person).into_iter().flat_map(HashMap::keys);
        keys.cloned().collect()
    }

    /// Whether a request with this key was accepted.
    async fn is_kept(&self, person: PersonId, key: &str) -> Result<bool, CatalogError> {
        Ok(self.catalog.upload_for_key(person, key).await?.is_some())
    }
}

fn add(in_use: &mut HashMap<PersonId, HashMap<String, usize>>, person: PersonId, key: &str) {
    let keys = in_use.entry(person).or_default();
    *keys.entry(key.to_owned()).or_default() += 1;
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keys) = in_use.get_mut(&self.person) else {
            return;
        };
        if let Some(requests) = keys.get_mut(&self.key) {
            *requests -= 1;
            if *requests == 0 {
                keys.remove(&self.key);
            }
        }
        if keys.is_empty() {
            in_use.remove(&self.person);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::{Commit, Effect, UploadReceipt};
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::SystemClock;
    use crate::model::ids::UploadId;

    const PERSON: PersonId = PersonId(Uuid::from_u128(1));

    async fn keep(catalog: &Catalog, key: &str) {
        let receipt = UploadReceipt {
            person: PERSON,
            upload: UploadId(Uuid::now_v7()),
            key: Some((key.to_owned(), [0; 32])),
            effect: Effect::default(),
        };
        let commit = Commit {
            uploads: vec![receipt],
            ..Commit::default()
        };
        catalog.commit(commit).await.unwrap();
    }

    #[tokio::test]
    async fn who_keeps_as_many_as_there_may_be_is_not_counted_again_although_some_are_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let quota = KeyQuota::new(catalog.clone(), 2);
        keep(&catalog, "one").await;
        let using = quota.admit(PERSON, "two").await.unwrap();
        assert!(quota.admit(PERSON, "three").await.is_err());
        assert!(
            quota.full.get(&PERSON).is_none(),
            "what is in use may be given up"
        );
        keep(&catalog, "two").await;
        assert!(quota.admit(PERSON, "three").await.is_err());
        assert!(quota.full.get(&PERSON).is_some());
        drop(using);
        for repeated in ["one", "two"] {
            assert!(quota.admit(PERSON, repeated).await.is_ok(), "{repeated}");
        }
        assert!(quota.admit(PERSON, "three").await.is_err());
    }
}
