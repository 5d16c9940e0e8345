//! Puts the rows of each period and group together, and brings rows and answers into order.
//!
//! Knows plans by time; must not know which partitions they read, or whether of rows or of rollups.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{FieldRef, Float64Type, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::{AggregateUDF, ident};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlanProperties as _;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;

use crate::query::Order;
use crate::query::ground::computed::{Computed, computed, with_replaced};
use crate::query::ground::operator::Plan;
use crate::query::ground::partitions_in_turn::{in_one_partition, merged};
use crate::query::series::TIME;
use crate::query::statistic::Statistic;
use crate::query::together::Together;

use super::spec::{AggregateMeasure, AggregateSpec, MEASURED, SUMMED};

/// Merges several plans by time into one, which has at least the columns of `groups`.
pub(super) fn by_time(mut plans: Vec<Plan>, groups: Vec<SchemaRef>) -> Result<Plan> {
    if plans.len() == 1 && groups.is_empty() {
        return Ok(plans.remove(0));
    }
    let together = Together::of(plans.iter().map(|plan| plan.schema()), groups);
    let schema = together.schema();
    if plans.is_empty() {
        return Ok(Arc::new(EmptyExec::new(schema)));
    }
    let order = ordering(&schema, &[TIME], Order::Ascending)?;
    let aligned = plans
        .into_iter()
        .map(|plan| together.align(plan))
        .collect::<Result<Vec<_>>>()?;
    let mut in_order = true;
    for plan in &aligned {
        in_order &= plan.equivalence_properties().ordering_satisfy(order.clone())?;
    }
    let all = UnionExec::try_new(aligned)?;
    Ok(if in_order {
        Arc::new(merged(order, all))
    } else {
        in_one_partition(all)
    })
}

/// Which rows hold the measured values. Summed values are in rows of their own or in the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// Each row is one sample.
    Samples,
    /// Each row is one period, with the results of the functions in columns of their names.
    Periods,
}

/// Aggregates the rows of each period and group.
pub(super) fn aggregated(rows: Plan, spec: &AggregateSpec, measured: Measured) -> Result<Plan> {
    let schema = rows.schema();
    let keys = [TIME].into_iter().chain(spec.group.iter().map(String::as_str));
    let keys: Vec<&str> = keys.collect();
    let measures = match &spec.measure {
        AggregateMeasure::Count => vec![measure(count_udaf(), each_row(), &schema, "count")?],
        AggregateMeasure::Values(functions) => functions
            .iter()
            .map(|function| {
                let (definition, of) = match (function, measured) {
                    (Statistic::Sum, _) => (definition(*function), SUMMED),
                    (_, Measured::Samples) => (definition(*function), MEASURED),
                    // The one row of the period that has it.
                    (_, Measured::Periods) => (max_udaf(), function.name()),
                };
                measure(definition, column(of, &schema)?, &schema, function.name())
            })
            .collect::<Result<Vec<_>>>()?,
    };
    let aggregated = grouped(rows, &keys, measures)?;
    // Only what is added up can be too large.
    let added: Vec<&str> = [Statistic::Sum, Statistic::Avg]
        .into_iter()
        .filter(|function| spec.functions().contains(function))
        .map(Statistic::name)
        .collect();
    if added.is_empty() {
        return Ok(aggregated);
    }
    with_replaced(aggregated, |field| {
        let column = Arc::clone(field);
        added
            .contains(&field.name().as_str())
            .then(|| computed(Finite { column }, [ident(field.name())]))
    })
}

/// One row for each combination of values in the columns `keys`.
pub(super) fn grouped(rows: Plan, keys: &[&str], measures: Vec<Arc<AggregateFunctionExpr>>) -> Result<Plan> {
    let schema = rows.schema();
    let keys = keys
        .iter()
        .map(|name| Ok((column(name, &schema)?, (*name).to_owned())))
        .collect::<Result<Vec<_>>>()?;
    let unfiltered = vec![None; measures.len()];
    Ok(Arc::new(AggregateExec::try_new(
        AggregateMode::Single,
        PhysicalGroupBy::new_single(keys),
        measures,
        unfiltered,
        rows,
        schema,
    )?))
}

/// What is counted where every row counts.
pub(super) fn each_row() -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::Int64(Some(1))))
}

/// `finite(number)`: null where it is too large to be a number, as in series.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Finite {
    column: FieldRef,
}

impl Computed<1> for Finite {
    const NAME: &'static str = "finite";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [numbers]: [ArrayRef; 1]) -> Result<ArrayRef> {
        let Some(numbers) = numbers.as_primitive_opt::<Float64Type>() else {
            return internal_err!("sums and means are numbers");
        };
        Ok(Arc::new(finite(numbers)))
    }
}

/// The numbers, and null for those that are too large to be one.
pub(super) fn finite(numbers: &Float64Array) -> Float64Array {
    numbers.unary_opt(|number| Some(number).filter(|number| number.is_finite()))
}

pub(super) fn measure(
    function: Arc<AggregateUDF>,
    of: Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    name: &str,
) -> Result<Arc<AggregateFunctionExpr>> {
    let built = AggregateExprBuilder::new(function, vec![of])
        .schema(Arc::clone(schema))
        .alias(name)
        .build()?;
    Ok(Arc::new(built))
}

/// The first of `names` runs as `order` says; the others ascend, with nulls last.
pub(super) fn ordering(schema: &SchemaRef, names: &[&str], order: Order) -> Result<LexOrdering> {
    let keys = names
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let options = SortOptions {
                descending: place == 0 && order == Order::Descending,
                nulls_first: false,
            };
            Ok(PhysicalSortExpr::new(column(name, schema)?, options))
        })
        .collect::<Result<Vec<_>>>()?;
    LexOrdering::new(keys).ok_or_else(|| internal_datafusion_err!("an order has keys"))
}

pub(super) fn column(name: &str, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(Column::new(name, schema.index_of(name)?)))
}

pub(super) fn definition(statistic: Statistic) -> Arc<AggregateUDF> {
    match statistic {
        Statistic::Sum => sum_udaf(),
        Statistic::Avg => avg_udaf(),
        Statistic::Min => min_udaf(),
        Statistic::Max => max_udaf(),
    }
}
