//! What a metric measures, and which samples count.

use crate::model::registry::{DataType, DefaultAggregate, MergePolicy, MetricKind, MetricTraits};
use crate::model::time::MICROS_PER_DAY;

/// Amounts over a longer time rank after all others, whatever their source: they say little about a day.
pub(in crate::query) const LONG: i64 = 7 * MICROS_PER_DAY;

/// How the value of a bin is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Samples are amounts, spread evenly over the time they cover; a bin gets its part of each.
    Amounts(Counting),
    /// Samples are levels, each a point in every bin that it touches.
    Levels { base: Base, counting: Counting },
}

/// Which samples count where several sources overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counting {
    BestSource,
    Everything,
}

/// How the points of a bin become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Mean,
    /// The point that starts last.
    Last,
    /// The sound level of the same energy, weighted by time.
    EquivalentLevel,
}

impl Measure {
    /// The measure of a metric with these traits.
    #[must_use]
    pub const fn of(traits: &MetricTraits) -> Self {
        let counting = match traits.merge {
            MergePolicy::BestSource => Counting::BestSource,
            MergePolicy::SumAll | MergePolicy::All | MergePolicy::SleepPriority => Counting::Everything,
        };
        let base = match traits.default_aggregate {
            DefaultAggregate::Last => Base::Last,
            DefaultAggregate::Leq => Base::EquivalentLevel,
            DefaultAggregate::Mean | DefaultAggregate::Sum => Base::Mean,
        };
        match (traits.kind, base) {
            // A test result is not spread over its time: half of the time is not half of the distance.
            (Some(MetricKind::Cumulative), Base::Last) => Self::Levels { base, counting },
            (Some(MetricKind::Cumulative), _) => Self::Amounts(counting),
            (Some(MetricKind::Discrete) | None, _) => Self::Levels { base, counting },
        }
    }

    #[must_use]
    pub const fn counting(self) -> Counting {
        match self {
            Self::Amounts(counting) | Self::Levels { counting, .. } => counting,
        }
    }
}

/// Which samples of a type count, if they are amounts that are spread over their time.
pub(in crate::query) fn counting_of_amounts(data_type: &DataType) -> Option<Counting> {
    match data_type.metric.as_ref().map(Measure::of) {
        Some(Measure::Amounts(counting)) => Some(counting),
        _ => None,
    }
}

/// Whether samples of a type are amounts that are spread over their time.
pub(in crate::query) fn are_spread(data_type: &DataType) -> bool {
    counting_of_amounts(data_type).is_some()
}

/// The part of an amount that falls into `covered` of its whole length.
#[inline]
pub(in crate::query) fn prorated(amount: f64, covered: i64, length: i64) -> f64 {
    if covered == length {
        return amount;
    }
    let (covered, length) = (covered as f64, length as f64);
    let part = amount * covered / length;
    if part.is_finite() {
        return part;
    }
    // The product is too large for a number. The part is less than the amount, which is one.
    amount * (covered / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::MICROS_PER_HOUR as HOUR;

    #[test]
    fn rule_1_3_a_part_of_an_amount_is_a_number_wherever_the_amount_is() {
        for (amount, half) in [
            (7.0, 3.5),
            (1e308, 5e307),
            (1.7e308, 8.5e307),
            (f64::MAX, f64::MAX / 2.0),
        ] {
            assert_eq!(Some(prorated(amount, HOUR, 2 * HOUR)), Some(half));
            assert_eq!(Some(prorated(amount, HOUR, HOUR)), Some(amount));
        }
        // Ordinary amounts are multiplied first, which is exact for whole numbers.
        assert_eq!(Some(prorated(49.0, 3, 7)), Some(21.0));
    }
}
