//! What of a person's partitions a question about stored rows reads: each partition that has the wanted
//! source, with its part of the conditions, all as of one moment.
//!
//! Refuses conditions on what a reader must not know. Knows permits and snapshots; must not know what is
//! asked of the rows.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::store::snapshot::Snapshot;

use super::ground::filter::Condition;
use super::ground::prepared;
use super::ground::typed_partition::{bind_all, refuse_private};
use super::{QueryError, Questions, ReadState, TypedPartition};

/// A partition whose rows are read.
pub(super) struct SelectedPartition<'a> {
    pub partition: &'a TypedPartition,
    pub condition: Option<Expr>,
    pub snapshot: Arc<Snapshot>,
}

impl<Authority> Questions<Authority> {
    /// The part of the question for each partition, as of one moment.
    pub(super) async fn select<'a>(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &'a [TypedPartition],
        conditions: &[Condition],
    ) -> Result<Vec<SelectedPartition<'a>>, QueryError> {
        refuse_private(permit, conditions, partitions)?;
        let bound = bind_all(partitions, conditions)?;
        let ids: Vec<TypeId> = bound.iter().map(|(partition, _)| partition.id.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &ids).await?;
        let selected = |((partition, condition), snapshot)| SelectedPartition {
            partition,
            condition,
            snapshot,
        };
        Ok(bound.into_iter().zip(snapshots).map(selected).collect())
    }
}

/// The states that an answer over `partitions` depends on, of which the `selected` ones are read.
pub(super) fn states_of<Authority>(
    permit: &ReadPermit<Authority>,
    partitions: &[TypedPartition],
    selected: &[SelectedPartition<'_>],
) -> Vec<ReadState> {
    let read = selected.iter().map(|one| (one.partition, one.snapshot.as_ref()));
    prepared::states_of(permit, partitions, read)
}
