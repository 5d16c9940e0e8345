//! What each person or address has left, in buckets that fill evenly over a minute and hold what a minute
//! brings.
//!
//! They live in memory, as long as the service. Know people and addresses; know nothing of requests.

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::settings::RateSettings;
use crate::model::cache::Cache;
use crate::model::ids::PersonId;

/// The time in which a bucket fills completely.
pub(super) const WINDOW: Duration = Duration::from_mins(1);
/// The most buckets in memory. One that is evicted counts as full.
const REMEMBERED_BUCKETS: u64 = 100_000;

/// What one person or address has left.
#[derive(Debug)]
struct Bucket(Mutex<Level>);

#[derive(Clone, Copy, Debug)]
struct Level {
    left: f64,
    at: Instant,
}

/// Buckets of one kind, by owner.
#[derive(Clone)]
pub(super) struct Buckets<K> {
    pub(super) name: &'static str,
    /// What a minute brings.
    size: f64,
    of: Cache<K, Arc<Bucket>>,
}

/// What is left in a bucket after a request was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeftInBucket {
    pub(super) name: &'static str,
    pub(super) size: u64,
    /// Requests, or bytes.
    pub(super) rest: u64,
    /// How long until the bucket is full again.
    pub(super) full: Duration,
}

/// Nothing is left, or too little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Empty {
    pub(super) left: LeftInBucket,
    /// How long until there is enough for one more request.
    pub(super) wait: Duration,
}

impl<K: Hash + Eq + Copy> Buckets<K> {
    /// `None` where there is no limit.
    fn new(name: &'static str, size: u64) -> Option<Self> {
        (size > 0).then(|| Self {
            name,
            size: size as f64,
            of: Cache::of(REMEMBERED_BUCKETS),
        })
    }

    fn bucket(&self, whose: K, now: Instant) -> Arc<Bucket> {
        let full = || {
            Arc::new(Bucket(Mutex::new(Level {
                left: self.size,
                at: now,
            })))
        };
        self.of.get_or_make(&whose, full)
    }

    /// Takes `amount` at `now`, if anything is left; an excess becomes a debt.
    pub(super) fn take(&self, whose: K, amount: f64, now: Instant) -> Result<LeftInBucket, Empty> {
        let bucket = self.bucket(whose, now);
        let mut level = bucket.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = self.size / WINDOW.as_secs_f64();
        let filled = now.duration_since(level.at).as_secs_f64() * each;
        level.left = (level.left + filled).min(self.size);
        level.at = now;
        let least = amount.min(1.0);
        let left = |level: &Level| LeftInBucket {
            name: self.name,
            size: self.size as u64,
            rest: level.left.max(0.0) as u64,
            full: Duration::from_secs_f64((self.size - level.left) / each),
        };
        if level.left < least {
            return Err(Empty {
                left: left(&level),
                wait: Duration::from_secs_f64((least - level.left) / each),
            });
        }
        level.left -= amount;
        Ok(left(&level))
    }

    /// Takes what was already used.
    pub(super) fn charge(&self, whose: K, amount: f64) {
        let bucket = self.bucket(whose, Instant::now());
        bucket.0.lock().unwrap_or_else(PoisonError::into_inner).left -= amount;
    }
}

/// All buckets of the service.
#[derive(Clone)]
pub struct Rates {
    pub(super) reads: Option<Buckets<PersonId>>,
    pub(super) writes: Option<Buckets<PersonId>>,
    pub(super) bytes: Option<Buckets<PersonId>>,
    pub(super) addresses: Option<Buckets<IpAddr>>,
}

impl Rates {
    #[must_use]
    pub fn new(settings: RateSettings) -> Self {
        Self {
            reads: Buckets::new("reads", settings.reads),
            writes: Buckets::new("writes", settings.writes),
            bytes: Buckets::new("bytes", settings.bytes),
            addresses: Buckets::new("address", settings.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_empty_after_a_minutes_worth_and_fills_evenly() {
        let buckets = Buckets::new("reads", 60).unwrap();
        let mut now = Instant::now();
        for rest in (0..60).rev() {
            assert_eq!(buckets.take(1, 1.0, now).unwrap().rest, rest);
        }
        assert_eq!(
            buckets.take(1, 1.0, now).unwrap_err().wait,
            Duration::from_secs(1)
        );
        assert!(buckets.take(2, 1.0, now).is_ok(), "another has another bucket");
        now += Duration::from_millis(1500);
        assert!(buckets.take(1, 1.0, now).is_ok());
        assert!(buckets.take(1, 1.0, now).is_err());
        now += Duration::from_hours(1);
        assert_eq!(buckets.take(1, 1.0, now).unwrap().rest, 59);
    }

    #[test]
    fn what_was_used_beyond_is_owed() {
        let buckets = Buckets::new("bytes", 6000).unwrap();
        let now = Instant::now();
        buckets.take(1, 0.0, now).unwrap();
        buckets.charge(1, 12_000.0);
        assert_eq!(
            buckets.take(1, 0.0, now).unwrap_err().wait,
            Duration::from_mins(1)
        );
    }

    #[test]
    fn nothing_is_counted_where_there_is_no_limit() {
        assert!(Buckets::<u8>::new("reads", 0).is_none());
    }
}
