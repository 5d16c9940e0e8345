//! Caches that lend each other memory: what one does not use of its share serves those that are full, and
//! comes back when it is wanted.
//!
//! A share that is too small by a little can make a cache useless: what is asked for in turn then always goes
//! just before it is asked for again. Knows how much caches hold and may hold, and not what.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cache::Cache;

/// A cache keeps at least its share divided by this, and so much more than it holds as that divided by
/// `GROWTH`, so that it can grow until memory is divided again.
const KEPT: u64 = 2;
const GROWTH: u64 = 4;
/// Memory is divided anew where some cache would have more or less than before, by at least so many parts of
/// its share.
const NOTABLE: u64 = 16;
/// So large a part of a wish is forgotten whenever memory is divided: within minutes, nothing is left of it.
const FADING: u64 = 64;

/// Some caches, and what they may hold together.
pub struct CachePool(Vec<Member>);

/// One of the caches of a pool.
pub struct Member {
    /// Bytes that are its own; what others need of them is lent.
    share: u64,
    cache: Box<dyn Resizable>,
    wish: Wish,
}

/// How much a cache was to keep at once and had no room for. All clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Wish(Arc<AtomicU64>);

impl Wish {
    /// Notes that there was no room for so many bytes.
    pub fn note(&self, bytes: u64) {
        self.0.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The wish, of which a part is forgotten.
    fn fading(&self) -> u64 {
        let fade = |wished: u64| Some(wished - wished / FADING);
        let faded = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fade);
        faded.unwrap_or_else(|wished| wished)
    }
}

trait Resizable: Send + Sync {
    fn holds(&self) -> u64;
    fn room(&self) -> u64;
    fn resize(&self, memory: u64);
}

impl<K, V> Resizable for Cache<K, V>
where
    K: Hash + Eq + Send + Sync,
    V: Clone + Send + Sync,
{
    fn holds(&self) -> u64 {
        self.weight()
    }

    fn room(&self) -> u64 {
        self.capacity()
    }

    fn resize(&self, memory: u64) {
        Self::resize(self, memory);
    }
}

impl Member {
    /// The cache's share is what it may hold now.
    #[must_use]
    pub fn of<K, V>(cache: &Cache<K, V>) -> Self
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        Self {
            share: cache.capacity(),
            cache: Box::new(cache.clone()),
            wish: Wish::default(),
        }
    }

    /// The same for a cache that counts as holding what it wishes for.
    #[must_use]
    pub fn wishing(self, wish: &Wish) -> Self {
        let wish = wish.clone();
        Self { wish, ..self }
    }

    fn used(&self) -> Use {
        Use {
            share: self.share,
            holds: self.cache.holds().max(self.wish.fading()),
        }
    }
}

impl CachePool {
    #[must_use]
    pub const fn of(members: Vec<Member>) -> Self {
        Self(members)
    }

    /// Divides the memory by what the caches hold now. Together they may never hold more than their shares.
    pub fn divide(&self) {
        let uses: Vec<Use> = self.0.iter().map(Member::used).collect();
        let rooms = rooms(&uses);
        let mut changes: Vec<(&Member, u64, u64)> = Vec::with_capacity(self.0.len());
        for (member, room) in self.0.iter().zip(rooms) {
            changes.push((member, member.cache.room(), room));
        }
        let notable =
            |(member, before, room): &(&Member, u64, u64)| before.abs_diff(*room) > member.share / NOTABLE;
        if !changes.iter().any(notable) {
            return;
        }
        // Whoever gets less comes first, so that no byte is given to two.
        changes.sort_unstable_by_key(|(_, before, room)| room > before);
        for (member, _, room) in changes {
            member.cache.resize(room);
        }
    }
}

impl fmt::Debug for CachePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CachePool({} caches)", self.0.len())
    }
}

/// What a cache has and holds.
#[derive(Clone, Copy, Debug)]
struct Use {
    share: u64,
    holds: u64,
}

impl Use {
    /// How much of its share the cache needs.
    fn needs(&self) -> u64 {
        let growing = self.holds.saturating_add(self.share / GROWTH);
        growing.clamp(self.share / KEPT, self.share)
    }

    /// Whether the cache may need more than its share.
    fn is_full(&self) -> bool {
        self.needs() == self.share
    }
}

/// What each may hold: its share where none is full; otherwise what it needs, and those that are full also
/// what the others do not need, in proportion to their shares.
fn rooms(uses: &[Use]) -> Vec<u64> {
    let lent: u64 = uses.iter().map(|one| one.share - one.needs()).sum();
    let full: u64 = uses.iter().filter(|one| one.is_full()).map(|one| one.share).sum();
    let room = |one: &Use| {
        if full == 0 {
            return one.share;
        }
        if !one.is_full() {
            return one.needs();
        }
        let borrowed = u128::from(lent) * u128::from(one.share) / u128::from(full);
        one.share + u64::try_from(borrowed).unwrap_or(0)
    };
    uses.iter().map(room).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn holding(share: u64, holds: u64) -> Use {
        Use { share, holds }
    }

    #[test]
    fn who_is_full_has_what_the_others_do_not_need() {
        let quiet = rooms(&[holding(100, 0), holding(200, 149), holding(40, 7)]);
        assert_eq!(quiet, [100, 200, 40]);
        let one_full = rooms(&[holding(100, 0), holding(200, 200), holding(40, 15)]);
        assert_eq!(one_full, [50, 200 + 50 + 15, 25]);
        // What was lent comes back as its owner grows.
        let both_full = rooms(&[holding(100, 75), holding(200, 265), holding(40, 15)]);
        assert_eq!(both_full, [100 + 5, 200 + 10, 25]);
        assert_eq!(rooms(&[holding(100, 90), holding(200, 200)]), [100, 200]);
        assert_eq!(rooms(&[holding(0, 0), holding(0, 0)]), [0, 0]);
    }

    proptest! {
        #[test]
        fn all_together_have_no_more_than_their_shares(
            uses in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 41), 0..6)
        ) {
            let uses: Vec<Use> = uses.into_iter().map(|(share, holds)| holding(share, holds)).collect();
            let all: u64 = uses.iter().map(|one| one.share).sum();
            let rooms = rooms(&uses);
            prop_assert!(rooms.iter().sum::<u64>() <= all);
            for (one, room) in uses.iter().zip(rooms) {
                prop_assert!(room >= one.share / KEPT);
                prop_assert!(room >= one.holds.min(one.share));
            }
        }
    }

    #[test]
    fn what_is_wished_for_has_room_until_the_wish_has_faded() {
        let cache = || Cache::of_bytes(1_000, 1_000, |_: &u32, value: &Vec<u8>| value.len());
        let (small, idle, wish) = (cache(), cache(), Wish::default());
        let pool = CachePool::of(vec![Member::of(&small).wishing(&wish), Member::of(&idle)]);
        pool.divide();
        assert!(small.capacity() < 1_200);
        wish.note(1_200);
        pool.divide();
        assert!(small.capacity() > 1_200);
        small.insert(1, vec![0; 1_200]);
        for _second in 0..600 {
            pool.divide();
        }
        assert!(small.contains(&1), "it needs the room itself now");
        small.remove(&1);
        pool.divide();
        assert!(small.capacity() < 1_200);
    }

    #[test]
    fn a_cache_holds_what_it_borrowed_until_the_owner_wants_it() {
        let cache = || Cache::of_bytes(1_000, 1_000, |_: &u32, value: &Vec<u8>| value.len());
        let (busy, idle) = (cache(), cache());
        let pool = CachePool::of(vec![Member::of(&busy), Member::of(&idle)]);
        let fill = |cache: &Cache<u32, Vec<u8>>| {
            for key in 0..30 {
                if cache.get(&key).is_none() {
                    cache.insert(key, vec![0; 100]);
                }
            }
        };
        fill(&busy);
        assert!(busy.weight() <= 1_000);
        pool.divide();
        fill(&busy);
        assert_eq!((busy.capacity(), idle.capacity()), (1_500, 500));
        assert!((1_001..=1_500).contains(&busy.weight()), "{}", busy.weight());

        for _ in 0..4 {
            fill(&idle);
            pool.divide();
            assert!(busy.weight() + idle.weight() <= 2_000);
        }
        assert!(idle.capacity() >= 900, "{}", idle.capacity());
        assert!(busy.capacity() + idle.capacity() <= 2_000);
    }
}
