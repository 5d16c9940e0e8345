//! Amounts on a grid, split by other columns of their samples.
//!
//! Which samples count is decided among all of them; each part of an amount then belongs to the values of its
//! sample in those columns. Parts of a bin are emitted unordered and may repeat, for the consumer to add up.
//! A sample may lie in very many bins, so it is laid as far as there is room for parts, and its rest after
//! they were emitted: only what is open at one moment, the groups, and a limited number of parts are held.

mod groups;
mod parts;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use crate::model::columns::VALUE;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::zone::Zone;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::{Counting, prorated};
use crate::query::ground::turn::Turn;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition, only};

use super::contest::Sample;
use super::ranking::Ranking;
use super::resolve::Resolver;
use super::rows::{RowReader, Rows};
use super::spec::TIME;
use groups::{Groups, SplitLimit};
use parts::Parts;

/// Which amounts to compute, and the columns to split them by.
#[derive(Clone, Debug)]
pub(in crate::query) struct AmountsSpec {
    pub(in crate::query) grid: Grid,
    pub(in crate::query) zone: Zone,
    pub(in crate::query) counting: Counting,
    pub(in crate::query) windows: Windows,
    pub(in crate::query) ranking: Ranking,
    /// Columns of the input.
    pub(in crate::query) group: Vec<String>,
    /// The name of the column of amounts.
    pub(in crate::query) amount: String,
    /// The most groups among the samples, and the error if there are more.
    pub(in crate::query) most_groups: usize,
    pub(in crate::query) too_many: fn() -> DataFusionError,
}

/// Its input is that of a series plus the columns of the groups; its output is `time`, these columns, and the
/// amounts.
#[derive(Clone, Debug)]
pub(in crate::query) struct AmountsByGroup {
    spec: Arc<AmountsSpec>,
    schema: SchemaRef,
}

pub(in crate::query) type AmountsByGroupExec = Operator<AmountsByGroup>;

impl AmountsByGroupExec {
    pub(in crate::query) fn try_new(input: Plan, spec: AmountsSpec) -> Result<Self> {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some(spec.zone.written().into()));
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new(TIME, time, false))];
        let schema = input.schema();
        for name in &spec.group {
            fields.push(Arc::new(schema.field_with_name(name)?.clone()));
        }
        fields.push(Arc::new(Field::new(&spec.amount, DataType::Float64, true)));
        let step = AmountsByGroup {
            spec: Arc::new(spec),
            schema: Arc::new(Schema::new(fields)),
        };
        Ok(Self::over(step, vec![input]))
    }
}

impl Step for AmountsByGroup {
    const NAME: &'static str = "AmountsByGroupExec";

    fn detail(&self) -> String {
        let AmountsSpec {
            group,
            grid,
            counting,
            ..
        } = self.spec.as_ref();
        format!("{group:?}, {} bins, {counting:?}", grid.len())
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.schema), None)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let input = only(inputs)?;
        let memory = task.memory("amounts by group");
        let amounts = Amounts::new(self.spec, self.schema, &input.schema(), memory)?;
        let parts = stream::try_unfold((input.open()?, amounts), |(mut input, mut amounts)| async move {
            let batch = amounts.next(&mut input).await?;
            Ok(batch.map(|batch| (batch, (input, amounts))))
        });
        Ok(parts.boxed())
    }
}

/// The running operator.
struct Amounts {
    spec: Arc<AmountsSpec>,
    schema: SchemaRef,
    reader: RowReader,
    groups: Groups,
    clip: WindowClip,
    /// `None` where every sample counts.
    resolver: Option<Resolver>,
    /// The current rows with the numbers of their groups; `row` is the next to lay.
    rows: Option<(Rows, Vec<u32>)>,
    row: usize,
    /// How far the current sample has been laid or, where there is a resolver, its current portion.
    laid_until: i64,
    /// How many of the resolver's portions and instants have been laid.
    portion: usize,
    instant: usize,
    parts: Parts,
    ended: bool,
    /// Whether all that counts of the samples is resolved.
    resolved: bool,
    memory: MemoryReservation,
}

impl Amounts {
    fn new(
        spec: Arc<AmountsSpec>,
        schema: SchemaRef,
        input: &SchemaRef,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let grid = &spec.grid;
        let (first, last) = (grid.edge(0).micros(), grid.edge(grid.len()).micros());
        let clip = WindowClip::new(&spec.windows, first, last);
        let best = spec.counting == Counting::BestSource;
        let limit = SplitLimit {
            most: spec.most_groups,
            too_many: spec.too_many,
        };
        Ok(Self {
            schema,
            reader: RowReader::new(best.then(|| spec.ranking.clone())),
            groups: Groups::new(&spec.group, input, limit)?,
            resolver: best.then(|| Resolver::new(clip.clone(), None).apart()),
            clip,
            rows: None,
            row: 0,
            laid_until: i64::MIN,
            portion: 0,
            instant: 0,
            parts: Parts::new(grid.clone()),
            ended: false,
            resolved: !best,
            memory,
            spec,
        })
    }

    /// The next parts; `None` when all have been emitted.
    async fn next(&mut self, input: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        let mut turn = Turn::new();
        loop {
            self.lay(&mut turn);
            self.memory.try_resize(self.held())?;
            if self.parts.are_enough() {
                return self.take().map(Some);
            }
            if turn.is_over() {
                turn.renew();
                tokio::task::yield_now().await;
            } else if self.ended {
                let rest = (!self.parts.are_none()).then(|| self.take());
                return rest.transpose();
            } else if let Some(batch) = input.next().await.transpose()? {
                let batch = with_value(&batch)?;
                self.row = 0;
                self.rows = Some((self.reader.read(&batch)?, self.groups.numbers(&batch)?));
            } else {
                self.ended = true;
            }
        }
    }

    /// Lays all that was fed, until there are enough parts or the turn is over.
    fn lay(&mut self, turn: &mut Turn) {
        while self.lay_resolved(turn) {
            if let Some((rows, groups)) = self.rows.take() {
                if !self.lay_rows(&rows, &groups, turn) {
                    self.rows = Some((rows, groups));
                    return;
                }
            } else if self.ended && !self.resolved {
                self.resolved = self
                    .resolver
                    .as_mut()
                    .is_none_or(|resolver| resolver.finish(turn));
                if !self.resolved {
                    return;
                }
            } else {
                return;
            }
        }
    }

    /// Lays the current rows. `false`: there are enough parts or the turn is over, and there is more.
    fn lay_rows(&mut self, rows: &Rows, groups: &[u32], turn: &mut Turn) -> bool {
        while let (Some(sample), Some(group)) = (rows.sample(self.row), groups.get(self.row)) {
            if self.parts.are_enough() || turn.is_over() {
                return false;
            }
            let sample = Sample {
                group: *group,
                ..sample
            };
            let Some(resolver) = &mut self.resolver else {
                if !self.lay_whole(&sample, turn) {
                    return false;
                }
                self.row += 1;
                continue;
            };
            if !resolver.settle(sample.start, turn) {
                return false;
            }
            self.row += 1;
            let next = rows.starts.get(self.row).copied();
            resolver.push(sample, next.unwrap_or(sample.start));
            if !self.lay_resolved(turn) {
                return false;
            }
        }
        if let (Some(resolver), Some(last)) = (&mut self.resolver, rows.starts.last()) {
            resolver.advance(*last);
        }
        true
    }

    /// Lays a sample that counts regardless of others. `false`: there are enough parts or the turn is over
    /// before that.
    fn lay_whole(&mut self, sample: &Sample, turn: &mut Turn) -> bool {
        let &Sample {
            start,
            end,
            value,
            group,
            ..
        } = sample;
        if start >= end {
            if self.clip.until(start).is_some() {
                self.parts.add(start, group, value);
            }
            return true;
        }
        let share = |from: i64, to: i64| prorated(value, to - from, end - start);
        for (from, to) in self.clip.parts(start.max(self.laid_until), end) {
            let until = self.parts.lay((from, to), group, turn, share);
            if until < to {
                self.laid_until = until;
                return false;
            }
        }
        self.laid_until = i64::MIN;
        true
    }

    /// Lays what the resolver has decided. `false`: there are enough parts or the turn is over before that.
    fn lay_resolved(&mut self, turn: &mut Turn) -> bool {
        let Some(resolver) = &mut self.resolver else {
            return true;
        };
        while let Some(portion) = resolver.portion(self.portion) {
            let stretch = (portion.start.max(self.laid_until), portion.end);
            let share = |from: i64, to: i64| portion.amount(from, to);
            let until = self.parts.lay(stretch, portion.group, turn, share);
            if until < portion.end {
                self.laid_until = until;
                return false;
            }
            self.laid_until = i64::MIN;
            self.portion += 1;
        }
        while let Some(instant) = resolver.instants.get(self.instant) {
            if self.parts.are_enough() {
                return false;
            }
            self.parts.add(instant.at, instant.group, instant.value);
            self.instant += 1;
        }
        resolver.forget(self.instant);
        (self.portion, self.instant) = (0, 0);
        true
    }

    /// Bytes on the heap.
    fn held(&self) -> usize {
        self.parts.memory() + self.groups.memory() + self.resolver.as_ref().map_or(0, Resolver::memory)
    }

    /// Emits the parts that are held.
    fn take(&mut self) -> Result<RecordBatch> {
        let parts = self.parts.take();
        let times: TimestampMicrosecondArray = parts
            .iter()
            .map(|((bin, _), _)| Some(self.spec.grid.edge(*bin).micros()))
            .collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(times.with_timezone(self.spec.zone.written()))];
        columns.extend(self.groups.columns(parts.iter().map(|((_, group), _)| *group))?);
        columns.push(Arc::new(
            parts
                .iter()
                .map(|(_, amount)| Some(*amount))
                .collect::<Float64Array>(),
        ));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// Drops rows without a value.
fn with_value(batch: &RecordBatch) -> Result<RecordBatch> {
    let value = batch
        .column_by_name(VALUE)
        .ok_or_else(|| internal_datafusion_err!("rows without a value"))?;
    if value.null_count() == 0 {
        return Ok(batch.clone());
    }
    Ok(filter_record_batch(batch, &is_not_null(value)?)?)
}
