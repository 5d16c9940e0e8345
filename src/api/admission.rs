//! A limited number of places, with a short queue in front.
//!
//! Refusing early keeps the service answering: a request gets a place, waits a bounded time among a bounded
//! number of others, or is told to come back. A place is held for as long as its [`Ticket`] lives, so a
//! streamed answer keeps it until its last byte.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::model::meters::QueueMeters;

/// What a refused request is told to wait.
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
    patience: Duration,
    meters: QueueMeters,
}

/// A place. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Ticket {
    _place: OwnedSemaphorePermit,
    meters: QueueMeters,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.meters.running.dec();
    }
}

/// Counts somebody as waiting for as long as it lives, also when the wait is abandoned.
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
    /// `places` at work at once, `seats` waiting for at most `patience`.
    #[must_use]
    pub fn new(places: usize, seats: usize, patience: Duration, meters: QueueMeters) -> Self {
        let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
        let seats = Arc::new(Semaphore::new(seats.min(Semaphore::MAX_PERMITS)));
        Self {
            places,
            seats,
            patience,
            meters,
        }
    }

    /// A place, as soon as there is one.
    pub async fn enter(&self) -> Result<Ticket, Busy> {
        let entered = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => Ok(place),
            Err(TryAcquireError::NoPermits) => self.wait().await,
            Err(TryAcquireError::Closed) => Err(Busy::Stopping),
        };
        match entered {
            Ok(place) => {
                self.meters.running.inc();
                Ok(Ticket {
                    _place: place,
                    meters: self.meters.clone(),
                })
            }
            Err(busy) => {
                self.meters.turned_away.inc();
                Err(busy)
            }
        }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, Busy> {
        let _seat = self.seats.try_acquire().map_err(|_| Busy::QueueFull)?;
        let _waiting = Waiting::begin(&self.meters);
        match tokio::time::timeout(self.patience, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(Busy::Stopping),
            Err(_) => Err(Busy::WaitedTooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(places: usize, seats: usize, patience: Duration) -> Admission {
        Admission::new(places, seats, patience, QueueMeters::default())
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once() {
        let admission = admission(1, 0, Duration::from_mins(1));
        let held = admission.enter().await.unwrap();
        assert_eq!(admission.enter().await.unwrap_err(), Busy::QueueFull);
        assert_eq!(admission.meters.turned_away.get(), 1);
        drop(held);
        assert!(admission.enter().await.is_ok());
        assert_eq!(admission.meters.running.get(), 0);
    }

    #[tokio::test]
    async fn waiting_ends_when_patience_does() {
        let admission = admission(1, 1, Duration::from_millis(1));
        let _held = admission.enter().await.unwrap();
        assert_eq!(admission.enter().await.unwrap_err(), Busy::WaitedTooLong);
        assert_eq!(admission.meters.waiting.get(), 0);
    }

    #[tokio::test]
    async fn a_place_set_free_goes_to_who_waits() {
        let admission = admission(1, 1, Duration::from_mins(1));
        let held = admission.enter().await.unwrap();
        let waiting = tokio::spawn({
            let admission = admission.clone();
            async move { admission.enter().await.map(drop) }
        });
        while admission.meters.waiting.get() == 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
