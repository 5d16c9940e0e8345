//! The catalogue's description of stored rows: partitions, the pieces they are made of, and commits that
//! change them.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::model::ids::{PersonId, PieceId, RecordId, UploadId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// Tells the states of a partition apart, even when a version comes twice because an older catalogue was
/// restored or a database lost its last commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Grows with every change to the partition, whoever makes it. 0: nothing was ever stored.
    pub version: i64,
    /// The exclusive or of the checksums of its pieces and dead rows.
    pub digest: u32,
}

/// All rows of one person and data type, as of one moment.
#[derive(Clone, Debug)]
pub struct Partition {
    pub person: PersonId,
    pub data_type: TypeId,
    pub stamp: Stamp,
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
    /// Ids whose row in this piece, if it has one, was replaced or deleted since the piece was written.
    /// Sorted. May name ids that are in another piece of the partition instead, so its length says nothing
    /// about the number of live rows.
    pub dead: Arc<[RecordId]>,
    pub created_at: Instant,
}

/// The extremes of the times of a piece's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min_start: Instant,
    pub max_start: Instant,
    pub max_end: Instant,
}

impl Bounds {
    /// The smallest bounds that contain both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            min_start: self.min_start.min(other.min_start),
            max_start: self.max_start.max(other.max_start),
            max_end: self.max_end.max(other.max_end),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Place {
    /// In the catalogue itself. `blob` is `None` when the caller said that it holds this piece already.
    Tail { blob: Option<Bytes> },
    /// A Parquet object.
    Object { path: String, footer: Footer },
}

/// The last bytes of an object: the Parquet metadata with its length and magic. Its own checksum lets a
/// reader trust it without reading the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    pub bytes: u32,
    pub checksum: u32,
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
    Tail {
        blob: Bytes,
        /// How many bytes its rows take when they are read.
        memory: u32,
    },
    Object {
        path: String,
        footer: Footer,
    },
}

/// Everything one group commit does, for any number of people. It happens completely or not at all.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub changes: Vec<PartitionChange>,
    /// Pieces that some of the changes gather into new ones.
    pub gathered: Vec<GatheredTail>,
    /// Partitions that were read and need no change.
    pub unchanged: Vec<SeenPartition>,
    pub uploads: Vec<UploadReceipt>,
    pub sources: Vec<SeenSource>,
}

/// What a commit does to one partition.
#[derive(Clone, Debug)]
pub struct PartitionChange {
    pub person: PersonId,
    pub data_type: TypeId,
    /// The state that was read. If the partition is in another one by now, the whole commit is refused as
    /// stale. `None`: nothing was read, because the change only adds rows under new ids, which is right
    /// whatever else happened.
    pub expected: Option<Stamp>,
    pub add: Vec<NewPiece>,
    /// Rows that die: replaced or deleted, each in the piece that holds it (which may be one of `add`).
    pub dead: Vec<(PieceId, RecordId)>,
    /// Change of the number of live records.
    pub records_delta: i64,
    /// Records put or deleted, as `/data/v1/updates` counts them.
    pub updates: i64,
}

/// Tail pieces whose rows are all in a piece that a change of the same commit adds. None of them has dead
/// rows in the state that was read, and none of their rows dies by this commit.
#[derive(Clone, Debug)]
pub struct GatheredTail {
    pub person: PersonId,
    pub data_type: TypeId,
    pub pieces: Vec<PieceId>,
    /// The piece that has their rows now.
    pub into: PieceId,
}

/// A partition as it was read. If it has changed by now, a commit that rests on it is refused as stale: that
/// it needs no change holds only for the state that was read.
#[derive(Clone, Debug)]
pub struct SeenPartition {
    pub person: PersonId,
    pub data_type: TypeId,
    pub stamp: Stamp,
}

/// An accepted request, kept so that repeating it has no second effect.
#[derive(Clone, Debug)]
pub struct UploadReceipt {
    pub person: PersonId,
    pub upload: UploadId,
    /// `Idempotency-Key` with a fingerprint of the request it came with.
    pub key: Option<(String, [u8; 32])>,
    pub effect: Effect,
}

/// The idempotency keys of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCount {
    /// Those of accepted requests.
    pub kept: u64,
    /// Those that were asked about and are not kept.
    pub others: u64,
}

/// A request that was accepted under an `Idempotency-Key`, as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptUpload {
    pub upload: UploadId,
    pub fingerprint: [u8; 32],
    /// `None` where a version that did not count accepted it.
    pub effect: Option<Effect>,
}

/// What a request did to the records of its person: how many changed, each counted once however often the
/// request names it, and how many it repeated just as they were stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Effect {
    pub stored: u64,
    /// These replaced a stored version.
    pub replaced: u64,
    /// Left out, because they were already stored like this.
    pub unchanged: u64,
    pub deleted: u64,
}

impl Effect {
    const BYTES: usize = 4 * size_of::<u64>();

    pub fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.replaced += other.replaced;
        self.unchanged += other.unchanged;
        self.deleted += other.deleted;
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let counts = [self.stored, self.replaced, self.unchanged, self.deleted];
        for (place, count) in bytes.chunks_exact_mut(size_of::<u64>()).zip(counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (counts, rest) = bytes.as_chunks::<{ size_of::<u64>() }>();
        let [stored, replaced, unchanged, deleted] = *counts else {
            return None;
        };
        rest.is_empty().then(|| Self {
            stored: u64::from_le_bytes(stored),
            replaced: u64::from_le_bytes(replaced),
            unchanged: u64::from_le_bytes(unchanged),
            deleted: u64::from_le_bytes(deleted),
        })
    }
}

/// A source that records came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeenSource {
    pub person: PersonId,
    /// The source's identity within the person, as rule 1.4e defines it.
    pub key: String,
    pub name: Option<String>,
}

/// Replaces pieces by others with the same rows: tail pieces flushed into an object, or several objects
/// compacted into one.
#[derive(Clone, Debug)]
pub struct Replace {
    pub person: PersonId,
    pub data_type: TypeId,
    /// The pieces that were read. If one of them is gone by now, the replacement is refused as stale.
    pub inputs: Vec<PieceId>,
    /// Dead rows that were left out when the output was written. Those that died since then are dead in the
    /// output.
    pub applied: Vec<(PieceId, RecordId)>,
    /// May be empty, when every row was dead.
    pub output: Vec<NewPiece>,
}

/// What is stored of one data type, without its pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSummary {
    pub data_type: TypeId,
    pub version: i64,
    /// Live records.
    pub records: i64,
    pub pieces: i64,
    pub bytes: i64,
    /// The extremes of the rows in the pieces, dead ones included until compaction drops them. `None` without
    /// pieces.
    pub bounds: Option<Bounds>,
    pub changed_at: Instant,
}

/// The tail of one partition that waits to become an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailBacklog {
    pub person: PersonId,
    pub data_type: TypeId,
    pub pieces: i64,
    pub rows: i64,
    pub bytes: i64,
    /// How many bytes the rows take when they are read.
    pub memory: i64,
    pub oldest: Instant,
}

/// A partition in which compaction may find work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionCandidate {
    pub person: PersonId,
    pub data_type: TypeId,
    pub version: i64,
}

/// The number and size of the objects that pieces point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectTotals {
    pub objects: i64,
    pub bytes: i64,
}

/// A source as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSource {
    pub id: Uuid,
    pub key: String,
    pub name: Option<String>,
    pub added_at: Instant,
}

/// A data type that a person defined. The body is JSON text that only its owner understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    pub id: Uuid,
    pub person: PersonId,
    pub base: String,
    pub body: String,
    /// Grows with every change of the definition, from 1.
    pub version: i64,
    pub deprecated: bool,
    pub created_at: Instant,
    pub updated_at: Instant,
}

/// A person as the catalogue knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPerson {
    pub id: PersonId,
    pub name: Option<String>,
    /// JSON text.
    pub preferences: Option<String>,
    pub created_at: Instant,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    Done,
    /// A partition changed since it was read, or an idempotency key was taken meanwhile. Nothing happened;
    /// read again.
    Stale,
}
