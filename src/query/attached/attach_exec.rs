//! The operator that attaches other metrics to cycles of sleep.
//!
//! Cycles arrive in order, and so do the samples of each metric. Each cycle has a window around it; the
//! samples that touch it are held until it has passed, and the operators of a series compute its bins from
//! them. Every sample is read once, however many cycles there are; only what touches one window is held.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan as _, PlanProperties};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::model::columns::{END, START};
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::time::{Instant, TimeRange};
use crate::query::ground::row_sizes::bytes_of_rows;
use crate::query::ground::row_times::micros_of;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition};
use crate::query::series::{Ranking, SeriesExec, SeriesSpec, TIME};

/// The number of cycles in a batch, which is small because their windows are long lists.
const CYCLES: usize = 128;

/// How far windows reach beyond their cycles and how wide their bins are, in microseconds; and how much one
/// window may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach {
    pub before: i64,
    pub after: i64,
    pub bin: i64,
    /// Bins times columns of one metric around one cycle.
    pub most_cells: u64,
}

/// A cycle is so long, and a metric so dense in it, that its row would be too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{cells} cells of {column} around one cycle exceed the limit of {limit}; ask for a shorter range, or \
     without this metric"
)]
pub struct TooManyCells {
    pub column: String,
    pub cells: u64,
    pub limit: u64,
}

/// A metric that is attached to cycles.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    /// The series of a window, with the name of the column; each window has a grid of its own in place of the
    /// spec's.
    pub spec: SeriesSpec,
    /// The windows of time in which the metric may be seen.
    pub windows: Windows,
    pub ranking: Arc<Ranking>,
}

impl Attached {
    fn item_fields(&self) -> Fields {
        let series = self.spec.schema();
        let names = [TIME, "value"].into_iter().chain(
            self.spec
                .calculations
                .iter()
                .map(|calculation| calculation.name()),
        );
        let fields = series.fields().iter().zip(names);
        fields
            .map(|(field, name)| field.as_ref().clone().with_name(name))
            .collect()
    }

    fn item(&self) -> FieldRef {
        Arc::new(Field::new("item", DataType::Struct(self.item_fields()), false))
    }
}

/// Attaches metrics to cycles.
#[derive(Clone, Debug)]
pub(super) struct Attaches {
    metrics: Vec<Attached>,
    reach: Reach,
}

pub(super) type AttachedExec = Operator<Attaches>;

impl AttachedExec {
    /// `cycles` has `start_time` and `end_time`. With each metric come its samples, as a series reads them.
    pub(super) fn new(cycles: Plan, attached: Vec<(Plan, Attached)>, reach: Reach) -> Self {
        let (samples, metrics): (Vec<Plan>, _) = attached.into_iter().unzip();
        let inputs = std::iter::once(cycles).chain(samples).collect();
        Self::over(Attaches { metrics, reach }, inputs)
    }
}

impl Step for Attaches {
    const NAME: &'static str = "AttachedExec";

    fn detail(&self) -> String {
        let columns: Vec<&str> = self
            .metrics
            .iter()
            .map(|metric| metric.spec.column.as_str())
            .collect();
        format!("{}, {:?}", columns.join(", "), self.reach)
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let cycles = inputs.first().map(|cycles| cycles.schema());
        let mut fields: Vec<FieldRef> = cycles.map_or_else(Vec::new, |cycles| cycles.fields().to_vec());
        fields.extend(self.metrics.iter().map(|metric| {
            Arc::new(Field::new(
                &metric.spec.column,
                DataType::List(metric.item()),
                false,
            ))
        }));
        one_partition(Arc::new(Schema::new(fields)), None)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut inputs = inputs.into_iter();
        let missing = || internal_datafusion_err!("cycles and each metric are one input");
        let cycles = inputs.next().ok_or_else(missing)?;
        let mut metrics = Vec::with_capacity(self.metrics.len());
        for metric in self.metrics {
            let samples = inputs.next().ok_or_else(missing)?;
            metrics.push(OpenSamples {
                schema: samples.schema(),
                input: Some(samples.open()?),
                read_until: i64::MIN,
                rows: Vec::new(),
                memory: task.memory("metrics of sleep cycles"),
                made: task.memory("series of sleep cycles"),
                metric,
            });
        }
        let attaching = Attaching {
            cycles: cycles.open()?,
            batch: None,
            metrics,
            reach: self.reach,
            schema: task.schema(),
            context: Arc::clone(task.context()),
        };
        Ok(attached(attaching).boxed())
    }
}

/// The state of a running operator.
struct Attaching {
    cycles: SendableRecordBatchStream,
    /// Cycles that have not left yet.
    batch: Option<RecordBatch>,
    metrics: Vec<OpenSamples>,
    reach: Reach,
    schema: SchemaRef,
    context: Arc<TaskContext>,
}

fn attached(attaching: Attaching) -> impl Stream<Item = Result<RecordBatch>> + Send {
    futures::stream::try_unfold(attaching, |mut attaching| async move {
        let batch = attaching.next().await?;
        Ok(batch.map(|batch| (batch, attaching)))
    })
}

impl Attaching {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => match self.cycles.next().await.transpose()? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let count = batch.num_rows().min(CYCLES);
        if count < batch.num_rows() {
            self.batch = Some(batch.slice(count, batch.num_rows() - count));
        }
        let cycles = batch.slice(0, count);
        let (starts, ends) = (micros_of(&cycles, START)?, micros_of(&cycles, END)?);
        let mut columns: Vec<ArrayRef> = cycles.columns().to_vec();
        for metric in &mut self.metrics {
            let mut lengths = Vec::with_capacity(count);
            let mut bins = Vec::new();
            for (start, end) in starts.iter().zip(ends) {
                let window = (
                    start.saturating_sub(self.reach.before),
                    end.saturating_add(self.reach.after),
                );
                let series = metric.series(window, self.reach, &self.context).await?;
                lengths.push(series.iter().map(RecordBatch::num_rows).sum());
                bins.extend(series);
            }
            columns.push(metric.lists(lengths, &bins)?);
            drop(bins);
            metric.made.free();
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

/// The samples of a metric that touch the current window or may touch a later one.
struct OpenSamples {
    schema: SchemaRef,
    /// `None` when the input is exhausted.
    input: Option<SendableRecordBatchStream>,
    /// No unread sample starts earlier.
    read_until: i64,
    rows: Vec<RecordBatch>,
    memory: MemoryReservation,
    /// Memory of bins that have not left yet.
    made: MemoryReservation,
    metric: Attached,
}

impl OpenSamples {
    /// The bins of a window that have a value. Windows come in the order of their starts.
    async fn series(
        &mut self,
        (start, end): (i64, i64),
        reach: Reach,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<RecordBatch>> {
        let held = std::mem::take(&mut self.rows);
        for rows in held {
            self.hold(&rows, start)?;
        }
        while let Some(input) = self.input.as_mut().filter(|_| self.read_until < end) {
            match input.next().await.transpose()? {
                Some(rows) => {
                    self.read_until = micros_of(&rows, START)?
                        .last()
                        .copied()
                        .unwrap_or(self.read_until);
                    self.hold(&rows, start)?;
                }
                None => self.input = None,
            }
        }
        self.memory
            .try_resize(self.rows.iter().map(RecordBatch::get_array_memory_size).sum())?;
        let mut inside = Vec::with_capacity(self.rows.len());
        for rows in &self.rows {
            let begun = micros_of(rows, START)?.partition_point(|moment| *moment < end);
            if begun > 0 {
                inside.push(rows.slice(0, begun));
            }
        }
        let range = TimeRange::new(Instant::from_micros(start), Instant::from_micros(end));
        let (Some(range), false) = (range, inside.is_empty()) else {
            return Ok(Vec::new());
        };
        self.refuse_too_many(&inside, range, reach)?;
        let rows = MemorySourceConfig::try_new_exec(&[inside], Arc::clone(&self.schema), None)?;
        let spec = SeriesSpec {
            grid: Grid::uniform(range, reach.bin),
            ..self.metric.spec.clone()
        };
        let (windows, ranking) = (self.metric.windows.clone(), Arc::clone(&self.metric.ranking));
        let series = SeriesExec::new(rows, Arc::new(spec), windows, ranking);
        let mut series = series.execute(0, Arc::clone(context))?;
        let mut bins = Vec::new();
        while let Some(batch) = series.next().await.transpose()? {
            // Counted twice: as parts, and again when they become lists.
            self.made.try_grow(2 * bytes_of_rows(&batch))?;
            bins.push(batch);
            // The samples are in memory, so nothing else yields to deadlines and to the cancellation of
            // callers who have left.
            tokio::task::consume_budget().await;
        }
        Ok(bins)
    }

    /// Each sample gives a value only to the bins that it touches.
    fn refuse_too_many(&self, samples: &[RecordBatch], window: TimeRange, reach: Reach) -> Result<()> {
        let (start, end, bin) = (window.start().micros(), window.end().micros(), reach.bin.max(1));
        let mut touched: u64 = 0;
        for rows in samples {
            for (first, last) in micros_of(rows, START)?.iter().zip(micros_of(rows, END)?) {
                let length = (*last).min(end).saturating_sub((*first).max(start)).max(0);
                touched = touched.saturating_add(2 + (length / bin).cast_unsigned());
            }
        }
        let spec = &self.metric.spec;
        let bins = touched.min(
            (end.saturating_sub(start) / bin)
                .cast_unsigned()
                .saturating_add(1),
        );
        let cells = bins.saturating_mul(1 + spec.calculations.len() as u64);
        if cells <= reach.most_cells {
            return Ok(());
        }
        let error = TooManyCells {
            column: spec.column.clone(),
            cells,
            limit: reach.most_cells,
        };
        Err(DataFusionError::External(Box::new(error)))
    }

    /// Keeps the rows that a window starting at `moment` or later can touch.
    fn hold(&mut self, rows: &RecordBatch, moment: i64) -> Result<()> {
        let (starts, ends) = (micros_of(rows, START)?, micros_of(rows, END)?);
        let touches = |(start, end): (&i64, &i64)| *end > moment || *start >= moment;
        let touching = starts.iter().zip(ends).filter(|times| touches(*times)).count();
        if touching == rows.num_rows() {
            self.rows.push(rows.clone());
        } else if touching > 0 {
            let mask: BooleanArray = starts
                .iter()
                .zip(ends)
                .map(|times| Some(touches(times)))
                .collect();
            self.rows.push(filter_record_batch(rows, &mask)?);
        }
        Ok(())
    }

    /// Bins as one list for each window.
    fn lists(&self, lengths: Vec<usize>, bins: &[RecordBatch]) -> Result<ArrayRef> {
        let bins = concat_batches(&self.metric.spec.schema(), bins)?;
        let fields = self.metric.item_fields();
        let values = if bins.num_rows() == 0 {
            StructArray::new_null(fields, 0)
        } else {
            StructArray::try_new(fields, bins.columns().to_vec(), None)?
        };
        let lists = ListArray::try_new(
            self.metric.item(),
            OffsetBuffer::from_lengths(lengths),
            Arc::new(values),
            None,
        )?;
        Ok(Arc::new(lists))
    }
}
