//! Why a filter cannot be used, and how much of one is read. Knows nothing of fields.

use crate::model::excerpt::beginning;

/// The most conditions in a request.
pub const MOST_FILTERS: usize = 20;

/// The most bytes in one condition.
pub const MOST_FILTER_BYTES: usize = 1024;

/// Why a filter cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FilterError {
    #[error("{0} filters were given; the limit is {MOST_FILTERS}")]
    TooMany(usize),
    #[error("a filter is longer than {MOST_FILTER_BYTES} bytes")]
    TooLong,
    #[error("`{0}` has no operator; expected field, one of : = != <= >= < > ~, and a value")]
    NoOperator(String),
    #[error("`{0}` has no field before its operator; expected field, one of : = != <= >= < > ~, and a value")]
    NoField(String),
    #[error("`{}` is not a field of {data_type}; its fields are {known}", beginning(.field))]
    UnknownField {
        field: String,
        data_type: String,
        known: String,
    },
    #[error("`{value}` is not a {expected}, which `{field}` holds")]
    WrongType {
        field: String,
        value: String,
        expected: &'static str,
    },
    #[error("`{operator}` cannot be used on `{field}`, which holds {holds}")]
    WrongOperator {
        field: String,
        operator: &'static str,
        holds: &'static str,
    },
    #[error("`{field}` of {data_type} can be read by its owner only")]
    Private { field: String, data_type: String },
    #[error("`{pattern}` is not a supported regular expression: {reason}")]
    Pattern { pattern: String, reason: String },
}
