//! One memory budget for everything that is kept so that it need not be read or computed again, and the share
//! of each kind.
//!
//! Nobody should have to choose that many sizes. Caches that grow with what is stored lend each other what
//! they do not use: docs/decisions/0144. Knows sizes; what is kept is the business of each cache.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::cache_pool::CachePool;
use crate::query::QueryCacheSizes;
use crate::upkeep::pause::paused;

/// How long caches wait for memory that others do not use.
const DIVISION_PAUSE: Duration = Duration::from_secs(1);

/// Bytes for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheSizes {
    /// Snapshots of partitions, with the rows that are not in an object yet.
    pub snapshots: u64,
    pub footers: u64,
    /// Bloom filters of ids.
    pub filters: u64,
    pub rollups: u64,
    /// Decoded columns of objects.
    pub decoded: u64,
    /// Small answers.
    pub answers: u64,
    /// Requests by which small answers are found.
    pub repeats: u64,
    pub annotations: u64,
    pub sources: u64,
    /// Lists of files.
    pub file_lists: u64,
    /// When sessions end.
    pub session_ends: u64,
    /// Types that people defined, one by one.
    pub types: u64,
    /// All types that a person defined.
    pub type_lists: u64,
    /// Types that people defined, as their records are decoded.
    pub compiled_types: u64,
}

/// The shares are in hundredths of the budget.
const WHOLE: u64 = 100;

impl CacheSizes {
    /// Divides `all` bytes.
    pub(super) const fn of(all: u64) -> Self {
        let one = all / WHOLE;
        Self {
            snapshots: 18 * one,
            footers: 7 * one,
            filters: 29 * one,
            rollups: 14 * one,
            decoded: 8 * one,
            answers: 4 * one,
            repeats: 2 * one,
            annotations: 6 * one,
            sources: 2 * one,
            file_lists: 2 * one,
            session_ends: one,
            types: one,
            type_lists: 4 * one,
            compiled_types: 2 * one,
        }
    }

    /// The caches of questions.
    pub(super) const fn of_questions(&self) -> QueryCacheSizes {
        QueryCacheSizes {
            rollups: self.rollups,
            decoded: self.decoded,
            sources: self.sources,
        }
    }
}

/// Divides what the caches of a pool hold together, by what they use, until `stop` is called.
pub(super) async fn divide(pool: CachePool, stop: CancellationToken) {
    while paused(&stop, DIVISION_PAUSE).await {
        pool.divide();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_come_to_the_whole() {
        let CacheSizes {
            snapshots,
            footers,
            filters,
            rollups,
            decoded,
            answers,
            repeats,
            annotations,
            sources,
            file_lists,
            session_ends,
            types,
            type_lists,
            compiled_types,
        } = CacheSizes::of(100 << 20);
        let all = [
            snapshots,
            footers,
            filters,
            rollups,
            decoded,
            answers,
            repeats,
            annotations,
            sources,
            file_lists,
            session_ends,
            types,
            type_lists,
            compiled_types,
        ];
        assert_eq!(all.iter().sum::<u64>(), 100 << 20);
        assert!(all.iter().all(|share| *share > 0));
    }
}
