//! The background jobs, which change how rows are stored, but never which rows there are; and backup, check
//! and repair, which commands begin.
//!
//! *Flush* turns tails into objects, *compact* many objects into one, *collect* removes what nothing refers
//! to any more, and *orphans* what nothing ever referred to. *Purge* rewrites pieces that hold rows that were
//! deleted long ago. *Manifests* writes what the catalogue knows of a person beside their data, *scrub* looks
//! for damage. Only *erase* takes rows away: all those of a person who asked for it. *Backup* copies
//! everything, *check* reads everything that the catalogue names, *rebuild* makes a lost catalogue from its
//! store, and *repair* writes what a store has lost from its catalogue.
//!
//! Each is a plain function over the stores; one node at a time does what is due of a job, when its runner
//! says so. A job that is stopped anywhere leaves the same rows and at most an orphan. Knows the store and
//! the catalogue; knows nothing of requests, types or questions.

pub mod backup;
pub mod begun_anew;
pub mod check;
pub mod choose_objects;
pub mod collect;
pub mod compact;
pub mod erase;
pub mod erasure_check;
pub mod erasure_notes;
pub mod flush;
pub mod identity;
mod job;
pub mod jobs;
pub mod lease;
pub mod lost_manifests;
pub mod manifest;
pub mod manifest_names;
pub mod merge_pieces;
pub mod object_check;
pub mod older_catalogue;
pub mod past_years;
pub mod pause;
pub mod purge;
pub mod rebuild;
pub mod repair;
pub mod round;
pub mod runner;
pub mod scour;
pub mod scrub;
pub mod settings;
pub mod settled_partitions;
pub mod sorted_rows;
pub mod stores;
#[cfg(test)]
mod tests;

pub use jobs::Upkeep;
pub use stores::UpkeepStores;
