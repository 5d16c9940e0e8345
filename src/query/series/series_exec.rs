//! The operator of a series: stored rows in, one row for each bin out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::model::permit::Windows;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::{Counting, Measure};
use crate::query::ground::turn::Turn;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition, only};

use super::bins::CurrentBin;
use super::competing::Competing;
use super::independent::{Independent, Reading};
use super::output::Output;
use super::ranking::Ranking;
use super::rows::{RowReader, Rows};
use super::spec::SeriesSpec;

/// One metric on a grid.
///
/// Its input has one partition with the columns `start_time`, `end_time`, `value`, and, where the best source
/// counts, `source` and `source_class`, in the order of (start, end, id); `id` where the answer depends on
/// it. Output rows are bins, in order; all batches but the last have the same size.
#[derive(Clone, Debug)]
pub(in crate::query) struct Series {
    spec: Arc<SeriesSpec>,
    /// Time outside of these does not count.
    windows: Windows,
    ranking: Arc<Ranking>,
}

pub(in crate::query) type SeriesExec = Operator<Series>;

impl SeriesExec {
    pub(in crate::query) fn new(
        input: Plan,
        spec: Arc<SeriesSpec>,
        windows: Windows,
        ranking: Arc<Ranking>,
    ) -> Self {
        let step = Series {
            spec,
            windows,
            ranking,
        };
        Self::over(step, vec![input])
    }
}

impl Step for Series {
    const NAME: &'static str = "SeriesExec";

    fn detail(&self) -> String {
        let (column, bins, measure) = (&self.spec.column, self.spec.grid.len(), self.spec.measure);
        format!("{column}, {bins} bins, {measure:?}")
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        // Where rollups replace rows, only the starts are in order.
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(self.spec.schema(), None)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let spec = &self.spec;
        let current = CurrentBin::first(spec.grid.clone());
        let clip = WindowClip::new(&self.windows, current.start, current.edge(current.last()));
        let evaluator = match spec.measure {
            Measure::Amounts(Counting::BestSource) => {
                Evaluator::Competing(Box::new(Competing::new(spec, current, clip)))
            }
            Measure::Amounts(Counting::Everything) => {
                Evaluator::Independent(Box::new(Independent::new(spec, Reading::Amount, current, clip)))
            }
            Measure::Levels { base, .. } => Evaluator::Independent(Box::new(Independent::new(
                spec,
                Reading::Level(base),
                current,
                clip,
            ))),
        };
        let ranking =
            (spec.measure.counting() == Counting::BestSource).then(|| Ranking::clone(&self.ranking));
        let rows = SeriesRows {
            input: Some(only(inputs)?.open()?),
            reader: RowReader::new(ranking).with_ids(spec.needs_ids()),
            evaluator,
            output: Output::new(spec, task.schema()),
            turn: Turn::new(),
            memory: task.memory("series"),
        };
        Ok(rows.boxed())
    }
}

#[derive(Debug)]
enum Evaluator {
    Competing(Box<Competing>),
    Independent(Box<Independent>),
}

impl Evaluator {
    fn feed(&mut self, rows: Rows) {
        match self {
            Self::Competing(competing) => competing.feed(rows),
            Self::Independent(independent) => independent.feed(rows),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Competing(competing) => competing.end(),
            Self::Independent(independent) => independent.end(),
        }
    }

    /// Lays the rows that were fed into bins. `false`: the output is full or the turn is over, and there is
    /// more.
    fn drain(&mut self, out: &mut Output, turn: &mut Turn) -> bool {
        match self {
            Self::Competing(competing) => competing.drain(out, turn),
            Self::Independent(independent) => independent.drain(out, turn),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Competing(competing) => competing.memory(),
            Self::Independent(independent) => independent.memory(),
        }
    }
}

struct SeriesRows {
    /// `None` when it has ended.
    input: Option<SendableRecordBatchStream>,
    reader: RowReader,
    evaluator: Evaluator,
    output: Output,
    turn: Turn,
    memory: MemoryReservation,
}

impl Stream for SeriesRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let this = &mut *self;
        loop {
            let drained = this.evaluator.drain(&mut this.output, &mut this.turn);
            let held = this.evaluator.memory() + this.output.memory();
            this.memory.try_resize(held)?;
            if this.output.is_full() {
                return Poll::Ready(Some(this.output.take()));
            }
            // A bin may touch very many samples, and so may each moment at which one of them begins or ends.
            if this.turn.yields(context) {
                return Poll::Pending;
            }
            let Some(input) = this.input.as_mut().filter(|_| drained) else {
                let rest = (!this.output.is_empty()).then(|| this.output.take());
                return Poll::Ready(rest);
            };
            let Some(batch) = ready!(input.poll_next_unpin(context)) else {
                this.input = None;
                this.evaluator.end();
                continue;
            };
            let rows = batch.and_then(|batch| this.reader.read(&batch))?;
            this.evaluator.feed(rows);
        }
    }
}
