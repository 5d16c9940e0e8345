//! The direction of time in an answer.

use std::str::FromStr;

use crate::model::excerpt::beginning;

/// The direction of time in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    #[default]
    Ascending,
    Descending,
}

/// A name that is not an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown sort '{0}'; use one of asc, desc")]
pub struct UnknownOrder(String);

impl Order {
    pub const ALL: [Self; 2] = [Self::Ascending, Self::Descending];

    /// The name of the order in a request.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Self, UnknownOrder> {
        let found = Self::ALL.into_iter().find(|order| order.name() == name);
        found.ok_or_else(|| UnknownOrder(beginning(name).into_owned()))
    }
}
