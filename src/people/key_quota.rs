//! Limits the idempotency keys that one person may have in use.
//!
//! A key is kept for a week, so that a repeated request is recognised. Between recounts each request adds to
//! the count, whether its key is new or not; so near the limit a key may be refused some seconds too early,
//! and one node never accepts too many. Knows keys; knows nothing of HTTP.

use std::sync::atomic::Ordering;

use crate::catalog::Catalog;
use crate::model::ids::PersonId;

use super::quota::{Limited, Quota, QuotaError};

/// The quota of all people. Lives as long as the process.
#[derive(Clone)]
pub struct KeyQuota {
    catalog: Catalog,
    quota: Quota,
}

impl KeyQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        let quota = Quota::new(Limited::Keys, limit);
        Self { catalog, quota }
    }

    /// Whether a request of `person` may use this key.
    pub async fn admit(&self, person: PersonId, key: &str) -> Result<(), QuotaError> {
        let count = self.catalog.key_count(person, self.quota.most);
        let used = self.quota.used(person, count).await?;
        if used.fetch_add(1, Ordering::Relaxed) < self.quota.most {
            return Ok(());
        }
        // A repeated request takes no new key.
        match self.catalog.upload_for_key(person, key).await? {
            Some(_) => Ok(()),
            None => Err(self.quota.reached()),
        }
    }
}
