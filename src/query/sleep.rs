//! Sleep: one account of what several sources say about the same nights.
//!
//! Samples come as they were recorded, sorted by their starts, and pass through small machines, each of which
//! knows one rule: [`resolve`] lets one sample win each moment, [`join`] makes one row of neighbours of the
//! same stage, [`cycles`] finds the gaps that part nights and naps, and the last one shapes the answer. All
//! of them stream: what they hold is what is open at one moment, at most one cycle. [`operator`] makes a plan
//! of them. Knows permits, snapshots and plans; knows nothing of HTTP.

mod aggregate;
mod answers;
mod attached;
mod clip;
mod cycles;
mod in_bed;
mod join;
mod night_of;
mod operator;
mod resolve;
mod rows;
mod samples;
pub mod spec;
mod stages;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::model::permit::ReadPermit;
use crate::store::snapshot::Snapshot;

use super::records::{Archive, Prepared, QueryError, ReadState, Scope, Source};
use super::series::SeriesSource;
use attached::{Attached, AttachedExec};
use operator::SleepExec;
use spec::{CyclesSpec, Question, SourceNames};

pub use attached::{Reach, TooManyCells};
pub use stages::StageTable;

impl<Authority> Archive<Authority> {
    /// The answer to a question about sleep. `source` is where stages of sleep are stored, `permit` what of
    /// it may be seen: the range that is asked for, or, where nothing is clipped, as far beyond it as a cycle
    /// may reach. What another person may see is always clipped, and never names sources.
    pub async fn sleep(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        stages: &Arc<StageTable>,
        question: Question,
        names: Option<Arc<SourceNames>>,
    ) -> Result<Prepared, QueryError> {
        let snapshot = self.stages_snapshot(permit, source).await?;
        let columns: &[&str] = if question.needs_sources() {
            &["value", "source"]
        } else {
            &["value"]
        };
        let input = self.stored_uncut(permit, source, &snapshot, columns)?;
        let (question, names) = if permit.is_own() {
            (question, names)
        } else {
            (question.clipped(), None)
        };
        let plan = SleepExec::new(input, question, permit.windows(), Arc::clone(stages), names);
        Ok(Prepared {
            schema: plan.schema(),
            plan: Arc::new(plan),
            states: vec![ReadState::of(permit, source, &snapshot)],
            scope: Scope::of([permit]),
        })
    }

    /// Cycles, each with the series of other metrics around it, all as of one moment. Permits of the metrics
    /// say what of them may be seen, outside of sleep too.
    pub async fn sleep_with_metrics(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        stages: &Arc<StageTable>,
        spec: CyclesSpec,
        metrics: Vec<SeriesSource<'_, Authority>>,
        reach: Reach,
    ) -> Result<Prepared, QueryError> {
        let mut partitions = vec![source.partition.clone()];
        partitions.extend(metrics.iter().map(|metric| metric.source.partition.clone()));
        let snapshots = self.snapshots.get(permit.owner(), &partitions).await?;
        let sources = std::iter::once((permit, source));
        let states = sources
            .chain(metrics.iter().map(|metric| (metric.permit, metric.source)))
            .zip(&snapshots)
            .map(|((permit, source), snapshot)| ReadState::of(permit, source, snapshot))
            .collect();
        let mut snapshots = snapshots.into_iter();
        let missing =
            || datafusion::common::internal_datafusion_err!("a partition that was asked for has a snapshot");
        let slept = snapshots.next().ok_or_else(missing)?;
        let input = self.stored_uncut(permit, source, &slept, &["value"])?;
        let spec = CyclesSpec {
            clip: spec.clip || !permit.is_own(),
            ..spec
        };
        let scope = Scope::of(std::iter::once(permit).chain(metrics.iter().map(|metric| metric.permit)));
        let cycles = SleepExec::new(
            input,
            Question::Cycles(spec),
            permit.windows(),
            Arc::clone(stages),
            None,
        );
        let rankings = self.series_rankings(&metrics).await?;
        let mut attached = Vec::with_capacity(metrics.len());
        for ((metric, snapshot), ranking) in metrics.into_iter().zip(snapshots).zip(rankings) {
            let samples = self.series_rows(&metric, &snapshot)?;
            let metric = Attached {
                windows: metric.permit.windows().clone(),
                spec: metric.spec,
                ranking,
            };
            attached.push((samples, metric));
        }
        let plan = AttachedExec::new(Arc::new(cycles), attached, reach);
        Ok(Prepared {
            schema: plan.schema(),
            plan: Arc::new(plan),
            states,
            scope,
        })
    }

    /// What `permit` lets be seen of the stages of sleep, without conflicts: `start_time`, `end_time`,
    /// `stage`; sorted, disjoint, inside the permit's windows, neighbours of the same stage as one.
    pub fn resolved_stages(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        snapshot: &Snapshot,
        stages: &Arc<StageTable>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let input = self.stored_uncut(permit, source, snapshot, &["value"])?;
        let plan = SleepExec::new(
            input,
            Question::Resolved,
            permit.windows(),
            Arc::clone(stages),
            None,
        );
        Ok(Arc::new(plan))
    }

    async fn stages_snapshot(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
    ) -> Result<Arc<Snapshot>, QueryError> {
        let snapshots = self
            .snapshots
            .get(permit.owner(), std::slice::from_ref(&source.partition))
            .await?;
        let missing =
            || datafusion::common::internal_datafusion_err!("a partition that was asked for has a snapshot");
        Ok(snapshots.into_iter().next().ok_or_else(missing)?)
    }
}
