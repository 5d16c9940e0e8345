//! Summaries of records: how many there are, and the range of their times.
//!
//! A summary answers a question of its own, and tells whether a range that moves with the clock still shows
//! the same records. Reads only the columns of the key; must not know which records an answer shows, in which
//! order or form.

use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::DataFusionError;
use futures::StreamExt as _;

use crate::model::columns::{END, START};
use crate::model::permit::ReadPermit;
use crate::model::time::{Instant, TimeRange};

use super::ground::apart::apart;
use super::ground::engine::{Engine, deadline_passed};
use super::ground::filter::Condition;
use super::ground::for_others::{OriginalLength, extent_fields};
use super::ground::operator::Plan;
use super::select_partitions::{SelectedPartition, states_of};
use super::{QueryError, Questions, ReadState, Scope, TypedPartition};

/// The number of records, and the range of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub records: i64,
    pub first_start: Option<Instant>,
    pub last_start: Option<Instant>,
    pub last_end: Option<Instant>,
}

/// A summary that is ready to be made, and what tells it from others.
#[derive(Debug)]
pub struct PreparedSummary {
    keys: Vec<Plan>,
    pub states: Vec<ReadState>,
    pub scope: Scope,
}

/// What is seen of a range that moves with the clock. As long as nothing else changes, equal ones show the
/// same records: what comes into the range begins after all that is in it, and what leaves it is missing in
/// the count. What the range cuts off for others shows in the times of what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenOfRange {
    /// Of the records, as the reader sees them.
    pub summary: Summary,
    /// The range itself, where the times of records do not show what it cuts off.
    range: Option<TimeRange>,
}

impl<Authority> Questions<Authority> {
    /// The number of records, and the range of their times.
    pub async fn summary(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        conditions: &[Condition],
    ) -> Result<Summary, QueryError> {
        let prepared = self.prepared_summary(permit, partitions, conditions).await?;
        self.summed_up(prepared).await
    }

    /// What a summary is made from: plans that read the records, of which none is looked at yet.
    pub async fn prepared_summary(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        conditions: &[Condition],
    ) -> Result<PreparedSummary, QueryError> {
        let prepared = async {
            let selected = self.select(permit, partitions, conditions).await?;
            self.summary_of(permit, partitions, &selected)
        };
        apart(partitions.len(), prepared).await
    }

    pub(super) fn summary_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        selected: &[SelectedPartition<'_>],
    ) -> Result<PreparedSummary, QueryError> {
        let mut keys = Vec::with_capacity(selected.len());
        for one in selected {
            let table = self.table(permit, one.partition, &one.snapshot, OriginalLength::Dropped)?;
            if table.may_have_rows() {
                keys.push(table.meeting(one.condition.clone()).rows([])?);
            }
        }
        Ok(PreparedSummary {
            keys,
            states: states_of(permit, partitions, selected),
            scope: Scope::of([permit]),
        })
    }

    pub async fn summed_up(&self, prepared: PreparedSummary) -> Result<Summary, QueryError> {
        let mut summary = Summary::default();
        for keys in prepared.keys {
            summary = summary.and(summarise(&self.engine, keys).await?);
        }
        Ok(summary)
    }
}

impl Summary {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            first_start: self.first_start.into_iter().chain(other.first_start).min(),
            last_start: self.last_start.into_iter().chain(other.last_start).max(),
            last_end: self.last_end.into_iter().chain(other.last_end).max(),
        }
    }
}

impl SeenOfRange {
    pub(super) fn of<Authority>(
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        summary: Summary,
        range: TimeRange,
    ) -> Self {
        let lie_elsewhere = |partition: &TypedPartition| !extent_fields(&partition.id).is_empty();
        let shows = permit.is_own() || !partitions.iter().any(lie_elsewhere);
        Self {
            summary,
            range: (!shows).then_some(range),
        }
    }
}

/// Summarises the rows of a plan that has the key columns.
pub(super) async fn summarise(engine: &Engine, plan: Plan) -> Result<Summary, DataFusionError> {
    let mut summary = Summary::default();
    let mut rows = Box::pin(engine.drive(engine.start(plan)?, deadline_passed));
    while let Some(batch) = rows.next().await.transpose()? {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .map(arrow::array::AsArray::as_primitive::<TimestampMicrosecondType>)
        };
        summary = summary.and(Summary {
            records: batch.num_rows() as i64,
            first_start: column(START).and_then(min).map(Instant::from_micros),
            last_start: column(START).and_then(max).map(Instant::from_micros),
            last_end: column(END).and_then(max).map(Instant::from_micros),
        });
    }
    Ok(summary)
}
