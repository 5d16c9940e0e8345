//! From a logical plan to one that runs.
//!
//! A lookup is planned thousands of times a second, and no optimizer finds anything in it that whoever
//! wrote it did not put in its place: columns, conditions and times are the table's already. So of all
//! rules it gets those that a lookup needs: what the table knows is not counted, what comes in one
//! partition is summed up in one go, and an order is taken down to the table. What people write in SQL
//! gets all of them. Knows plans only.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::{TableProvider, TableType, provider_as_source};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
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
            .with_physical_optimizer_rules(vec![
                Arc::new(AggregateStatistics::new()),
                Arc::new(CombinePartialFinalAggregate::new()),
                Arc::new(PushdownSort::new()),
            ]);
        Self { state: rules.build() }
    }

    /// The same with conditions at the tables that they speak of.
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

/// Rows that operators of ours make, for a logical plan to go on from.
pub(in crate::query) fn made_by(plan: Plan) -> Result<LogicalPlanBuilder> {
    LogicalPlanBuilder::scan("made", provider_as_source(Arc::new(Made(plan))), None)
}

/// A table whose rows a plan makes.
#[derive(Debug)]
struct Made(Plan);

#[async_trait]
impl TableProvider for Made {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Plan> {
        if projection.is_some() {
            return internal_err!("no rule that takes columns away stands above what a plan makes");
        }
        Ok(Arc::clone(&self.0))
    }
}
