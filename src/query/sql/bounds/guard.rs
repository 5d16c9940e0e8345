//! Guards between the operators of a query.
//!
//! DataFusion's operators consume their input for as long as it lasts: a join that finds nothing never
//! yields, so deadlines go unnoticed, and wide rows take memory that is in no pool. A guard stands above each
//! operator. It passes batches on in small parts, and to a join in parts so small that each makes only as
//! many pairs as a moment allows; it yields when a moment has passed; and it accounts for the memory of what
//! it passed on and of what a window keeps. Knows plans and batches; knows nothing of what they are about.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Moment};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::query::ground::row_sizes::bytes_of_rows;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, like, only};

use super::widths::{widest, widest_unnested};

#[cfg(test)]
mod tests;

/// The most rows of a batch between two operators; a batch may take this many times the size of a row.
const ROWS: usize = 1 << 10;
/// The most pairs that a join that tries each row with each makes at once.
const PAIRS: usize = 1 << 17;
/// The most pairs that a join that looks rows up makes at once: seldom does one row match all others.
const FOUND_PAIRS: usize = 1 << 18;
/// How long an operator may run without yielding.
const MOMENT: Duration = Duration::from_millis(10);
/// The most bytes of a row that a join may repeat.
const WIDEST_ROW: usize = 16 << 10;
/// The most bytes that a row may become when its lists are unnested.
const MOST_UNNESTED: usize = 16 << 20;
/// The most values that windows keep until they have seen the last row: they are computed all at once.
const MOST_KEPT: usize = 1 << 20;

/// The plan with a guard above each operator. `usual`: the default number of rows in a batch.
pub(in crate::query::sql) fn with_guards(
    plan: Arc<dyn ExecutionPlan>,
    usual: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    above(plan, Use::Any, usual)
}

fn above(plan: Arc<dyn ExecutionPlan>, used: Use, usual: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let count = Arc::new(AtomicUsize::new(0));
    let windows = windows_of(plan.as_ref());
    let is_join = plan.name().ends_with("JoinExec");
    let pairs = if plan.is::<HashJoinExec>() {
        FOUND_PAIRS
    } else {
        PAIRS
    };
    let children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
    let plan = if children.is_empty() {
        plan
    } else {
        let guarded = children.into_iter().enumerate().map(|(place, child)| {
            let used = match place {
                0 if is_join => Use::Built(Arc::clone(&count)),
                _ if is_join => Use::Compared {
                    built: Arc::clone(&count),
                    pairs,
                },
                _ if windows > 0 => Use::Kept {
                    windows,
                    released: Arc::clone(&count),
                },
                _ if plan.is::<UnnestExec>() => Use::Unnested,
                _ => Use::Any,
            };
            above(child, used, usual)
        });
        let guarded = guarded.collect::<Result<Vec<_>>>()?;
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(guarded, anew)?
    };
    let released = (windows > 0).then_some(count);
    Ok(Arc::new(GuardExec::new(plan, used, released, usual)))
}

/// The number of window functions that the operator computes for each row.
fn windows_of(plan: &dyn ExecutionPlan) -> usize {
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        window.window_expr().len()
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        window.window_expr().len()
    } else {
        0
    }
}

/// What the operator above does with rows.
#[derive(Clone, Debug)]
enum Use {
    Any,
    /// It keeps them all, to compare others with them. Their number is shared with the guard of the other
    /// side.
    Built(Arc<AtomicUsize>),
    /// It compares each with all that are built, and makes up to `pairs` pairs at a time.
    Compared {
        built: Arc<AtomicUsize>,
        pairs: usize,
    },
    /// It keeps those that are not released yet, with the values of its windows for them.
    Kept {
        windows: usize,
        released: Arc<AtomicUsize>,
    },
    /// It unnests their lists into rows.
    Unnested,
}

/// A guard above one operator.
#[derive(Clone, Debug)]
pub(in crate::query) struct Guard {
    used: Use,
    /// Counts the rows that leave the operator.
    released: Option<Arc<AtomicUsize>>,
    usual: usize,
}

pub(in crate::query) type GuardExec = Operator<Guard>;

impl GuardExec {
    fn new(inner: Plan, used: Use, released: Option<Arc<AtomicUsize>>, usual: usize) -> Self {
        let step = Guard {
            used,
            released,
            usual,
        };
        Self::over(step, vec![inner])
    }
}

impl Step for Guard {
    const NAME: &'static str = "GuardExec";
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs).with_scheduling_type(SchedulingType::Cooperative)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let input = only(inputs)?;
        // A leaf is not an operator of DataFusion, and is best read with the usual batch size.
        let rows = if input.plan().children().is_empty() {
            self.usual
        } else {
            ROWS
        };
        let reservation = task.memory("rows of a query");
        let inner = input.open_within(with_rows(Arc::clone(task.context()), rows))?;
        if let Use::Built(count) = &self.used {
            count.store(0, Ordering::Relaxed);
        }
        if let Some(released) = &self.released {
            released.store(0, Ordering::Relaxed);
        }
        let guarded = GuardedStream {
            inner,
            used: self.used,
            released: self.released,
            reservation,
            rest: None,
            gave_way: Moment::now(),
            passed: 0,
            widest: 0,
        };
        Ok(guarded.boxed())
    }
}

/// The context with a batch size of `rows`.
fn with_rows(context: Arc<TaskContext>, rows: usize) -> Arc<TaskContext> {
    if context.session_config().batch_size() == rows {
        return context;
    }
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone().with_batch_size(rows),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

/// The rows of an operator, on their way to the one above.
struct GuardedStream {
    inner: SendableRecordBatchStream,
    used: Use,
    released: Option<Arc<AtomicUsize>>,
    reservation: MemoryReservation,
    /// Rows that have arrived but were not passed on.
    rest: Option<RecordBatch>,
    gave_way: Moment,
    /// The number of rows that have arrived.
    passed: usize,
    /// The size of the widest row in bytes, where the use needs it.
    widest: usize,
}

impl GuardedStream {
    /// Accounts for a batch.
    fn account(&mut self, batch: RecordBatch) -> Result<()> {
        self.passed += batch.num_rows();
        if let Some(released) = &self.released {
            released.fetch_add(batch.num_rows(), Ordering::Relaxed);
        }
        let taken = match &self.used {
            Use::Any => bytes_of_rows(&batch),
            Use::Built(_) | Use::Compared { .. } => {
                let widest = widest(&batch);
                if widest > WIDEST_ROW {
                    return exec_err!(
                        "a row of a join has {widest} bytes, and {WIDEST_ROW} are the most; join fewer or \
                         shorter columns"
                    );
                }
                if let Use::Built(count) = &self.used {
                    count.fetch_add(batch.num_rows(), Ordering::Relaxed);
                }
                bytes_of_rows(&batch)
            }
            Use::Kept { windows, released } => {
                self.widest = self.widest.max(widest(&batch));
                let kept = self.passed.saturating_sub(released.load(Ordering::Relaxed));
                if kept.saturating_mul(*windows) > MOST_KEPT {
                    return exec_err!(
                        "windows over all rows keep more than {MOST_KEPT} values; end them at the current \
                         row, or ask for fewer rows"
                    );
                }
                kept.saturating_mul(self.widest).saturating_mul(windows + 1)
            }
            Use::Unnested => {
                let unnested = widest_unnested(&batch);
                if unnested > MOST_UNNESTED {
                    return exec_err!(
                        "the lists of a row would become {unnested} bytes of rows, and {MOST_UNNESTED} are \
                         the most; unnest shorter lists, or beside fewer columns"
                    );
                }
                bytes_of_rows(&batch)
            }
        };
        self.reservation.try_resize(taken)?;
        self.rest = Some(batch);
        Ok(())
    }

    /// The next part of the arrived rows.
    fn part(&mut self) -> Option<RecordBatch> {
        let batch = self.rest.take()?;
        let most = match &self.used {
            Use::Compared { built, pairs } => (pairs / built.load(Ordering::Relaxed).max(1)).clamp(1, ROWS),
            _ => ROWS,
        };
        let rows = batch.num_rows();
        if rows <= most {
            return Some(batch);
        }
        self.rest = Some(batch.slice(most, rows - most));
        Some(batch.slice(0, most))
    }
}

impl Stream for GuardedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let now = Moment::now();
        if now.duration_since(self.gave_way) >= MOMENT {
            self.gave_way = now;
            return give_way(context);
        }
        if let Some(part) = self.part() {
            return Poll::Ready(Some(Ok(part)));
        }
        match self.inner.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(batch))) => {
                let counted = self.account(batch);
                Poll::Ready(counted.map(|()| self.part()).transpose())
            }
            Poll::Ready(None) => {
                if !matches!(self.used, Use::Kept { .. }) {
                    self.reservation.free();
                }
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
            Poll::Pending => {
                self.gave_way = Moment::now();
                Poll::Pending
            }
        }
    }
}

/// Yields until all other tasks have had their turn. A task that wakes itself runs first on its thread,
/// before sockets and timers are polled, and before tasks that other threads woke.
fn give_way<T>(context: &mut Context<'_>) -> Poll<T> {
    // A single poll registers the waker; nothing else needs to be awaited.
    let _pending = pin!(tokio::task::yield_now()).poll(context);
    Poll::Pending
}
