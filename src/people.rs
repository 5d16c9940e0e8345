//! What people make for themselves: their own data types. Knows the catalogue and the registry; knows nothing of HTTP or of stored rows.

pub mod types;
