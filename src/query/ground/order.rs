//! The direction of time in an answer.

use crate::model::names::named;

named! {
    "sort",
    /// The direction of time in an answer.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Order {
        #[default]
        Ascending = "asc",
        Descending = "desc",
    }
}
