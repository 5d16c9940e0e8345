//! The SQL catalogue: the only truth about what exists.
//!
//! It runs on embedded SQLite, or on PostgreSQL shared by several nodes, with the same statements for both.
//! It knows people, partitions and the pieces they are made of, and holds the bytes of the youngest pieces
//! itself. Every row carries a checksum, and rows that belong together have a digest, so that damage is an
//! error and never a wrong answer. Knows neither Parquet nor Arrow, and nothing of what a record means. Lives
//! as long as the process.

pub mod access_log;
mod backlog;
mod checking;
mod committing;
mod copying;
mod counted_rows;
mod damage;
mod database;
pub mod dated_ahead;
mod definitions;
mod deletions;
pub mod disturbance;
pub mod documents;
mod erasure;
pub mod erasures;
mod errors;
pub mod estates;
mod facts;
mod first_counts;
mod found;
pub mod granting;
mod handle;
mod identity;
mod inserting;
mod kept_rows;
mod kind_states;
mod known_states;
mod leases;
mod ledgers;
mod log_index;
mod lookups;
mod lost_people;
mod migrations;
mod objects;
mod orphans;
mod people;
mod reading;
pub mod records;
mod registers;
mod replacing;
mod restoring;
mod roster;
mod rows;
mod sound_rows;
mod stored_partitions;
mod stored_sources;
mod subject;
mod tables;
#[cfg(test)]
pub(crate) mod test_databases;
#[cfg(test)]
mod test_plans;
#[cfg(test)]
mod tests;
mod turns;
mod updates;
mod value;
mod verified_rows;
mod witness;
mod writing;

pub use committing::Hold;
pub use definitions::DefinitionsStamp;
pub use deletions::NoticedDeletion;
pub use errors::CatalogError;
pub use facts::SCRUB_FACTS;
pub use found::FoundAt;
pub use handle::Catalog;
pub use kind_states::KindState;
pub use known_states::PersonState;
pub use objects::{ObjectCursor, RetiredObject};
pub use orphans::OrphanTotals;
pub use registers::{RegisteredCounts, SourcesState};
pub use sound_rows::Sound;
pub use subject::Subject;
