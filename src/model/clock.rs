//! The clock, which is passed in. Nothing else in the product reads the system clock for anything a person
//! can see.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::time::Instant;

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Instant;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is what is passed in")]
    fn now(&self) -> Instant {
        // Some machines count from before 1970 until somebody sets their clock.
        Instant::from_micros(match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        })
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
