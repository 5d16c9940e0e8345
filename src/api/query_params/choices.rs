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

named! {
    "version of reports",
    /// The forms that reports of insights have had.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum InsightReportVersion {
        V0 = "v0",
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
    InsightReportVersion = None;
}

impl Choice for Calculation {
    fn all() -> Vec<Self> {
        Self::all().collect()
    }

    fn name(self) -> &'static str {
        Self::name(self)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json, to_value};
    use utoipa::PartialSchema;

    use super::*;
    use crate::query::aggregate::Resolution;

    /// Bodies and documents take their names from elsewhere than what reads queries.
    fn must_be_written_by_name<Set: Choice + Serialize + PartialSchema>() {
        for member in Set::all() {
            assert_eq!(to_value(member).unwrap(), json!(member.name()));
        }
        assert_eq!(documented::<Set>(), json!((Set::words().names)()));
    }

    fn documented<Set: PartialSchema>() -> Value {
        to_value(Set::schema()).unwrap()["enum"].clone()
    }

    #[test]
    fn a_set_has_the_same_names_wherever_it_is_read_written_and_documented() {
        must_be_written_by_name::<AnnotationType>();
        must_be_written_by_name::<Category>();
        must_be_written_by_name::<FileState>();
        must_be_written_by_name::<OutputMethod>();
        must_be_written_by_name::<RowFormat>();
        assert_eq!(
            documented::<UnitSystem>(),
            json!(UnitSystem::ALL.map(UnitSystem::name))
        );
        assert_eq!(
            documented::<Resolution>(),
            json!(Resolution::ALL.map(Resolution::name))
        );
    }
}
