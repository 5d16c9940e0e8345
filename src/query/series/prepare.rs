//! From a permit and a spec to a plan over stored rows.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::query::filter::{self, Condition};
use crate::query::records::{Archive, Prepared, QueryError, Source};
use crate::store::snapshot::Snapshot;

use super::exec::SeriesExec;
use super::grouped::GroupedExec;
use super::ranking::Ranking;
use super::spec::{Counting, SeriesSpec};

/// A metric of which a series is asked.
pub struct SeriesSource<'a, Authority> {
    /// Names the windows that count.
    pub permit: &'a ReadPermit<Authority>,
    pub source: &'a Source,
    /// What of the source is meant.
    pub conditions: &'a [Condition],
    pub spec: SeriesSpec,
}

impl<Authority> Archive<Authority> {
    /// One series.
    pub async fn series(&self, asked: SeriesSource<'_, Authority>) -> Result<Prepared, QueryError> {
        let (mut plans, versions) = self.series_plans(vec![asked]).await?;
        match plans.pop() {
            Some(plan) => Ok(prepared(plan, versions)),
            None => Ok(prepared(Arc::new(GroupedExec::new(plans)), versions)),
        }
    }

    /// Series of one person on one grid side by side, all as of one moment.
    pub async fn series_grouped(&self, asked: Vec<SeriesSource<'_, Authority>>) -> Result<Prepared, QueryError> {
        let (plans, versions) = self.series_plans(asked).await?;
        Ok(prepared(Arc::new(GroupedExec::new(plans)), versions))
    }

    /// The rows of `source` in `snapshot` that `permit` lets be seen as a series, for questions that go on from there.
    pub(in crate::query) fn series_plan(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        conditions: &[Condition],
        spec: SeriesSpec,
        ranking: &Arc<Ranking>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let mut columns = vec!["value"];
        if spec.measure.counting() == Counting::BestSource {
            columns.extend(["source", "source_class"]);
        }
        let condition = filter::bind(conditions, &source.data_type)?;
        let referred = condition.as_ref().map(|condition| condition.column_refs());
        columns.extend(referred.iter().flatten().map(|column| column.name.as_str()));
        let mut rows = if spec.needs_ids() {
            self.stored(permit, source, snapshot, &columns)?
        } else {
            self.stored_without_ids(permit, source, snapshot, &columns)?
        };
        if let Some(condition) = &condition {
            let schema = DFSchema::try_from(rows.schema().as_ref().clone())?;
            let condition = self.engine.state().create_physical_expr(condition.clone(), &schema)?;
            rows = Arc::new(FilterExec::try_new(condition, rows)?);
        }
        Ok(Arc::new(SeriesExec::new(
            rows,
            Arc::new(spec),
            permit.windows().clone(),
            Arc::clone(ranking),
        )))
    }

    async fn series_plans(
        &self,
        asked: Vec<SeriesSource<'_, Authority>>,
    ) -> Result<(Vec<Arc<dyn ExecutionPlan>>, Vec<(TypeId, i64)>), QueryError> {
        let Some(first) = asked.first() else { return Ok((Vec::new(), Vec::new())) };
        let owner = first.permit.owner();
        let partitions: Vec<TypeId> = asked.iter().map(|one| one.source.partition.clone()).collect();
        let snapshots = self.snapshots.get(owner, &partitions).await?;
        let ranked = asked.iter().any(|one| one.spec.measure.counting() == Counting::BestSource);
        let known = if ranked {
            // After the snapshot: a source is known before its first row is.
            self.catalog.sources_of(owner).await.map_err(crate::store::StoreError::from)?
        } else {
            Vec::new()
        };
        let mut plans = Vec::with_capacity(asked.len());
        let mut versions = Vec::with_capacity(asked.len());
        for (one, snapshot) in asked.into_iter().zip(snapshots) {
            let ranking = Arc::new(Ranking::new(&one.spec.source_order, &known));
            versions.push((one.source.partition.clone(), snapshot.version));
            plans.push(self.series_plan(one.permit, one.source, &snapshot, one.conditions, one.spec, &ranking)?);
        }
        Ok((plans, versions))
    }
}

fn prepared(plan: Arc<dyn ExecutionPlan>, versions: Vec<(TypeId, i64)>) -> Prepared {
    Prepared {
        schema: plan.schema(),
        plan,
        versions,
    }
}
