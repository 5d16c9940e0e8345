//! Why a query has no plan, and the place of the error in its text.
//!
//! Knows no grammar and no tables.

use std::fmt;

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::query::QueryError;

/// A position in the text of a query, with line and column counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

impl From<Location> for TextPosition {
    fn from(location: Location) -> Self {
        Self {
            line: location.line,
            column: location.column,
        }
    }
}

/// An error in a query, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SqlError {
    pub(super) place: Option<TextPosition>,
    pub(super) message: String,
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(formatter, "{place}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

impl SqlError {
    pub(super) fn at(place: TextPosition, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            message: message.into(),
        }
    }

    pub(super) fn without_place(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum SqlFailure {
    /// The query is at fault.
    #[error(transparent)]
    Refused(#[from] SqlError),
    /// A value that was sent along with the query is at fault.
    #[error("{0}")]
    WrongParameters(String),
    /// The data that it reads, or the machine, is at fault.
    #[error(transparent)]
    Failed(DataFusionError),
}

/// Converts a question's error to a plan's.
#[must_use]
pub fn outside(error: QueryError) -> DataFusionError {
    match error {
        QueryError::Plan(error) => error,
        QueryError::Store(error) => DataFusionError::External(Box::new(error)),
        error => DataFusionError::Plan(error.to_string()),
    }
}
