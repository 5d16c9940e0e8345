//! The extent of each type's records inside a range, from the catalogue's summaries of whole pieces where
//! they are exact, and otherwise from the rows.

use crate::model::permit::{ListPermit, Windows};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::{Snapshot, SnapshotPiece};

use super::for_others;
use super::ground::dead::DeadRow;
use super::ground::scan::Selection;
use super::summary::{RecordSummary, summarise};
use super::{QueryError, Questions};

/// The records of one type in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub data_type: TypeId,
    pub records: i64,
    pub first_start: Instant,
    pub last_end: Instant,
}

impl<Authority> Questions<Authority> {
    /// Which types have records in `range`, in the order of their names.
    pub async fn available(
        &self,
        permit: &ListPermit<Authority>,
        range: TimeRange,
    ) -> Result<Vec<Available>, QueryError> {
        let all = Box::pin(self.all_available(permit, range));
        self.engine.in_time(all).await
    }

    async fn all_available(
        &self,
        permit: &ListPermit<Authority>,
        range: TimeRange,
    ) -> Result<Vec<Available>, QueryError> {
        let is_listed = |data_type: &TypeId| permit.windows_of(data_type).is_some();
        let snapshots = self.snapshots.recorded(permit.owner(), is_listed).await?;
        let edges = if permit.is_own() {
            Overhang::Counted
        } else {
            Overhang::Cut
        };
        let mut available = Vec::new();
        for snapshot in snapshots {
            let windows = permit
                .windows_of(&snapshot.data_type)
                .map(|windows| windows.as_slice().to_vec())
                .unwrap_or_default();
            let seen = Windows::new(windows.into_iter().filter_map(|window| window.overlap(range)));
            let found = self.inside(&snapshot, &seen, edges).await?;
            if let RecordSummary {
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

    /// The records inside `windows`. An owner has only one window, in which each record counts once.
    pub(super) async fn inside(
        &self,
        snapshot: &Snapshot,
        windows: &Windows,
        edges: Overhang,
    ) -> Result<RecordSummary, QueryError> {
        // Whole days in a zone lie elsewhere than the recorded times.
        let by_times = for_others::extent_fields(&snapshot.data_type).is_empty();
        let whole = |piece: &SnapshotPiece| {
            let bounds = piece.bounds;
            let in_one = |window: &TimeRange| {
                let ends_inside = edges == Overhang::Counted || (by_times && bounds.max_end <= window.end());
                window.start() <= bounds.min_start && bounds.max_start < window.end() && ends_inside
            };
            windows.as_slice().iter().any(in_one)
        };
        let mut summary = RecordSummary::default();
        let mut others: Vec<&SnapshotPiece> = Vec::new();
        for piece in &snapshot.pieces {
            let known = if whole(piece) {
                self.whole(snapshot, piece).await?
            } else {
                None
            };
            match known {
                Some(known) => summary = summary.and(known),
                None => others.push(piece),
            }
        }
        if !others.is_empty() {
            let rest = snapshot.only(others.into_iter().cloned().collect());
            let plan = match edges {
                Overhang::Counted => {
                    let seen = Selection {
                        windows: for_others::few(windows.as_slice()).into(),
                        begins: None,
                    };
                    self.keys(rest, seen, Vec::new()).await?
                }
                Overhang::Cut => {
                    let data_type = &snapshot.data_type;
                    let seen = for_others::keys_for(data_type, windows);
                    let extents = for_others::extent_fields(data_type);
                    for_others::cut_keys(self.keys(rest, seen, extents).await?, data_type, windows)
                }
            };
            summary = summary.and(summarise(&self.engine, plan).await?);
        }
        Ok(summary)
    }

    /// The summary of a whole piece, without reading its rows; `None` where its bounds may be those of a dead
    /// row.
    async fn whole(
        &self,
        snapshot: &Snapshot,
        piece: &SnapshotPiece,
    ) -> Result<Option<RecordSummary>, QueryError> {
        let bounds = piece.bounds;
        let Some(dead) = self.dead.of(snapshot, piece).await? else {
            return Ok(None);
        };
        let is_outermost = |row: &DeadRow| {
            row.start == bounds.min_start.micros()
                || row.start == bounds.max_start.micros()
                || row.end == bounds.max_end.micros()
        };
        if dead.iter().any(is_outermost) {
            return Ok(None);
        }
        Ok(Some(RecordSummary {
            records: piece.rows - dead.len() as i64,
            first_start: Some(bounds.min_start),
            last_start: Some(bounds.max_start),
            last_end: Some(bounds.max_end),
        }))
    }
}

/// Which part of a record counts that extends beyond a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overhang {
    /// All of it.
    Counted,
    /// The part inside.
    Cut,
}
