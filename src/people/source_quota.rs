//! How many sources one person's records may name.
//!
//! A source is known for as long as its person is, and every question about amounts ranks them all. Counts are
//! remembered for a moment, so that recording asks for them seldom; what comes within it may exceed the limit by as
//! many. Knows sources; knows nothing of HTTP.

use std::collections::HashSet;
use std::time::Duration;

use moka::sync::Cache;

use crate::catalog::records::SeenSource;
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::PersonId;

/// How long a count is remembered.
const MOMENT: Duration = Duration::from_secs(10);
/// People whose counts are remembered.
const PEOPLE: u64 = 10_000;

/// Why records are not taken.
#[derive(Debug, thiserror::Error)]
pub enum SourceQuotaError {
    #[error(
        "a person's records may name {0} sources, and these name more; this is the operator's setting \
         ALMANAC_LIMIT_SOURCES"
    )]
    Reached(u64),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Everybody's. Lives as long as the process.
#[derive(Clone)]
pub struct SourceQuota {
    catalog: Catalog,
    limit: u64,
    counts: Cache<PersonId, u64>,
}

impl SourceQuota {
    #[must_use]
    pub fn new(catalog: Catalog, limit: u64) -> Self {
        Self {
            catalog,
            limit,
            counts: Cache::builder().max_capacity(PEOPLE).time_to_live(MOMENT).build(),
        }
    }

    /// Whether records of `person` may name `sources`.
    pub async fn admit(&self, person: PersonId, sources: &[SeenSource]) -> Result<(), SourceQuotaError> {
        if sources.is_empty() {
            return Ok(());
        }
        let has = if let Some(has) = self.counts.get(&person) {
            has
        } else {
            let has = self.catalog.registered_counts(person).await?.sources;
            self.counts.insert(person, has);
            has
        };
        if has.saturating_add(sources.len() as u64) <= self.limit {
            return Ok(());
        }
        let known = self.catalog.sources_of(person).await?;
        let names: HashSet<&str> = known.iter().map(|source| source.key.as_str()).collect();
        let new = sources
            .iter()
            .filter(|source| !names.contains(source.key.as_str()));
        // Those that are known already may be named for ever.
        match new.count() as u64 {
            0 => Ok(()),
            new if names.len() as u64 + new <= self.limit => Ok(()),
            _ => Err(SourceQuotaError::Reached(self.limit)),
        }
    }
}
