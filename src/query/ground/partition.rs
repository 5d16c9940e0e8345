//! A partition with the type that its rows have, and what conditions come to there.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use crate::model::permit::ReadPermit;
use crate::model::registry::{DataType, TypeId};

use super::definitions::Definitions;
use super::filter::{self, Bound, Condition, FilterError};

/// What a person stored of one type, with what its rows are now.
#[derive(Clone, Debug)]
pub struct Partition {
    pub data_type: Arc<DataType>,
    /// The type under which its rows are stored.
    pub id: TypeId,
    /// Those that its rows belong to, where the rows of a type belong to definitions.
    pub definitions: Option<Arc<Definitions>>,
}

impl Partition {
    /// The partition of that type.
    #[must_use]
    pub fn of(data_type: Arc<DataType>) -> Self {
        Self {
            id: data_type.id.clone(),
            data_type,
            definitions: None,
        }
    }
}

/// What is for the owner alone is nothing that others can ask by.
pub(in crate::query) fn refuse_private<Authority>(
    permit: &ReadPermit<Authority>,
    conditions: &[Condition],
    group: &[String],
    partitions: &[Partition],
) -> Result<(), FilterError> {
    if permit.is_own() {
        return Ok(());
    }
    let types = || partitions.iter().map(|partition| partition.data_type.as_ref());
    filter::refuse_private(conditions, group, types)
}

/// The conditions of every partition that can have rows that meet them.
pub(in crate::query) fn bind_all<'a>(
    partitions: &'a [Partition],
    conditions: &[Condition],
) -> Result<Vec<(&'a Partition, Option<Expr>)>, FilterError> {
    let types: Vec<&DataType> = partitions
        .iter()
        .map(|partition| partition.data_type.as_ref())
        .collect();
    let bound = filter::bind_each(conditions, &types)?;
    let can = |bound: &Bound| !matches!(bound, Bound::Never);
    let some_can = bound.iter().any(can);
    let met = partitions.iter().zip(bound).enumerate();
    // An answer without rows has columns all the same.
    let met = met.filter(|(place, (_, bound))| can(bound) || (!some_can && *place == 0));
    Ok(met
        .map(|(_, (partition, bound))| (partition, bound.condition()))
        .collect())
}
