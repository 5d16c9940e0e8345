//! One partition as of one moment, and how it is made from what the catalogue says. Asks nothing itself.

use std::sync::Arc;

use ahash::HashMap;
use arrow::array::RecordBatch;

use super::tail_rows::{PIECE_BYTES, TailRows};
use crate::catalog::records::{Bounds, NewPiece, NewPlace, Partition, Piece, Place, Stamp};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::outline::ObjectPlace;
use crate::store::sealing::PersonKey;
use crate::store::tail;

/// One partition as of one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub person: PersonId,
    pub data_type: TypeId,
    /// Tells this state of the partition apart from all others.
    pub stamp: Stamp,
    /// Live records.
    pub records: i64,
    /// In the order of their first starts.
    pub pieces: Vec<SnapshotPiece>,
}

/// One piece of a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotPiece {
    pub id: PieceId,
    pub rows: i64,
    pub bytes: i64,
    pub bounds: Bounds,
    pub layout_version: u32,
    /// CRC-32 of the whole object or blob.
    pub checksum: u32,
    /// Ids whose row in this piece, if it has one, does not count. Sorted.
    pub dead: Arc<[RecordId]>,
    pub content: PieceContent,
}

#[derive(Clone, Debug)]
pub enum PieceContent {
    Tail(Arc<TailRows>),
    Object(ObjectPlace),
}

impl SnapshotPiece {
    /// A piece that was just written, all of whose rows count. `None` if it is not an object.
    #[must_use]
    pub fn written(piece: &NewPiece) -> Option<Self> {
        added(piece, None)
    }

    /// Whether none of its rows counts, as far as that is known without reading an object.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        match &self.content {
            PieceContent::Tail(rows) => rows.are_all_among(&self.dead),
            PieceContent::Object(_) => false,
        }
    }
}

impl Snapshot {
    /// This state of the partition with only these of its pieces. It has `records` at least, since ids may be
    /// dead in a piece that has no row of theirs.
    #[must_use]
    pub fn only(&self, pieces: Vec<SnapshotPiece>) -> Self {
        let live = |piece: &SnapshotPiece| piece.rows - piece.dead.len() as i64;
        Self {
            person: self.person,
            data_type: self.data_type.clone(),
            stamp: self.stamp,
            records: pieces.iter().map(live).sum(),
            pieces,
        }
    }

    pub(super) fn memory(&self) -> usize {
        let piece = |piece: &SnapshotPiece| {
            let rows = match &piece.content {
                PieceContent::Tail(rows) => rows.memory(),
                PieceContent::Object(_) => 0,
            };
            PIECE_BYTES + rows + piece.dead.len() * size_of::<RecordId>()
        };
        PIECE_BYTES + self.pieces.iter().map(piece).sum::<usize>()
    }
}

pub(super) fn decoded(
    partition: Partition,
    held: &HashMap<PieceId, Arc<TailRows>>,
    key: Option<&PersonKey>,
) -> Result<Snapshot, StoreError> {
    let pieces = partition
        .pieces
        .into_iter()
        .map(|piece| decoded_piece(piece, held, key))
        .collect::<Result<_, _>>()?;
    Ok(Snapshot {
        person: partition.person,
        data_type: partition.data_type,
        stamp: partition.stamp,
        records: partition.records,
        pieces,
    })
}

fn decoded_piece(
    piece: Piece,
    held: &HashMap<PieceId, Arc<TailRows>>,
    key: Option<&PersonKey>,
) -> Result<SnapshotPiece, StoreError> {
    let content = match (&piece.place, held.get(&piece.id)) {
        (Place::Object { path, footer }, _) => {
            PieceContent::Object(ObjectPlace::new(path, piece.bytes, *footer))
        }
        (Place::Tail { .. }, Some(rows)) => PieceContent::Tail(Arc::clone(rows)),
        (Place::Tail { blob: Some(blob) }, None) => {
            let rows = tail::open(&piece, blob, key)?;
            PieceContent::Tail(Arc::new(TailRows::new(rows)?))
        }
        (Place::Tail { blob: None }, None) => {
            return Err(StoreError::corrupt(format!(
                "the bytes of tail piece {} were not read",
                piece.id
            )));
        }
    };
    Ok(SnapshotPiece {
        id: piece.id,
        rows: piece.rows,
        bytes: piece.bytes,
        bounds: piece.bounds,
        layout_version: piece.layout_version,
        checksum: piece.checksum,
        dead: piece.dead,
        content,
    })
}

/// A piece that was just committed. `None` if its rows are in the tail and were not given.
pub(super) fn added(piece: &NewPiece, rows: Option<RecordBatch>) -> Option<SnapshotPiece> {
    let content = match &piece.place {
        NewPlace::Object { path, footer } => {
            PieceContent::Object(ObjectPlace::new(path, piece.bytes, *footer))
        }
        NewPlace::Tail { .. } => PieceContent::Tail(Arc::new(TailRows::new(rows?).ok()?)),
    };
    Some(SnapshotPiece {
        id: piece.id,
        rows: piece.rows,
        bytes: piece.bytes,
        bounds: piece.bounds,
        layout_version: piece.layout_version,
        checksum: piece.checksum,
        dead: Arc::new([]),
        content,
    })
}
