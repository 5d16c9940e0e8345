//! Domain types that a query can name, and their names.

use std::fmt::Display;
use std::str::FromStr;

use crate::ingest::coerce::Epoch;
use crate::model::excerpt::beginning;
use crate::model::registry::Category;
use crate::model::units::UnitSystem;
use crate::output::{BufferCompression, OutputMethod, RowFormat};
use crate::people::annotations::AnnotationType;
use crate::people::files::FileState;
use crate::query::Order;
use crate::query::explain::Explain;
use crate::query::places::LocationSource;
use crate::query::series::Calculation;
use crate::query::sleep::spec::Mode;
use crate::query::statistic::Statistic;

/// One of several named things. The error for an unknown name lists the known ones.
pub trait Choice: Copy + FromStr<Err: Display> {
    /// The schema in the document that lists the names, if there is one.
    const COMPONENT: Option<&'static str> = None;

    fn all() -> Vec<Self>;

    fn name(self) -> &'static str;

    /// How the names are documented.
    #[must_use]
    fn words() -> Words {
        Words {
            component: Self::COMPONENT,
            names: || Self::all().into_iter().map(Self::name).collect(),
        }
    }
}

/// What a date without a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dates {
    /// Midnight of the date in UTC.
    Utc,
    /// The beginning of that day in the zone of the query.
    Local,
}

/// A name that is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dates {0:?}; use one of utc, local")]
pub(super) struct UnknownDates(String);

impl Dates {
    const ALL: [Self; 2] = [Self::Utc, Self::Local];

    const fn name(self) -> &'static str {
        match self {
            Self::Utc => "utc",
            Self::Local => "local",
        }
    }
}

impl FromStr for Dates {
    type Err = UnknownDates;

    fn from_str(name: &str) -> Result<Self, UnknownDates> {
        let found = Self::ALL.into_iter().find(|dates| dates.name() == name);
        found.ok_or_else(|| UnknownDates(beginning(name).into_owned()))
    }
}

/// How a record without an id is recognised when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedupe {
    /// It is not: every record is new.
    None,
    /// By its natural identity.
    Natural,
}

/// A name that is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dedupe {0:?}; use one of none, natural")]
pub struct UnknownDedupe(String);

impl Dedupe {
    const ALL: [Self; 2] = [Self::None, Self::Natural];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Natural => "natural",
        }
    }
}

impl FromStr for Dedupe {
    type Err = UnknownDedupe;

    fn from_str(name: &str) -> Result<Self, UnknownDedupe> {
        let found = Self::ALL.into_iter().find(|dedupe| dedupe.name() == name);
        found.ok_or_else(|| UnknownDedupe(beginning(name).into_owned()))
    }
}

/// How unknown ends are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenEnds {
    /// As moments that nobody can mean.
    Sentinel,
    Null,
}

/// A name that is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown open_ends {0:?}; use one of sentinel, null")]
pub struct UnknownEnds(String);

impl OpenEnds {
    const ALL: [Self; 2] = [Self::Sentinel, Self::Null];

    const fn name(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::Null => "null",
        }
    }
}

impl FromStr for OpenEnds {
    type Err = UnknownEnds;

    fn from_str(name: &str) -> Result<Self, UnknownEnds> {
        let found = Self::ALL.into_iter().find(|ends| ends.name() == name);
        found.ok_or_else(|| UnknownEnds(beginning(name).into_owned()))
    }
}

/// The names of a [`Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub(super) component: Option<&'static str>,
    pub(super) names: fn() -> Vec<&'static str>,
}

macro_rules! named {
    ($($choice:ty = $component:expr;)*) => {$(
        impl Choice for $choice {
            const COMPONENT: Option<&'static str> = $component;

            fn all() -> Vec<Self> {
                Self::ALL.to_vec()
            }

            fn name(self) -> &'static str {
                Self::name(self)
            }
        }
    )*};
}

named! {
    Category = Some("Category");
    OutputMethod = Some("OutputMethod");
    RowFormat = Some("RowFormat");
    BufferCompression = None;
    Dates = None;
    OpenEnds = None;
    Dedupe = None;
    Epoch = None;
    UnitSystem = None;
    Order = None;
    Explain = None;
    Statistic = None;
    Mode = None;
    LocationSource = None;
    FileState = None;
}

impl Choice for AnnotationType {
    const COMPONENT: Option<&'static str> = Some("AnnotationType");

    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Choice for Calculation {
    fn all() -> Vec<Self> {
        Self::all().collect()
    }

    fn name(self) -> &'static str {
        Self::name(self)
    }
}
