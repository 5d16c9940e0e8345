//! Closed sets of names, one of which a caller chooses: the order of an answer, its form, its units. A set is
//! declared once, with the name of each of its members; how names are read, and what is said of one that is
//! not in the set, follow from that.

use super::excerpt::beginning;

/// A name that is not in its set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {set} {name:?}; use one of {}", .known.join(", "))]
pub struct UnknownName {
    set: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// `set` is what the caller calls the set, in the singular or as the parameter is called.
    pub fn new(set: &'static str, name: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            set,
            name: beginning(name).into_owned(),
            known: known.into_iter().collect(),
        }
    }
}

/// Declares an enum whose members are chosen by name, with what the set is called where a name is not in it:
/// `ALL` has its members in the order in which they are written here, `name` and [`FromStr`] are each other's
/// opposites.
///
/// [`FromStr`]: std::str::FromStr
macro_rules! named {
    ($called:literal, $(#[$of_set:meta])* $visibility:vis enum $set:ident {
        $($(#[$of_member:meta])* $member:ident = $name:literal,)+
    }) => {
        $(#[$of_set])*
        $visibility enum $set {
            $($(#[$of_member])* $member,)+
        }

        impl $set {
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$member),+];

            /// The name by which a caller chooses it.
            #[must_use]
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$member => $name,)+
                }
            }
        }

        impl std::str::FromStr for $set {
            type Err = $crate::model::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name => Ok(Self::$member),)+
                    other => Err(Self::Err::new($called, other, Self::ALL.map(Self::name))),
                }
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    named! {
        "size",
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Size {
            Small = "small",
            /// As large as two small ones.
            Large = "LARGE",
        }
    }

    #[test]
    fn every_member_has_one_name_and_is_found_by_no_other() {
        assert_eq!(Size::ALL.map(Size::name), ["small", "LARGE"]);
        for size in Size::ALL {
            assert_eq!(size.name().parse(), Ok(size));
        }
        for other in ["", "Small", "large", " small", "small,LARGE"] {
            let message = other.parse::<Size>().unwrap_err().to_string();
            assert_eq!(
                message,
                format!("unknown size {other:?}; use one of small, LARGE")
            );
        }
    }

    #[test]
    fn a_long_name_is_not_repeated_as_a_whole() {
        let message = "x".repeat(10_000).parse::<Size>().unwrap_err().to_string();
        assert!(message.len() < 300, "{message}");
    }
}
