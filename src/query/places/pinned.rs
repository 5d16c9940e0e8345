//! Types of one person that may be read, all as of one moment, and whether they may have rows of some time.
//! Knows permits and snapshots; knows nothing of what the rows mean.

use std::sync::Arc;

use super::super::for_others::OriginalLength;
use super::super::ground::scan::Selection;
use super::super::ground::table::PartitionTable;
use super::super::{QueryError, Questions, ReadState, Scope, TypedPartition};
use super::location_source::LocationSource;
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::store::snapshot::Snapshot;

/// A type of one person, with the permit to read it.
#[derive(Debug)]
pub struct Granted<Authority> {
    pub permit: ReadPermit<Authority>,
    pub partition: TypedPartition,
}

/// A type of one person that may be read, with its present snapshot.
pub(super) struct Pinned<'a, Authority> {
    pub(super) granted: &'a Granted<Authority>,
    pub(super) snapshot: Arc<Snapshot>,
}

impl<Authority> Pinned<'_, Authority> {
    /// The visible windows inside `wanted`.
    pub(super) fn windows(&self, wanted: Option<TimeRange>) -> Vec<TimeRange> {
        let all = self.granted.permit.windows().as_slice();
        match wanted {
            None => all.to_vec(),
            Some(wanted) => all.iter().filter_map(|window| window.overlap(wanted)).collect(),
        }
    }

    /// Whether any rows of `wanted` may be visible, judging by the bounds of pieces.
    pub(super) fn may_have_rows(&self, wanted: Option<TimeRange>) -> bool {
        let wanted = Selection {
            windows: self.windows(wanted).into(),
            begins: None,
        };
        let mut pieces = self.snapshot.pieces.iter();
        pieces.any(|piece| wanted.may_hold(piece.bounds))
    }

    pub(super) fn scope(&self) -> Scope {
        Scope::of([&self.granted.permit])
    }

    pub(super) fn state(&self) -> ReadState {
        ReadState::of(&self.granted.permit, &self.granted.partition, &self.snapshot)
    }
}

/// A source with the present snapshot of its updates.
pub(super) type PinnedSource<'a, Authority> = (LocationSource, Pinned<'a, Authority>);

/// Those of `sources` that may have rows of `wanted`, or the first if none has: most people have updates of
/// only one source, and nothing needs to be planned for the others.
pub(super) fn with_rows<'s, 'a, Authority>(
    sources: &'s [PinnedSource<'a, Authority>],
    wanted: Option<TimeRange>,
) -> Vec<&'s PinnedSource<'a, Authority>> {
    let have = sources.iter().filter(|(_, pinned)| pinned.may_have_rows(wanted));
    let have: Vec<_> = have.collect();
    if have.is_empty() {
        sources.first().into_iter().collect()
    } else {
        have
    }
}

impl<Authority> Questions<Authority> {
    /// Several types of one person, all as of one moment.
    pub(super) async fn pinned<'a>(
        &self,
        granted: &[&'a Granted<Authority>],
    ) -> Result<Vec<Pinned<'a, Authority>>, QueryError> {
        let Some(first) = granted.first() else {
            return Ok(Vec::new());
        };
        let ids: Vec<TypeId> = granted
            .iter()
            .map(|granted| granted.partition.id.clone())
            .collect();
        let snapshots = self.snapshots.get(first.permit.owner(), &ids).await?;
        Ok(granted
            .iter()
            .zip(snapshots)
            .map(|(granted, snapshot)| Pinned { granted, snapshot })
            .collect())
    }

    pub(super) async fn pinned_one<'a>(
        &self,
        granted: &'a Granted<Authority>,
    ) -> Result<Pinned<'a, Authority>, QueryError> {
        let mut pinned = self.pinned(&[granted]).await?;
        pinned.pop().ok_or_else(|| {
            crate::store::StoreError::corrupt(format!("partition {} was not read", granted.partition.id))
                .into()
        })
    }

    /// The visible part of it inside `windows`.
    pub(super) fn seen(
        &self,
        pinned: &Pinned<'_, Authority>,
        windows: &[TimeRange],
    ) -> Result<PartitionTable, QueryError> {
        let Granted { permit, partition } = pinned.granted;
        let table = self.table(permit, partition, &pinned.snapshot, OriginalLength::Dropped)?;
        Ok(table.within(windows))
    }
}
