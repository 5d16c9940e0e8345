//! Runs the machines as one operator of a plan: takes samples sorted by their starts, and emits an answer as
//! it becomes known.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::model::permit::Windows;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::turn::Turn;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, ascending, one_partition, only};

use super::aggregate::{self, Totals};
use super::answers::{AggregateAnswer, Answer, CyclesAnswer, StagesAnswer, is_due};
use super::clip::OrderedWindowClip;
use super::cycles::CycleFinder;
use super::in_bed::InBed;
use super::join::{Chains, Joiner};
use super::resolve::{Row, Rows};
use super::rows::{ResolvedRows, StageRows};
use super::samples::SampleReader;
use super::spec::{CyclesSpec, Question, SourceNames, StagesSpec};
use super::stages::StageTable;
use super::summary::{self, Summaries};

/// Answers a question from stored samples.
#[derive(Clone, Debug)]
pub(in crate::query) struct Sleep {
    question: Question,
    windows: Windows,
    stages: Arc<StageTable>,
    names: Option<Arc<SourceNames>>,
}

pub(in crate::query) type SleepExec = Operator<Sleep>;

impl SleepExec {
    /// `input` has the key columns and `value`, and `source` where the question needs it; one partition,
    /// sorted by start.
    pub(in crate::query) fn new(
        input: Plan,
        question: Question,
        windows: &Windows,
        stages: Arc<StageTable>,
        names: Option<Arc<SourceNames>>,
    ) -> Self {
        let step = Sleep {
            question,
            windows: windows.clone(),
            stages,
            names,
        };
        Self::over(step, vec![input])
    }
}

impl Sleep {
    pub(super) fn machine(&self) -> Box<dyn Machine> {
        let reader = SampleReader::new(Arc::clone(&self.stages), self.question.needs_sources());
        match &self.question {
            Question::Resolved => Box::new(Resolve {
                reader,
                rows: Rows::new(self.clip(true), true),
                joiner: Joiner::Neighbours(None),
                ready: ResolvedRows::default(),
            }),
            Question::Stages(spec) => Box::new(Pipeline {
                reader,
                rows: Rows::new(self.clip(spec.cycles.clip), spec.merge_overlapping),
                joiner: joiner(spec),
                cycles: finder(&spec.cycles),
                sink: StagesAnswer {
                    rows: StageRows::new(spec.clone()),
                    schema: schema_of(&self.question),
                    names: self.names.clone(),
                },
            }),
            Question::Cycles(spec) => Box::new(Pipeline {
                reader,
                rows: Rows::new(self.clip(spec.clip), true),
                joiner: Joiner::Neighbours(None),
                cycles: finder(spec),
                sink: CyclesAnswer {
                    summaries: Summaries::new(
                        spec.clone(),
                        Arc::clone(&self.stages),
                        InBed::new(self.clip_in_any_order(spec.clip)),
                    ),
                    stages: Arc::clone(&self.stages),
                },
            }),
            Question::Aggregate(spec) => Box::new(Pipeline {
                reader,
                rows: Rows::new(self.clip(spec.cycles.clip), true),
                joiner: Joiner::Neighbours(None),
                cycles: finder(&spec.cycles),
                sink: AggregateAnswer {
                    totals: Totals::new(spec.clone()),
                    spec: spec.clone(),
                    schema: schema_of(&self.question),
                },
            }),
        }
    }

    fn clip(&self, clips: bool) -> OrderedWindowClip {
        if clips {
            OrderedWindowClip::to(&self.windows)
        } else {
            OrderedWindowClip::nothing()
        }
    }

    fn clip_in_any_order(&self, clips: bool) -> WindowClip {
        if clips {
            WindowClip::new(&self.windows, i64::MIN, i64::MAX)
        } else {
            WindowClip::nothing()
        }
    }
}

fn joiner(spec: &StagesSpec) -> Joiner {
    match (spec.merge_contiguous, spec.merge_overlapping) {
        (false, _) => Joiner::Nothing,
        (true, true) => Joiner::Neighbours(None),
        (true, false) => Joiner::OfOneSource(Chains::default()),
    }
}

fn schema_of(question: &Question) -> SchemaRef {
    match question {
        Question::Resolved => ResolvedRows::schema(),
        Question::Stages(spec) => StageRows::schema(spec),
        Question::Cycles(spec) => summary::schema(spec),
        Question::Aggregate(spec) => aggregate::schema(spec),
    }
}

/// The orders in which an answer is sorted.
const fn orders_of(question: &Question) -> &'static [&'static [&'static str]] {
    match question {
        Question::Resolved | Question::Stages(_) => &[&["start_time"]],
        Question::Cycles(_) => &[&["number"], &["start_time"]],
        Question::Aggregate(_) => &[&["period_start_time", "value"]],
    }
}

fn finder(spec: &CyclesSpec) -> CycleFinder {
    let asked = (spec.range.start().micros(), spec.range.end().micros());
    CycleFinder::new(spec.gap, spec.gap_stages.clone(), asked)
}

impl Step for Sleep {
    const NAME: &'static str = "SleepExec";

    fn detail(&self) -> String {
        format!("{:?}", self.question)
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let schema = schema_of(&self.question);
        let orders = orders_of(&self.question).iter();
        let orders: Vec<_> = orders.filter_map(|names| ascending(&schema, names)).collect();
        one_partition(schema, orders)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let samples = only(inputs)?.open()?;
        Ok(answers(samples, self.machine(), task.memory("sleep")).boxed())
    }
}

/// Takes samples and returns batches of an answer.
pub(super) trait Machine: Send {
    /// Takes the next samples once it is through with those before.
    fn push(&mut self, samples: &RecordBatch) -> Result<()>;
    /// Goes through the samples, as far as the turn goes; if they have `ended`, to the end of the answer.
    /// `false`: there is more.
    fn go_on(&mut self, ended: bool, turn: &mut Turn) -> bool;
    /// The finished rows, once they fill a batch; after `ended`, all that remain.
    fn take(&mut self, ended: bool) -> Result<Option<RecordBatch>>;
    /// The number of rows that are held.
    fn waiting(&self) -> usize;
}

/// Runs a machine on a stream of samples, within the memory for what it holds.
pub(super) fn answers(
    samples: SendableRecordBatchStream,
    machine: Box<dyn Machine>,
    memory: MemoryReservation,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let running = Running {
        samples,
        machine,
        memory,
        ended: false,
        turn: Turn::new(),
    };
    futures::stream::try_unfold(running, |mut running| async move {
        let batch = running.next().await?;
        Ok(batch.map(|batch| (batch, running)))
    })
}

struct Running {
    samples: SendableRecordBatchStream,
    machine: Box<dyn Machine>,
    memory: MemoryReservation,
    ended: bool,
    turn: Turn,
}

impl Running {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.machine.take(self.ended)? {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            match self.samples.next().await {
                Some(batch) => self.machine.push(&batch?)?,
                None => self.ended = true,
            }
            while !self.machine.go_on(self.ended, &mut self.turn) {
                self.turn.give_way().await;
            }
            if !self.ended {
                self.memory
                    .try_resize(self.machine.waiting() * size_of::<Row>())?;
            }
        }
    }
}

/// Turns samples into rows without conflicts.
#[derive(Debug)]
struct Resolve {
    reader: SampleReader,
    rows: Rows,
    joiner: Joiner,
    ready: ResolvedRows,
}

impl Machine for Resolve {
    fn push(&mut self, samples: &RecordBatch) -> Result<()> {
        let Self { reader, rows, .. } = self;
        reader.read(samples, |sample| rows.take(sample))
    }

    fn go_on(&mut self, ended: bool, turn: &mut Turn) -> bool {
        let Self {
            rows, joiner, ready, ..
        } = self;
        let mut emit = |row: Row| joiner.push(row, &mut |row| ready.push(&row));
        if !ended {
            return rows.go_on(turn, &mut emit);
        }
        let is_through = rows.finish(turn, &mut emit);
        if is_through {
            joiner.finish(&mut |row| ready.push(&row));
        }
        is_through
    }

    fn take(&mut self, ended: bool) -> Result<Option<RecordBatch>> {
        if is_due(self.ready.len(), ended) {
            return self.ready.take(&ResolvedRows::schema()).map(Some);
        }
        Ok(None)
    }

    fn waiting(&self) -> usize {
        self.rows.waiting() + self.joiner.waiting() + self.ready.len()
    }
}

/// Turns samples into rows, rows into cycles, and cycles into an answer.
#[derive(Debug)]
struct Pipeline<S> {
    reader: SampleReader,
    rows: Rows,
    joiner: Joiner,
    cycles: CycleFinder,
    sink: S,
}

impl<S: Answer> Machine for Pipeline<S> {
    fn push(&mut self, samples: &RecordBatch) -> Result<()> {
        let Self {
            reader, rows, sink, ..
        } = self;
        reader.read(samples, |sample| {
            sink.sample(&sample);
            rows.take(sample);
        })
    }

    fn go_on(&mut self, ended: bool, turn: &mut Turn) -> bool {
        let Self {
            rows,
            joiner,
            cycles,
            sink,
            ..
        } = self;
        let mut emit = |row: Row| joiner.push(row, &mut |row| cycles.push(row, sink));
        if !ended {
            return rows.go_on(turn, &mut emit);
        }
        let is_through = rows.finish(turn, &mut emit);
        if is_through {
            joiner.finish(&mut |row| cycles.push(row, sink));
            cycles.finish(sink);
        }
        is_through
    }

    fn take(&mut self, ended: bool) -> Result<Option<RecordBatch>> {
        self.sink.take(&self.reader, ended)
    }

    fn waiting(&self) -> usize {
        self.rows.waiting() + self.joiner.waiting() + self.cycles.waiting() + self.sink.waiting()
    }
}
