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
    #[error("`{}` has no operator; expected field, one of : = != <= >= < > ~, and a value", beginning(.0))]
    NoOperator(String),
    #[error(
        "`{}` has no field before its operator; expected field, one of : = != <= >= < > ~, and a value",
        beginning(.0)
    )]
    NoField(String),
    #[error("`{}` is not a field of {data_type}; its fields are {known}", beginning(.field))]
    UnknownField {
        field: String,
        data_type: String,
        known: String,
    },
    #[error("`{}` is not a {expected}, which `{field}` holds", beginning(.value))]
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
    #[error("`{}` is not a supported regular expression: {reason}", beginning(.pattern))]
    Pattern { pattern: String, reason: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_the_beginning_of_what_was_sent_at_most() {
        let sent = || "#".repeat(MOST_FILTER_BYTES);
        for error in [
            FilterError::NoOperator(sent()),
            FilterError::NoField(sent()),
            FilterError::UnknownField {
                field: sent(),
                data_type: "HeartRate".to_owned(),
                known: "value".to_owned(),
            },
            FilterError::WrongType {
                field: "value".to_owned(),
                value: sent(),
                expected: "number",
            },
            FilterError::Pattern {
                pattern: sent(),
                reason: "it grows too large".to_owned(),
            },
        ] {
            let repeated = error.to_string().matches('#').count();
            assert_eq!(repeated, 200, "{error}");
        }
        let short = FilterError::NoOperator("value".to_owned()).to_string();
        assert!(short.starts_with("`value` has no operator;"), "{short}");
    }
}
