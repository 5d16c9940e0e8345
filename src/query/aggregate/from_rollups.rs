//! Periods of all samples of a metric, computed from the rollups of its pieces.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::columns::VALUE;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::registry::MetricKind;
use crate::model::time::TimeRange;
use crate::people::preferences::SourcesByRecency;
use crate::query::ground::operator::Plan;
use crate::query::ground::rollups::Kind;
use crate::query::series::rollups::RollupsAsked;
use crate::query::series::{
    Base, Calculation, Counting, Gaps, Measure, Ranking, SeriesExec, SeriesSpec, TIME,
};
use crate::query::statistic::Statistic;
use crate::query::{QueryError, Questions};
use crate::store::rollups::Step;

use super::amounts::are_summed;
use super::group_periods::{Measured, aggregated, by_time};
use super::partition_part::PartitionPart;

impl<Authority> Questions<Authority> {
    /// The periods of `grid` with the requested functions, where rollups can replace all samples.
    pub(super) fn periods_without_rows(
        &self,
        part: &PartitionPart<'_, Authority>,
        known: &Arc<SourcesByRecency>,
        grid: &Grid,
    ) -> Result<Option<Plan>, QueryError> {
        let PartitionPart { spec, partition, .. } = part;
        if !(are_summed(partition, spec) && spec.measures()) {
            return self.periods_from_rollups(part, spec.functions(), grid);
        }
        // Amounts are summed by the part that falls into a period, but measured by where they start.
        let functions = spec.functions().iter().copied();
        let of_samples: Vec<Statistic> = functions.filter(|function| *function != Statistic::Sum).collect();
        let Some(measured) = self.periods_from_rollups(part, &of_samples, grid)? else {
            return Ok(None);
        };
        let summed = self.amounts_by_period(part, known)?;
        let beside = by_time(vec![measured, summed], Vec::new())?;
        Ok(Some(aggregated(beside, spec, Measured::Periods)?))
    }

    /// The periods of `grid` with the functions of the samples that start in them. `None` where rows are
    /// needed one by one: for groups, for conditions, or where no piece is long enough on its own.
    fn periods_from_rollups(
        &self,
        part: &PartitionPart<'_, Authority>,
        functions: &[Statistic],
        grid: &Grid,
    ) -> Result<Option<Plan>, QueryError> {
        let PartitionPart {
            permit,
            partition,
            snapshot,
            spec,
            ..
        } = *part;
        if !can_be_reduced(part, functions) {
            return Ok(None);
        }
        let fits = |step: &Step| grid.begins_at_multiples_of(step.micros());
        let Some(step) = Step::COARSE_FIRST.into_iter().find(fits) else {
            return Ok(None);
        };
        let rollups = RollupsAsked {
            step,
            kind: Kind::Starts,
            ranking: Arc::default(),
        };
        let Some(rows) = self.with_rollups(permit, partition, snapshot, &rollups)? else {
            return Ok(None);
        };
        let series = SeriesSpec {
            column: VALUE.to_owned(),
            grid: grid.clone(),
            zone: spec.zone,
            measure: Measure::Levels {
                base: Base::Mean,
                counting: Counting::Everything,
            },
            calculations: functions.iter().map(|function| calculation(*function)).collect(),
            gaps: Gaps::DROPPED,
            chosen_sources: Vec::new(),
        };
        let whole = TimeRange::new(grid.edge(0), grid.edge(grid.len()));
        let plan = SeriesExec::new(
            rows,
            Arc::new(series),
            Windows::new(whole),
            Arc::new(Ranking::default()),
        );
        Ok(Some(named(&(Arc::new(plan) as Plan), functions)?))
    }
}

/// Whether rollups hold what the functions need of a partition's rows.
fn can_be_reduced<Authority>(part: &PartitionPart<'_, Authority>, functions: &[Statistic]) -> bool {
    let PartitionPart {
        permit,
        partition,
        spec,
        ..
    } = *part;
    let is_number = |field: &Field| field.data_type() == &ArrowType::Float64;
    let value = partition.data_type.layout.storage.field_with_name(VALUE);
    // Records of a person's own metric may lack values, but their periods must appear too.
    let is_plain = spec.group.is_empty() && spec.conditions.is_empty() && partition.data_type.owner.is_none();
    if !is_plain
        || !value.is_ok_and(is_number)
        || partition.data_type.id.definition().is_some()
        || partition.data_type.is_base
    {
        return false;
    }
    let is_amount = partition
        .data_type
        .metric
        .as_ref()
        .is_some_and(|metric| metric.kind == Some(MetricKind::Cumulative));
    // A cut amount shows only a part, and rollups hold whole amounts.
    !is_amount || (permit.is_own() && !functions.contains(&Statistic::Sum))
}

const fn calculation(function: Statistic) -> Calculation {
    match function {
        Statistic::Sum => Calculation::Sum,
        Statistic::Avg => Calculation::Mean,
        Statistic::Min => Calculation::Min,
        Statistic::Max => Calculation::Max,
    }
}

/// The time and the functions, without the value column that every series has.
fn named(series: &Plan, functions: &[Statistic]) -> Result<Plan> {
    let column = |name: String, alias: &str| -> Result<ProjectionExpr> {
        let index = series.schema().index_of(&name)?;
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&name, index));
        Ok(ProjectionExpr {
            expr,
            alias: alias.to_owned(),
        })
    };
    let mut columns = vec![column(TIME.to_owned(), TIME)?];
    for function in functions {
        columns.push(column(calculation(*function).column(VALUE), function.name())?);
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, Arc::clone(series))?))
}
