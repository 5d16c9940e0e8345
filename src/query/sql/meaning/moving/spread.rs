//! Variances and standard deviations, which are never below zero. Knows numbers only.

use super::frame::Summary;

/// What is known of how far values are from each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    count: u64,
    mean: f64,
    /// The sum of the squares of the distances from the mean.
    squares: f64,
}

impl Summary for Spread {
    fn of(value: f64) -> Self {
        Self {
            count: 1,
            mean: value,
            squares: if value.is_finite() { 0.0 } else { f64::NAN },
        }
    }

    /// Only sums, none of which is below zero.
    fn with(self, other: Self) -> Self {
        if self.count == 0 {
            return other;
        }
        if other.count == 0 {
            return self;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let distance = other.mean - self.mean;
        Self {
            count,
            mean: distance.mul_add(share, self.mean),
            squares: self.squares + other.squares + distance * distance * share * self.count as f64,
        }
    }
}

impl Spread {
    /// There is none of no value.
    pub(super) fn variance(self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// There is none of one value, nor of none.
    pub(super) fn variance_of_sample(self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    pub(super) fn deviation(self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    pub(super) fn deviation_of_sample(self) -> Option<f64> {
        self.variance_of_sample().map(f64::sqrt)
    }
}
