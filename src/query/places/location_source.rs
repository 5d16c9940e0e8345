//! The sources of positions: the device and a maps provider. Knows the names of their types; knows nothing of
//! rows.

use std::fmt;

use crate::model::names::named;

pub const PLATFORM_UPDATES: &str = "PlatformLocationUpdate";

pub const MAPS_UPDATES: &str = "MapsLocationUpdate";

named! {
    "source of locations",
    /// The source of a position. Earlier ones take precedence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LocationSource {
        MobileOs = "mobile_os",
        Maps = "maps",
    }
}

impl LocationSource {
    /// The type of its updates.
    #[must_use]
    pub const fn updates(self) -> &'static str {
        match self {
            Self::MobileOs => PLATFORM_UPDATES,
            Self::Maps => MAPS_UPDATES,
        }
    }

    /// The kind that its updates have in an answer.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::MobileOs => "platform_location_update",
            Self::Maps => "maps_location_update",
        }
    }
}

impl fmt::Display for LocationSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_4_5_sources_have_two_names_and_no_others() {
        assert_eq!("mobile_os".parse(), Ok(LocationSource::MobileOs));
        assert_eq!("maps".parse(), Ok(LocationSource::Maps));
        for other in ["", "Maps", "platform", "gps"] {
            assert!(other.parse::<LocationSource>().is_err(), "{other}");
        }
    }
}
