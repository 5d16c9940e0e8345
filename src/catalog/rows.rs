//! Converts those of the catalogue's own rows that more than one of its statements needs, between stored and
//! typed form.

use std::sync::Arc;

use uuid::Uuid;

use super::database::Value;
use super::errors::CatalogError;
use super::records::{Bounds, Footer, NewPiece, NewPlace, PartitionSummary, Piece, Place, Stamp};
use super::tables::PARTITIONS;
use super::verified_rows::VerifiedRow;
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// A person's running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ledger {
    pub person: PersonId,
    pub sequence: i64,
    pub partitions: i64,
    pub digest: u32,
}

/// One row of `partitions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionRow {
    pub person: PersonId,
    pub data_type: TypeId,
    pub version: i64,
    pub records: i64,
    pub pieces: i64,
    pub dead: i64,
    pub digest: u32,
    pub bytes: i64,
    pub bounds: Option<Bounds>,
    pub changed_at: Instant,
    /// The newest minute in which updates were accepted, and their number.
    pub current_minute: i64,
    pub current_count: i64,
}

/// One row of `dead_rows`.
#[derive(Clone, Debug)]
pub(super) struct DeadRow {
    pub data_type: TypeId,
    pub piece: PieceId,
    pub record: RecordId,
}

impl Ledger {
    pub(super) fn of(row: &VerifiedRow) -> Result<Self, CatalogError> {
        Ok(Self {
            person: row.id(0, PersonId::from_slice)?,
            sequence: row.int(1)?,
            partitions: row.int(2)?,
            digest: digest(row.int(3)?)?,
        })
    }

    /// Whether nothing was ever stored.
    pub(super) const fn holds_nothing(&self) -> bool {
        self.partitions == 0 && self.digest == 0
    }

    pub(super) fn values(&self) -> Vec<Value> {
        vec![
            id(self.person.0),
            Value::Int(self.sequence),
            Value::Int(self.partitions),
            Value::Int(i64::from(self.digest)),
        ]
    }

    pub(super) fn empty(person: PersonId) -> Self {
        Self {
            person,
            sequence: 0,
            partitions: 0,
            digest: 0,
        }
    }
}

impl PartitionRow {
    pub(super) fn of(row: &VerifiedRow) -> Result<Self, CatalogError> {
        let pieces = row.int(4)?;
        let bounds = Bounds {
            min_start: Instant::from_micros(row.int(8)?),
            max_start: Instant::from_micros(row.int(9)?),
            max_end: Instant::from_micros(row.int(10)?),
        };
        Ok(Self {
            person: row.id(0, PersonId::from_slice)?,
            data_type: TypeId(row.text(1)?.into()),
            version: row.int(2)?,
            records: row.int(3)?,
            pieces,
            dead: row.int(5)?,
            digest: digest(row.int(6)?)?,
            bytes: row.int(7)?,
            bounds: (pieces > 0).then_some(bounds),
            changed_at: Instant::from_micros(row.int(11)?),
            current_minute: row.int(12)?,
            current_count: row.int(13)?,
        })
    }

    /// The row of a partition that does not have one yet.
    pub(super) fn empty(person: PersonId, data_type: TypeId, now: Instant) -> Self {
        Self {
            person,
            data_type,
            version: 0,
            records: 0,
            pieces: 0,
            dead: 0,
            digest: 0,
            bytes: 0,
            bounds: None,
            changed_at: now,
            current_minute: i64::MIN,
            current_count: 0,
        }
    }

    pub(super) fn values(&self) -> Vec<Value> {
        let (min_start, max_start, max_end) = self.bounds.map_or((0, 0, 0), |bounds| {
            (
                bounds.min_start.micros(),
                bounds.max_start.micros(),
                bounds.max_end.micros(),
            )
        });
        vec![
            id(self.person.0),
            text(&self.data_type.0),
            Value::Int(self.version),
            Value::Int(self.records),
            Value::Int(self.pieces),
            Value::Int(self.dead),
            Value::Int(i64::from(self.digest)),
            Value::Int(self.bytes),
            Value::Int(min_start),
            Value::Int(max_start),
            Value::Int(max_end),
            Value::Int(self.changed_at.micros()),
            Value::Int(self.current_minute),
            Value::Int(self.current_count),
        ]
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            version: self.version,
            digest: self.digest,
        }
    }

    pub(super) fn checksum(&self) -> u32 {
        PARTITIONS.checksum(&self.values())
    }

    /// Adds a piece whose row has the given checksum.
    pub(super) fn gain(&mut self, piece: &NewPiece, checksum: u32) {
        self.pieces += 1;
        self.bytes += piece.bytes;
        self.digest ^= checksum;
        self.bounds = Some(
            self.bounds
                .map_or(piece.bounds, |bounds| bounds.union(piece.bounds)),
        );
    }

    /// Subtracts a piece whose row has the given checksum, and whose rows are in another piece.
    pub(super) fn lose(&mut self, piece: &Piece, checksum: u32) {
        self.pieces -= 1;
        self.bytes -= piece.bytes;
        self.digest ^= checksum;
    }

    /// Counts updates in `minute`. Returns the previous minute with its count, if that has ended.
    pub(super) fn count(&mut self, minute: i64, updates: i64) -> Option<(i64, i64)> {
        let ended = (minute > self.current_minute && self.current_count != 0)
            .then_some((self.current_minute, self.current_count));
        if minute > self.current_minute {
            self.current_minute = minute;
            self.current_count = 0;
        }
        self.current_count += updates;
        ended
    }

    pub(super) fn summary(&self) -> PartitionSummary {
        PartitionSummary {
            data_type: self.data_type.clone(),
            version: self.version,
            records: self.records,
            pieces: self.pieces,
            bytes: self.bytes,
            bounds: self.bounds,
            changed_at: self.changed_at,
        }
    }
}

impl DeadRow {
    pub(super) fn of(row: &VerifiedRow) -> Result<Self, CatalogError> {
        Ok(Self {
            data_type: TypeId(row.text(1)?.into()),
            piece: row.id(2, PieceId::from_slice)?,
            record: row.id(3, RecordId::from_slice)?,
        })
    }

    pub(super) fn values(
        person: PersonId,
        data_type: &TypeId,
        piece: PieceId,
        record: RecordId,
        sequence: i64,
    ) -> Vec<Value> {
        vec![
            id(person.0),
            text(&data_type.0),
            id(piece.0),
            id(record.0),
            Value::Int(sequence),
        ]
    }
}

/// Columns of a piece. One of the tail has neither path nor footer, and the second column holds what its rows
/// take in memory.
const PATH: usize = 11;
const FOOTER_BYTES: usize = 12;

/// The path of a piece's object, from the row of the piece; `None` for one of the tail.
pub(super) fn path_of(row: &VerifiedRow) -> Option<&str> {
    row.optional_text(PATH)
}

/// How many bytes the rows of a tail piece take in memory, from the row of the piece, if that was noted.
pub(super) fn tail_memory_of(row: &VerifiedRow) -> Option<i64> {
    row.optional_int(FOOTER_BYTES)
}

/// A piece from its row; blobs and dead rows are filled in by the caller.
pub(super) fn piece_of(row: &VerifiedRow) -> Result<Piece, CatalogError> {
    let narrow = |column: usize| {
        row.int(column).and_then(|value| {
            u32::try_from(value).map_err(|_| CatalogError::corrupt("a piece has a number out of its range"))
        })
    };
    let place = match (path_of(row), row.optional_int(FOOTER_BYTES), row.optional_int(13)) {
        (Some(path), Some(_), Some(_)) => Place::Object {
            path: path.to_owned(),
            footer: Footer {
                bytes: narrow(FOOTER_BYTES)?,
                checksum: narrow(13)?,
            },
        },
        (None, _, None) => Place::Tail { blob: None },
        _ => {
            return Err(CatalogError::corrupt(
                "a piece is neither of the tail nor an object",
            ));
        }
    };
    Ok(Piece {
        id: row.id(2, PieceId::from_slice)?,
        sequence: row.int(3)?,
        rows: row.int(4)?,
        bytes: row.int(5)?,
        bounds: Bounds {
            min_start: Instant::from_micros(row.int(6)?),
            max_start: Instant::from_micros(row.int(7)?),
            max_end: Instant::from_micros(row.int(8)?),
        },
        layout_version: narrow(9)?,
        checksum: narrow(10)?,
        place,
        dead: Arc::new([]),
        created_at: Instant::from_micros(row.int(14)?),
    })
}

/// Whether the bytes of a tail piece are those with the checksum that its row has.
pub(super) fn is_sound_blob(blob: &[u8], checksum: i64) -> bool {
    i64::from(crc32fast::hash(blob)) == checksum
}

pub(super) fn piece_values(
    person: PersonId,
    data_type: &TypeId,
    piece: &NewPiece,
    sequence: i64,
    now: Instant,
) -> Vec<Value> {
    let (path, footer_bytes, footer_checksum) = match &piece.place {
        NewPlace::Tail { memory, .. } => (Value::NullText, Value::Int(i64::from(*memory)), Value::NullInt),
        NewPlace::Object { path, footer } => (
            Value::Text(path.clone()),
            Value::Int(i64::from(footer.bytes)),
            Value::Int(i64::from(footer.checksum)),
        ),
    };
    vec![
        id(person.0),
        text(&data_type.0),
        id(piece.id.0),
        Value::Int(sequence),
        Value::Int(piece.rows),
        Value::Int(piece.bytes),
        Value::Int(piece.bounds.min_start.micros()),
        Value::Int(piece.bounds.max_start.micros()),
        Value::Int(piece.bounds.max_end.micros()),
        Value::Int(i64::from(piece.layout_version)),
        Value::Int(i64::from(piece.checksum)),
        path,
        footer_bytes,
        footer_checksum,
        Value::Int(now.micros()),
    ]
}

pub(super) fn id(id: Uuid) -> Value {
    Value::Bytes(id.as_bytes().to_vec())
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub(super) fn optional_text(text: Option<&str>) -> Value {
    text.map_or(Value::NullText, |text| Value::Text(text.to_owned()))
}

pub(super) fn digest(value: i64) -> Result<u32, CatalogError> {
    u32::try_from(value).map_err(|_| CatalogError::corrupt("a digest is out of its range"))
}
