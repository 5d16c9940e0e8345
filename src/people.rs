//! What people make for themselves: their own data types, their preferences, and what they share with whom.
//! Knows the catalogue and the registry; knows nothing of HTTP or of stored rows.

pub mod preferences;
pub mod sharing;
pub mod types;
