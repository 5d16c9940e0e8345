//! A stored partition with the type that its rows have, and what conditions come to there.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use crate::model::permit::ReadPermit;
use crate::model::registry::{DataType, TypeId};

use super::definitions::Definitions;
use super::filter::{self, Bound, Condition, FilterError};

/// A stored partition with the type that its rows have now.
#[derive(Clone, Debug)]
pub struct Source {
    pub data_type: Arc<DataType>,
    pub partition: TypeId,
    /// Those that its rows belong to, where the rows of a type belong to definitions.
    pub definitions: Option<Arc<Definitions>>,
}

impl Source {
    /// The partition of that type.
    #[must_use]
    pub fn of(data_type: Arc<DataType>) -> Self {
        Self {
            partition: data_type.id.clone(),
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
    sources: &[Source],
) -> Result<(), FilterError> {
    if permit.is_own() {
        return Ok(());
    }
    let types = || sources.iter().map(|source| source.data_type.as_ref());
    filter::refuse_private(conditions, group, types)
}

/// The conditions of every source that can have rows that meet them.
pub(in crate::query) fn bind_all<'a>(
    sources: &'a [Source],
    conditions: &[Condition],
) -> Result<Vec<(&'a Source, Option<Expr>)>, FilterError> {
    let types: Vec<&DataType> = sources.iter().map(|source| source.data_type.as_ref()).collect();
    let bound = filter::bind_each(conditions, &types)?;
    let can = |bound: &Bound| !matches!(bound, Bound::Never);
    let some_can = bound.iter().any(can);
    let met = sources.iter().zip(bound).enumerate();
    // An answer without rows has columns all the same.
    let met = met.filter(|(place, (_, bound))| can(bound) || (!some_can && *place == 0));
    Ok(met
        .map(|(_, (source, bound))| (source, bound.condition()))
        .collect())
}
