//! A limited number of places with a short queue in front, and for each person a share of both.
//!
//! Refusing early keeps the service responsive: a request gets a place, waits a bounded time among a bounded
//! number of others, or is asked to come back. Nobody has more places than their share, and somebody who
//! waits for a place of their own share keeps nobody else from one. A place is held for as long as its
//! [`AdmissionSlot`] lives, so a streamed answer keeps it until its last byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;

use crate::model::ids::PersonId;
use crate::model::meters::QueueMeters;

/// How long a refused request should wait before it is sent again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    #[error("too many requests are waiting; try again in a moment")]
    QueueFull,
    #[error("the service is too busy to answer in time; try again in a moment")]
    WaitedTooLong,
    #[error("the service is stopping")]
    Stopping,
}

impl Busy {
    #[must_use]
    pub const fn retry_after(self) -> Duration {
        RETRY_AFTER
    }
}

/// The places and the queue.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    seats: Arc<Semaphore>,
    /// How many places and seats in the queue one person may have.
    each: Room,
    people: Arc<Mutex<HashMap<PersonId, Weak<Own>>>>,
    patience: Duration,
    meters: QueueMeters,
}

/// How many requests may run at once, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub places: usize,
    pub seats: usize,
}

/// One person's share, for as long as they ask for anything.
#[derive(Debug)]
struct Own {
    places: Arc<Semaphore>,
    seats: Semaphore,
}

/// A place. Dropping it lets the next one in.
#[derive(Debug)]
pub struct AdmissionSlot {
    _place: OwnedSemaphorePermit,
    _own_place: OwnedSemaphorePermit,
    /// Keeps alive the share that the place belongs to.
    _own: Arc<Own>,
    meters: QueueMeters,
}

impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        self.meters.running.dec();
    }
}

/// Counts a request as waiting for as long as this lives, even if the wait is abandoned.
struct Waiting<'a>(&'a QueueMeters);

impl<'a> Waiting<'a> {
    fn begin(meters: &'a QueueMeters) -> Self {
        meters.waiting.inc();
        Self(meters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.dec();
    }
}

impl Admission {
    /// `all`: how many run at once, and how many wait at most `patience`. `each`: one person's share.
    #[must_use]
    pub fn new(all: Room, each: Room, patience: Duration, meters: QueueMeters) -> Self {
        Self {
            places: Arc::new(Semaphore::new(all.places.clamp(1, Semaphore::MAX_PERMITS))),
            seats: Arc::new(Semaphore::new(all.seats.min(Semaphore::MAX_PERMITS))),
            each,
            people: Arc::default(),
            patience,
            meters,
        }
    }

    /// A place for `person`, as soon as there is one.
    pub async fn enter(&self, person: PersonId) -> Result<AdmissionSlot, Busy> {
        let own = self.own(person);
        let entered = self.places_of(&own).await;
        match entered {
            Ok((own_place, place)) => {
                self.meters.running.inc();
                Ok(AdmissionSlot {
                    _place: place,
                    _own_place: own_place,
                    _own: own,
                    meters: self.meters.clone(),
                })
            }
            Err(busy) => {
                self.meters.turned_away.inc();
                Err(busy)
            }
        }
    }

    async fn places_of(&self, own: &Own) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), Busy> {
        let at_once = |places: &Arc<Semaphore>| match Arc::clone(places).try_acquire_owned() {
            Ok(place) => Ok(Some(place)),
            Err(TryAcquireError::NoPermits) => Ok(None),
            Err(TryAcquireError::Closed) => Err(Busy::Stopping),
        };
        // The person's own place comes first: waiting for it must not hold a place that others wait for.
        let own_place = at_once(&own.places)?;
        if let Some(own_place) = own_place {
            return match at_once(&self.places)? {
                Some(place) => Ok((own_place, place)),
                None => self.wait(own, Some(own_place)).await,
            };
        }
        self.wait(own, None).await
    }

    async fn wait(
        &self,
        own: &Own,
        own_place: Option<OwnedSemaphorePermit>,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), Busy> {
        let _own_seat = own.seats.try_acquire().map_err(|_| Busy::QueueFull)?;
        let _seat = self.seats.try_acquire().map_err(|_| Busy::QueueFull)?;
        let _waiting = Waiting::begin(&self.meters);
        let until = Instant::now() + self.patience;
        let waited = async |places: &Arc<Semaphore>| match tokio::time::timeout_at(
            until,
            Arc::clone(places).acquire_owned(),
        )
        .await
        {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(Busy::Stopping),
            Err(_) => Err(Busy::WaitedTooLong),
        };
        let own_place = match own_place {
            Some(own_place) => own_place,
            None => waited(&own.places).await?,
        };
        Ok((own_place, waited(&self.places).await?))
    }

    fn own(&self, person: PersonId) -> Arc<Own> {
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = people.get(&person).and_then(Weak::upgrade) {
            return own;
        }
        // A new person triggers the clean-up, so the map holds at most those who have asked since the last
        // one came.
        people.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Own {
            places: Arc::new(Semaphore::new(self.each.places.clamp(1, Semaphore::MAX_PERMITS))),
            seats: Semaphore::new(self.each.seats.min(Semaphore::MAX_PERMITS)),
        });
        people.insert(person, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ANYBODY: PersonId = PersonId(Uuid::nil());

    fn admission(places: usize, seats: usize, patience: Duration) -> Admission {
        let all = Room { places, seats };
        Admission::new(all, all, patience, QueueMeters::default())
    }

    #[tokio::test]
    async fn one_persons_questions_leave_places_for_others() {
        let all = Room { places: 4, seats: 8 };
        let each = Room { places: 2, seats: 4 };
        let admission = Admission::new(all, each, Duration::from_mins(1), QueueMeters::default());
        let other = PersonId(Uuid::from_u128(1));
        let _first = admission.enter(ANYBODY).await.unwrap();
        let second = admission.enter(ANYBODY).await.unwrap();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let admission = admission.clone();
                tokio::spawn(async move { admission.enter(ANYBODY).await })
            })
            .collect();
        while admission.meters.waiting.get() < 4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(admission.enter(ANYBODY).await.unwrap_err(), Busy::QueueFull);
        let _of_other = [
            admission.enter(other).await.unwrap(),
            admission.enter(other).await.unwrap(),
        ];
        drop(second);
        let (mut entered, mut left) = (0, 0);
        for waiting in waiting {
            if entered == 0 {
                // First come, first served.
                waiting.await.unwrap().unwrap();
                entered += 1;
            } else {
                waiting.abort();
                left += 1;
            }
        }
        assert_eq!((entered, left), (1, 3));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once() {
        let admission = admission(1, 0, Duration::from_mins(1));
        let held = admission.enter(ANYBODY).await.unwrap();
        assert_eq!(admission.enter(ANYBODY).await.unwrap_err(), Busy::QueueFull);
        assert_eq!(admission.meters.turned_away.get(), 1);
        drop(held);
        assert!(admission.enter(ANYBODY).await.is_ok());
        assert_eq!(admission.meters.running.get(), 0);
    }

    #[tokio::test]
    async fn waiting_ends_when_patience_does() {
        let admission = admission(1, 1, Duration::from_millis(1));
        let _held = admission.enter(ANYBODY).await.unwrap();
        assert_eq!(admission.enter(ANYBODY).await.unwrap_err(), Busy::WaitedTooLong);
        assert_eq!(admission.meters.waiting.get(), 0);
    }

    #[tokio::test]
    async fn a_place_set_free_goes_to_who_waits() {
        let admission = admission(1, 1, Duration::from_mins(1));
        let held = admission.enter(ANYBODY).await.unwrap();
        let waiting = tokio::spawn({
            let admission = admission.clone();
            async move { admission.enter(ANYBODY).await.map(drop) }
        });
        while admission.meters.waiting.get() == 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
