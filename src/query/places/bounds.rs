//! The range of time in which a source has positions.

use std::sync::Arc;

use crate::query::available::Overhang;
use crate::query::summary::{RecordSummary, summarise};
use crate::query::{QueryError, Questions, ReadState, Scope};
use crate::store::snapshot::Snapshot;

use super::pinned::{Granted, Pinned};
use super::raw::OneOf;

/// The state of the positions whose bounds are asked for, and what tells their bounds from others.
#[derive(Debug)]
pub struct PreparedBounds {
    snapshot: Arc<Snapshot>,
    pub states: Vec<ReadState>,
    pub scope: Scope,
}

impl<Authority> Questions<Authority> {
    /// The first and the last visible moment: from the catalogue where it describes whole pieces, otherwise
    /// from the rows.
    pub async fn location_bounds(&self, granted: &Granted<Authority>) -> Result<RecordSummary, QueryError> {
        let prepared = self.prepared_bounds(granted).await?;
        self.bounds_in(&prepared, granted, None).await
    }

    /// What the bounds are looked for in, before any row is looked at.
    pub async fn prepared_bounds(&self, granted: &Granted<Authority>) -> Result<PreparedBounds, QueryError> {
        let Pinned { granted, snapshot } = self.pinned_one(granted).await?;
        Ok(PreparedBounds {
            states: vec![ReadState::of(&granted.permit, &granted.partition, &snapshot)],
            scope: Scope::of([&granted.permit]),
            snapshot,
        })
    }

    /// The bounds in what was prepared for `granted`.
    pub async fn bounds_in(
        &self,
        prepared: &PreparedBounds,
        granted: &Granted<Authority>,
        only: Option<&OneOf>,
    ) -> Result<RecordSummary, QueryError> {
        let Some(only) = only else {
            let edges = if granted.permit.is_own() {
                Overhang::Counted
            } else {
                Overhang::Cut
            };
            let seen = granted.permit.windows();
            return self.inside(&prepared.snapshot, seen, edges).await;
        };
        let layout = &granted.partition.data_type.layout;
        if only.is_refused(&granted.permit, layout) {
            return Ok(RecordSummary::default());
        }
        let pinned = Pinned {
            granted,
            snapshot: Arc::clone(&prepared.snapshot),
        };
        let seen = self.seen(&pinned, &pinned.windows(None))?;
        let chosen = seen.meeting(Some(only.condition())).rows([])?;
        Ok(summarise(&self.engine, chosen).await?)
    }
}
