//! Chooses the tail pieces that a write merges into its own, so that many small writes leave few pieces.
//!
//! Every reader of a partition, and every write that looks for its ids, goes through all pieces of its tail.
//! Pieces of about the same size are merged when there are enough of them. So a row is rewritten once per
//! size, and each size is sixteen times the one before. Knows snapshots; knows nothing of commits.

use super::snapshot::{PieceContent, Snapshot, SnapshotPiece, TailRows};
use crate::model::ids::PieceId;

/// This many pieces of one size become one; each size is this many times the one before.
const PIECES_TOGETHER: usize = 16;
/// A piece of at least this many rows stays as it is until it is flushed,
const MOST_ROWS: usize = 4096;
/// and so does one of this many bytes.
const MOST_BYTES: usize = 256 << 10;

/// A piece that is merged, with its rows.
pub type PieceToMerge<'s> = (&'s SnapshotPiece, &'s TailRows);

/// The pieces that a new one of `rows` rows takes along. Never one with dead rows, because these are named by
/// their piece. Nor one that `stays`.
#[must_use]
pub fn taken_along(
    snapshot: &Snapshot,
    layout_version: u32,
    rows: usize,
    stays: impl Fn(PieceId) -> bool,
) -> Vec<PieceToMerge<'_>> {
    let small = snapshot.pieces.iter().filter_map(|piece| match &piece.content {
        PieceContent::Tail(rows) => Some((piece, &**rows)),
        PieceContent::Object(_) => None,
    });
    let mut small: Vec<PieceToMerge<'_>> = small
        .filter(|(piece, rows)| {
            piece.layout_version <= layout_version
                && piece.dead.is_empty()
                && rows.batch().num_rows() < MOST_ROWS
                && rows.memory() < MOST_BYTES
                && !stays(piece.id)
        })
        .collect();
    let mut all = rows;
    let mut taken = Vec::new();
    while all > 0 && all < MOST_ROWS {
        let size = size_of(all);
        let alike = small.extract_if(.., |(_, rows)| size_of(rows.batch().num_rows()) <= size);
        let alike: Vec<PieceToMerge<'_>> = alike.collect();
        if alike.len() + 1 < PIECES_TOGETHER {
            break;
        }
        all += alike
            .iter()
            .map(|(_, rows)| rows.batch().num_rows())
            .sum::<usize>();
        taken.extend(alike);
    }
    taken
}

fn size_of(rows: usize) -> u32 {
    rows.max(1).ilog(PIECES_TOGETHER)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, TimestampMicrosecondArray};
    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::{Bounds, Stamp};
    use crate::model::ids::{PersonId, RecordId};
    use crate::model::registry::TypeId;
    use crate::model::time::Instant;

    fn piece(number: u128, rows: usize) -> SnapshotPiece {
        let ids = (0..rows as u128).map(|row| *Uuid::from_u128(number << 32 | row).as_bytes());
        let times = || {
            let times = TimestampMicrosecondArray::from_iter_values(0..rows as i64);
            Arc::new(times.with_timezone("UTC")) as ArrayRef
        };
        let ids = Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()) as ArrayRef;
        let columns = [("id", ids), ("start_time", times()), ("end_time", times())];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let moment = Instant::from_micros(0);
        SnapshotPiece {
            id: PieceId(Uuid::from_u128(number)),
            rows: rows as i64,
            bytes: 1,
            bounds: Bounds {
                min_start: moment,
                max_start: moment,
                max_end: moment,
            },
            layout_version: 1,
            checksum: 0,
            dead: Arc::new([]),
            content: PieceContent::Tail(Arc::new(TailRows::new(batch).unwrap())),
        }
    }

    fn snapshot(pieces: Vec<SnapshotPiece>) -> Snapshot {
        Snapshot {
            person: PersonId(Uuid::from_u128(1)),
            data_type: TypeId("HeartRate".into()),
            stamp: Stamp::default(),
            records: 0,
            pieces,
        }
    }

    #[test]
    fn many_small_writes_leave_few_pieces_and_write_a_row_a_few_times() {
        let mut now = snapshot(Vec::new());
        let (mut written, mut most) = (0, 0);
        for number in 0..5_000 {
            let taken: Vec<PieceId> = taken_along(&now, 1, 1, |_| false)
                .into_iter()
                .map(|(piece, _)| piece.id)
                .collect();
            let rows = now.pieces.iter().filter(|piece| taken.contains(&piece.id));
            let rows = 1 + rows.map(|piece| piece.rows as usize).sum::<usize>();
            now.pieces.retain(|piece| !taken.contains(&piece.id));
            now.pieces.push(piece(number, rows));
            written += rows;
            most = most.max(now.pieces.len());
        }
        assert_eq!(now.pieces.iter().map(|piece| piece.rows).sum::<i64>(), 5_000);
        assert!(most <= 3 * PIECES_TOGETHER, "{most}");
        assert!(written <= 4 * 5_000, "{written}");
    }

    #[test]
    fn what_others_name_or_know_more_of_stays() {
        let fifteen = |but: &dyn Fn(&mut SnapshotPiece)| {
            let mut pieces: Vec<SnapshotPiece> = (0..15).map(|number| piece(number, 1)).collect();
            but(&mut pieces[7]);
            snapshot(pieces)
        };
        let taken = |now: &Snapshot| taken_along(now, 1, 1, |piece| piece.0.as_u128() == 99).len();
        assert_eq!(taken(&fifteen(&|_| ())), 15);
        assert_eq!(
            taken(&fifteen(&|piece| piece.dead = Arc::new([RecordId(Uuid::nil())]))),
            0
        );
        assert_eq!(taken(&fifteen(&|piece| piece.layout_version = 2)), 0);
        assert_eq!(
            taken(&fifteen(&|piece| piece.id = PieceId(Uuid::from_u128(99)))),
            0
        );
    }
}
