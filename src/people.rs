//! What people make for themselves: their own data types, preferences and API sessions. Knows the catalogue and the
//! registry; knows nothing of HTTP or of stored rows.

pub mod preferences;
pub mod sessions;
pub mod types;
