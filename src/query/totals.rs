//! The number of a person's records and their range of time, from the catalogue's summaries of whole pieces.
//!
//! Rows are read only where a summary is not enough: where the first or the last row of a piece is dead, or
//! where it extends beyond the requested time; and only from those pieces that could hold the first or the
//! last row.

use crate::catalog::records::{Bounds, PartitionSummary};
use crate::model::ids::RecordId;
use crate::model::permit::ListPermit;
use crate::model::time::{Instant, TimeRange};
use crate::store::arrange::KeyColumns;
use crate::store::snapshot::{PieceContent, Snapshot, SnapshotPiece};

use super::ground::scan::Selection;
use super::summary::summarise;
use super::{QueryError, Questions};

/// All records of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub records: i64,
    /// The starts of the first and the last of the records that start in the requested time.
    pub starts: Option<(Instant, Instant)>,
}

/// The end of time from which rows are searched.
#[derive(Clone, Copy, Debug)]
enum Side {
    First,
    Last,
}

impl Side {
    /// The outermost start that a row within the bounds can have.
    const fn of(self, bounds: Bounds) -> Instant {
        match self {
            Self::First => bounds.min_start,
            Self::Last => bounds.max_start,
        }
    }

    fn is_beyond(self, one: Instant, other: Instant) -> bool {
        match self {
            Self::First => one < other,
            Self::Last => one > other,
        }
    }

    /// Sorts the items that may reach farthest to the front.
    fn sort<T>(self, items: &mut [T], bounds: impl Fn(&T) -> Bounds) {
        match self {
            Self::First => items.sort_by_key(|item| bounds(item).min_start),
            Self::Last => items.sort_by_key(|item| std::cmp::Reverse(bounds(item).max_start)),
        }
    }

    /// The outermost start `within` some time of sorted rows that are not dead.
    fn of_rows(self, rows: &KeyColumns, dead: &[RecordId], within: TimeRange) -> Option<Instant> {
        let starts = rows.starts.values();
        let before = |moment: Instant| starts.partition_point(|start| *start < moment.micros());
        let mut inside = before(within.start())..before(within.end());
        let counts = |row: &usize| dead.binary_search(&rows.id(*row)).is_err();
        let row = match self {
            Self::First => inside.find(counts),
            Self::Last => inside.rfind(counts),
        };
        row.and_then(|row| starts.get(row))
            .map(|start| Instant::from_micros(*start))
    }
}

impl<Authority> Questions<Authority> {
    /// Counts all records of the permit's owner, and finds the first and the last start `within` some time.
    /// The permit must cover all time.
    pub async fn totals(
        &self,
        permit: &ListPermit<Authority>,
        within: TimeRange,
    ) -> Result<Totals, QueryError> {
        let mut partitions: Vec<(PartitionSummary, Bounds)> = self
            .catalog
            .partitions_of(permit.owner())
            .await
            .map_err(crate::store::StoreError::from)?
            .into_iter()
            .filter(|partition| partition.records > 0 && permit.windows_of(&partition.data_type).is_some())
            .filter_map(|partition| partition.bounds.map(|bounds| (partition, bounds)))
            .collect();
        let records = partitions.iter().map(|(partition, _)| partition.records).sum();
        let first = self
            .outermost(permit, &mut partitions, Side::First, within)
            .await?;
        let last = self
            .outermost(permit, &mut partitions, Side::Last, within)
            .await?;
        Ok(Totals {
            records,
            starts: first.zip(last),
        })
    }

    async fn outermost(
        &self,
        permit: &ListPermit<Authority>,
        partitions: &mut [(PartitionSummary, Bounds)],
        side: Side,
        within: TimeRange,
    ) -> Result<Option<Instant>, QueryError> {
        side.sort(partitions, |(_, bounds)| *bounds);
        let mut found: Option<Instant> = None;
        for (partition, bounds) in partitions {
            if found.is_some_and(|found| !side.is_beyond(side.of(*bounds), found)) {
                break;
            }
            let types = std::slice::from_ref(&partition.data_type);
            for snapshot in self.snapshots.get(permit.owner(), types).await? {
                let mut pieces: Vec<&SnapshotPiece> = snapshot.pieces.iter().collect();
                side.sort(&mut pieces, |piece| piece.bounds);
                for piece in pieces {
                    if found.is_some_and(|found| !side.is_beyond(side.of(piece.bounds), found)) {
                        break;
                    }
                    let start = self.outermost_of(&snapshot, piece, side, within).await?;
                    found = match (found, start) {
                        (Some(found), Some(start)) if !side.is_beyond(start, found) => Some(found),
                        (found, start) => start.or(found),
                    };
                }
            }
        }
        Ok(found)
    }

    async fn outermost_of(
        &self,
        snapshot: &Snapshot,
        piece: &SnapshotPiece,
        side: Side,
        within: TimeRange,
    ) -> Result<Option<Instant>, QueryError> {
        if let PieceContent::Tail(rows) = &piece.content {
            let keys = KeyColumns::of(rows.batch())?;
            return Ok(side.of_rows(&keys, &piece.dead, within));
        }
        if let Some(dead) = self.dead.of(snapshot, piece).await? {
            let start = side.of(piece.bounds);
            let is_inside = within.start() <= start && start < within.end();
            if is_inside && dead.iter().all(|row| row.start != start.micros()) {
                return Ok(Some(start));
            }
        }
        let alone = snapshot.only(vec![piece.clone()]);
        let starting = Selection {
            windows: [within].into(),
            begins: Some(within),
        };
        let plan = self.keys(alone, starting, Vec::new()).await?;
        let summary = summarise(&self.engine, plan).await?;
        Ok(match side {
            Side::First => summary.first_start,
            Side::Last => summary.last_start,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, TimestampMicrosecondArray};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_outermost_row_is_one_that_counts_and_starts_in_the_time() {
        let starts = [1, 3, 3, 8];
        let ids = (0..4_u128).map(u128::to_be_bytes);
        let times = || {
            let times = TimestampMicrosecondArray::from_iter_values(starts);
            Arc::new(times.with_timezone("UTC")) as ArrayRef
        };
        let ids = Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()) as ArrayRef;
        let columns = [("id", ids), ("start_time", times()), ("end_time", times())];
        let rows = KeyColumns::of(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let found = |dead: &[u128], from: i64, to: i64| {
            let dead: Vec<RecordId> = dead.iter().map(|id| RecordId(Uuid::from_u128(*id))).collect();
            let within = TimeRange::between(Instant::from_micros(from), Instant::from_micros(to));
            [Side::First, Side::Last].map(|side| side.of_rows(&rows, &dead, within).map(Instant::micros))
        };
        assert_eq!(found(&[], 0, 9), [Some(1), Some(8)]);
        assert_eq!(found(&[], 2, 8), [Some(3), Some(3)]);
        assert_eq!(found(&[0, 3], 0, 9), [Some(3), Some(3)]);
        assert_eq!(found(&[1, 3], 2, 9), [Some(3), Some(3)]);
        assert_eq!(found(&[1, 2], 2, 8), [None, None]);
        assert_eq!(found(&[0, 1, 2, 3], 0, 9), [None, None]);
        assert_eq!(found(&[], 4, 7), [None, None]);
    }
}
