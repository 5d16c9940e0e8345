//! Limits the sources that one person's records may name.
//!
//! A source is known for as long as its person is, and every question about amounts ranks them all. Sources
//! that come between two counts may exceed the limit by their number. Knows sources; knows nothing of HTTP.

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
        let has = self.quota.used(person, count).await?.load(Ordering::Relaxed);
        let most = self.quota.most;
        if has.saturating_add(sources.len() as u64) <= most {
            return Ok(());
        }
        let known = self.catalog.sources_of(person).await?;
        let names: HashSet<&str> = known.iter().map(|source| source.key.as_str()).collect();
        let new = sources
            .iter()
            .filter(|source| !names.contains(source.key.as_str()));
        // Known sources may always be named.
        match new.count() as u64 {
            0 => Ok(()),
            new if names.len() as u64 + new <= most => Ok(()),
            _ => Err(self.quota.reached()),
        }
    }
}
