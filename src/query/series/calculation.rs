//! Statistics that accompany the value of a bin.

use std::fmt;
use std::str::FromStr;

use crate::model::names::UnknownName;

/// A statistic of the points of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calculation {
    Max,
    Min,
    /// The maximum minus the minimum.
    Delta,
    Mean,
    /// The distinct values, ascending.
    Uniques,
    /// All values in the order of time.
    AllPoints,
    /// The mean of all points from the first bin to this one.
    RollingMean,
    /// The number of points, or of samples of an amount, in the bin.
    Count,
    Sum,
    First,
    Last,
    Median,
    /// Standard deviation of a sample: null for a single point.
    Std,
    /// Interpolated between the two nearest points where no point lies exactly there.
    Percentile(Percentile),
}

/// The percentage of points that lie below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Percentile(u8);

impl Percentile {
    pub(super) fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// The type of a statistic's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Number,
    Whole,
    List,
}

const NAMED: [(&str, Calculation); 20] = [
    ("max", Calculation::Max),
    ("min", Calculation::Min),
    ("delta", Calculation::Delta),
    ("mean", Calculation::Mean),
    ("uniques", Calculation::Uniques),
    ("allpoints", Calculation::AllPoints),
    ("rollingmean", Calculation::RollingMean),
    ("count", Calculation::Count),
    ("sum", Calculation::Sum),
    ("first", Calculation::First),
    ("last", Calculation::Last),
    ("median", Calculation::Median),
    ("std", Calculation::Std),
    ("p05", Calculation::Percentile(Percentile(5))),
    ("p10", Calculation::Percentile(Percentile(10))),
    ("p25", Calculation::Percentile(Percentile(25))),
    ("p50", Calculation::Percentile(Percentile(50))),
    ("p75", Calculation::Percentile(Percentile(75))),
    ("p90", Calculation::Percentile(Percentile(90))),
    ("p95", Calculation::Percentile(Percentile(95))),
];

impl Calculation {
    pub fn all() -> impl Iterator<Item = Self> {
        NAMED.into_iter().map(|(_, calculation)| calculation)
    }

    /// The name of the calculation in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMED
            .iter()
            .find(|(_, calculation)| *calculation == self)
            .map_or("", |(name, _)| name)
    }

    /// The name of its column for the value column `value_column`.
    #[must_use]
    pub fn column(self, value_column: &str) -> String {
        let prefix = match self {
            Self::Uniques => "uniq",
            Self::AllPoints => "all",
            other => other.name(),
        };
        format!("{prefix}_{value_column}")
    }

    /// Whether it is also defined for amounts that add up over time.
    #[must_use]
    pub const fn fits_amounts(self) -> bool {
        matches!(self, Self::Count)
    }

    pub(super) const fn form(self) -> Form {
        match self {
            Self::Uniques | Self::AllPoints => Form::List,
            Self::Count => Form::Whole,
            _ => Form::Number,
        }
    }

    /// Whether it needs every single value of a bin.
    pub(super) const fn needs_values(self) -> bool {
        matches!(
            self,
            Self::Uniques | Self::AllPoints | Self::Median | Self::Std | Self::Percentile(_)
        )
    }

    /// Whether it needs the first or the last point of a bin.
    pub(super) const fn needs_places(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }
}

impl FromStr for Calculation {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        NAMED
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, calculation)| *calculation)
            .ok_or_else(|| UnknownName::new("calculation", text, NAMED.map(|(name, _)| name)))
    }
}

impl fmt::Display for Calculation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_1_5c_columns_carry_the_prefix_of_their_calculation() {
        let columns = NAMED.map(|(_, calculation)| calculation.column("heart_rate"));
        assert_eq!(
            columns[..9],
            [
                "max_heart_rate",
                "min_heart_rate",
                "delta_heart_rate",
                "mean_heart_rate",
                "uniq_heart_rate",
                "all_heart_rate",
                "rollingmean_heart_rate",
                "count_heart_rate",
                "sum_heart_rate"
            ]
        );
        assert_eq!(columns[19], "p95_heart_rate");
    }

    #[test]
    fn rule_1_5c_an_unknown_name_is_answered_with_those_there_are() {
        let message = "variance".parse::<Calculation>().unwrap_err().to_string();
        assert!(
            message.starts_with("unknown calculation \"variance\"; use one of max, min, delta"),
            "{message}"
        );
        for (name, calculation) in NAMED {
            assert_eq!(name.parse(), Ok(calculation));
            assert_eq!(calculation.name(), name);
        }
    }
}
