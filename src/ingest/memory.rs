//! Limits the memory of request bodies in progress, of all together and of each person.
//!
//! One budget lives as long as the process. A body takes from it the memory that it needs while it is read,
//! waits for more within a time limit, and gives it back when its rows are committed or given up. So however
//! many bodies come, and however they are compressed, their rows fit. The first body always proceeds: if each
//! had a part of what it needs and waited for the others, none would ever finish. Small ones are in that line
//! only while there is no room for them, since most of them wait for their clients. Knows bytes; knows
//! nothing of their content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ahash::HashMap;
use tokio::sync::Notify;
use tokio::time::Instant as Moment;

use crate::model::ids::PersonId;

/// The part of the budget that one person's bodies may take: one in this many.
const SHARE: usize = 2;
/// The step in which a body asks for memory. It is small, so that a small body stays one.
pub const LEAST_MEMORY: usize = 8 << 10;
/// Bodies of no more than this need not wait behind large ones,
pub const SMALL_BODY_BYTES: usize = 64 << 10;
/// because they have a reserve of this part of the budget beside it: one in this many.
const RESERVE: usize = 4;

/// Memory did not become free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request bodies use all the memory set aside for them; try again in a moment")]
pub struct NoRoom;

/// The budget. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct BodyMemory {
    shared: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: usize,
    patience: Duration,
    taken: Mutex<MemoryTaken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct MemoryTaken {
    bytes: usize,
    of: HashMap<PersonId, usize>,
    /// The people whose bodies hold more than small ones have, or wait for it, in the order of arrival.
    line: BTreeMap<u64, PersonId>,
    /// The place of the small body, if any, that was given memory without room for it, as the first in line.
    ahead: Option<u64>,
    came: u64,
}

/// The part of the budget that one body holds, until it is dropped.
#[derive(Debug)]
pub struct Allowance {
    memory: BodyMemory,
    person: PersonId,
    bytes: usize,
    /// Its place in line, from when it asks for more than small ones have, or waits for that. A small one
    /// loses it when there is room for it, and does not hear of that.
    place: Option<u64>,
    /// When all its waits end, if they do together.
    until: Option<Moment>,
}

impl MemoryTaken {
    /// Whether no body in line came before the one at `place`, among all or among one person's.
    fn is_first(&self, place: u64, of: Option<PersonId>) -> bool {
        let mut line = self.line.iter();
        let first = line.find(|(_, holder)| of.is_none_or(|person| **holder == person));
        first.is_none_or(|(first, _)| *first == place)
    }

    /// The place in line of a body that may have had one: that, or a new one at the end.
    fn join(&mut self, person: PersonId, had: Option<u64>) -> u64 {
        if let Some(place) = had.filter(|place| self.line.contains_key(place)) {
            return place;
        }
        self.came += 1;
        self.line.insert(self.came, person);
        self.came
    }

    fn give(&mut self, person: PersonId, more: usize) {
        self.bytes = self.bytes.saturating_add(more);
        *self.of.entry(person).or_default() += more;
    }
}

impl BodyMemory {
    /// A budget of `limit` bytes for all; a body that needs more than is free waits for `patience`.
    #[must_use]
    pub fn new(limit: usize, patience: Duration) -> Self {
        Self {
            shared: Arc::new(Inner {
                limit,
                patience,
                taken: Mutex::default(),
                freed: Notify::new(),
            }),
        }
    }

    /// The most that one body may hold at once; one that needs more proceeds in smaller steps.
    #[must_use]
    pub fn share(&self) -> usize {
        self.shared.limit / SHARE
    }

    /// An allowance that holds nothing yet.
    #[must_use]
    pub fn allowance(&self, person: PersonId) -> Allowance {
        Allowance {
            memory: self.clone(),
            person,
            bytes: 0,
            place: None,
            until: None,
        }
    }

    /// Bytes currently taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().bytes
    }

    /// Up to how many bytes in all there is room for small bodies.
    fn room_for_small(&self) -> usize {
        self.shared.limit + self.shared.limit / RESERVE
    }

    fn lock(&self) -> MutexGuard<'_, MemoryTaken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `more` for a body that has `mine` already, if there is room; unless it is a small one with room,
    /// it is in line from then on. The first of the person's bodies in line may exceed their share, and the
    /// first of all the budget: it must not wait for those that wait for it.
    fn take(&self, person: PersonId, place: &mut Option<u64>, mine: usize, more: usize) -> bool {
        let mut taken = self.lock();
        let own = taken.of.get(&person).copied().unwrap_or(0);
        let all = taken.bytes.saturating_add(more);
        let is_small = mine.saturating_add(more) <= SMALL_BODY_BYTES;
        if is_small && all <= self.room_for_small() {
            taken.give(person, more);
            drop(taken);
            // One that had to wait for it would now stand there for as long as its client likes.
            if let Some(left) = place.take() {
                self.give_back(person, 0, Some(left));
            }
            return true;
        }
        let joined = taken.join(person, *place);
        *place = Some(joined);
        let fits = all <= self.shared.limit || taken.is_first(joined, None);
        let is_fair = own.saturating_add(more) <= self.share() || taken.is_first(joined, Some(person));
        if fits && is_fair {
            taken.give(person, more);
            // Without room for small ones nobody but the first in line is given anything.
            taken.ahead = is_small.then_some(joined);
        }
        fits && is_fair
    }

    fn give_back(&self, person: PersonId, bytes: usize, place: Option<u64>) {
        let mut taken = self.lock();
        taken.bytes = taken.bytes.saturating_sub(bytes);
        if let Some(own) = taken.of.get_mut(&person) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                taken.of.remove(&person);
            }
        }
        // Others must not wait for a small one that has its memory, however little of it is taken.
        let has_room = taken.bytes <= self.room_for_small();
        let outrun = taken.ahead.take_if(|ahead| has_room || Some(*ahead) == place);
        for place in place.into_iter().chain(outrun) {
            taken.line.remove(&place);
        }
        drop(taken);
        self.shared.freed.notify_waiters();
    }
}

impl Allowance {
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most that one person's bodies may hold.
    #[must_use]
    pub fn share(&self) -> usize {
        self.memory.share()
    }

    /// Lets all waits from now on end together, when one that began now would. Otherwise a body that gets a
    /// little at each of them could hold for minutes what others wait for.
    pub fn limit_waits(&mut self) {
        self.until = Some(Moment::now() + self.memory.shared.patience);
    }

    /// Changes the size of the allowance to `bytes`. Shrinking is immediate; growing may have to wait.
    pub async fn resize(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return Ok(());
        }
        let patience = self.memory.shared.patience;
        let until = self.until.unwrap_or_else(|| Moment::now() + patience);
        loop {
            let memory = self.memory.clone();
            let freed = memory.shared.freed.notified();
            let mut freed = std::pin::pin!(freed);
            // Enabled before the check, so that memory freed in between is not missed.
            freed.as_mut().enable();
            if self.grow_at_once(bytes) {
                return Ok(());
            }
            if tokio::time::timeout_at(until, freed).await.is_err() {
                return Err(NoRoom);
            }
        }
    }

    /// Grows the allowance to `bytes` if that needs no waiting. Says whether it is that large then.
    pub fn grow_at_once(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let more = bytes - self.bytes;
        let has_grown = self.memory.take(self.person, &mut self.place, self.bytes, more);
        if has_grown {
            self.bytes = bytes;
        }
        has_grown
    }

    fn shrink(&mut self, bytes: usize) {
        // A body that gives back everything gets a new place when it needs memory again.
        let left = if bytes == 0 { self.place.take() } else { None };
        if bytes < self.bytes || left.is_some() {
            self.memory.give_back(self.person, self.bytes - bytes, left);
            self.bytes = bytes;
        }
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn person(number: u128) -> PersonId {
        PersonId(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn who_does_not_fit_waits_and_then_hears_so() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_millis(50));
        let (mut first, mut second) = (memory.allowance(person(1)), memory.allowance(person(2)));
        first.resize(50 * MIB).await.unwrap();
        second.resize(40 * MIB).await.unwrap();
        let mut third = memory.allowance(person(3));
        assert_eq!(third.resize(20 * MIB).await, Err(NoRoom));
        assert_eq!(memory.taken(), 90 * MIB);
        let (waited, ()) = tokio::join!(third.resize(20 * MIB), async { drop(first) });
        assert_eq!((waited, memory.taken()), (Ok(()), 60 * MIB));
    }

    #[tokio::test]
    async fn waits_that_end_together_have_one_patience() {
        let patience = Duration::from_millis(200);
        let memory = BodyMemory::new(100 * MIB, patience);
        let (mut first, mut mine) = (memory.allowance(person(1)), memory.allowance(person(2)));
        first.resize(90 * MIB).await.unwrap();
        mine.limit_waits();
        tokio::time::sleep(patience).await;
        // What is free it still gets.
        assert_eq!(mine.resize(10 * MIB).await, Ok(()));
        let waited = tokio::time::timeout(patience / 2, mine.resize(11 * MIB)).await;
        assert_eq!(waited, Ok(Err(NoRoom)));
        mine.limit_waits();
        let (waited, ()) = tokio::join!(mine.resize(11 * MIB), async { drop(first) });
        assert_eq!(waited, Ok(()));
    }

    #[tokio::test]
    async fn small_bodies_do_not_wait_behind_large_ones() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_millis(50));
        let mut large = memory.allowance(person(1));
        large.resize(100 * MIB).await.unwrap();
        memory
            .allowance(person(1))
            .resize(SMALL_BODY_BYTES)
            .await
            .unwrap();
        assert_eq!(
            memory.allowance(person(2)).resize(SMALL_BODY_BYTES + 1).await,
            Err(NoRoom)
        );
    }

    #[tokio::test]
    async fn small_bodies_whose_clients_take_their_time_are_not_in_line() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_millis(50));
        let [mut slow, mut large, mut next] = [1, 2, 3].map(|number| memory.allowance(person(number)));
        slow.resize(SMALL_BODY_BYTES).await.unwrap();
        assert_eq!(large.resize(200 * MIB).await, Ok(()));
        assert_eq!(next.resize(150 * MIB).await, Err(NoRoom));
        assert_eq!(slow.resize(150 * MIB).await, Err(NoRoom));
        drop(large);
        // Who waits is in line, whether it holds anything or not.
        assert_eq!(slow.resize(150 * MIB).await, Err(NoRoom));
        assert_eq!(next.resize(150 * MIB).await, Ok(()));
        drop(next);
        assert_eq!(slow.resize(150 * MIB).await, Ok(()));
        drop(slow);
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn small_bodies_that_had_to_wait_are_not_in_line_once_they_have_what_they_asked_for() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_secs(5));
        let [mut slow, mut large, mut next] = [1, 2, 3].map(|number| memory.allowance(person(number)));
        large.resize(125 * MIB).await.unwrap();
        let (small, waited, ()) =
            tokio::join!(slow.resize(SMALL_BODY_BYTES), next.resize(150 * MIB), async {
                drop(large);
            });
        assert_eq!((small, waited), (Ok(()), Ok(())));
        assert_eq!(memory.taken(), 150 * MIB + SMALL_BODY_BYTES);
    }

    #[test]
    fn a_small_body_without_room_is_in_line_until_there_is_room_for_it() {
        let memory = BodyMemory::new(MIB, Duration::from_secs(5));
        let [mut slow, mut next] = [1, 2].map(|number| memory.allowance(person(number)));
        let mut others = [3; 20].map(|number| memory.allowance(person(number)));
        assert!(
            others
                .iter_mut()
                .all(|other| other.grow_at_once(SMALL_BODY_BYTES))
        );
        assert!(slow.grow_at_once(SMALL_BODY_BYTES));
        // One at a time: however many small ones come, they are not given more than there is.
        assert!(!next.grow_at_once(SMALL_BODY_BYTES));
        drop(others);
        assert!(next.grow_at_once(2 * MIB));
        // It lost its place, and what it wants now is for large ones.
        assert!(!slow.grow_at_once(2 * MIB));
        drop(next);
        assert!(slow.grow_at_once(2 * MIB));
        drop(slow);
        assert_eq!(memory.taken(), 0);
    }

    #[tokio::test]
    async fn bodies_that_grow_together_all_come_to_their_end() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_secs(30));
        let grown = |number: u128| {
            let mut body = memory.allowance(person(number));
            async move {
                for part in 1..=4 {
                    body.resize(part * 20 * MIB).await?;
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
        };
        let of_one = futures::future::try_join_all([1; 4].map(grown)).await;
        assert_eq!(of_one.map(|_| memory.taken()), Ok::<usize, NoRoom>(0));
        let of_many = futures::future::try_join_all([1, 2, 3, 4, 5, 6].map(grown)).await;
        assert_eq!(of_many.map(|_| memory.taken()), Ok::<usize, NoRoom>(0));
    }

    #[tokio::test]
    async fn one_person_gets_no_more_than_their_share() {
        let memory = BodyMemory::new(100 * MIB, Duration::from_millis(50));
        let (mut one, mut other) = (memory.allowance(person(1)), memory.allowance(person(1)));
        one.resize(50 * MIB).await.unwrap();
        assert_eq!(other.resize(MIB).await, Err(NoRoom));
        memory.allowance(person(2)).resize(50 * MIB).await.unwrap();
        drop(one);
        other.resize(1000 * MIB).await.unwrap();
        assert_eq!(memory.allowance(person(2)).resize(MIB).await, Err(NoRoom));
        drop(other);
        assert_eq!(memory.taken(), 0);
    }
}
