//! What people have besides records: their own data types and preferences, annotations, tags and reflections,
//! API sessions and files, what they share with others, answers that are kept (frames), and the export and
//! import of all of it; how much of each one person may have; and purging what they deleted long ago.
//!
//! Knows the catalogue, the registry of types and the store. Uses of `ingest` what it takes to bring records
//! back, and of `upkeep` how pieces are merged, and the leases and rounds of work in the background. Knows
//! nothing of HTTP, apart from how bodies are described.

pub mod annotations;
mod attempts;
pub mod condition;
pub mod documents;
pub mod file_names;
pub mod files;
pub mod frames;
mod kept;
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
