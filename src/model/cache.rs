//! A bounded cache of values that can be computed or read again, shared by all clones.
//!
//! Knows nothing of its entries but their weight.

use std::convert::Infallible;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::RandomState;
use quick_cache::sync::{Cache as Entries, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

/// Entries within a bound; the least recently used go first. Cheap to clone; all clones share the entries.
pub struct Cache<K, V>(Arc<Weighed<K, V>>);

type Weighed<K, V> = Entries<K, V, Weigh<K, V>, RandomState>;

/// What an entry weighs.
struct Weigh<K, V>(fn(&K, &V) -> usize);

impl<K, V> Clone for Weigh<K, V> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<K, V> Weighter<K, V> for Weigh<K, V> {
    /// At least 1: an entry without weight would never be evicted.
    fn weight(&self, key: &K, value: &V) -> u64 {
        (self.0)(key, value).max(1) as u64
    }
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// A cache of at most `most` entries.
    #[must_use]
    pub fn of(most: u64) -> Self {
        Self::of_bytes(most, 1, |_, _| 1)
    }

    /// A cache of at most `memory` bytes of entries, each of which has as many as `weigh` says. `large` is
    /// the size of a large entry. It decides into how many parts, each with its own lock, the memory is
    /// divided: an entry larger than a part is not kept.
    #[must_use]
    pub fn of_bytes(memory: u64, large: u64, weigh: fn(&K, &V) -> usize) -> Self {
        Self(Arc::new(Entries::with(
            usize::try_from(memory / large.max(1)).unwrap_or(usize::MAX),
            memory,
            Weigh(weigh),
            // Callers choose keys, and must not be able to choose colliding ones.
            RandomState::new(),
            DefaultLifecycle::default(),
        )))
    }

    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.0.get(key)
    }

    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub fn insert(&self, key: K, value: V) {
        self.0.insert(key, value);
    }

    pub fn remove(&self, key: &K) {
        self.0.remove(key);
    }

    /// Keeps only the entries that `keep` accepts.
    pub fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.0.retain(|key, _| keep(key));
    }

    /// Makes room for this much from now on; what no longer fits goes.
    pub fn resize(&self, memory: u64) {
        self.0.set_capacity(memory);
    }

    /// The total weight that there is room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    /// The total weight of the entries.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.0.weight()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.0.clear();
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    /// The kept value, or the one that `make` makes now. Of several concurrent callers one makes it.
    pub fn get_or_make(&self, key: &K, make: impl FnOnce() -> V) -> V {
        let Ok(value) = self.0.get_or_insert_with(key, || Ok::<V, Infallible>(make()));
        value
    }

    /// The kept value, or the one that `found` returns. Of several concurrent callers one awaits it and the
    /// others wait for that one; if it fails, the next one tries.
    pub async fn get_or_find<E>(&self, key: &K, found: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        self.0.get_or_insert_async(key, found).await
    }
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Hash + Eq, V: Clone> fmt::Debug for Cache<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cache({} kept)", self.len())
    }
}

/// A cache whose entries expire.
#[derive(Clone, Debug)]
pub struct ShortLived<K: Hash + Eq, V: Clone> {
    entries: Cache<K, (Instant, V)>,
    lasts: Duration,
}

impl<K: Hash + Eq + Clone, V: Clone> ShortLived<K, V> {
    /// A cache of at most `most` entries, each valid for as long as it `lasts`.
    #[must_use]
    pub fn of(most: u64, lasts: Duration) -> Self {
        let entries = Cache::of(most);
        Self { entries, lasts }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        let (since, value) = self.entries.get(key)?;
        if since.elapsed() < self.lasts {
            return Some(value);
        }
        self.forget_old(key);
        None
    }

    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(key, (Instant::now(), value));
    }

    pub fn remove(&self, key: &K) {
        self.entries.remove(key);
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.entries.clear();
    }

    /// The kept value, or the one that `make` makes now.
    pub fn get_or_make(&self, key: &K, make: impl FnOnce() -> V) -> V {
        self.forget_old(key);
        self.entries.get_or_make(key, || (Instant::now(), make())).1
    }

    fn forget_old(&self, key: &K) {
        let is_old = |(since, _): &(Instant, V)| since.elapsed() >= self.lasts;
        self.entries.0.remove_if(key, is_old);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let cache = Cache::of_bytes(10_000, 100, |_: &u32, value: &Vec<u8>| value.len());
        for key in 0..1_000 {
            cache.insert(key, vec![0; 100]);
        }
        assert!((50..=100).contains(&cache.len()), "{cache:?}");
        assert_eq!(cache.get(&999), Some(vec![0; 100]));
        cache.clear();
        assert!(cache.is_empty());
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let cache = Cache::of_bytes(0, 100, |_: &u32, _: &u8| 0);
        cache.insert(1, 1);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.get_or_make(&1, || 2), 2);
        assert!(cache.is_empty());
    }

    #[test]
    fn what_is_asked_for_again_stays() {
        let cache = Cache::of(32);
        for key in 0..10_000 {
            cache.insert(key, key);
            if key > 0 {
                assert_eq!(cache.get(&0), Some(0), "after {key} others");
            }
        }
    }

    #[tokio::test]
    async fn one_finds_for_all_who_ask_at_once_and_another_one_tries_after_a_failure() {
        let (cache, finds) = (Cache::of(10), AtomicU32::new(0));
        let failing = cache.get_or_find(&1, async {
            tokio::task::yield_now().await;
            Err(())
        });
        let finding = || async {
            finds.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok::<u8, ()>(7)
        };
        let one = cache.get_or_find(&1, finding());
        let other = cache.get_or_find(&1, finding());
        assert_eq!(tokio::join!(failing, one, other), (Err(()), Ok(7), Ok(7)));
        assert_eq!(finds.into_inner(), 1);
    }

    #[test]
    fn what_is_old_is_not_given_out() {
        let cache = ShortLived::of(10, Duration::ZERO);
        cache.insert(1, 1);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.get_or_make(&1, || 2), 2);
        let cache = ShortLived::of(10, Duration::from_hours(1));
        cache.insert(1, 1);
        assert_eq!(cache.get(&1), Some(1));
        assert_eq!(cache.get_or_make(&1, || 2), 1);
        cache.remove(&1);
        assert_eq!(cache.get(&1), None);
    }
}
