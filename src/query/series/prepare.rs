//! Makes a plan over stored rows from a permit and a spec.

use std::sync::Arc;

use datafusion::common::Result as PlanResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::columns::{SOURCE, SOURCE_CLASS, VALUE};
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::people::preferences::SourceOrder;
use crate::query::filter::{self, Condition};
use crate::query::for_others::OriginalLength;
use crate::query::ground::measure::{Counting, Measure};
use crate::query::ground::operator::Plan;
use crate::query::series::rollups::RollupsAsked;
use crate::query::sleep::StageTable;
use crate::query::{Prepared, QueryError, Questions, ReadState, Scope, TypedPartition};
use crate::store::snapshot::Snapshot;

use super::calculation::Calculation;
use super::grouped::GroupedExec;
use super::ranking::Ranking;
use super::series_exec::SeriesExec;
use super::spec::SeriesSpec;

/// A question for the series of one metric.
pub struct AskedSeries<'a, Authority> {
    /// Its windows are those that count.
    pub permit: &'a ReadPermit<Authority>,
    pub partition: &'a TypedPartition,
    /// The conditions that select records of the partition.
    pub conditions: &'a [Condition],
    pub spec: SeriesSpec,
    /// For stages of sleep: the meaning of their values. The series then uses stages without conflicts.
    pub stages: Option<Arc<StageTable>>,
}

impl<Authority> AskedSeries<'_, Authority> {
    /// Whether what a bin shows depends on nothing but the samples that touch it. Where sources compete, how
    /// far one of them counts may be decided before.
    fn bins_stand_alone(&self) -> bool {
        let compete = self.spec.measure == Measure::Amounts(Counting::BestSource) || self.stages.is_some();
        !compete && !self.spec.calculations.contains(&Calculation::RollingMean)
    }
}

impl<Authority> Questions<Authority> {
    /// One series.
    pub async fn series(&self, asked: AskedSeries<'_, Authority>) -> Result<Prepared, QueryError> {
        let scope = Scope::of([asked.permit]);
        let (mut plans, states) = self.series_plans(vec![asked]).await?;
        match plans.pop() {
            Some(plan) => Ok(Prepared::of(plan, states, scope)),
            None => Ok(Prepared::of(Arc::new(GroupedExec::new(plans)), states, scope)),
        }
    }

    /// One series, of which bins that end before a moment may be missing.
    pub async fn series_from(
        &self,
        asked: AskedSeries<'_, Authority>,
        moment: Option<Instant>,
    ) -> Result<Prepared, QueryError> {
        let Some(moment) = moment.filter(|_| asked.bins_stand_alone()) else {
            return self.series(asked).await;
        };
        let scope = Scope::of([asked.permit]);
        let grid = asked.spec.grid.starting(moment);
        let begin = grid.edge(0);
        let permit = asked
            .permit
            .within(TimeRange::between(begin, TimeRange::ALWAYS.end()));
        let rest = AskedSeries {
            permit: &permit,
            spec: SeriesSpec { grid, ..asked.spec },
            ..asked
        };
        let prepared = self.series(rest).await?;
        Ok(Prepared { scope, ..prepared })
    }

    /// Several series of one person on one grid, side by side, all as of one moment.
    pub async fn series_grouped(
        &self,
        asked: Vec<AskedSeries<'_, Authority>>,
    ) -> Result<Prepared, QueryError> {
        let scope = Scope::of(asked.iter().map(|one| one.permit));
        let (plans, states) = self.series_plans(asked).await?;
        Ok(Prepared::of(Arc::new(GroupedExec::new(plans)), states, scope))
    }

    /// The series of the visible rows in `snapshot`, for questions that build on it.
    pub(in crate::query) fn series_plan(
        &self,
        asked: AskedSeries<'_, Authority>,
        snapshot: &Arc<Snapshot>,
        ranking: &Arc<Ranking>,
    ) -> Result<Plan, QueryError> {
        let rows = match self.rollups_of(&asked, snapshot, ranking)? {
            Some(rollups) => rollups,
            None => self.series_rows(&asked, snapshot)?,
        };
        let windows = asked.permit.windows().clone();
        Ok(Arc::new(SeriesExec::new(
            rows,
            Arc::new(asked.spec),
            windows,
            Arc::clone(ranking),
        )))
    }

    /// The visible rows in `snapshot`, as a series reads them.
    pub(in crate::query) fn series_rows(
        &self,
        asked: &AskedSeries<'_, Authority>,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Plan, QueryError> {
        match &asked.stages {
            Some(stages) => Ok(levels_of(self.resolved_stages(
                asked.permit,
                asked.partition,
                snapshot,
                stages,
            )?)?),
            None => self.samples(asked, snapshot),
        }
    }

    /// The ranking of sources for each series, in order.
    pub(in crate::query) async fn series_rankings(
        &self,
        asked: &[AskedSeries<'_, Authority>],
    ) -> Result<Vec<Arc<Ranking>>, QueryError> {
        let ranked = asked
            .iter()
            .find(|one| one.spec.measure.counting() == Counting::BestSource);
        let known = match ranked {
            Some(one) => self.sources_of(one.permit.owner()).await?,
            None => Arc::default(),
        };
        let ranking = |one: &AskedSeries<'_, Authority>| {
            let order = SourceOrder::new(Arc::clone(&known), &one.spec.chosen_sources);
            Arc::new(Ranking::new(order))
        };
        Ok(asked.iter().map(ranking).collect())
    }

    /// The stored columns that the series needs.
    fn samples(
        &self,
        asked: &AskedSeries<'_, Authority>,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Plan, QueryError> {
        let AskedSeries {
            permit,
            partition,
            conditions,
            spec,
            ..
        } = asked;
        let mut columns = vec![VALUE];
        if spec.measure.counting() == Counting::BestSource {
            columns.extend([SOURCE, SOURCE_CLASS]);
        }
        let condition = filter::bind(conditions, &partition.data_type).condition();
        let lengths = match spec.measure {
            Measure::Amounts(Counting::BestSource) => OriginalLength::Marked,
            _ => OriginalLength::Dropped,
        };
        let table = self.table(permit, partition, snapshot, lengths)?;
        let rows = table.without_ids(!spec.needs_ids()).meeting(condition);
        Ok(rows.rows(columns)?)
    }

    async fn series_plans(
        &self,
        asked: Vec<AskedSeries<'_, Authority>>,
    ) -> Result<(Vec<Plan>, Vec<ReadState>), QueryError> {
        let Some(first) = asked.first() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let owner = first.permit.owner();
        let ids: Vec<TypeId> = asked.iter().map(|one| one.partition.id.clone()).collect();
        let snapshots = self.snapshots.get(owner, &ids).await?;
        // After the snapshot: a source is known before its first row is.
        let rankings = self.series_rankings(&asked).await?;
        let mut plans = Vec::with_capacity(asked.len());
        let mut states = Vec::with_capacity(asked.len());
        for ((one, snapshot), ranking) in asked.into_iter().zip(snapshots).zip(rankings) {
            states.push(ReadState::of(one.permit, one.partition, &snapshot));
            plans.push(self.series_plan(one, &snapshot, &ranking)?);
        }
        Ok((plans, states))
    }
}

impl<Authority> Questions<Authority> {
    /// Rollups instead of rows, where they give the same series.
    fn rollups_of(
        &self,
        asked: &AskedSeries<'_, Authority>,
        snapshot: &Arc<Snapshot>,
        ranking: &Arc<Ranking>,
    ) -> Result<Option<Plan>, QueryError> {
        if asked.stages.is_some() || !asked.conditions.is_empty() {
            return Ok(None);
        }
        let Some((step, kind)) = asked.spec.rollups_that_serve(|| ranking.order()) else {
            return Ok(None);
        };
        let ranking = Arc::clone(ranking);
        let rollups = RollupsAsked { step, kind, ranking };
        Ok(self.with_rollups(asked.permit, asked.partition, snapshot, &rollups)?)
    }
}

/// Stages as a series of levels.
fn levels_of(stages: Plan) -> PlanResult<Plan> {
    let schema = stages.schema();
    let columns = [
        ("start_time", "start_time"),
        ("end_time", "end_time"),
        ("stage", "value"),
    ]
    .map(|(name, alias)| {
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, schema.index_of(name)?));
        Ok(ProjectionExpr {
            expr,
            alias: alias.to_owned(),
        })
    });
    let columns = columns.into_iter().collect::<PlanResult<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(columns, stages)?))
}
