//! Words of the domain that a query can name, and under which names.

use std::fmt::Display;
use std::str::FromStr;

use crate::output::{FrameCompression, OutputMethod, RowFormat};
use crate::people::annotations::AnnotationType;
use crate::people::files::FileState;
use crate::query::aggregate::Function;
use crate::query::places::LocationSource;
use crate::query::records::Order;
use crate::query::series::Calculation;
use crate::query::sleep::spec::{Function as SleepFunction, Mode};

/// One of several things with names. The error of reading another name says which there are.
pub trait Choice: Copy + FromStr<Err: Display> {
    /// The schema of the document that lists the names, where there is one.
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
    OutputMethod = Some("OutputMethod");
    RowFormat = Some("RowFormat");
    FrameCompression = None;
    Order = None;
    Function = None;
    SleepFunction = None;
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
