//! Runs plans: on a runtime of their own, inside a memory pool that spills, before a deadline, and no longer
//! than somebody listens.
//!
//! One engine per process, made at start. Knows plans and streams; does not know what they ask or who reads
//! the answer.

mod deadlines;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionConfig;
use futures::{Stream, StreamExt, TryStreamExt as _};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::bursts::{Burst, bursts};
pub use super::ended::{DeadlinePassed, deadline_passed};
use super::ended::{Ended, hand_down};
use super::logical::Lookups;
use super::operator::Plan;
use super::partitions_in_turn::in_one_partition;
use super::spill_files::{SpillFiles, told_as_full};
use deadlines::{Alarm, Deadlines, one_by_one};

/// The most batches that cross to the reader's runtime together, if they are ready.
const BURST: usize = 8;
/// The most bytes of an answer that cross to the reader's runtime together: enough that a batch with all its
/// columns is one burst or two.
const BURST_BYTES: usize = 1 << 20;
/// The bytes that a chunk of an answer counts for besides its own.
const AROUND_CHUNK: usize = 16 << 10;
/// The number of bursts that may wait for a slow reader.
const READ_AHEAD: usize = 1;

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Bytes that sorts, joins and aggregates of all running questions may hold together before they spill.
    pub memory: usize,
    /// The directory that they spill to.
    pub spill: PathBuf,
    /// The most bytes that they may spill.
    pub spill_limit: u64,
    /// The longest time until a question has its first row, and between two parts of an answer; then it is
    /// stopped.
    pub deadline: Duration,
    /// The longest time for a whole answer, even if it makes progress: what it reads is not kept for ever.
    pub total_deadline: Duration,
}

/// The memory that every sort keeps for spilling. Many run at a time, and nothing else can use what is
/// reserved.
const SPILL_RESERVATION: usize = 1 << 20;
/// Bytes of address space for the stack of a planner thread, used only as deep as it goes. Four hundred
/// levels of an expression take some ten thousand bytes each in a build that is not optimised.
const PLANNER_STACK: usize = 128 << 20;

/// Runs plans.
#[derive(Debug)]
pub struct Engine {
    state: SessionState,
    lookups: Lookups,
    task: Arc<TaskContext>,
    pool: Arc<dyn MemoryPool>,
    spill: SpillFiles,
    runtime: Handle,
    deadline: Duration,
    total_deadline: Duration,
}

/// What a deadline applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadlineFor {
    /// The whole answer: somebody waits for its end.
    Whole,
    /// Each part: somebody takes the parts as they come.
    Parts,
}

impl Engine {
    /// An engine that computes on `runtime`, which should serve nothing else.
    pub fn new(settings: &EngineSettings, runtime: Handle) -> Result<Self> {
        hand_down();
        let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(settings.memory));
        let disk = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![settings.spill.clone()]))
            .with_max_temp_directory_size(settings.spill_limit);
        let environment: Arc<RuntimeEnv> = Arc::new(
            RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::clone(&pool))
                .with_disk_manager_builder(disk)
                .build()?,
        );
        for directory in environment.disk_manager.temp_dir_paths() {
            // DataFusion creates its directories readable by everybody.
            make_private(&directory).map_err(DataFusionError::IoError)?;
        }
        let spill = SpillFiles::within(Arc::clone(&environment.disk_manager));
        let mut config = SessionConfig::new()
            .with_target_partitions(1)
            .with_information_schema(false);
        config.options_mut().execution.parquet.schema_force_view_types = false;
        config.options_mut().execution.sort_spill_reservation_bytes = SPILL_RESERVATION;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(environment)
            .with_default_features()
            .build();
        let task = state.task_ctx();
        Ok(Self {
            lookups: Lookups::of(&state),
            state,
            task,
            pool,
            spill,
            runtime,
            deadline: settings.deadline,
            total_deadline: settings.total_deadline.max(settings.deadline),
        })
    }

    /// The functions and options that expressions are planned with.
    #[must_use]
    pub const fn state(&self) -> &SessionState {
        &self.state
    }

    /// The physical plan of a lookup, made without the optimizer.
    pub(in crate::query) async fn planned(&self, logical: LogicalPlan) -> Result<Plan> {
        self.lookups.plan(&logical).await
    }

    /// The physical plan of a lookup, with its conditions pushed down to their tables, otherwise made
    /// without the optimizer.
    pub(in crate::query) async fn planned_with_conditions(&self, logical: LogicalPlan) -> Result<Plan> {
        self.lookups.plan(&self.lookups.with_conditions(logical)?).await
    }

    /// Where answers put what they have no memory for.
    #[must_use]
    pub const fn spill_files(&self) -> &SpillFiles {
        &self.spill
    }

    /// A reservation in the memory of all running questions, for what is held before a question is answered.
    pub(in crate::query) fn memory(&self, of: &'static str) -> MemoryReservation {
        MemoryConsumer::new(of).register(&self.pool)
    }

    /// Bytes that running questions hold now.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.pool.reserved()
    }

    /// Runs `work` on a thread of its own: code that recurses into a text from outside needs a deeper stack
    /// than other code, and may fail without harm to anything else. It is cancelled when the deadline passes.
    pub async fn on_planner_thread<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let (sender, receiver) = oneshot::channel();
        let (runtime, deadline) = (self.runtime.clone(), self.deadline);
        let ended = Ended::default();
        let _waiting = ended.when_dropped();
        std::thread::Builder::new()
            .name("planner".to_owned())
            .stack_size(PLANNER_STACK)
            .spawn(move || {
                let timed = async { tokio::time::timeout(deadline, work()).await };
                let done = runtime.block_on(ended.noticed_by(timed));
                // Nobody receives it if the client has gone.
                let _nobody_waits = sender.send(done);
            })
            .map_err(DataFusionError::IoError)?;
        match tokio::time::timeout(self.deadline, receiver).await {
            Ok(Ok(Ok(done))) => Ok(done),
            Ok(Err(_)) => internal_err!("the thread of a query ended without a plan"),
            Ok(Ok(Err(_))) | Err(_) => deadline_passed(),
        }
    }

    /// Runs `work`, which is no plan and may take long all the same, on the engine's runtime. It is cancelled
    /// when nobody waits for it any more.
    pub async fn beside<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let working = AbortOnDropHandle::new(self.runtime.spawn(work));
        working
            .await
            .or_else(|_| internal_err!("what ran beside the questions failed"))
    }

    /// The rows of `plan`. Nothing runs until the stream is polled; drive it with [`Engine::drive`]. The plan
    /// is executed then, and not before: what its operators spawn belongs to the question that polls them.
    pub fn start(&self, plan: Plan) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        let task = Arc::clone(&self.task);
        futures::stream::once(async move { in_one_partition(plan).execute(0, task) })
            .try_flatten()
            .map_err(told_as_full)
    }

    /// `work`, which drives several plans one after the other for one answer: all of them have one deadline.
    pub(in crate::query) async fn in_time<T, E: From<DataFusionError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match tokio::time::timeout(self.deadline, work).await {
            Ok(done) => done,
            Err(_) => deadline_passed().map_err(E::from),
        }
    }

    /// Polls `stream` on the engine's runtime. It stops when the returned stream is dropped, and ends with
    /// what `late` makes when the deadline passes before its end.
    pub fn drive<S, T>(&self, stream: S, late: fn() -> T) -> impl Stream<Item = T> + Send + use<S, T>
    where
        S: Stream<Item = T> + Send + 'static,
        T: Send + 'static,
    {
        self.driven(bursts(stream, BURST, |_| 1), late, DeadlineFor::Whole)
    }

    /// Polls `chunks` of an answer that is sent as it comes on the engine's runtime, and ends them with what
    /// `late` makes: the deadline applies to the first part and anew to each further one, and does not run
    /// while the reader is busy.
    pub fn drive_answer<S, E>(
        &self,
        chunks: S,
        late: fn() -> Result<Bytes, E>,
    ) -> impl Stream<Item = Result<Bytes, E>> + Send + use<S, E>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Send + 'static,
    {
        let weight = |chunk: &Result<Bytes, E>| AROUND_CHUNK + chunk.as_ref().map_or(0, Bytes::len);
        self.driven(bursts(chunks, BURST_BYTES, weight), late, DeadlineFor::Parts)
    }

    fn driven<S, T>(
        &self,
        mut bursts: S,
        late: fn() -> T,
        bound: DeadlineFor,
    ) -> impl Stream<Item = T> + Send + use<S, T>
    where
        S: Stream<Item = Burst<T>> + Send + Unpin + 'static,
        T: Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let begun = Instant::now();
        let deadlines = match bound {
            DeadlineFor::Whole => Deadlines {
                each: None,
                last: begun + self.deadline,
            },
            DeadlineFor::Parts => Deadlines {
                each: Some(self.deadline),
                last: begun + self.total_deadline,
            },
        };
        let ended = Ended::default();
        let waiting = ended.when_dropped();
        let computing = async move {
            loop {
                let next = tokio::select! {
                    next = tokio::time::timeout_at(deadlines.of_next_part(), bursts.next()) => next,
                    () = sender.closed() => return,
                };
                let burst = match next {
                    Ok(Some(burst)) => burst,
                    Ok(None) => return,
                    Err(_) => Burst {
                        items: vec![late()],
                        is_last: true,
                    },
                };
                if burst.is_last {
                    // When the reader sees the end, nothing is held for it any more.
                    drop(bursts);
                    let _nobody_listens = sender.send(burst).await;
                    return;
                }
                if sender.send(burst).await.is_err() {
                    return;
                }
            }
        };
        self.runtime.spawn(ended.noticed_by(computing));
        one_by_one(receiver, Alarm::of(deadlines), waiting, late)
    }
}

fn make_private(directory: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray as _;
    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{ColumnarValue, LogicalPlanBuilder, Volatility, create_udf};
    use datafusion::physical_plan::sorts::sort::SortExec;
    use datafusion::physical_plan::union::UnionExec;

    use super::super::ended::knows_question;
    use super::super::operator::ascending;
    use super::super::partitions_in_turn::merged;
    use super::*;

    /// A query of one row that tells whether what computes it knows its question.
    async fn knows(engine: &Engine) -> Plan {
        let told = |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(knows_question().into()));
        let knows = create_udf(
            "knows",
            Vec::new(),
            DataType::Boolean,
            Volatility::Volatile,
            Arc::new(told),
        );
        let row = LogicalPlanBuilder::empty(true).project(vec![knows.call(Vec::new()).alias("knows")]);
        let row = row.and_then(LogicalPlanBuilder::build).unwrap();
        engine.state().create_physical_plan(&row).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sorted_branches_that_are_tasks_of_their_own_know_their_question() {
        let directory = tempfile::tempdir().unwrap();
        let settings = EngineSettings {
            memory: 64 << 20,
            spill: directory.path().to_owned(),
            spill_limit: 64 << 20,
            deadline: Duration::from_mins(1),
            total_deadline: Duration::from_mins(1),
        };
        let engine = Engine::new(&settings, Handle::current()).unwrap();
        let union = UnionExec::try_new(vec![knows(&engine).await, knows(&engine).await]).unwrap();
        let order = ascending(&union.schema(), &["knows"]).unwrap();
        let sorted = SortExec::new(order.clone(), union).with_preserve_partitioning(true);
        let merged = merged(order, Arc::new(sorted));
        let rows = engine.drive(engine.start(Arc::new(merged)), deadline_passed);
        let told: Vec<bool> = rows
            .map(Result::unwrap)
            .flat_map(|batch| {
                let told: Vec<bool> = batch.column(0).as_boolean().iter().flatten().collect();
                futures::stream::iter(told)
            })
            .collect()
            .await;
        assert_eq!(told, [true, true]);
    }

    #[tokio::test]
    async fn plans_that_are_driven_for_one_answer_have_one_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let deadline = Duration::from_secs(1);
        let settings = EngineSettings {
            memory: 64 << 20,
            spill: directory.path().to_owned(),
            spill_limit: 64 << 20,
            deadline,
            total_deadline: deadline,
        };
        let engine = Engine::new(&settings, Handle::current()).unwrap();
        let pause = deadline / 20;
        let driven = async |plans: usize| {
            let mut rows = 0;
            for _ in 0..plans {
                let paused = futures::stream::once(async move {
                    tokio::time::sleep(pause).await;
                    Ok(1)
                });
                let plan = engine.drive(paused, deadline_passed);
                rows += plan
                    .try_fold(0, |rows, more| async move { Ok(rows + more) })
                    .await?;
            }
            Ok::<usize, DataFusionError>(rows)
        };
        assert_eq!(engine.in_time(driven(1)).await.unwrap(), 1);
        let late = engine.in_time(driven(1_000)).await.unwrap_err();
        assert!(
            late.to_string().contains("the deadline of the question passed"),
            "{late}"
        );
    }
}
