//! What there is of each type inside a range, from what the catalogue knows of whole pieces where that is
//! exact, and from the rows where it is not.

use crate::model::permit::ListPermit;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::{Snapshot, SnapshotPiece};

use super::records::{Archive, QueryError, Summary, summarise};
use super::scan::{Scan, key_schema};

/// The records of one type in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub data_type: TypeId,
    pub records: i64,
    pub first_start: Instant,
    pub last_end: Instant,
}

impl<Authority> Archive<Authority> {
    /// Which types have records in `range`, in the order of their names.
    pub async fn available(
        &self,
        permit: &ListPermit<Authority>,
        range: TimeRange,
    ) -> Result<Vec<Available>, QueryError> {
        let mut types: Vec<TypeId> = self
            .catalog
            .partitions_of(permit.owner())
            .await
            .map_err(crate::store::StoreError::from)?
            .into_iter()
            .filter(|partition| partition.records > 0 && permit.windows_of(&partition.data_type).is_some())
            .map(|partition| partition.data_type)
            .collect();
        types.sort_unstable();
        let snapshots = self.snapshots.get(permit.owner(), &types).await?;
        let mut available = Vec::new();
        for snapshot in snapshots {
            let windows = permit
                .windows_of(&snapshot.data_type)
                .map(|windows| windows.as_slice().to_vec())
                .unwrap_or_default();
            let mut found = Summary::default();
            for window in windows.into_iter().filter_map(|window| overlap(window, range)) {
                found = found.and(self.inside(&snapshot, window).await?);
            }
            if let Summary {
                records,
                first_start: Some(first_start),
                last_end: Some(last_end),
                ..
            } = found
            {
                available.push(Available {
                    data_type: snapshot.data_type.clone(),
                    records,
                    first_start,
                    last_end,
                });
            }
        }
        Ok(available)
    }

    pub(super) async fn inside(&self, snapshot: &Snapshot, window: TimeRange) -> Result<Summary, QueryError> {
        let whole = |piece: &&SnapshotPiece| {
            piece.dead.is_empty()
                && window.start() <= piece.bounds.min_start
                && piece.bounds.max_start < window.end()
        };
        let (known, others): (Vec<&SnapshotPiece>, Vec<&SnapshotPiece>) =
            snapshot.pieces.iter().partition(whole);
        let mut summary = known.into_iter().fold(Summary::default(), |summary, piece| {
            let bounds = piece.bounds;
            summary.and(Summary {
                records: piece.rows,
                first_start: Some(bounds.min_start),
                last_start: Some(bounds.max_start),
                last_end: Some(bounds.max_end),
            })
        });
        if !others.is_empty() {
            let rest = Snapshot {
                pieces: others.into_iter().cloned().collect(),
                ..snapshot.clone()
            };
            let storage = key_schema();
            let scan = Scan {
                snapshot: &rest,
                storage: &storage,
                columns: (0..storage.fields().len()).collect(),
                windows: &[window],
                begins: None,
            };
            let plan = scan.plan(&self.reader, &self.objects)?;
            summary = summary.and(summarise(&self.engine, plan).await?);
        }
        Ok(summary)
    }
}

fn overlap(one: TimeRange, other: TimeRange) -> Option<TimeRange> {
    TimeRange::new(one.start().max(other.start()), one.end().min(other.end()))
        .filter(|range| !range.is_empty())
}
