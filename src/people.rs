//! What people make for themselves: their own data types, preferences and files. Knows the catalogue and the
//! registry; knows nothing of HTTP or of stored rows.

pub mod files;
pub mod limits;
pub mod preferences;
pub mod types;
