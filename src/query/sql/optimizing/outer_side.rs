//! Discards what is known of the rows of one side of an outer join where they leave that side.
//!
//! A column that is constant on its side is not constant above the join: where nothing matched, it is null.
//! DataFusion still treats it as a constant, and grouping or sorting by it gives wrong results. So an
//! operator that declares nothing but its columns is put above such a side before orders are optimised. Knows
//! plans only.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, like, only};

use super::rules::{Rule, replacing};

/// `rules` with the rule of this file in front.
pub(in crate::query::sql) fn with_outer_side_rule(rules: &[Rule]) -> Vec<Rule> {
    let ours = replacing("forget_below_outer_joins", forgetting);
    std::iter::once(ours).chain(rules.iter().cloned()).collect()
}

/// A join above sides of which nothing but the columns is declared where it adds nulls, if it does.
fn forgetting(plan: &Plan) -> Result<Option<Plan>> {
    let padded = padded(plan.as_ref());
    if !padded.contains(&true) {
        return Ok(None);
    }
    let side = |(side, is_padded): (&Plan, bool)| -> Plan {
        if is_padded {
            Arc::new(OuterSideExec::new(Arc::clone(side)))
        } else {
            Arc::clone(side)
        }
    };
    let sides = plan.children().into_iter().zip(padded).map(side).collect();
    let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(sides, anew).map(Some)
}

/// For each side, whether its columns are null where only the other side has a row.
fn padded(plan: &dyn ExecutionPlan) -> [bool; 2] {
    let join_type = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        *join.join_type()
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        *join.join_type()
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        join.join_type()
    } else {
        // For an unknown join, the worst is assumed.
        let is_unknown = plan.children().len() == 2 && plan.name().ends_with("JoinExec");
        return [is_unknown && !plan.is::<CrossJoinExec>(); 2];
    };
    match join_type {
        JoinType::Left => [false, true],
        JoinType::Right => [true, false],
        JoinType::Full => [true, true],
        _ => [false, false],
    }
}

/// The rows of one side, of which only the columns are declared.
#[derive(Clone, Debug)]
pub(in crate::query) struct OuterSide;

pub(in crate::query) type OuterSideExec = Operator<OuterSide>;

impl OuterSideExec {
    fn new(inner: Plan) -> Self {
        Self::over(OuterSide, vec![inner])
    }
}

impl Step for OuterSide {
    const NAME: &'static str = "OuterSideExec";
    const YIELDS_BY_ITSELF: bool = true;

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let known = like(inputs);
        let nothing = EquivalenceProperties::new(Arc::clone(known.equivalence_properties().schema()));
        known.with_eq_properties(nothing)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        Ok(only(inputs)?.open()?.boxed())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::query::sql::optimizing::test_context::context;

    #[tokio::test]
    async fn what_is_the_same_in_all_rows_of_a_side_is_null_where_nothing_was_found() {
        let config = SessionConfig::new().with_batch_size(10);
        let context = context(1000, config, with_outer_side_rule);
        for (join, on, groups) in [
            ("LEFT", "l.id = r.id", 2),
            ("RIGHT", "l.id = r.id", 2),
            ("FULL", "l.id = r.id", 3),
            ("LEFT", "l.id = r.id AND l.id + r.id > 90", 2),
            ("FULL", "l.id + 1 > r.id + 1 AND l.id - 1 < r.id + 1", 3),
        ] {
            let text = format!(
                "SELECT l.c AS a, r.c AS b, count(*) AS n FROM (SELECT id, 'l' AS c FROM t WHERE id % 3 > 0) \
                 AS l {join} JOIN (SELECT id, 'r' AS c FROM t WHERE id % 5 > 0) AS r ON {on} GROUP BY l.c, \
                 r.c"
            );
            let found = context.sql(&text).await.unwrap().collect().await.unwrap();
            let found: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found, groups, "{text}");
        }
    }
}
