//! Sleep: one account of what several sources recorded about the same nights.
//!
//! Samples come as they were recorded, sorted by their starts, and pass through small machines, each of which
//! knows one rule: [`resolve`] lets one sample win each moment, [`join`] joins neighbours of the same stage
//! into one row, [`cycles`] finds the gaps that separate nights and naps, and the last one shapes the answer.
//! All of them stream: they hold only what is open at one moment, at most one cycle. [`sleep_exec`] makes a
//! plan of them. Knows permits, snapshots and plans; knows nothing of HTTP.

mod aggregate;
mod answers;
mod clip;
mod cycles;
mod in_bed;
mod join;
mod night_of;
mod resolve;
mod rows;
mod samples;
mod sleep_exec;
pub mod spec;
mod stages;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::model::columns::{SOURCE, VALUE};
use crate::model::permit::ReadPermit;
use crate::store::snapshot::Snapshot;

use super::ground::operator::Plan;
use super::{Prepared, QueryError, Questions, ReadState, Scope, TypedPartition};
use spec::{Question, SourceNames};

pub(super) use sleep_exec::SleepExec;
pub use stages::StageTable;

impl<Authority> Questions<Authority> {
    /// The answer to a question about sleep. `partition` stores the stages of sleep; `permit` says what may
    /// be seen: within the range of the question or, where nothing is clipped, as far beyond it as a cycle
    /// may reach. The answer to somebody other than the owner is always clipped, and never names sources.
    pub async fn sleep(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        stages: &Arc<StageTable>,
        question: Question,
        names: Option<Arc<SourceNames>>,
    ) -> Result<Prepared, QueryError> {
        let snapshot = self.stages_snapshot(permit, partition).await?;
        let columns: &[&str] = if question.needs_sources() {
            &[VALUE, SOURCE]
        } else {
            &[VALUE]
        };
        let input = self
            .table_uncut(permit, partition, &snapshot)?
            .rows(columns.iter().copied())?;
        let (question, names) = if permit.is_own() {
            (question, names)
        } else {
            (question.clipped(), None)
        };
        let plan = SleepExec::new(input, question, permit.windows(), Arc::clone(stages), names);
        let states = vec![ReadState::of(permit, partition, &snapshot)];
        Ok(Prepared::of(Arc::new(plan), states, Scope::of([permit])))
    }

    /// The part of the stages of sleep that `permit` makes visible, without conflicts: `start_time`,
    /// `end_time`, `stage`; sorted, disjoint, inside the permit's windows, with neighbours of the same stage
    /// joined.
    pub fn resolved_stages(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Arc<Snapshot>,
        stages: &Arc<StageTable>,
    ) -> Result<Plan, QueryError> {
        let input = self.table_uncut(permit, partition, snapshot)?.rows([VALUE])?;
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
        partition: &TypedPartition,
    ) -> Result<Arc<Snapshot>, QueryError> {
        let snapshots = self
            .snapshots
            .get(permit.owner(), std::slice::from_ref(&partition.id))
            .await?;
        let missing =
            || datafusion::common::internal_datafusion_err!("a partition that was asked for has a snapshot");
        Ok(snapshots.into_iter().next().ok_or_else(missing)?)
    }
}
