//! Names by which modules know the same columns of rows, and what is said of a column beside its type.
//!
//! Knows no types and no layouts: only what is called alike everywhere.

/// The stored columns that every row has: its id, and the moments from which and until which it holds.
pub const ID: &str = "id";
pub const START: &str = "start_time";
pub const END: &str = "end_time";
/// The stored columns of where a record came from.
pub const SOURCE: &str = "source";
pub const SOURCE_CLASS: &str = "source_class";
/// The stored column of members that a type's schema does not declare.
pub const EXTRAS: &str = "extras";
/// The stored column of a metric's value.
pub const VALUE: &str = "value";
/// The unit of values: a column of answers with one measure, and metadata of a field, which frames pass on to
/// their readers.
pub const UNIT: &str = "unit";
/// Metadata of a field, `true` on a column of JSON text: the members of its object are members of the row.
pub const SPREAD: &str = "almanac.spread";
