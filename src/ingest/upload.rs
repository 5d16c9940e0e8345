//! An upload: everything one accepted request does, before it is committed.
//!
//! Made by a request, consumed by the commit queue. Knows rows and ids; knows nothing of bodies or of the
//! catalogue's tables.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalog::records::{Effect, NewPiece, SeenSource};
use crate::model::ids::{PersonId, PieceId, RecordId, UploadId};
use crate::model::registry::{Layout, TypeId};
use crate::model::release_guard::ReleaseGuard;
use crate::store::snapshot::Snapshot;

use super::changes::Change;
use super::dating::KnownTimes;
use super::memory::Allowance;
use super::pieces_by_id::PiecesById;

/// One accepted request.
#[derive(Debug)]
pub struct Upload {
    pub person: PersonId,
    pub upload: UploadId,
    /// The `Idempotency-Key` with a fingerprint of the request.
    pub key: Option<IdempotencyKey>,
    pub work: Work,
    pub sources: Vec<SeenSource>,
    /// The memory allowance of the rows, for as long as they are held.
    pub memory: Option<Allowance>,
    /// What counts it elsewhere until it is known what became of it: the caller may have gone away by then.
    pub held: Option<ReleaseGuard>,
}

/// The caller's name for a request, and the fingerprint of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: [u8; 32],
}

/// What an upload stores or deletes.
#[derive(Debug)]
pub enum Work {
    /// Rows in memory, to be merged with other waiting requests.
    Small(Vec<PartitionChanges>),
    /// Rows already in objects, which nobody can see yet.
    Written(Box<WrittenRows>),
}

impl Work {
    fn changes(&self) -> impl Iterator<Item = &Change> {
        let partitions = match self {
            Self::Small(partitions) => partitions.as_slice(),
            Self::Written(_) => &[],
        };
        partitions.iter().flat_map(|partition| &partition.changes)
    }

    /// Bytes that it holds in memory. Ids that are to be deleted from several partitions are there once.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let mut lists = HashSet::new();
        self.changes()
            .map(|change| match change {
                Change::Put { .. } => change.bytes(),
                Change::Delete { records, .. } if lists.insert(records.list().as_ptr()) => {
                    size_of_val(records.list())
                }
                Change::Delete { .. } => 0,
            })
            .sum()
    }

    /// Bytes of what is asked of all its partitions, as a measure of the work that they are: each looks for
    /// the ids that are to be deleted from several.
    #[must_use]
    pub fn bytes_asked(&self) -> usize {
        self.changes().map(Change::bytes).sum()
    }

    /// Bytes of the rows that it adds to the tail.
    #[must_use]
    pub fn bytes_put(&self) -> usize {
        self.changes()
            .filter(|change| matches!(change, Change::Put { .. }))
            .map(Change::bytes)
            .sum()
    }
}

/// Changes of one partition, in their order.
#[derive(Debug)]
pub struct PartitionChanges {
    pub data_type: TypeId,
    pub layout: Arc<Layout>,
    pub changes: Vec<Change>,
}

/// Rows of one large body, and what they replace.
#[derive(Debug)]
pub struct WrittenRows {
    pub data_type: TypeId,
    pub layout: Arc<Layout>,
    pub pieces: WrittenPieces,
    /// The ids that the caller chose, each with the piece that holds its last version.
    pub given: PiecesById,
    /// Rows of `pieces` that a later line of the same body replaced.
    pub superseded: Vec<(PieceId, RecordId)>,
    /// The state of the partition that the other fields refer to.
    pub base: Arc<Snapshot>,
    /// The times of the ids that the caller chose, if the type's records may come without one.
    pub times: KnownTimes,
    /// Rows of `base` that are replaced.
    pub replaced: Vec<(PieceId, RecordId)>,
    /// Ids whose row was not written, because `base` has it with the same content; each with the piece that
    /// holds it.
    pub dropped: PiecesById,
    /// How often a line changed what an earlier line of the same body had said of the same id. Only ids of
    /// which one did.
    pub changes: HashMap<RecordId, i64>,
    /// Ids that were written although their first line changed nothing, because `base` has the same content:
    /// later lines did, or another wrote it meanwhile. Each with the piece that holds it.
    pub begun_as_stored: PiecesById,
}

impl WrittenRows {
    /// The number of live rows among the written ones.
    #[must_use]
    pub fn live(&self) -> i64 {
        self.pieces.rows() - self.superseded.len() as i64
    }

    /// The changes that it makes to the partition in the state `base`, line by line. The last row of an id
    /// stands for its first line; that one may have changed nothing. It may be one too high for an id that
    /// the body itself changes and others change meanwhile, because what its first line said is not kept.
    #[must_use]
    pub fn updates(&self) -> i64 {
        self.live() + self.changes.values().sum::<i64>() - self.begun_as_stored.len() as i64
    }

    /// Its effect on the partition in the state `base`. Where all lines of an id say what is stored, its row
    /// takes the place of one like it, and nothing is different afterwards.
    #[must_use]
    pub fn effect(&self) -> Effect {
        let replaced = self.replaced.len() as u64;
        let begun_as_stored = self.begun_as_stored.iter();
        let alike = begun_as_stored
            .filter(|(id, _)| !self.changes.contains_key(id))
            .count() as u64;
        Effect {
            stored: self.live().unsigned_abs().saturating_sub(replaced),
            replaced: replaced.saturating_sub(alike),
            unchanged: self.dropped.len() as u64 + alike,
            deleted: 0,
        }
    }

    /// Records pieces that hold the newest rows of these ids, each with its start.
    pub(super) fn take_in(&mut self, pieces: Vec<NewPiece>, rows: impl Iterator<Item = (RecordId, i64)>) {
        let placed = rows.filter_map(|(id, start)| {
            let holds = |piece: &&NewPiece| {
                piece.bounds.min_start.micros() <= start && start <= piece.bounds.max_start.micros()
            };
            pieces.iter().find(holds).map(|piece| (id, piece.id))
        });
        let placed: Vec<(RecordId, PieceId)> = placed.collect();
        if !self.dropped.is_empty() {
            let ids: Vec<RecordId> = placed.iter().map(|(id, _)| *id).collect();
            self.dropped.remove(&ids);
        }
        self.superseded.extend(self.given.put(placed));
        self.pieces.add(pieces);
    }
}

/// The pieces of one large body, whose objects nobody names before the commit. The body is given away to be
/// committed, and may write more until then: all clones share what was written, so that whoever removes the
/// objects of a body that is refused knows all of them.
#[derive(Clone, Debug, Default)]
pub struct WrittenPieces(Arc<Mutex<Vec<NewPiece>>>);

impl WrittenPieces {
    /// All that were written so far.
    #[must_use]
    pub fn all(&self) -> Vec<NewPiece> {
        self.lock().clone()
    }

    /// The number of their rows.
    #[must_use]
    pub fn rows(&self) -> i64 {
        self.lock().iter().map(|piece| piece.rows).sum()
    }

    fn add(&self, pieces: Vec<NewPiece>) {
        self.lock().extend(pieces);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<NewPiece>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
