//! Why a question has no answer.

use datafusion::common::DataFusionError;

use crate::model::excerpt::beginning;
use crate::model::nearest::hint;
use crate::model::registry::TypeId;
use crate::store::StoreError;

use super::filter::FilterError;

/// The most fields to group by.
pub const MOST_GROUP_FIELDS: usize = 5;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Columns(#[from] ColumnError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the question could not be planned: {0}")]
    Plan(#[from] DataFusionError),
}

/// Why columns cannot be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    #[error("no column is named")]
    None,
    #[error("column {} is named twice", beginning(.0))]
    Twice(String),
    #[error("there is no column {}{}", beginning(.name), hint(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("column {} has no members", beginning(.0))]
    NoMembers(String),
    #[error("the answer has a column {0} already")]
    Taken(&'static str),
}

/// Why records cannot be aggregated in this way.
#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("{0} fields to group by were given; the limit is {MOST_GROUP_FIELDS}")]
    TooManyFields(usize),
    #[error("`{}` is named twice", beginning(.0))]
    FieldTwice(String),
    #[error(
        "`{}` cannot be used to group by, because the answer has a column of that name",
        beginning(.0)
    )]
    NameTaken(String),
    #[error(transparent)]
    UnknownField(FilterError),
    #[error(
        "`{}` holds lists or structures; only fields that hold a single value can be used to group by",
        beginning(.0)
    )]
    NotScalar(String),
    #[error("records of {0} have no value to sum up")]
    NoValue(TypeId),
}

/// Wraps an error of the store for its way through a plan.
pub(in crate::query) fn outside(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl From<FilterError> for AggregateError {
    fn from(error: FilterError) -> Self {
        Self::UnknownField(error)
    }
}
