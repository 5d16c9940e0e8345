//! Counts records, or summarises their values, by period of a calendar and by fields.
//!
//! Rows arrive in the order of their starts, so periods are complete in order and leave at once: only one
//! period is in memory at a time. Periods without records are omitted. Knows grids, permits and stored rows;
//! knows nothing of HTTP.

mod amounts;
mod from_rollups;
mod groups;
pub mod over_people;
mod period;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Float64Type, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, cast, ident, lit};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlanProperties as _;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use uuid::Uuid;

use crate::catalog::records::KnownSource;
use crate::model::columns::{ID, START, VALUE};
use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::query::statistic::Statistic;
use crate::store::StoreError;
use crate::store::snapshot::Snapshot;

use super::filter::Condition;
use super::for_others::OriginalLength;
use super::ground::computed::{Computed, computed, projected, with_replaced};
use super::ground::operator::Plan;
use super::ground::prepared;
use super::ground::typed_partition::{bind_all, refuse_private, refuse_private_fields};
use super::together::{align, common_schema};
use super::{Order, Prepared, QueryError, Questions, ReadState, Scope, TypedPartition};

pub use super::ground::errors::{AggregateError, MOST_GROUP_FIELDS};
use groups::GroupLimitExec;
pub use groups::MOST_GROUPS;
use period::PeriodStart;

const TIME: &str = "time";
/// The same column on its way through a plan. Names of fields are printable, so no field can have this name.
const MEASURED: &str = "\u{1}measured";
/// The column that is added up: the same value, or a part of an amount.
const SUMMED: &str = "\u{1}summed";

/// A question about the records of a type by period. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateSpec {
    pub conditions: Vec<Condition>,
    pub range: TimeRange,
    pub periods: Truncation,
    pub zone: Zone,
    pub measure: AggregateMeasure,
    /// Fields whose values make groups within a period.
    pub group: Vec<String>,
    /// The direction in which periods run; groups always ascend.
    pub order: Order,
    /// By metric, the sources that the person prefers to all others, best first.
    pub chosen_sources: Vec<(TypeId, Vec<Uuid>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateMeasure {
    /// The number of records.
    Count,
    /// Functions of their values, each at most once.
    Values(Vec<Statistic>),
}

fn definition(statistic: Statistic) -> Arc<AggregateUDF> {
    match statistic {
        Statistic::Sum => sum_udaf(),
        Statistic::Avg => avg_udaf(),
        Statistic::Min => min_udaf(),
        Statistic::Max => max_udaf(),
    }
}

/// A limit that was exceeded while a question ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    #[error(
        "there are more than {MOST_GROUPS} groups; group by fewer fields, or by fields with fewer values"
    )]
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

    fn functions(&self) -> &[Statistic] {
        match &self.measure {
            AggregateMeasure::Count => &[],
            AggregateMeasure::Values(functions) => functions,
        }
    }

    /// Whether samples are needed one by one.
    fn measures(&self) -> bool {
        self.functions()
            .iter()
            .any(|function| *function != Statistic::Sum)
    }

    fn sums(&self) -> bool {
        self.functions().contains(&Statistic::Sum)
    }
}

impl<Authority> Questions<Authority> {
    /// Summarises by period the records of `partitions`, which together are what `permit` names.
    pub async fn aggregate(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &AggregateSpec,
    ) -> Result<Prepared, QueryError> {
        refuse_unfit(permit, partitions, spec)?;
        let bound = bind_all(partitions, &spec.conditions)?;
        let groups = groups_of(partitions, spec)?;
        let (snapshots, sources) = self.snapshots_and_sources(permit, &bound, spec).await?;
        let states = bound
            .iter()
            .zip(&snapshots)
            .map(|((partition, _), snapshot)| ReadState::of(permit, partition, snapshot))
            .chain(prepared::definitions(partitions))
            .collect();
        let parts: Vec<PartitionPart<'_, Authority>> = bound
            .into_iter()
            .zip(&snapshots)
            .map(|((partition, condition), snapshot)| PartitionPart {
                permit,
                partition,
                condition,
                snapshot,
                spec,
            })
            .collect();
        let grid = spec.periods.grid(&spec.zone, reach(spec.range, &snapshots));
        let plan = finished(self.plan_of(&parts, groups, &sources, &grid, spec)?, spec)?;
        let schema = plan.schema();
        Ok(Prepared {
            plan,
            schema,
            states,
            scope: Scope::of([permit]),
        })
    }

    /// A snapshot of each partition, all as of one moment, and the person's sources where the answer depends
    /// on which of them measured.
    async fn snapshots_and_sources(
        &self,
        permit: &ReadPermit<Authority>,
        bound: &[(&TypedPartition, Option<Expr>)],
        spec: &AggregateSpec,
    ) -> Result<(Vec<Arc<Snapshot>>, Vec<KnownSource>), QueryError> {
        let ids: Vec<TypeId> = bound.iter().map(|(partition, _)| partition.id.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &ids).await?;
        if !bound
            .iter()
            .any(|(partition, _)| amounts::competing(partition, spec))
        {
            return Ok((snapshots, Vec::new()));
        }
        // After the snapshot: a source is known before its first row is.
        let sources = self.catalog.sources_of(permit.owner()).await;
        Ok((snapshots, sources.map_err(StoreError::from)?))
    }

    /// The periods and groups of all parts, from rollups where they can replace all rows.
    fn plan_of(
        &self,
        parts: &[PartitionPart<'_, Authority>],
        groups: Vec<SchemaRef>,
        sources: &[KnownSource],
        grid: &Grid,
        spec: &AggregateSpec,
    ) -> Result<Plan, QueryError> {
        if let (AggregateMeasure::Values(_), [part]) = (&spec.measure, parts)
            && let Some(plan) = self.periods_without_rows(part, sources, grid)?
        {
            return Ok(plan);
        }
        let mut plans = Vec::with_capacity(parts.len());
        for part in parts {
            plans.extend(self.records_by_period(part, grid)?);
            if amounts::are_summed(part.partition, spec) {
                plans.push(self.amounts_by_period(part, sources)?);
            }
        }
        Ok(aggregated(by_time(plans, groups)?, spec, Measured::Samples)?)
    }

    /// Each record by itself, in the order of time: (time, group fields, value to measure, value to sum).
    /// `None` where only amounts are asked for.
    fn records_by_period(
        &self,
        part: &PartitionPart<'_, Authority>,
        grid: &Grid,
    ) -> Result<Option<Plan>, QueryError> {
        let PartitionPart { spec, partition, .. } = part;
        let amounts = amounts::are_summed(partition, spec);
        if amounts && !spec.measures() {
            return Ok(None);
        }
        let period = ScalarUDF::new_from_impl(PeriodStart::new(grid.clone(), spec.zone));
        let mut columns = vec![(period.call(vec![ident(START)]), TIME.to_owned())];
        columns.extend(groups::values_of(&spec.group, partition));
        if spec.measures() || spec.sums() {
            let value = number_in(VALUE, partition)?;
            if spec.sums() {
                let summed = if amounts {
                    lit(ScalarValue::Float64(None))
                } else {
                    value.clone()
                };
                columns.push((summed, SUMMED.to_owned()));
            }
            if spec.measures() {
                columns.push((value, MEASURED.to_owned()));
            }
        }
        let rows = self.rows_of(part, &[VALUE], OriginalLength::Dropped)?;
        Ok(Some(projected(rows, columns)?))
    }

    /// The rows of a partition that the spec selects: their times, group fields, and `columns`.
    fn rows_of(
        &self,
        part: &PartitionPart<'_, Authority>,
        columns: &[&str],
        lengths: OriginalLength,
    ) -> Result<Plan, QueryError> {
        let PartitionPart {
            permit,
            partition,
            condition,
            snapshot,
            spec,
        } = part;
        let mut names: BTreeSet<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        for (value, _) in groups::values_of(&spec.group, partition) {
            names.extend(value.column_refs().into_iter().map(|column| column.name.clone()));
        }
        let of_condition = condition.as_ref().map(Expr::column_refs).unwrap_or_default();
        let by_id = names.contains(ID) || of_condition.iter().any(|column| column.name == ID);
        let table = self.table(permit, partition, snapshot, lengths)?;
        let rows = table.without_ids(!by_id).meeting(condition.clone());
        Ok(rows.rows(names.iter().map(String::as_str))?)
    }
}

/// Refuses groups that cannot be made, what a reader must not ask about, and values where there are none.
fn refuse_unfit<Authority>(
    permit: &ReadPermit<Authority>,
    partitions: &[TypedPartition],
    spec: &AggregateSpec,
) -> Result<(), QueryError> {
    groups::check(&spec.group, partitions, &spec.computed())?;
    refuse_private(permit, &spec.conditions, partitions)?;
    refuse_private_fields(permit, &spec.group, partitions).map_err(AggregateError::from)?;
    let has_no_value =
        |partition: &&TypedPartition| partition.data_type.layout.storage.index_of(VALUE).is_err();
    match (&spec.measure, partitions.iter().find(has_no_value)) {
        (AggregateMeasure::Values(_), Some(partition)) => {
            Err(AggregateError::NoValue(partition.data_type.id.clone()).into())
        }
        _ => Ok(()),
    }
}

/// The types of the group fields in each partition. They do not depend on the conditions, which some types
/// may be unable to meet.
fn groups_of(partitions: &[TypedPartition], spec: &AggregateSpec) -> Result<Vec<SchemaRef>> {
    if spec.group.is_empty() || partitions.len() == 1 {
        return Ok(Vec::new());
    }
    let groups = partitions.iter().map(|partition| {
        let nothing = Arc::new(EmptyExec::new(Arc::clone(&partition.data_type.layout.storage)));
        Ok(projected(nothing, groups::values_of(&spec.group, partition))?.schema())
    });
    groups.collect()
}

/// One partition with its part of the question.
struct PartitionPart<'a, Authority> {
    permit: &'a ReadPermit<Authority>,
    partition: &'a TypedPartition,
    condition: Option<Expr>,
    snapshot: &'a Arc<Snapshot>,
    spec: &'a AggregateSpec,
}

/// A stored column as a number: true is 1, false is 0.
fn number_in(name: &str, partition: &TypedPartition) -> Result<Expr> {
    let field = partition.data_type.layout.storage.field_with_name(name)?;
    Ok(match field.data_type() {
        ArrowType::Float64 => ident(name),
        ArrowType::Boolean => cast(cast(ident(name), ArrowType::Int8), ArrowType::Float64),
        _ => cast(ident(name), ArrowType::Float64),
    })
}

/// The time range in which the records begin that `range` selects: some begin before it.
fn reach(range: TimeRange, snapshots: &[Arc<Snapshot>]) -> TimeRange {
    let first = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.pieces.iter())
        .filter(|piece| piece.bounds.min_start < range.end() && piece.bounds.max_end >= range.start())
        .map(|piece| piece.bounds.min_start)
        .min();
    let start = first.map_or(range.start(), |first| first.min(range.start()));
    TimeRange::between(start, range.end())
}

/// Merges several plans by time into one, which has at least the columns of `groups`.
fn by_time(mut plans: Vec<Plan>, groups: Vec<SchemaRef>) -> Result<Plan> {
    if plans.len() == 1 && groups.is_empty() {
        return Ok(plans.remove(0));
    }
    let schema = common_schema(plans.iter().map(|plan| plan.schema()).chain(groups));
    if plans.is_empty() {
        return Ok(Arc::new(EmptyExec::new(schema)));
    }
    let order = ordering(&schema, &[TIME], Order::Ascending)?;
    let aligned = plans
        .into_iter()
        .map(|plan| align(plan, &schema))
        .collect::<Result<Vec<_>>>()?;
    let mut in_order = true;
    for plan in &aligned {
        in_order &= plan.equivalence_properties().ordering_satisfy(order.clone())?;
    }
    let all = UnionExec::try_new(aligned)?;
    Ok(if in_order {
        Arc::new(SortPreservingMergeExec::new(order, all))
    } else {
        Arc::new(CoalescePartitionsExec::new(all))
    })
}

/// Which rows hold the measured values. Summed values are in rows of their own or in the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    /// Each row is one sample.
    Samples,
    /// Each row is one period, with the results of the functions in columns of their names.
    Periods,
}

/// Aggregates the rows of each period and group.
fn aggregated(rows: Plan, spec: &AggregateSpec, measured: Measured) -> Result<Plan> {
    let schema = rows.schema();
    let keys = [TIME].into_iter().chain(spec.group.iter().map(String::as_str));
    let keys = keys
        .map(|name| Ok((column(name, &schema)?, name.to_owned())))
        .collect::<Result<Vec<_>>>()?;
    let measures = match &spec.measure {
        AggregateMeasure::Count => {
            let each: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::Int64(Some(1))));
            vec![measure(count_udaf(), each, &schema, "count")?]
        }
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
    let unfiltered = vec![None; measures.len()];
    let aggregated: Plan = Arc::new(AggregateExec::try_new(
        AggregateMode::Single,
        PhysicalGroupBy::new_single(keys),
        measures,
        unfiltered,
        rows,
        schema,
    )?);
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
        let finite: Float64Array =
            numbers.unary_opt(|number| Some(number).filter(|number| number.is_finite()));
        Ok(Arc::new(finite))
    }
}

fn measure(
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

/// Sorts as the spec asks, and limits the number of groups.
fn finished(mut plan: Plan, spec: &AggregateSpec) -> Result<Plan> {
    if !spec.group.is_empty() {
        plan = Arc::new(GroupLimitExec::new(plan, (1..=spec.group.len()).collect()));
    }
    let keys: Vec<&str> = [TIME]
        .into_iter()
        .chain(spec.group.iter().map(String::as_str))
        .collect();
    let order = ordering(&plan.schema(), &keys, spec.order)?;
    // With groups, all rows are read before any is given out: there may be too many groups.
    if spec.group.is_empty() && plan.equivalence_properties().ordering_satisfy(order.clone())? {
        return Ok(plan);
    }
    Ok(Arc::new(SortExec::new(order, plan)))
}

/// The first of `names` runs as `order` says; the others ascend, with nulls last.
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
