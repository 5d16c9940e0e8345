//! Records counted, or their values summed up, by period of a calendar and by fields.
//!
//! Rows come in the order of their starts, so periods come in order as well and are given out as soon as they are complete: what is held at one moment
//! is one period. Periods without records are not told. Knows grids, permits and stored rows; knows nothing of HTTP.

mod groups;
mod period;

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::common::{DFSchema, Result};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, cast, col};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::permit::{ReadPermit, Windows};
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::store::snapshot::Snapshot;

use super::filter::{Condition, FilterError};
use super::records::{Archive, Columns, Order, Prepared, QueryError, Source, align, bind_all, common_schema};

use groups::GroupLimitExec;
pub use groups::{MAX_GROUP_FIELDS, MAX_GROUPS};
use period::PeriodStart;

const TIME: &str = "time";
/// The column in which records hold what is measured.
const VALUE: &str = "value";
/// That column on its way through a plan. No field of a record can have a blank in its name.
const MEASURED: &str = "measured value";

/// What is asked of the records of a type by period. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateSpec {
    pub conditions: Vec<Condition>,
    pub range: TimeRange,
    pub periods: Truncation,
    pub zone: Zone,
    pub measure: AggregateMeasure,
    /// Fields whose values make groups within a period.
    pub group: Vec<String>,
    /// Which way the periods run; groups always ascend.
    pub order: Order,
    /// A record that begins before it may be seen counts from when it is first seen.
    pub clipped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateMeasure {
    /// How many records there are.
    Count,
    /// What their values come to, each function once.
    Values(Vec<Function>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    Sum,
    Avg,
    Min,
    Max,
}

/// A name that is none of the functions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown function {0:?}; use one of sum, avg, min, max")]
pub struct UnknownFunction(String);

impl Function {
    pub const ALL: [Self; 4] = [Self::Sum, Self::Avg, Self::Min, Self::Max];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    fn definition(self) -> Arc<AggregateUDF> {
        match self {
            Self::Sum => sum_udaf(),
            Self::Avg => avg_udaf(),
            Self::Min => min_udaf(),
            Self::Max => max_udaf(),
        }
    }
}

impl std::str::FromStr for Function {
    type Err = UnknownFunction;

    fn from_str(name: &str) -> Result<Self, UnknownFunction> {
        let found = Self::ALL.into_iter().find(|function| function.name() == name);
        found.ok_or_else(|| UnknownFunction(name.to_owned()))
    }
}

/// Why records cannot be summed up in this way.
#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("{0} fields are given to group by, at most {MAX_GROUP_FIELDS} are possible")]
    TooManyFields(usize),
    #[error("`{0}` is named twice")]
    FieldTwice(String),
    #[error("`{0}` cannot be a group, because the answer has a column of that name")]
    NameTaken(String),
    #[error(transparent)]
    UnknownField(FilterError),
    #[error("`{0}` holds lists or structures; only fields that hold one value make groups")]
    NotScalar(String),
    #[error("records of {0} have no value to sum up; count them at /data/v1alpha1/event")]
    NoValue(TypeId),
}

/// What turned out to be too much while a question ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    #[error("there are more than {MAX_GROUPS} groups; group by fewer fields, or by fields with fewer values")]
    Groups,
}

impl AggregateSpec {
    /// Columns of the answer that are not fields of the records.
    fn computed(&self) -> Vec<&'static str> {
        let measured = match &self.measure {
            AggregateMeasure::Count => vec!["count"],
            AggregateMeasure::Values(functions) => functions.iter().map(|function| function.name()).collect(),
        };
        [TIME].into_iter().chain(measured).collect()
    }
}

impl<Authority> Archive<Authority> {
    /// The records of `sources`, which together are what `permit` names, by period.
    pub async fn aggregate(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        spec: &AggregateSpec,
    ) -> Result<Prepared, QueryError> {
        groups::check(&spec.group, sources, &spec.computed())?;
        if let AggregateMeasure::Values(_) = &spec.measure
            && let Some(source) = sources
                .iter()
                .find(|source| source.data_type.layout.storage.index_of(VALUE).is_err())
        {
            return Err(AggregateError::NoValue(source.data_type.id.clone()).into());
        }
        let bound = bind_all(sources, &spec.conditions)?;
        let partitions: Vec<TypeId> = bound.iter().map(|(source, _)| source.partition.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &partitions).await?;
        let versions = partitions
            .into_iter()
            .zip(snapshots.iter().map(|snapshot| snapshot.version))
            .collect();

        let grid = spec.periods.grid(&spec.zone, reach(spec.range, &snapshots));
        let seen = spec.clipped.then(|| permit.windows().clone());
        let mut plans = Vec::with_capacity(bound.len());
        for ((source, condition), snapshot) in bound.into_iter().zip(&snapshots) {
            let columns = stored_columns(spec, source);
            let rows = self.selected(permit, source, condition, snapshot, Columns::Named(&columns))?;
            plans.push(self.periodic(rows, source, spec, &grid, seen.as_ref())?);
        }
        let plan = finished(aggregated(by_time(plans)?, spec)?, spec)?;
        let schema = plan.schema();
        Ok(Prepared { plan, schema, versions })
    }

    /// Rows as (time, group fields, what is measured), in the order of time.
    fn periodic(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        source: &Source,
        spec: &AggregateSpec,
        grid: &Grid,
        seen: Option<&Windows>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let period = ScalarUDF::new_from_impl(PeriodStart::new(grid.clone(), spec.zone, seen.cloned()));
        let mut columns: Vec<(String, Expr)> = vec![(TIME.to_owned(), period.call(vec![col("start_time")]))];
        for name in &spec.group {
            columns.extend(groups::value_of(name, &source.data_type).map(|value| (name.clone(), value)));
        }
        if let AggregateMeasure::Values(_) = &spec.measure {
            columns.push((MEASURED.to_owned(), self.number_in(VALUE, source)?));
        }
        let schema = DFSchema::try_from(rows.schema().as_ref().clone())?;
        let projection = columns
            .into_iter()
            .map(|(alias, expression)| {
                let expr = self.engine.state().create_physical_expr(expression, &schema)?;
                Ok(ProjectionExpr { expr, alias })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(projection, rows)?))
    }

    /// A stored column as a number: true is 1, false is 0.
    fn number_in(&self, name: &str, source: &Source) -> Result<Expr> {
        let field = source.data_type.layout.storage.field_with_name(name)?;
        Ok(match field.data_type() {
            ArrowType::Float64 => col(name),
            ArrowType::Boolean => cast(cast(col(name), ArrowType::Int8), ArrowType::Float64),
            _ => cast(col(name), ArrowType::Float64),
        })
    }
}

/// The time in which records begin that are selected by `range`: some begin before it.
fn reach(range: TimeRange, snapshots: &[Arc<Snapshot>]) -> TimeRange {
    let first = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.pieces.iter())
        .filter(|piece| piece.bounds.min_start < range.end() && piece.bounds.max_end >= range.start())
        .map(|piece| piece.bounds.min_start)
        .min();
    let start = first.map_or(range.start(), |first| first.min(range.start()));
    TimeRange::new(start, range.end()).unwrap_or(range)
}

fn stored_columns(spec: &AggregateSpec, source: &Source) -> Vec<String> {
    let values = spec.group.iter().filter_map(|name| groups::value_of(name, &source.data_type));
    let mut names: Vec<String> = values
        .flat_map(|value| {
            value
                .column_refs()
                .into_iter()
                .map(|column| column.name.clone())
                .collect::<Vec<_>>()
        })
        .collect();
    if let AggregateMeasure::Values(_) = &spec.measure {
        names.push(VALUE.to_owned());
    }
    names
}

/// One plan out of several, each of which is in the order of time.
fn by_time(mut plans: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    if plans.len() == 1 {
        return Ok(plans.remove(0));
    }
    let schema = common_schema(&plans);
    if plans.is_empty() {
        return Ok(Arc::new(EmptyExec::new(schema)));
    }
    let aligned = plans.into_iter().map(|plan| align(plan, &schema)).collect::<Result<Vec<_>>>()?;
    let order = ordering(&schema, &[TIME], Order::Ascending)?;
    Ok(Arc::new(SortPreservingMergeExec::new(order, UnionExec::try_new(aligned)?)))
}

fn aggregated(rows: Arc<dyn ExecutionPlan>, spec: &AggregateSpec) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let keys = [TIME].into_iter().chain(spec.group.iter().map(String::as_str));
    let keys = keys
        .map(|name| Ok((column(name, &schema)?, name.to_owned())))
        .collect::<Result<Vec<_>>>()?;
    let measures = match &spec.measure {
        AggregateMeasure::Count => {
            let each: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(datafusion::common::ScalarValue::Int64(Some(1))));
            vec![measure(count_udaf(), each, &schema, "count")?]
        }
        AggregateMeasure::Values(functions) => functions
            .iter()
            .map(|function| measure(function.definition(), column(MEASURED, &schema)?, &schema, function.name()))
            .collect::<Result<Vec<_>>>()?,
    };
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

fn measure(function: Arc<AggregateUDF>, of: Arc<dyn PhysicalExpr>, schema: &SchemaRef, name: &str) -> Result<Arc<AggregateFunctionExpr>> {
    let built = AggregateExprBuilder::new(function, vec![of])
        .schema(Arc::clone(schema))
        .alias(name)
        .build()?;
    Ok(Arc::new(built))
}

/// In the order that was asked for, and with not too many groups.
fn finished(mut plan: Arc<dyn ExecutionPlan>, spec: &AggregateSpec) -> Result<Arc<dyn ExecutionPlan>> {
    if !spec.group.is_empty() {
        plan = Arc::new(GroupLimitExec::new(plan, (1..=spec.group.len()).collect()));
    } else if spec.order == Order::Ascending {
        return Ok(plan);
    }
    let keys: Vec<&str> = [TIME].into_iter().chain(spec.group.iter().map(String::as_str)).collect();
    let order = ordering(&plan.schema(), &keys, spec.order)?;
    Ok(Arc::new(SortExec::new(order, plan)))
}

/// The first of `names` runs as `order` says, the others ascend, with nulls last.
fn ordering(schema: &SchemaRef, names: &[&str], order: Order) -> Result<LexOrdering> {
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
    LexOrdering::new(keys).ok_or_else(|| datafusion::common::internal_datafusion_err!("an order has keys"))
}

fn column(name: &str, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(Column::new(name, schema.index_of(name)?)))
}
