//! Turns a logical plan into a physical one.
//!
//! A lookup is planned thousands of times a second, and the code that builds it has already put columns,
//! conditions and times into the table, so an optimizer finds nothing. It therefore gets only the one rule
//! that it needs, which pushes an order down to the table. SQL that people write gets all rules. Knows plans
//! only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::physical_optimizer::pushdown_sort::PushdownSort;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};

use super::operator::Plan;

/// Plans lookups.
#[derive(Debug)]
pub(super) struct Lookups {
    state: SessionState,
}

impl Lookups {
    pub(super) fn of(state: &SessionState) -> Self {
        let rules = SessionStateBuilder::new_from_existing(state.clone())
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(Vec::new())
            .with_physical_optimizer_rules(vec![Arc::new(PushdownSort::new())]);
        Self { state: rules.build() }
    }

    /// The plan with conditions pushed down to their tables.
    pub(super) fn with_conditions(&self, logical: LogicalPlan) -> Result<LogicalPlan> {
        let rule = Optimizer::with_rules(vec![Arc::new(PushDownFilter::new())]);
        rule.optimize(logical, &self.state, |_, _| {})
    }

    pub(super) async fn plan(&self, logical: &LogicalPlan) -> Result<Plan> {
        DefaultPhysicalPlanner::default()
            .create_physical_plan(logical, &self.state)
            .await
    }
}
