//! What people create for themselves: their own data types and preferences, annotations, tags and
//! reflections, API sessions and files, what they share with others, and the export and import of all of it.
//! Knows the catalogue and the registry; knows nothing of HTTP.

pub mod annotations;
pub mod condition;
pub mod documents;
pub mod files;
pub mod frames;
pub mod key_quota;
pub mod limits;
pub mod preferences;
pub mod purging;
pub mod quota;
pub mod reflections;
pub mod sessions;
pub mod sharing;
pub mod source_quota;
pub mod tags;
pub mod takeout;
pub mod text;
pub mod types;
