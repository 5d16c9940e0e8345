//! The categories of data types, under which catalogues are searched.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::excerpt::beginning;

/// A category of data types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Annotations,
    Sleep,
    Healthkit,
    Health,
    Mindfulness,
    Focus,
    /// The name of the interface's maker, which no type here has.
    Fulcra,
    Location,
    /// What the person defined.
    UserConfigured,
    /// What another person shares.
    SharedType,
    /// What own types and annotations are made from.
    BaseType,
}

/// A name that is none of a category.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown category {name:?}; use one of {known}")]
pub struct UnknownCategory {
    name: String,
    known: String,
}

impl Category {
    pub const ALL: [Self; 11] = [
        Self::Annotations,
        Self::Sleep,
        Self::Healthkit,
        Self::Health,
        Self::Mindfulness,
        Self::Focus,
        Self::Fulcra,
        Self::Location,
        Self::UserConfigured,
        Self::SharedType,
        Self::BaseType,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Annotations => "annotations",
            Self::Sleep => "sleep",
            Self::Healthkit => "healthkit",
            Self::Health => "health",
            Self::Mindfulness => "mindfulness",
            Self::Focus => "focus",
            Self::Fulcra => "fulcra",
            Self::Location => "location",
            Self::UserConfigured => "user_configured",
            Self::SharedType => "shared_type",
            Self::BaseType => "base_type",
        }
    }
}

impl FromStr for Category {
    type Err = UnknownCategory;

    fn from_str(name: &str) -> Result<Self, UnknownCategory> {
        let found = Self::ALL.into_iter().find(|category| category.name() == name);
        found.ok_or_else(|| UnknownCategory {
            name: beginning(name).into_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}
