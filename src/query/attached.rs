//! Cycles of sleep with the values of other metrics around them: where sleep and series meet.
//!
//! Knows both questions, permits and snapshots; knows nothing of HTTP.

mod attach_exec;

use std::sync::Arc;

use crate::model::columns::VALUE;
use crate::model::permit::ReadPermit;

use super::series::AskedSeries;
use super::sleep::spec::{CyclesSpec, Question};
use super::sleep::{SleepExec, StageTable};
use super::{Prepared, QueryError, Questions, ReadState, Scope, TypedPartition};
use attach_exec::{Attached, AttachedExec};

pub use attach_exec::{Reach, TooManyCells};

impl<Authority> Questions<Authority> {
    /// Cycles, each with the series of other metrics around it, all as of one moment. Each metric's own
    /// permit says which part of it may be seen, outside of sleep too.
    pub async fn sleep_with_metrics(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        stages: &Arc<StageTable>,
        spec: CyclesSpec,
        metrics: Vec<AskedSeries<'_, Authority>>,
        reach: Reach,
    ) -> Result<Prepared, QueryError> {
        let mut ids = vec![partition.id.clone()];
        ids.extend(metrics.iter().map(|metric| metric.partition.id.clone()));
        let snapshots = self.snapshots.get(permit.owner(), &ids).await?;
        let read = std::iter::once((permit, partition));
        let states = read
            .chain(metrics.iter().map(|metric| (metric.permit, metric.partition)))
            .zip(&snapshots)
            .map(|((permit, partition), snapshot)| ReadState::of(permit, partition, snapshot))
            .collect();
        let mut snapshots = snapshots.into_iter();
        let missing =
            || datafusion::common::internal_datafusion_err!("a partition that was asked for has a snapshot");
        let slept = snapshots.next().ok_or_else(missing)?;
        let input = self.table_uncut(permit, partition, &slept)?.rows([VALUE])?;
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
        Ok(Prepared::of(Arc::new(plan), states, scope))
    }
}
