//! Names the columns of an answer: each by the name that the query gives it, and no two by the same one.
//!
//! Knows the grammar and plans; knows nothing of what columns hold.

pub(super) mod columns;
mod conversions;
pub(super) mod duplicate_names;
pub(super) mod group_keys;
