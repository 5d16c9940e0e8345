//! Summaries of several numbers, for when nobody asks for them one by one.

use super::sum::Sum;

/// Count, sum and extremes: all that is needed of points which nobody asks for one by one. The summaries of
/// parts add up to that of the whole.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub count: u64,
    pub sum: Sum,
    pub min: f64,
    pub max: f64,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            count: 0,
            sum: Sum::default(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Summary {
    /// The summary of `count` points with these totals.
    #[must_use]
    pub fn of_parts(count: u64, sum: f64, min: f64, max: f64) -> Self {
        let mut whole = Sum::default();
        whole.add(sum);
        Self {
            count,
            sum: whole,
            min,
            max,
        }
    }

    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum.add(value);
        self.min = if value < self.min { value } else { self.min };
        self.max = if value > self.max { value } else { self.max };
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}
