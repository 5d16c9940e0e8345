//! The `filter` parameter: conditions on the fields of a record.
//!
//! A filter is parsed into plain data, checked against the fields that the type has, and bound as typed
//! literals. No text of a request ever becomes text of a query. Knows the type's columns; knows nothing of
//! where the rows are.

mod binding;
mod comparing;
mod condition;
mod errors;
mod expression;
mod field;
mod label;
mod whole;

pub use binding::{Bound, bind, bind_each};
pub use condition::{Comparand, Comparison, Condition, LabelComparison, asked_fields, parse_all};
pub use errors::{FilterError, MOST_FILTER_BYTES, MOST_FILTERS};
pub use field::{StoredField, field_of, refuse_private, unknown_field};
pub use label::tested_while_reading;
