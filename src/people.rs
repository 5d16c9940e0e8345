//! What people make for themselves: their own data types, their preferences, and what they share with whom.
//! Knows the catalogue and the registry; knows nothing of HTTP or of stored rows.
//! What people make for themselves: their own data types and preferences, annotations, tags and
//! reflections, API sessions and files. Knows the catalogue and the registry; knows nothing of HTTP or of stored rows.

pub mod annotations;
pub mod documents;
pub mod files;
pub mod limits;
pub mod preferences;
pub mod purging;
pub mod reflections;
pub mod sessions;
pub mod sharing;
pub mod source_quota;
pub mod tags;
pub mod text;
pub mod types;
