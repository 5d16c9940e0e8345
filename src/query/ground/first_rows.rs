//! Finds where the first rows of many end, so that they are read without opening the rest.
//!
//! Parquet fetches whole groups of rows, but rows that lie in few pages are read from these alone. Knows how
//! many rows pieces have between which moments; knows nothing of what the rows mean.

use std::ops::Range;

use super::estimated_starts::starts_of_parts;
use crate::model::time::Instant;
use crate::store::snapshot::{Snapshot, SnapshotPiece};

/// The approximate number of rows in a page of an object.
const PAGE_ROWS: u64 = 8_192;
/// Rows of fewer pages are read page by page as they are.
const MANY_PAGES: u64 = 8;
/// Whoever wants more than a page of rows needs so many pages that groups are as quick.
const MOST_WANTED: usize = 8_192;
/// How many times as many rows as wanted should begin before the end: rows are not spread as evenly as is
/// assumed.
const MARGIN: u64 = 2;

/// A moment before which `wanted` rows probably begin in the `touched` time, if far more do later.
pub(super) fn end_of_first(snapshot: &Snapshot, touched: &Range<i64>, wanted: usize) -> Option<Instant> {
    let many = MANY_PAGES * PAGE_ROWS;
    if wanted > MOST_WANTED || snapshot.records.max(0).unsigned_abs() < many {
        return None;
    }
    let live = snapshot.pieces.iter().filter(|piece| !piece.is_dead());
    let mut pages: Vec<(i64, u64)> = live.flat_map(|piece| pages(piece, touched)).collect();
    if pages.iter().map(|(_, rows)| rows).sum::<u64>() < many {
        return None;
    }
    pages.sort_unstable();
    let enough = MARGIN * wanted as u64;
    let (mut rows, mut last) = (0, touched.start);
    for (start, more) in pages {
        if rows >= enough && start > last {
            return Some(Instant::from_micros(start));
        }
        (rows, last) = (rows + more, start);
    }
    None
}

/// When the pages of a piece begin that do so within the `touched` time, each with its number of rows.
fn pages(piece: &SnapshotPiece, touched: &Range<i64>) -> impl Iterator<Item = (i64, u64)> {
    let rows = piece.rows.max(1).unsigned_abs();
    let count = rows.div_ceil(PAGE_ROWS);
    let starts = starts_of_parts(piece, count.cast_signed(), touched);
    starts.map(move |start| (start, rows / count))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::{Bounds, Stamp};
    use crate::model::ids::{PersonId, PieceId};
    use crate::model::registry::TypeId;
    use crate::store::outline::ObjectPlace;
    use crate::store::snapshot::PieceContent;

    const ALWAYS: Range<i64> = i64::MIN..i64::MAX;

    /// Pieces with rows of one microsecond each: when the first begins, and how many there are.
    fn in_pieces(pieces: &[(i64, i64)]) -> Snapshot {
        let piece = |(from, rows): &(i64, i64)| SnapshotPiece {
            id: PieceId(Uuid::from_u128(1)),
            rows: *rows,
            bytes: 1,
            bounds: Bounds {
                min_start: Instant::from_micros(*from),
                max_start: Instant::from_micros(from + rows),
                max_end: Instant::from_micros(from + rows),
            },
            layout_version: 1,
            checksum: 0,
            dead: Arc::new([]),
            content: PieceContent::Object(ObjectPlace {
                path: "".into(),
                bytes: 1,
                footer_bytes: 1,
                footer_checksum: 0,
            }),
        };
        Snapshot {
            person: PersonId(Uuid::from_u128(1)),
            data_type: TypeId::new("HeartRate"),
            stamp: Stamp::default(),
            records: pieces.iter().map(|(_, rows)| rows).sum(),
            pieces: pieces.iter().map(piece).collect(),
        }
    }

    fn end(pieces: &[(i64, i64)], touched: Range<i64>, wanted: usize) -> Option<i64> {
        end_of_first(&in_pieces(pieces), &touched, wanted).map(Instant::micros)
    }

    #[test]
    fn the_first_rows_end_with_a_page() {
        let ten = [(0, 81_920)];
        assert_eq!(end(&ten, ALWAYS, 100), Some(8_192));
        assert_eq!(end(&ten, ALWAYS, 5_000), Some(16_384));
        // After a place within a page comes the rest of that page, which may be little.
        assert_eq!(end(&ten, 100..i64::MAX, 100), Some(16_384));
        // Pieces that begin together are read together.
        assert_eq!(end(&[(0, 40_960), (0, 40_960)], ALWAYS, 100), Some(8_192));
        assert_eq!(end(&[(0, 24), (100, 24), (200, 81_920)], ALWAYS, 20), Some(200));
    }

    #[test]
    fn few_rows_are_not_divided_nor_are_many_that_are_wanted() {
        assert_eq!(end(&[(0, 65_535)], ALWAYS, 100), None);
        assert_eq!(end(&[(0, 81_920)], 50_000..i64::MAX, 100), None);
        assert_eq!(end(&[(0, 81_920)], ALWAYS, MOST_WANTED + 1), None);
        assert_eq!(end(&[], ALWAYS, 100), None);
    }
}
