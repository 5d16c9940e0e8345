//! Turns rows into durable bytes and back: the object store, the Parquet layout of pieces, the tail's blobs,
//! snapshots of both.
//!
//! Stands on the catalogue, which says what exists. Knows nothing of requests, of the JSON of records, or
//! of plans.

pub mod arrange;
mod blob_forms;
pub mod blocking;
mod checksums;
pub mod choose_tail_pieces;
pub mod constant;
mod constant_text;
pub mod contents;
pub mod decoded;
pub mod encoding;
mod errors;
#[cfg(test)]
pub mod faults;
pub mod files;
pub mod find;
pub mod folder_names;
mod folders;
mod footer_facts;
mod id_index;
pub mod kept_rollups;
pub mod local;
pub mod objects;
pub mod orphans;
pub mod outline;
mod page_cache;
pub mod piece;
pub mod replaced;
pub mod rollups;
mod row_groups;
pub mod sealing;
mod signing;
pub mod snapshot;
mod staging;
pub mod tail;
#[cfg(test)]
mod tests;
pub mod verify;
mod wanted_ids;

pub use errors::StoreError;
