//! A partition together with the present type of its rows, and the conditions bound to it.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use crate::model::permit::ReadPermit;
use crate::model::registry::{DataType, TypeId};
use crate::people::annotations::shown::ShownAnnotations;

use super::filter::{self, Bound, Condition, FilterError};

/// The records that a person stored under one type, with the type that they have now.
#[derive(Clone, Debug)]
pub struct TypedPartition {
    pub data_type: Arc<DataType>,
    /// The type under which its rows are stored.
    pub id: TypeId,
    /// The definitions of its rows, where the rows of a type belong to definitions.
    pub definitions: Option<Arc<ShownAnnotations>>,
}

impl TypedPartition {
    /// The partition stored under the type itself.
    #[must_use]
    pub fn of(data_type: Arc<DataType>) -> Self {
        Self {
            id: data_type.id.clone(),
            data_type,
            definitions: None,
        }
    }
}

/// Others cannot filter by what only the owner may see.
pub(in crate::query) fn refuse_private<Authority>(
    permit: &ReadPermit<Authority>,
    conditions: &[Condition],
    partitions: &[TypedPartition],
) -> Result<(), FilterError> {
    refuse_private_fields(permit, filter::asked_fields(conditions), partitions)
}

/// Others cannot group by it either.
pub(in crate::query) fn refuse_private_fields<'a, Authority>(
    permit: &ReadPermit<Authority>,
    fields: impl IntoIterator<Item = &'a String>,
    partitions: &[TypedPartition],
) -> Result<(), FilterError> {
    if permit.is_own() {
        return Ok(());
    }
    let types = || partitions.iter().map(|partition| partition.data_type.as_ref());
    filter::refuse_private(fields, types)
}

/// The partitions that can have matching rows, each with its bound condition.
pub(in crate::query) fn bind_all<'a>(
    partitions: &'a [TypedPartition],
    conditions: &[Condition],
) -> Result<Vec<(&'a TypedPartition, Option<Expr>)>, FilterError> {
    let types: Vec<&DataType> = partitions
        .iter()
        .map(|partition| partition.data_type.as_ref())
        .collect();
    let bound = filter::bind_each(conditions, &types)?;
    let can = |bound: &Bound| !matches!(bound, Bound::Never);
    let some_can = bound.iter().any(can);
    let met = partitions.iter().zip(bound).enumerate();
    // Even an answer without rows has columns.
    let met = met.filter(|(place, (_, bound))| can(bound) || (!some_can && *place == 0));
    Ok(met
        .map(|(_, (partition, bound))| (partition, bound.condition()))
        .collect())
}
