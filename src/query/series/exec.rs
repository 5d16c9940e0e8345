//! The plan of a series: stored rows in, one row for each bin out.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{Stream, StreamExt as _};

use crate::model::permit::Windows;

use super::bins::Place;
use super::clip::Clip;
use super::competing::Competing;
use super::independent::{Independent, Reading};
use super::output::Output;
use super::ranking::Ranking;
use super::rows::{RowReader, Rows};
use super::spec::{Counting, Measure, SeriesSpec};

/// One metric on a grid.
///
/// Its input has one partition with the columns `start_time`, `end_time`, `value`, and, where the best source
/// counts, `source` and `source_class`, in the order of (start, end, id); `id` where the answer depends on
/// it. Rows of the output are bins, in their order; all batches but the last are of one size.
#[derive(Clone, Debug)]
pub struct SeriesExec {
    input: Arc<dyn ExecutionPlan>,
    spec: Arc<SeriesSpec>,
    /// What lies outside of these does not count.
    windows: Windows,
    ranking: Arc<Ranking>,
    properties: Arc<PlanProperties>,
}

impl SeriesExec {
    #[must_use]
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        spec: Arc<SeriesSpec>,
        windows: Windows,
        ranking: Arc<Ranking>,
    ) -> Self {
        let properties = Arc::new(one_ordered_partition(spec.schema()));
        Self {
            input,
            spec,
            windows,
            ranking,
            properties,
        }
    }
}

/// What is known of plans whose rows come from one stream as they are made.
pub(super) fn one_ordered_partition(schema: SchemaRef) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

impl DisplayAs for SeriesExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (column, bins, measure) = (&self.spec.column, self.spec.grid.len(), self.spec.measure);
        write!(formatter, "SeriesExec: {column}, {bins} bins, {measure:?}")
    }
}

impl ExecutionPlan for SeriesExec {
    fn name(&self) -> &'static str {
        "SeriesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("a series has one input");
        };
        Ok(Arc::new(Self {
            input,
            ..Self::clone(&self)
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a series has one partition");
        }
        let spec = &self.spec;
        let schema = self.schema();
        let place = Place::first(spec.grid.clone());
        let clip = Clip::new(&self.windows, place.start, place.edge(place.last()));
        let evaluator = match spec.measure {
            Measure::Amounts(Counting::BestSource) => {
                Evaluator::Competing(Box::new(Competing::new(spec, place, clip)))
            }
            Measure::Amounts(Counting::Everything) => {
                Evaluator::Independent(Box::new(Independent::new(spec, Reading::Amount, place, clip)))
            }
            Measure::Levels { base, .. } => Evaluator::Independent(Box::new(Independent::new(
                spec,
                Reading::Level(base),
                place,
                clip,
            ))),
        };
        let ranking =
            (spec.measure.counting() == Counting::BestSource).then(|| Ranking::clone(&self.ranking));
        Ok(Box::pin(SeriesStream {
            input: Some(self.input.execute(0, Arc::clone(&context))?),
            reader: RowReader::new(ranking, spec.needs_ids()),
            evaluator,
            output: Output::new(spec, Arc::clone(&schema)),
            schema,
            memory: MemoryConsumer::new("series").register(context.memory_pool()),
        }))
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
            Self::Competing(competing) => competing.feed(&rows),
            Self::Independent(independent) => independent.feed(rows),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Competing(competing) => competing.end(),
            Self::Independent(independent) => independent.end(),
        }
    }

    /// Makes rows of what was fed. `false`: the output is full, and there is more.
    fn drain(&mut self, out: &mut Output) -> bool {
        match self {
            Self::Competing(competing) => competing.drain(out),
            Self::Independent(independent) => independent.drain(out),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Competing(competing) => competing.memory(),
            Self::Independent(independent) => independent.memory(),
        }
    }
}

struct SeriesStream {
    /// `None` when it has ended.
    input: Option<SendableRecordBatchStream>,
    reader: RowReader,
    evaluator: Evaluator,
    output: Output,
    schema: SchemaRef,
    memory: MemoryReservation,
}

impl Stream for SeriesStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let this = &mut *self;
        loop {
            let drained = this.evaluator.drain(&mut this.output);
            if this.output.is_full() {
                return Poll::Ready(Some(this.output.take()));
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
            this.memory.try_resize(this.evaluator.memory())?;
        }
    }
}

impl RecordBatchStream for SeriesStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
