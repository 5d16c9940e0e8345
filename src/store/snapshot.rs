//! The contents of a person's partitions, as of one moment, ready to be read.
//!
//! A `Snapshot` never changes. Recently used ones stay in memory, bounded, and are reused while the catalogue
//! says that their stamp is current: one short statement per read. Rows of the tail are decoded once and
//! shared by all snapshots that hold them.

mod provider;
mod state;
mod tail_rows;

pub use provider::Snapshots;
pub use state::{PieceContent, Snapshot, SnapshotPiece};
pub use tail_rows::TailRows;
