//! A part of a plan, and the properties of its rows. Knows nothing of steps.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_optimizer::PhysicalOptimizerRule as _;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};

/// A part of a plan.
pub(in crate::query) type Plan = Arc<dyn ExecutionPlan>;

/// The properties of rows in one partition: their columns and the orders that they are in.
pub(in crate::query) fn one_partition(
    schema: SchemaRef,
    orders: impl IntoIterator<Item = LexOrdering>,
) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new_with_orderings(schema, orders),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative)
}

/// The first `limit` rows of a plan in one partition; all of them without a limit.
pub(in crate::query) fn limited(plan: Plan, limit: Option<usize>) -> Plan {
    match limit {
        Some(_) => Arc::new(GlobalLimitExec::new(plan, 0, limit)),
        None => plan,
    }
}

/// The properties of the only input.
pub(in crate::query) fn like(inputs: &[Plan]) -> PlanProperties {
    match inputs {
        [input] => PlanProperties::clone(input.properties()),
        _ => one_partition(Arc::new(Schema::empty()), None),
    }
}

/// The columns of the first input.
pub(in crate::query) fn first_columns(inputs: &[Plan]) -> SchemaRef {
    let first = inputs.first();
    first.map_or_else(|| Arc::new(Schema::empty()), |input| input.schema())
}

/// Whether every operator of a plan gets what it requires, as DataFusion checks it.
pub(in crate::query) fn is_sound(plan: &Plan) -> bool {
    let check = SanityCheckPlan::new();
    check
        .optimize(Arc::clone(plan), &ConfigOptions::default())
        .is_ok()
}
