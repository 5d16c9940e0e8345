//! Amounts on a grid, split by other columns of their samples.
//!
//! Which samples count is decided among all of them; each part of an amount then belongs to the values of its
//! sample in those columns. Parts of a bin are emitted unordered and may repeat, for the consumer to add up:
//! only what is open at one moment, and a limited number of parts, is held.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use crate::model::columns::VALUE;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::time::Instant;
use crate::model::zone::Zone;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::{Counting, prorated};
use crate::query::ground::turn::Turn;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition, only};

use super::contest::Sample;
use super::ranking::Ranking;
use super::resolve::Resolver;
use super::rows::{RowReader, Rows};

/// The most parts that are held before they are emitted.
const PARTS_AT_ONCE: usize = 8192;
/// The number of cuts after which the operator yields.
const CUTS_AT_ONCE: usize = 1 << 18;

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
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new("time", time, false))];
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

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let input = only(inputs)?;
        let amounts = Amounts::new(self.spec, self.schema, &input.schema())?;
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
    parts: HashMap<(u64, u32), f64>,
    ended: bool,
    /// Whether all that counts of the samples is resolved.
    resolved: bool,
}

impl Amounts {
    fn new(spec: Arc<AmountsSpec>, schema: SchemaRef, input: &SchemaRef) -> Result<Self> {
        let grid = &spec.grid;
        let (first, last) = (grid.edge(0).micros(), grid.edge(grid.len()).micros());
        let clip = WindowClip::new(&spec.windows, first, last);
        let best = spec.counting == Counting::BestSource;
        Ok(Self {
            schema,
            reader: RowReader::new(best.then(|| spec.ranking.clone()), false),
            groups: Groups::new(&spec, input)?,
            resolver: best.then(|| Resolver::new(clip.clone(), None).apart()),
            clip,
            rows: None,
            row: 0,
            parts: HashMap::new(),
            ended: false,
            resolved: false,
            spec,
        })
    }

    /// The next parts; `None` when all have been emitted.
    async fn next(&mut self, input: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        let (mut cuts, mut turn) = (0, Turn::new());
        loop {
            if let Some((rows, groups)) = self.rows.take() {
                cuts += self.lay(&rows, &groups, &mut turn);
                if self.row < rows.starts.len() {
                    self.rows = Some((rows, groups));
                }
            } else if self.ended && !self.resolved {
                cuts += self.lay_rest(&mut turn);
            } else if self.ended {
                let rest = (!self.parts.is_empty()).then(|| self.take());
                return rest.transpose();
            } else if let Some(batch) = input.next().await.transpose()? {
                let batch = with_value(&batch)?;
                self.row = 0;
                self.rows = Some((self.reader.read(&batch)?, self.groups.numbers(&batch)?));
            } else {
                self.ended = true;
            }
            if self.parts.len() >= PARTS_AT_ONCE {
                return self.take().map(Some);
            }
            if cuts >= CUTS_AT_ONCE || turn.is_over() {
                cuts = 0;
                turn.renew();
                tokio::task::yield_now().await;
            }
        }
    }

    /// Lays some of the rows; returns how many cuts that took.
    fn lay(&mut self, rows: &Rows, groups: &[u32], turn: &mut Turn) -> usize {
        let mut cuts = 0;
        while self.row < rows.starts.len() && cuts < CUTS_AT_ONCE && self.parts.len() < PARTS_AT_ONCE {
            let row = self.row;
            let (Some(sample), Some(group)) = (rows.sample(row), groups.get(row)) else {
                self.row += 1;
                break;
            };
            let sample = Sample {
                group: *group,
                ..sample
            };
            if let Some(resolver) = &mut self.resolver {
                let is_settled = resolver.settle(sample.start, turn);
                if is_settled {
                    let next = rows.starts.get(row + 1).copied();
                    resolver.push(sample, next.unwrap_or(sample.start));
                }
                cuts += self.lay_resolved();
                if !is_settled {
                    return cuts;
                }
            } else {
                cuts += self.lay_whole(&sample);
            }
            self.row += 1;
        }
        if self.row >= rows.starts.len()
            && let (Some(resolver), Some(last)) = (&mut self.resolver, rows.starts.last())
        {
            resolver.advance(*last);
            cuts += self.lay_resolved();
        }
        cuts
    }

    /// Lays some of what is left when there are no more rows; returns how many cuts that took.
    fn lay_rest(&mut self, turn: &mut Turn) -> usize {
        let resolver = self.resolver.as_mut();
        self.resolved = resolver.is_none_or(|resolver| resolver.finish(turn));
        self.lay_resolved()
    }

    /// Lays a sample that counts regardless of others.
    fn lay_whole(&mut self, sample: &Sample) -> usize {
        let &Sample {
            start,
            end,
            value,
            group,
            ..
        } = sample;
        let Self {
            clip, spec, parts, ..
        } = self;
        if start >= end {
            if clip.until(start).is_some() {
                add(parts, &spec.grid, start, group, value);
            }
            return 1;
        }
        let mut cuts = 0;
        for (from, to) in clip.parts(start, end) {
            cuts += cut(&spec.grid, from, to, |bin, covered| {
                *parts.entry((bin, group)).or_default() += prorated(value, covered, end - start);
            });
        }
        cuts
    }

    fn lay_resolved(&mut self) -> usize {
        let Self {
            resolver,
            spec,
            parts,
            ..
        } = self;
        let Some(resolver) = resolver else { return 0 };
        let mut cuts = 0;
        let mut number = 0;
        while let Some(portion) = resolver.portion(number) {
            let mut at = portion.start;
            cuts += cut(&spec.grid, portion.start, portion.end, |bin, covered| {
                *parts.entry((bin, portion.group)).or_default() += portion.amount(at, at + covered);
                at += covered;
            });
            number += 1;
        }
        for instant in &resolver.instants {
            add(parts, &spec.grid, instant.at, instant.group, instant.value);
        }
        let instants = resolver.instants.len();
        resolver.forget(instants);
        cuts + instants
    }

    /// Emits the parts that are held.
    fn take(&mut self) -> Result<RecordBatch> {
        let mut parts: Vec<((u64, u32), f64)> = self.parts.drain().collect();
        parts.sort_unstable_by_key(|(place, _)| *place);
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

fn add(parts: &mut HashMap<(u64, u32), f64>, grid: &Grid, at: i64, group: u32, value: f64) {
    if let Some(bin) = grid.bin_of(Instant::from_micros(at)) {
        *parts.entry((bin, group)).or_default() += value;
    }
}

/// Cuts a stretch of time at the edges of bins; returns the number of parts.
fn cut(grid: &Grid, from: i64, to: i64, mut part: impl FnMut(u64, i64)) -> usize {
    let Some(first) = grid.bin_of(Instant::from_micros(from)) else {
        return 0;
    };
    let mut cuts = 0;
    let mut at = from;
    for bin in grid.bins_from(first) {
        if at >= to {
            break;
        }
        let end = bin.end.micros().min(to);
        part(bin.index, end - at);
        at = end;
        cuts += 1;
    }
    cuts
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

/// The distinct values of samples in the columns of the groups, numbered as they appear.
struct Groups {
    columns: Vec<usize>,
    converter: RowConverter,
    numbers: HashMap<OwnedRow, u32>,
    rows: Vec<OwnedRow>,
    most: usize,
    too_many: fn() -> DataFusionError,
}

impl Groups {
    fn new(spec: &AmountsSpec, input: &SchemaRef) -> Result<Self> {
        let columns = spec
            .group
            .iter()
            .map(|name| input.index_of(name))
            .collect::<Result<Vec<_>, _>>()?;
        let fields = columns
            .iter()
            .map(|column| SortField::new(input.field(*column).data_type().clone()));
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            columns,
            numbers: HashMap::new(),
            rows: Vec::new(),
            most: spec.most_groups,
            too_many: spec.too_many,
        })
    }

    fn numbers(&mut self, batch: &RecordBatch) -> Result<Vec<u32>> {
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|column| Arc::clone(batch.column(*column)))
            .collect();
        let rows = self.converter.convert_columns(&columns)?;
        let mut numbers = Vec::with_capacity(batch.num_rows());
        for row in &rows {
            let row = row.owned();
            let number = match self.numbers.get(&row) {
                Some(number) => *number,
                None if self.rows.len() >= self.most => return Err((self.too_many)()),
                None => {
                    let number = self.rows.len() as u32;
                    self.rows.push(row.clone());
                    self.numbers.insert(row, number);
                    number
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn columns(&self, numbers: impl Iterator<Item = u32>) -> Result<Vec<ArrayRef>> {
        let rows = numbers
            .filter_map(|number| self.rows.get(number as usize))
            .map(OwnedRow::row);
        Ok(self.converter.convert_rows(rows)?)
    }
}
