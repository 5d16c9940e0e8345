//! What a step requires of its inputs, and the orders that rows can be in.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::Schema;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};

use super::plan::Plan;
use crate::model::columns::START;

/// What a step requires of an input.
#[derive(Clone, Debug)]
pub(in crate::query) struct Needs {
    pub(super) is_one: bool,
    pub(super) order: Option<LexOrdering>,
}

impl Needs {
    /// No requirements.
    pub(in crate::query) const fn nothing() -> Self {
        Self {
            is_one: false,
            order: None,
        }
    }

    pub(in crate::query) const fn one_partition() -> Self {
        Self {
            is_one: true,
            order: None,
        }
    }

    /// Of each input: one partition, sorted by those of the columns `names` that exist.
    pub(in crate::query) fn sorted_by(inputs: &[Plan], names: &[&str]) -> Vec<Self> {
        let sorted = |input: &Plan| Self::sorted(ascending(&input.schema(), names));
        inputs.iter().map(sorted).collect()
    }

    /// Of each input: one partition, sorted by the start of its rows.
    pub(in crate::query) fn by_start(inputs: &[Plan]) -> Vec<Self> {
        Self::sorted_by(inputs, &[START])
    }

    /// One partition, sorted.
    pub(in crate::query) const fn sorted(order: Option<LexOrdering>) -> Self {
        Self { is_one: true, order }
    }
}

/// The ascending order by those of the columns `names` that exist.
pub(in crate::query) fn ascending(schema: &Schema, names: &[&str]) -> Option<LexOrdering> {
    ordered(schema, names, false)
}

/// The order by those of the columns `names` that exist.
pub(in crate::query) fn ordered(schema: &Schema, names: &[&str], descending: bool) -> Option<LexOrdering> {
    let options = SortOptions {
        descending,
        nulls_first: false,
    };
    let keys = names
        .iter()
        .filter_map(|name| Some((name, schema.index_of(name).ok()?)))
        .map(|(name, index)| PhysicalSortExpr::new(Arc::new(Column::new(name, index)), options));
    LexOrdering::new(keys)
}

/// Whether rows in the order `known` are also in the order `wanted`. Nulls are ignored: the columns by which
/// our rows are sorted have none.
pub(in crate::query) fn begins_with(known: &LexOrdering, wanted: &[PhysicalSortExpr]) -> bool {
    let same = |(known, wanted): (&PhysicalSortExpr, &PhysicalSortExpr)| {
        known.expr.eq(&wanted.expr) && known.options.descending == wanted.options.descending
    };
    wanted.len() <= known.len() && known.iter().zip(wanted).all(same)
}
