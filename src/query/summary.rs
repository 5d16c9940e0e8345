//! Summaries of records: how many there are, and the range of their times.
//!
//! A summary answers a question of its own, and tells whether a range that moves with the clock still shows
//! the same records. Reads only the columns of the key; must not know which records an answer shows, in which
//! order or form.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::DataFusionError;
use futures::StreamExt as _;

use crate::model::columns::{END, START};
use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

use super::ground::apart::apart;
use super::ground::engine::{Engine, deadline_passed};
use super::ground::filter::Condition;
use super::ground::for_others::{self, OriginalLength};
use super::ground::operator::Plan;
use super::select_partitions::{SelectedPartition, states_of};
use super::{QueryError, Questions, ReadState, Scope, TypedPartition};

/// The number of records, and the range of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSummary {
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
/// same records: what comes into the range begins after all that is in it, or ends after it where it is shown
/// whole or not at all; and what leaves it is missing in the count. What the range cuts off for others shows
/// in the times of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenOfRange {
    /// Of the records, as the reader sees them.
    pub summary: RecordSummary,
    /// The same with the times at which they take place, where others see them by these: whole days in a
    /// zone, or the known end of a visit, would be hidden by the recorded times.
    taking_place: Option<RecordSummary>,
}

impl<Authority> Questions<Authority> {
    /// The number of records, and the range of their times.
    pub async fn summary(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        conditions: &[Condition],
    ) -> Result<RecordSummary, QueryError> {
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

    fn summary_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        selected: &[SelectedPartition<'_>],
    ) -> Result<PreparedSummary, QueryError> {
        let mut keys = Vec::with_capacity(selected.len());
        for one in selected {
            keys.extend(self.keys_of(permit, one)?);
        }
        Ok(PreparedSummary {
            keys,
            states: states_of(permit, partitions, selected),
            scope: Scope::of([permit]),
        })
    }

    /// The times and ids of the records in one partition; `None` where there are none.
    fn keys_of(
        &self,
        permit: &ReadPermit<Authority>,
        one: &SelectedPartition<'_>,
    ) -> Result<Option<Plan>, QueryError> {
        let table = self.table(permit, one.partition, &one.snapshot, OriginalLength::Dropped)?;
        if !table.may_have_rows() {
            return Ok(None);
        }
        Ok(Some(table.meeting(one.condition.clone()).rows([])?))
    }

    /// What is seen of the range that `permit` is limited to, which moves with the clock.
    pub(super) async fn seen_of_range(
        &self,
        permit: &ReadPermit<Authority>,
        selected: &[SelectedPartition<'_>],
    ) -> Result<SeenOfRange, QueryError> {
        let seen = async {
            let mut seen = SeenOfRange::default();
            for one in selected {
                let data_type = &one.partition.id;
                let elsewhere = !permit.is_own() && for_others::take_place_elsewhere(data_type);
                if let Some(keys) = self.keys_of(permit, one)? {
                    let seen_of_one = seen_in(&self.engine, keys, elsewhere.then_some(data_type)).await?;
                    seen = seen.and(seen_of_one);
                }
            }
            Ok::<_, QueryError>(seen)
        };
        self.engine.in_time(seen).await
    }

    pub async fn summed_up(&self, prepared: PreparedSummary) -> Result<RecordSummary, QueryError> {
        let summed_up = async {
            let mut summary = RecordSummary::default();
            for keys in prepared.keys {
                summary = summary.and(summarise(&self.engine, keys).await?);
            }
            Ok::<_, QueryError>(summary)
        };
        self.engine.in_time(summed_up).await
    }
}

impl RecordSummary {
    fn of(rows: &RecordBatch) -> Self {
        let column = |name: &str| {
            rows.column_by_name(name)
                .map(arrow::array::AsArray::as_primitive::<TimestampMicrosecondType>)
        };
        Self {
            records: rows.num_rows() as i64,
            first_start: column(START).and_then(min).map(Instant::from_micros),
            last_start: column(START).and_then(max).map(Instant::from_micros),
            last_end: column(END).and_then(max).map(Instant::from_micros),
        }
    }

    fn of_times(times: &[(i64, i64)]) -> Self {
        let starts = times.iter().map(|(start, _)| Instant::from_micros(*start));
        let ends = times.iter().map(|(_, end)| Instant::from_micros(*end));
        Self {
            records: times.len() as i64,
            first_start: starts.clone().min(),
            last_start: starts.max(),
            last_end: ends.max(),
        }
    }

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
    /// What is seen where only the last record that began in the range is shown, and cut by nothing that
    /// moves: whatever else comes into the range begins later.
    pub(super) const fn by_the_last(found: RecordSummary) -> Self {
        Self {
            summary: found,
            taking_place: None,
        }
    }

    fn and(self, other: Self) -> Self {
        let taking_place = self.taking_place.into_iter().chain(other.taking_place);
        Self {
            summary: self.summary.and(other.summary),
            taking_place: taking_place.reduce(RecordSummary::and),
        }
    }
}

/// Summarises the rows of a plan that has the key columns.
pub(super) async fn summarise(engine: &Engine, plan: Plan) -> Result<RecordSummary, DataFusionError> {
    Ok(seen_in(engine, plan, None).await?.summary)
}

/// What is seen in the rows of a plan that has the key columns. `elsewhere`: their type, if others see them
/// by other times than the recorded ones.
async fn seen_in(
    engine: &Engine,
    plan: Plan,
    elsewhere: Option<&TypeId>,
) -> Result<SeenOfRange, DataFusionError> {
    let mut seen = SeenOfRange::default();
    let mut rows = Box::pin(engine.drive(engine.start(plan), deadline_passed));
    while let Some(batch) = rows.next().await.transpose()? {
        let times = elsewhere.map(|data_type| for_others::times_of_parts(&batch, data_type));
        seen = seen.and(SeenOfRange {
            summary: RecordSummary::of(&batch),
            taking_place: times.transpose()?.map(|times| RecordSummary::of_times(&times)),
        });
    }
    Ok(seen)
}
