//! Domain types that a query can name, and their names.

use std::fmt::Display;
use std::str::FromStr;

use crate::ingest::coerce::Epoch;
use crate::model::names::named;
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

named! {
    "dates",
    /// What a date without a time means.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Dates {
        /// Midnight of the date in UTC.
        Utc = "utc",
        /// The beginning of that day in the zone of the query.
        Local = "local",
    }
}

named! {
    "dedupe",
    /// How a record without an id is recognised when it is sent again.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dedupe {
        /// It is not: every record is new.
        None = "none",
        /// By its natural identity.
        Natural = "natural",
    }
}

named! {
    "open_ends",
    /// How unknown ends are shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OpenEnds {
        /// As moments that nobody can mean.
        Sentinel = "sentinel",
        Null = "null",
    }
}

/// The names of a [`Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub(super) component: Option<&'static str>,
    pub(super) names: fn() -> Vec<&'static str>,
}

macro_rules! choices {
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

choices! {
    AnnotationType = Some("AnnotationType");
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

impl Choice for Calculation {
    fn all() -> Vec<Self> {
        Self::all().collect()
    }

    fn name(self) -> &'static str {
        Self::name(self)
    }
}
