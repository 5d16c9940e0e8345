//! What a metric measures, and which samples count.

use crate::model::registry::{DataType, DefaultAggregate, MergePolicy, MetricKind, MetricTraits};

/// Amounts over a longer time come after all others, whoever measured them: they say little about a day.
pub(in crate::query) const LONG: i64 = 7 * 86_400_000_000;

/// What the value of a bin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Samples are amounts, spread evenly over the time they cover; a bin has its part of each.
    Amounts(Counting),
    /// Samples are levels: points of each bin that they touch.
    Levels { base: Base, counting: Counting },
}

/// Which samples count where several sources have some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counting {
    BestSource,
    Everything,
}

/// Which one number stands for the points of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Mean,
    /// The point that starts last.
    Last,
    /// The sound level of the same energy, weighted by time.
    EquivalentLevel,
}

impl Measure {
    /// How a metric of these traits is read.
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
            // A test result is no flow: half of the time is not half of the way.
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

/// Which samples of a type count, where they are amounts that are spread over their time.
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
