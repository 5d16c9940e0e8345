//! Limits the sources that one person's records may name.
//!
//! A source is known for as long as its person is, and every question about amounts ranks them all. Sources
//! of requests at the same time may exceed the limit by their number. Knows sources; knows nothing of HTTP.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::catalog::Catalog;
use crate::catalog::records::SeenSource;
use crate::model::ids::PersonId;

use super::quota::{Limited, Quota, QuotaError};

/// The quota of all people. Lives as long as the process.
#[derive(Clone)]
pub struct SourceQuota {
    catalog: Catalog,
    quota: Quota,
}

impl SourceQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        let quota = Quota::new(Limited::Sources, limit);
        Self { catalog, quota }
    }

    /// Whether records of `person` may name `sources`.
    pub async fn admit(&self, person: PersonId, sources: &[SeenSource]) -> Result<(), QuotaError> {
        if sources.is_empty() {
            return Ok(());
        }
        let count = async { Ok(self.catalog.registered_counts(person).await?.sources) };
        let counted = self.quota.used(person, count).await?;
        let (named, most) = (sources.len() as u64, self.quota.most);
        // As if all were new, until that makes too many.
        if counted.fetch_add(named, Ordering::Relaxed).saturating_add(named) <= most {
            return Ok(());
        }
        let known = self.catalog.sources_of(person).await?;
        let names: HashSet<&str> = known.iter().map(|source| source.key.as_str()).collect();
        let new = sources
            .iter()
            .filter(|source| !names.contains(source.key.as_str()));
        let (has, new) = (names.len() as u64, new.count() as u64);
        // Known sources may always be named.
        if new == 0 || has + new <= most {
            counted.store(has + new, Ordering::Relaxed);
            Ok(())
        } else {
            counted.store(has, Ordering::Relaxed);
            Err(self.quota.reached())
        }
    }
}
