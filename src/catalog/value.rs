//! The values that are bound to a statement, and those that SQLite returns. Knows no database.

/// A value to bind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    NullInt,
    NullText,
}

/// A value that was read from SQLite.
pub(super) type StoredValue = rusqlite::types::Value;
