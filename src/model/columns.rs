//! Names by which modules know the same columns of rows, and what is said of a column beside its type.
//!
//! Knows no types and no layouts: only what is called alike everywhere.

/// The stored column of members that a type's schema does not declare.
pub const EXTRAS: &str = "extras";
/// The stored column of a metric's value.
pub const VALUE: &str = "value";
/// Metadata of a field: the unit of a column's values, which frames pass on to their readers.
pub const UNIT: &str = "unit";
/// Metadata of a field, `true` on a column of JSON text: the members of its object are members of the row.
pub const SPREAD: &str = "almanac.spread";
