//! Derives visits from updates, for people whose device reports none.
//!
//! Somebody stays in a place if, from one update on, all updates lie within 100 metres of it, each within 15
//! minutes of the previous one, for at least 10 minutes. A stay begins with its first update. It ends with
//! the first update elsewhere or, before a silence of more than 15 minutes, with the last update. Its place
//! is the middle of its updates, its accuracy their mean. Its id is derived from that of its first update.
//!
//! Each update is looked at once; only those that may still become a stay are in memory: those of 10
//! minutes. Updates before and after the range are read as far as it takes to see the whole of a stay, up to
//! 30 days: if that is enough, where it begins does not depend on the range, and neither does its id.

mod beginning;
mod reading;
mod rows;
mod search;
#[cfg(test)]
mod tests;
mod update;
mod waiting;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::{BoxStream, StreamExt as _, try_unfold};

use crate::model::time::{MICROS_PER_DAY, TimeRange};
use crate::query::ground::table::within;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition};
use crate::query::shape::IdForm;
use crate::query::{Prepared, QueryError, Questions};

use super::fixes::{ACCURACY, LATITUDE, LONGITUDE};
use super::pinned::Granted;
use super::wider_range::widened;

use reading::Reading;
use rows::StayRows;

/// How far beyond a range updates are read at most.
const FARTHEST: i64 = 30 * MICROS_PER_DAY;
/// How far they are read at first, and each time that this was not enough to see the whole of a stay.
const MARGINS: [i64; 3] = [MICROS_PER_DAY, 5 * MICROS_PER_DAY, FARTHEST];

/// The time that may have to be read for the stays of a range.
#[must_use]
pub fn reads(range: TimeRange) -> TimeRange {
    widened(range, FARTHEST, FARTHEST)
}

impl<Authority> Questions<Authority> {
    /// The stays that share time with `range`, in the shape of visits: the columns of `shape`. The permit is
    /// requested for `reads`; where it ends earlier, nothing later is looked at. For somebody other than the
    /// owner, stays follow only from the updates inside the range, and end where what may be read ends.
    pub async fn stays(
        &self,
        updates: &Granted<Authority>,
        range: TimeRange,
        shape: &SchemaRef,
        ids: IdForm,
    ) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(updates).await?;
        let is_own = updates.permit.is_own();
        let looked_at = if is_own { reads(range) } else { range };
        let windows = pinned.windows(Some(looked_at));
        let rows = self
            .seen(&pinned, &windows)?
            .rows([LATITUDE, LONGITUDE, ACCURACY])?;
        let (mut reads, mut inputs) = (Vec::new(), Vec::new());
        if let (true, [window]) = (is_own, windows.as_slice()) {
            for margin in MARGINS {
                let read = widened(range, margin, margin).overlap(*window);
                if let Some(read) = read.filter(|read| reads.last() != Some(read)) {
                    inputs.push(within(&rows, read)?);
                    reads.push(read);
                }
            }
        }
        if inputs.is_empty() {
            inputs.push(rows);
            reads.push(looked_at);
        }
        let asked = windows.into_iter().filter_map(|window| window.overlap(range));
        let step = Stays {
            range,
            reads: reads.into(),
            rows: StayRows {
                schema: Arc::clone(shape),
                asked: asked.collect(),
                ids,
            },
        };
        let plan: Plan = Arc::new(Operator::over(step, inputs));
        Ok(Prepared::of(plan, vec![pinned.state()], pinned.scope()))
    }
}

/// Its inputs are the same updates, over more and more time.
#[derive(Clone, Debug)]
struct Stays {
    range: TimeRange,
    /// The time of each input.
    reads: Arc<[TimeRange]>,
    rows: StayRows,
}

impl Step for Stays {
    const NAME: &'static str = "StaysExec";

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.rows.schema), None)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let inputs = inputs.into_iter().zip(self.reads.iter().copied()).collect();
        let reading = Reading::new(self.range, &self.rows.asked, inputs)?;
        let stays = try_unfold((self.rows, reading), |(rows, mut reading)| async move {
            let stays = reading.next().await?;
            let batch = stays.map(|stays| rows.of(&stays)).transpose()?;
            Ok(batch.map(|batch| (batch, (rows, reading))))
        });
        Ok(stays.boxed())
    }
}
