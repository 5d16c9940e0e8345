//! The systems of units that answers can have.

use std::str::FromStr;

use utoipa::ToSchema;

use crate::model::excerpt::beginning;

/// The units in which values are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum UnitSystem {
    /// As they are stored.
    Catalogue,
    Metric,
    Us,
}

/// A name that is not a system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown units {0:?}; use one of catalogue, metric, us")]
pub struct UnknownSystem(String);

impl UnitSystem {
    pub const ALL: [Self; 3] = [Self::Catalogue, Self::Metric, Self::Us];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalogue => "catalogue",
            Self::Metric => "metric",
            Self::Us => "us",
        }
    }
}

impl FromStr for UnitSystem {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        let found = Self::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| UnknownSystem(beginning(name).into_owned()))
    }
}
