//! How rows become durable bytes and come back: the object store, the Parquet layout of pieces, the tail's
//! blobs, snapshots of both.
//!
//! Stands on the catalogue, which says what exists. Knows nothing of HTTP, JSON bodies or plans.

pub mod arrange;
mod checksums;
pub mod constant;
pub mod contents;
pub mod decoded;
pub mod encoding;
mod errors;
pub mod faults;
pub mod files;
pub mod find;
pub mod gather;
mod id_index;
pub mod local;
pub mod objects;
mod one_word;
pub mod outline;
mod page_cache;
pub mod piece;
pub mod replaced;
pub mod rollups;
mod row_groups;
pub mod scrub;
pub mod sealing;
mod signing;
pub mod snapshot;
pub mod strays;
pub mod tail;
#[cfg(test)]
mod tests;
mod wanted;

pub use errors::StoreError;
