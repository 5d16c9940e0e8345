//! Statistics of values: what an aggregate or the totals of sleep compute of a period.

use std::str::FromStr;

use crate::model::excerpt::beginning;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    Sum,
    Avg,
    Min,
    Max,
}

/// A name that is not one of the statistics. They are called functions where they are asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown function {0:?}; use one of sum, avg, min, max")]
pub struct UnknownStatistic(String);

impl Statistic {
    pub const ALL: [Self; 4] = [Self::Sum, Self::Avg, Self::Min, Self::Max];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl FromStr for Statistic {
    type Err = UnknownStatistic;

    fn from_str(name: &str) -> Result<Self, UnknownStatistic> {
        let found = Self::ALL.into_iter().find(|statistic| statistic.name() == name);
        found.ok_or_else(|| UnknownStatistic(beginning(name).into_owned()))
    }
}
