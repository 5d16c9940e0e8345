//! Sums and means. Knows numbers only.

use super::frame::Summary;

/// What is known of what values add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    count: u64,
    sum: f64,
}

impl Summary for Total {
    fn of(value: f64) -> Self {
        Self { count: 1, sum: value }
    }

    fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
        }
    }
}

impl Total {
    /// There is none of no value.
    pub(super) fn sum(self) -> Option<f64> {
        (self.count > 0).then_some(self.sum)
    }

    /// There is none of no value.
    pub(super) fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
