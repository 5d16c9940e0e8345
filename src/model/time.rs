//! Instants in UTC microseconds, and half-open ranges of them.

/// A moment in UTC, in microseconds since 1970. Covers years 1 to 9999 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(i64);

impl Instant {
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }
}

/// `[start, end)`. Never inverted; empty when both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    start: Instant,
    end: Instant,
}

impl TimeRange {
    /// The range, unless it is inverted.
    #[must_use]
    pub fn new(start: Instant, end: Instant) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    #[must_use]
    pub const fn start(self) -> Instant {
        self.start
    }

    #[must_use]
    pub const fn end(self) -> Instant {
        self.end
    }
}
