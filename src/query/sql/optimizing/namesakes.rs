//! Leaves filters where they are in plans in which columns share a name.
//!
//! DataFusion moves the filters of a plan of operators by the names of columns. Where both sides of a join
//! have a column of one name, a filter on one side may end up on the other. The filters of the query itself
//! were moved before, when columns still had the names of their tables. Knows plans only.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::rules::{Rule, wrap_meant};

/// What the names of the rules begin with that move filters.
pub(super) const MOVING_RULES: &str = "FilterPushdown";

/// `rules`, of which those that move filters do so only where that is safe.
pub(in crate::query::sql) fn with_guarded_pushdown(rules: &[Rule]) -> Vec<Rule> {
    wrap_meant(
        rules,
        |rule| rule.name().starts_with(MOVING_RULES),
        |rule| Arc::new(UnlessNamesakes(rule)),
    )
}

#[derive(Debug)]
struct UnlessNamesakes(Rule);

impl PhysicalOptimizerRule for UnlessNamesakes {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if has_namesakes(plan.as_ref()) {
            Ok(plan)
        } else {
            self.0.optimize(plan, config)
        }
    }
}

/// Whether columns of an operator share a name, or columns of the sides of a join.
fn has_namesakes(plan: &dyn ExecutionPlan) -> bool {
    let inputs = plan.children();
    let sides: &[&Arc<dyn ExecutionPlan>] = if plan.name().ends_with("JoinExec") {
        &inputs
    } else {
        &[]
    };
    share_a_name([plan.schema()])
        || share_a_name(sides.iter().map(|side| side.schema()))
        || inputs.iter().any(|input| has_namesakes(input.as_ref()))
}

fn share_a_name(schemas: impl IntoIterator<Item = SchemaRef>) -> bool {
    let mut names = HashSet::new();
    schemas.into_iter().any(|schema| {
        schema
            .fields()
            .iter()
            .any(|field| !names.insert(field.name().clone()))
    })
}
