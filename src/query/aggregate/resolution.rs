//! The lengths of the periods for which records are aggregated, and their names.

use utoipa::ToSchema;

use crate::model::duration::Truncation;
use crate::model::names::named;

named! {
    "resolution",
    /// How long a period is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
    pub enum Resolution {
        #[schema(rename = "15m")]
        QuarterHour = "15m",
        #[schema(rename = "60m")]
        Hour = "60m",
        #[schema(rename = "day")]
        Day = "day",
    }
}

impl Resolution {
    #[must_use]
    pub const fn periods(self) -> Truncation {
        match self {
            Self::QuarterHour => Truncation::QUARTER_HOURS,
            Self::Hour => Truncation::HOURS,
            Self::Day => Truncation::DAYS,
        }
    }
}
