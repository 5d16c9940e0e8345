//! What people make for themselves: their own data types and preferences. Knows the catalogue and the
//! registry; knows nothing of HTTP or of stored rows.

pub mod preferences;
pub mod types;
