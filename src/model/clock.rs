//! The clock, which is passed in. Nothing else in the product reads the system clock for anything a person
//! can see.

use std::sync::atomic::{AtomicI64, Ordering};

use super::time::Instant;

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Instant;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::from_micros(chrono::Utc::now().timestamp_micros())
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    #[must_use]
    pub const fn at(now: Instant) -> Self {
        Self(AtomicI64::new(now.micros()))
    }

    pub fn set(&self, now: Instant) {
        self.0.store(now.micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(Ordering::SeqCst))
    }
}
