//! Sums that keep what plain addition loses.

/// A sum of floats that also tracks the error of its additions, so that amounts cut into many parts add up to
/// the whole again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    #[inline]
    pub fn add(&mut self, value: f64) {
        let total = self.total + value;
        self.lost += if self.total.abs() >= value.abs() {
            (self.total - total) + value
        } else {
            (value - total) + self.total
        };
        self.total = total;
    }

    pub fn merge(&mut self, other: Self) {
        self.add(other.total);
        self.lost += other.lost;
    }

    #[must_use]
    pub fn value(self) -> f64 {
        let value = self.total + self.lost;
        // Beyond the largest number, the error does not matter.
        if value.is_nan() { self.total } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_out_is_not_lost() {
        let mut sum = Sum::default();
        for value in [1.0, 1e100, 1.0, -1e100] {
            sum.add(value);
        }
        assert!((sum.value() - 2.0).abs() < f64::EPSILON);
        let mut whole = Sum::default();
        for _ in 0..10 {
            whole.add(0.1);
        }
        let mut twice = whole;
        twice.merge(whole);
        assert!((twice.value() - 2.0).abs() < f64::EPSILON);
        let mut huge = Sum::default();
        huge.add(f64::MAX);
        huge.add(f64::MAX);
        assert!(huge.value().is_infinite());
    }
}
