//! Leaves conditions above aggregates and windows where they would decide something else below.
//!
//! The optimizer moves a condition below an aggregate if it names nothing but what rows are grouped by, which
//! one without columns always does, such as `(SELECT max(n) FROM t) > 5`. An aggregate without `GROUP
//! BY` has its row of nothing, too: such a condition decides whether there is a count, but below it, what is
//! counted. And `random() < 0.5` chooses among groups and rows of a window, but below them, among what they
//! are made of. Knows plans and rules only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::rules::wrap_meant;

/// A rule of DataFusion about a logical plan.
type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The name of the rule that moves conditions.
const MOVING_RULE: &str = "push_down_filter";

/// `rules`, of which the one that moves conditions leaves these above.
pub(in crate::query::sql) fn with_guarded_pushdown(rules: &[Rule]) -> Vec<Rule> {
    wrap_meant(
        rules,
        |rule| rule.name() == MOVING_RULE,
        |rule| Arc::new(UnlessDeciding(rule)),
    )
}

#[derive(Debug)]
struct UnlessDeciding(Rule);

impl OptimizerRule for UnlessDeciding {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if is_deciding(&plan) {
            Ok(Transformed::no(plan))
        } else {
            self.0.rewrite(plan, config)
        }
    }
}

/// Whether it is a condition, or several, that must stay above what is directly below.
fn is_deciding(plan: &LogicalPlan) -> bool {
    let mut below = plan;
    let mut differs_by_row = false;
    while let LogicalPlan::Filter(filter) = below {
        differs_by_row |= filter.predicate.is_volatile();
        below = &filter.input;
    }
    match below {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty() || differs_by_row,
        LogicalPlan::Window(_) => differs_by_row,
        _ => false,
    }
}
