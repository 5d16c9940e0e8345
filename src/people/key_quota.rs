//! How many idempotency keys one person may have in use.
//!
//! A key is kept for a week, so that a request that is sent again is known. Counts are remembered for a moment,
//! and grow with each request in between, whether its key was new or not; so near the limit a key may be refused
//! some seconds too early, and none is taken too much on one node. Knows keys; knows nothing of HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::sync::Cache;

use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::PersonId;

/// How long a count is remembered.
const MOMENT: Duration = Duration::from_secs(10);
/// People whose counts are remembered.
const PEOPLE: u64 = 10_000;

/// Why a request with a key is not taken.
#[derive(Debug, thiserror::Error)]
pub enum KeyQuotaError {
    #[error(
        "a person may use {0} idempotency keys in a week, and this is one more; this is the operator's setting \
         ALMANAC_LIMIT_KEYS"
    )]
    Reached(u64),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Everybody's. Lives as long as the process.
#[derive(Clone)]
pub struct KeyQuota {
    catalog: Catalog,
    limit: u64,
    counts: Cache<PersonId, Arc<AtomicU64>>,
}

impl KeyQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        Self {
            catalog,
            limit,
            counts: Cache::builder().max_capacity(PEOPLE).time_to_live(MOMENT).build(),
        }
    }

    /// Whether a request of `person` may have this key.
    pub async fn admit(&self, person: PersonId, key: &str) -> Result<(), KeyQuotaError> {
        let used = if let Some(used) = self.counts.get(&person) {
            used
        } else {
            let used = Arc::new(AtomicU64::new(self.catalog.key_count(person, self.limit).await?));
            self.counts.insert(person, Arc::clone(&used));
            used
        };
        if used.fetch_add(1, Ordering::Relaxed) < self.limit {
            return Ok(());
        }
        // A request that is sent again takes no new key.
        match self.catalog.upload_for_key(person, key).await? {
            Some(_) => Ok(()),
            None => Err(KeyQuotaError::Reached(self.limit)),
        }
    }
}
