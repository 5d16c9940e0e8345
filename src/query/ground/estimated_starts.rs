//! Estimates when rows of a piece begin, as if they were spread evenly over its time. Knows nothing of what
//! the rows mean.

use std::ops::Range;

use crate::store::snapshot::SnapshotPiece;

/// When so many parts of a piece begin that do so within the `touched` time.
pub(super) fn starts_of_parts(
    piece: &SnapshotPiece,
    count: i64,
    touched: &Range<i64>,
) -> impl Iterator<Item = i64> {
    let (from, to) = (piece.bounds.min_start.micros(), piece.bounds.max_start.micros());
    let (after, before) = (touched.start, touched.end);
    let count = if from < before && to > after { count } else { 0 };
    let length = i128::from(to) - i128::from(from);
    let starts = (0..count).map(move |part| i128::from(from) + length * i128::from(part) / i128::from(count));
    // Never beyond the bounds of the piece.
    let starts = starts.filter_map(|start| i64::try_from(start).ok());
    starts.filter(move |start| *start > after && *start < before)
}
