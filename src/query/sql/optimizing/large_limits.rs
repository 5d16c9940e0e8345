//! Sorts on disk what a large limit leaves.
//!
//! A sort with a limit keeps as many rows as the limit says in memory, and the query ends where they do not
//! fit; a sort without one goes to disk. So a limit that may need a large part of the memory of questions
//! becomes an operator of its own above a sort of all rows. Knows plans only.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan as _, ExecutionPlanProperties as _};

use super::namesakes::MOVING_RULES;
use super::rules::{Rule, replacing};
use crate::query::operator::Plan;

/// The part of the memory that one sort with a limit may be expected to need. Sorts with a limit read less
/// and write nothing, so they are kept where they fit; but what is expected is no more than likely, others
/// need memory at the same time, and what such a sort holds cannot go to disk to make room for them.
const SHARE: usize = 4;
/// How often the size of a row is counted that such a sort keeps. It keeps up to twice as many rows as it
/// returns, and each part of a batch that arrives in parts, of which there are eight, counts as the whole.
const COUNTED: usize = 2 * 8;
/// Bytes of a row that is kept, besides its values and those that it is sorted by.
const AROUND_ROW: usize = 64;
/// Bytes of a text, a list, or another value whose size is not known from its type: names and identifiers
/// are about as long.
const USUAL_WIDTH: usize = 32;

/// `rules` with the rule of this file where limits have reached the sorts, for a pool of this size.
pub(in crate::query::sql) fn with_spilling_limits(rules: &[Rule], memory: &MemoryLimit) -> Vec<Rule> {
    let mut rules = rules.to_vec();
    if let MemoryLimit::Finite(memory) = memory {
        // The last rule that moves filters tells tables of the limits of sorts above them.
        let place = rules
            .iter()
            .rposition(|rule| rule.name().starts_with(MOVING_RULES));
        let most = memory / SHARE;
        let ours = replacing("spill_large_limits", move |plan| spilling(plan, most));
        rules.insert(place.unwrap_or(rules.len()), ours);
    }
    rules
}

/// A limit above a sort of all rows, for a sort with a limit that may be expected to need more than `most`
/// bytes.
fn spilling(plan: &Plan, most: usize) -> Result<Option<Plan>> {
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return Ok(None);
    };
    let Some(limit) = sort.fetch() else {
        return Ok(None);
    };
    if needed(sort, limit)? <= most {
        return Ok(None);
    }
    let all: Plan = Arc::new(sort.with_fetch(None));
    Ok(Some(if all.output_partitioning().partition_count() == 1 {
        Arc::new(GlobalLimitExec::new(all, 0, Some(limit)))
    } else {
        Arc::new(LocalLimitExec::new(all, limit))
    }))
}

/// The bytes that a sort may be expected to need that keeps so many rows.
fn needed(sort: &SortExec, rows: usize) -> Result<usize> {
    let schema = sort.schema();
    let values = sum(schema.fields().iter().map(|field| width(field.data_type())));
    let mut around = AROUND_ROW;
    for key in sort.expr() {
        around = around.saturating_add(width(&key.expr.data_type(&schema)?));
    }
    let row = values.saturating_mul(COUNTED).saturating_add(around);
    Ok(row.saturating_mul(rows))
}

/// Bytes of a usual value of a type.
fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Null | DataType::Boolean => 1,
        DataType::FixedSizeBinary(size) => usize::try_from(*size).unwrap_or(USUAL_WIDTH),
        DataType::Struct(members) => sum(members.iter().map(|member| width(member.data_type()))),
        data_type => data_type.primitive_width().unwrap_or(USUAL_WIDTH),
    }
}

fn sum(widths: impl Iterator<Item = usize>) -> usize {
    widths.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray as _;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::query::sql::optimizing::test_context::context;

    #[tokio::test]
    async fn only_large_limits_stand_above_a_sort_of_all_rows() {
        let mebibyte = MemoryLimit::Finite(1 << 20);
        let context = context(1000, SessionConfig::new(), |rules| {
            with_spilling_limits(rules, &mebibyte)
        });
        let twice = "SELECT id FROM t UNION ALL SELECT id FROM t";
        for (text, is_large, found) in [
            (
                "SELECT id FROM t ORDER BY id % 7, id DESC LIMIT 10".to_owned(),
                false,
                10,
            ),
            (
                "SELECT id FROM t ORDER BY id % 7, id DESC LIMIT 100000".to_owned(),
                true,
                1000,
            ),
            (
                "SELECT id FROM t ORDER BY id % 7, id DESC LIMIT 100000 OFFSET 990".to_owned(),
                true,
                10,
            ),
            (
                format!("SELECT id FROM ({twice}) ORDER BY -id LIMIT 20"),
                false,
                20,
            ),
            (
                format!("SELECT id FROM ({twice}) ORDER BY -id LIMIT 100000"),
                true,
                2000,
            ),
        ] {
            let rows = context.sql(&text).await.unwrap();
            let plan = rows.clone().create_physical_plan().await.unwrap();
            let shown = displayable(plan.as_ref()).indent(false).to_string();
            assert_eq!(shown.contains("TopK"), !is_large, "{text}: {shown}");
            let rows = rows.collect().await.unwrap();
            let ids: Vec<i64> = rows
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert_eq!(ids.len(), found, "{text}");
            let expected: fn(&i64) -> (i64, i64) = if text.contains('%') {
                |id: &i64| (id % 7, -id)
            } else {
                |id: &i64| (-id, 0)
            };
            assert!(ids.is_sorted_by_key(expected), "{text}: {ids:?}");
        }
    }
}
