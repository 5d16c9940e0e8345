//! Counts records, or summarises their values, by period of a calendar and by fields.
//!
//! Rows arrive in the order of their starts, so periods are complete in order and leave at once: only one
//! period is in memory at a time. Periods without records are omitted. Knows grids, permits and stored rows;
//! knows nothing of HTTP.

mod amounts;
mod cell_limit;
mod from_rollups;
mod group_periods;
mod groups;
mod held_rows;
pub mod over_people;
mod partition_part;
mod period;
mod resolution;
mod spec;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, ScalarUDF, cast, ident, lit};
use datafusion::physical_plan::ExecutionPlanProperties as _;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::model::columns::{START, VALUE};
use crate::model::grid::Grid;
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::people::preferences::SourcesByRecency;
use crate::store::snapshot::Snapshot;

use super::for_others::OriginalLength;
use super::ground::apart::apart;
use super::ground::computed::{projected, projector};
use super::ground::operator::Plan;
use super::ground::prepared;
use super::ground::typed_partition::{bind_all, refuse_private, refuse_private_fields};
use super::series::TIME;
use super::{Prepared, QueryError, Questions, Scope, TypedPartition};
use cell_limit::{CellLimitExec, Cells};
use group_periods::{Measured, aggregated, by_time, ordering};
use groups::GroupLimitExec;
use partition_part::PartitionPart;
use period::PeriodStart;
use spec::{MEASURED, SUMMED};

pub use super::ground::errors::{AggregateError, MOST_GROUP_FIELDS};
pub use groups::{Excess, MOST_GROUPS};
pub use resolution::Resolution;
pub use spec::{AggregateMeasure, AggregateSpec};

impl<Authority> Questions<Authority> {
    /// Summarises by period the records of `partitions`, which together are what `permit` names.
    pub async fn aggregate(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &AggregateSpec,
    ) -> Result<Prepared, QueryError> {
        apart(partitions.len(), self.summarised(permit, partitions, spec)).await
    }

    async fn summarised(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &AggregateSpec,
    ) -> Result<Prepared, QueryError> {
        refuse_unfit(permit, partitions, spec)?;
        let bound = bind_all(partitions, &spec.conditions)?;
        let groups = groups_of(partitions, spec)?;
        let (snapshots, sources) = self.snapshots_and_sources(permit, &bound, spec).await?;
        let read = bound.iter().zip(&snapshots);
        let read = read.map(|((partition, _), snapshot)| (*partition, snapshot.as_ref()));
        let states = prepared::states_of(permit, partitions, read);
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
        let plan = self.plan_of(&parts, groups, &sources, &grid, spec)?;
        let plan = finished(within_limits(plan, &grid, spec), spec)?;
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
    ) -> Result<(Vec<Arc<Snapshot>>, Arc<SourcesByRecency>), QueryError> {
        let ids: Vec<TypeId> = bound.iter().map(|(partition, _)| partition.id.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &ids).await?;
        if !bound
            .iter()
            .any(|(partition, _)| amounts::competing(partition, spec))
        {
            return Ok((snapshots, Arc::default()));
        }
        // After the snapshot: a source is known before its first row is.
        let sources = self.sources_of(permit.owner()).await?;
        Ok((snapshots, sources))
    }

    /// The periods and groups of all parts, from rollups where they can replace all rows.
    fn plan_of(
        &self,
        parts: &[PartitionPart<'_, Authority>],
        groups: Vec<SchemaRef>,
        sources: &Arc<SourcesByRecency>,
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
            // The parts of amounts in a range depend on what lies around it.
            if amounts::are_summed(part.partition, spec) {
                plans.extend(self.records_by_period(part, grid)?);
                plans.push(self.amounts_by_period(part, sources)?);
            } else if parts.len() == 1 || self.may_have_rows(part)? {
                plans.extend(self.records_by_period(part, grid)?);
            }
        }
        if plans.is_empty()
            && let Some(first) = parts.first()
        {
            // Even an answer without rows has columns.
            plans.extend(self.records_by_period(first, grid)?);
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
        let stored = &partition.data_type.layout.storage;
        let groups = projector(stored, groups::values_of(&spec.group, partition))?;
        Ok(Arc::clone(groups.output_schema()))
    });
    groups.collect()
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

/// Limits the number of groups and of cells.
fn within_limits(mut plan: Plan, grid: &Grid, spec: &AggregateSpec) -> Plan {
    let mut most_rows = grid.len();
    if !spec.group.is_empty() {
        most_rows = most_rows.saturating_mul(MOST_GROUPS as u64);
        plan = Arc::new(GroupLimitExec::new(plan, (1..=spec.group.len()).collect()));
    }
    let columns = plan.schema().fields().len().saturating_sub(1);
    let cells = Cells::new(columns, spec.most_cells);
    // Periods without records have no rows, so it is not known before they are computed.
    if cells.may_exceed(most_rows) {
        plan = Arc::new(CellLimitExec::new(plan, cells));
    }
    plan
}

/// Sorts as the spec asks.
fn finished(plan: Plan, spec: &AggregateSpec) -> Result<Plan> {
    let keys: Vec<&str> = [TIME]
        .into_iter()
        .chain(spec.group.iter().map(String::as_str))
        .collect();
    let order = ordering(&plan.schema(), &keys, spec.order)?;
    // With groups, all rows are read before any is given out: there may be too many groups or cells.
    if spec.group.is_empty() && plan.equivalence_properties().ordering_satisfy(order.clone())? {
        return Ok(plan);
    }
    Ok(Arc::new(SortExec::new(order, plan)))
}
