//! What a job works on, and whose damage it passes over.

use std::fmt;

use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

/// What a job works on or leaves alone. Shown in the words in which operators are told of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Person(PersonId),
    Partition(PersonId, TypeId),
    /// The person must not be named, since that would stay in the log.
    Erasure(ErasureMark),
    /// Objects whose paths name nobody.
    ObjectsOfNobody,
    /// A table of which damaged rows do not tell whose they are.
    Table(&'static str),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(person) => write!(formatter, "person {person}"),
            Self::Partition(person, data_type) => write!(formatter, "person {person}, {data_type}"),
            Self::Erasure(mark) => write!(formatter, "erasure {mark}"),
            Self::ObjectsOfNobody => formatter.write_str("objects of nobody"),
            Self::Table(name) => write!(formatter, "table {name}"),
        }
    }
}
