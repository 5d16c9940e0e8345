//! What the catalogue says about stored rows: partitions, the pieces they are made of, and commits that change them.

use std::sync::Arc;

use bytes::Bytes;

use crate::model::ids::{PersonId, PieceId, RecordId, UploadId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// All rows of one person and data type, as of one moment.
#[derive(Clone, Debug)]
pub struct Partition {
    pub person: PersonId,
    pub data_type: TypeId,
    /// Grows with every change to the partition, whoever makes it. 0: nothing was ever stored.
    pub version: i64,
    /// Live records.
    pub records: i64,
    pub pieces: Vec<Piece>,
}

/// One immutable group of rows, sorted by (start, end, id).
#[derive(Clone, Debug)]
pub struct Piece {
    pub id: PieceId,
    /// The person's sequence when the newest of its rows was accepted.
    pub sequence: i64,
    pub rows: i64,
    pub bytes: i64,
    pub bounds: Bounds,
    pub layout_version: u32,
    /// CRC-32 of the blob or of the whole object.
    pub checksum: u32,
    pub place: Place,
    /// Rows of this piece that were replaced or deleted since it was written.
    pub dead: Arc<[RecordId]>,
    pub created_at: Instant,
}

/// The extremes of a piece's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min_start: Instant,
    pub max_start: Instant,
    pub max_end: Instant,
}

#[derive(Clone, Debug)]
pub enum Place {
    /// In the catalogue itself. `blob` is `None` when the caller said that it holds this piece already.
    Tail { blob: Option<Bytes> },
    /// A Parquet object.
    Object { path: String, footer_bytes: u32 },
}

/// A piece about to be registered.
#[derive(Clone, Debug)]
pub struct NewPiece {
    pub id: PieceId,
    pub rows: i64,
    pub bounds: Bounds,
    pub layout_version: u32,
    pub checksum: u32,
    pub bytes: i64,
    pub place: NewPlace,
}

#[derive(Clone, Debug)]
pub enum NewPlace {
    Tail { blob: Bytes },
    Object { path: String, footer_bytes: u32 },
}

/// Everything one group commit does, for any number of people. All of it happens, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub changes: Vec<PartitionChange>,
    pub uploads: Vec<UploadReceipt>,
    pub sources: Vec<SeenSource>,
}

/// What a commit does to one partition.
#[derive(Clone, Debug)]
pub struct PartitionChange {
    pub person: PersonId,
    pub data_type: TypeId,
    /// The version that was looked at. If the partition has another one by now, the whole commit is refused as stale.
    pub expected_version: i64,
    pub add: Vec<NewPiece>,
    /// Rows that die: replaced or deleted, each in the piece that holds it (which may be one of `add`).
    pub dead: Vec<(PieceId, RecordId)>,
    /// Change of the number of live records.
    pub records_delta: i64,
    /// Records put or deleted, as `/data/v1/updates` counts them.
    pub updates: i64,
}

/// An accepted request, kept so that its repetition has no second effect.
#[derive(Clone, Debug)]
pub struct UploadReceipt {
    pub person: PersonId,
    pub upload: UploadId,
    /// `Idempotency-Key` with a fingerprint of the request it came with.
    pub key: Option<(String, [u8; 32])>,
}

/// A source that records came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeenSource {
    pub person: PersonId,
    /// The source's identity inside the person, as rule 1.4e defines it.
    pub key: String,
    pub name: Option<String>,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    Done,
    /// A partition changed since it was looked at, or an idempotency key was taken meanwhile. Nothing happened; look again.
    Stale,
}
