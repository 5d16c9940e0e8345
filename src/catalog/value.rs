//! What is bound to a statement. Knows no database.

/// A value to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    NullInt,
    NullText,
}
