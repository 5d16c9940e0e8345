//! The part common to all quotas of a person: a limit, and counts that are remembered briefly, so that a
//! request seldom asks the catalogue for them. Each quota decides what is counted, and when a person may
//! continue at the limit.
//!
//! Knows people and counts; knows nothing of HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::catalog::CatalogError;
use crate::model::cache::ShortLived;
use crate::model::ids::PersonId;

use super::limits::counted;

/// How long a count is remembered.
pub(super) const REMEMBERED_FOR: Duration = Duration::from_secs(10);
/// How many people's counts are remembered.
pub(super) const MOST_PEOPLE: u64 = 10_000;

/// What a quota limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    Keys,
    Sources,
}

impl Limited {
    /// So many of what is limited.
    fn told(self, most: u64) -> String {
        match self {
            Self::Keys => format!("{} in a week", counted(most, "idempotency key")),
            Self::Sources => format!("{} of records", counted(most, "source")),
        }
    }

    const fn setting(self) -> &'static str {
        match self {
            Self::Keys => "ALMANAC_LIMIT_KEYS",
            Self::Sources => "ALMANAC_LIMIT_SOURCES",
        }
    }
}

/// Why a request is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    #[error(
        "a person may have {}, and this request needs more; this is the operator's setting {}",
        what.told(*most),
        what.setting()
    )]
    Reached { what: Limited, most: u64 },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// A limit, and the recent counts of what is used. Lives as long as the process.
#[derive(Clone)]
pub(super) struct Quota {
    what: Limited,
    pub most: u64,
    counts: ShortLived<PersonId, Arc<AtomicU64>>,
}

impl Quota {
    pub(super) fn new(what: Limited, most: u64) -> Self {
        let counts = ShortLived::of(MOST_PEOPLE, REMEMBERED_FOR);
        Self { what, most, counts }
    }

    /// How much a person has: the recent count, or else what `count` yields now.
    pub(super) async fn used(
        &self,
        person: PersonId,
        count: impl Future<Output = Result<u64, CatalogError>>,
    ) -> Result<Arc<AtomicU64>, CatalogError> {
        if let Some(used) = self.counts.get(&person) {
            return Ok(used);
        }
        let count = count.await?;
        Ok(self
            .counts
            .get_or_make(&person, || Arc::new(AtomicU64::new(count))))
    }

    /// The recent count of a person, if there is one.
    pub(super) fn recent(&self, person: PersonId) -> Option<Arc<AtomicU64>> {
        self.counts.get(&person)
    }

    /// Replaces the count of a person by a new one.
    pub(super) fn remember(&self, person: PersonId, count: u64) {
        self.counts.insert(person, Arc::new(AtomicU64::new(count)));
    }

    pub(super) const fn reached(&self) -> QuotaError {
        QuotaError::Reached {
            what: self.what,
            most: self.most,
        }
    }
}
