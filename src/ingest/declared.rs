//! Finds the columns of an object's members by their names.
//!
//! Lives as long as one object is read. Knows columns; knows nothing of values.

use ahash::HashMap;
use arrow::datatypes::{FieldRef, Fields};

/// Up to so many names, comparing each with all others costs less than hashing these.
const FEW_NAMES: usize = 16;

/// The columns of the members that an object declares.
pub(super) enum DeclaredMembers<'c> {
    Few(&'c Fields),
    Many(HashMap<&'c str, (usize, &'c FieldRef)>),
}

impl<'c> DeclaredMembers<'c> {
    /// For an object in which so many members are `given`: hashing all that are declared for a few of them
    /// would cost more than it saves.
    pub(super) fn new(columns: &'c Fields, given: usize) -> Self {
        if given <= FEW_NAMES || columns.len() <= FEW_NAMES {
            return Self::Few(columns);
        }
        let placed = columns.iter().enumerate();
        Self::Many(
            placed
                .map(|(place, column)| (column.name().as_str(), (place, column)))
                .collect(),
        )
    }

    /// The column of the member `name`, with its place.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &'c FieldRef)> {
        match self {
            Self::Few(columns) => columns.find(name),
            Self::Many(columns) => columns.get(name).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn a_member_is_found_by_its_name_however_many_are_declared_and_given() {
        for declared in [0, 1, FEW_NAMES, FEW_NAMES + 1, 10 * FEW_NAMES] {
            let named = |place: usize| Field::new(format!("m{place}"), DataType::Float64, true);
            let columns: Fields = (0..declared).map(named).collect();
            for given in [0, FEW_NAMES, FEW_NAMES + 1, 1000] {
                let members = DeclaredMembers::new(&columns, given);
                let found = |name: &str| {
                    members
                        .find(name)
                        .map(|(place, column)| (place, column.name().clone()))
                };
                for place in 0..declared {
                    let name = format!("m{place}");
                    assert_eq!(found(&name), Some((place, name.clone())), "{declared}, {given}");
                }
                assert_eq!(found("other"), None, "{declared}, {given}");
            }
        }
    }
}
