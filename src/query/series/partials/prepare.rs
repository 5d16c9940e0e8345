//! Which cells serve a question, and making those that are not there yet.

use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, NaiveDate};
use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt as _;

use crate::model::grid::Grid;
use crate::model::permit::{ReadPermit, Windows};
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::query::engine::late;
use crate::query::ground::measure::{Counting, Measure};
use crate::query::ground::table::PartitionTable;
use crate::query::series::exec::SeriesExec;
use crate::query::series::ranking::Ranking;
use crate::query::series::spec::{Gaps, SeriesSpec};
use crate::query::shared::{Lengths, MOST_SCANNED};
use crate::query::{Archive, QueryError, Source};
use crate::store::snapshot::{Content, Snapshot, SnapshotPiece};

use super::cells::{self, Gatherer};
use super::cut::Cut;
use super::patchwork::{Patch, PatchworkExec};
use super::spans::{Extent, Span, down, joined, spans, up};
use crate::query::ground::cells::{Held, Key, Kind, Step};

/// Cells are made for rows at least so many times as many.
const ROWS_A_CELL: i64 = 3;
/// And for a question that asks for at least this part of what a piece has in a month; smaller ones read
/// rows, which is less.
const WORTH_A_QUARTER: i64 = 4;

/// Rows that a series is made from, and the cells that may stand for them.
pub(in crate::query) struct Patchwork<'a, Authority> {
    pub(in crate::query) source: &'a Source,
    pub(in crate::query) snapshot: &'a Arc<Snapshot>,
    pub(in crate::query) permit: &'a ReadPermit<Authority>,
    pub(in crate::query) step: Step,
    pub(in crate::query) kind: Kind,
    pub(in crate::query) ranking: &'a Arc<Ranking>,
}

impl<Authority> Archive<Authority> {
    /// The rows as far as they have to be read, and cells for the rest. `None` when there is nothing that
    /// cells could stand for.
    pub(in crate::query) async fn patchwork(
        &self,
        asked: &Patchwork<'_, Authority>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, QueryError> {
        let step = asked.step.micros();
        let extents: Vec<Extent> = asked
            .snapshot
            .pieces
            .iter()
            .map(|piece| extent(piece, step))
            .collect();
        let windows = asked.permit.windows().as_slice();
        if windows.len() > MOST_SCANNED || !extents.iter().any(|extent| extent.fit) {
            return Ok(None);
        }
        let mut patches = Vec::new();
        let mut any_cells = false;
        for window in windows {
            let time = window.start().micros()..window.end().micros();
            let mut cells_from = time.start;
            if asked.kind == Kind::Starts {
                if asked.permit.is_own() {
                    patches.extend(self.reaching_into(asked, &time)?);
                } else {
                    // What reaches into the window starts with it once it is cut, and cells do not know.
                    cells_from += 1;
                }
            }
            let mut chosen = Vec::new();
            let mut found = Vec::new();
            for span in spans(&extents, time, cells_from, step)
                .into_iter()
                .flat_map(by_month)
            {
                let cells = match span
                    .alone
                    .and_then(|at| Some((asked.snapshot.pieces.get(at)?, extents.get(at)?)))
                {
                    Some((piece, extent)) => self.cells(asked, piece, extent, &span.time).await?,
                    None => None,
                };
                let alone = span.alone.filter(|_| cells.is_some());
                found.extend(cells.map(|cells| (span.time.start, cells)));
                chosen.push(Span { alone, ..span });
            }
            any_cells |= !found.is_empty();
            for span in rows_joined(chosen) {
                match span.alone {
                    Some(_) => patches.extend(
                        found
                            .iter()
                            .filter(|(start, _)| *start == span.time.start)
                            .map(|(_, cells)| Patch::Cells(cells.clone())),
                    ),
                    None => patches.push(self.rows(asked, span.time)?),
                }
            }
        }
        if !any_cells {
            return Ok(None);
        }
        let schema = cells::schema(asked.kind.counting(), matches!(asked.kind, Kind::Amounts(..)));
        Ok(Some(Arc::new(PatchworkExec::new(patches, schema))))
    }

    fn rows(&self, asked: &Patchwork<'_, Authority>, time: Range<i64>) -> Result<Patch> {
        let plan = self.patch_rows(asked, &time)?;
        let cut = match asked.kind {
            Kind::Points(_) => Cut::Whole,
            Kind::Starts => Cut::StartInside,
            Kind::Amounts(..) => Cut::Inside,
        };
        Ok(Patch::Rows { plan, time, cut })
    }

    /// Samples that start before the window and last into it.
    fn reaching_into(&self, asked: &Patchwork<'_, Authority>, window: &Range<i64>) -> Result<Option<Patch>> {
        let (start, first) = (Instant::from_micros(window.start), window.start..window.start + 1);
        let reaches = |piece: &SnapshotPiece| piece.bounds.min_start < start && piece.bounds.max_end > start;
        if !asked.snapshot.pieces.iter().any(reaches) {
            return Ok(None);
        }
        Ok(Some(Patch::Rows {
            plan: self.stored_rows(asked, asked.snapshot, &first)?,
            time: i64::MIN..window.start,
            cut: Cut::StartInside,
        }))
    }

    /// The rows that touch a time, as the reader sees them.
    fn patch_rows(
        &self,
        asked: &Patchwork<'_, Authority>,
        time: &Range<i64>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if matches!(asked.kind, Kind::Amounts(..)) {
            // Cut to the time of their patch anyway, and ranked by how long they were before.
            return self.stored_rows(asked, asked.snapshot, time);
        }
        let Patchwork {
            permit,
            source,
            snapshot,
            ..
        } = asked;
        let table = self.table(permit, source, snapshot, Lengths::Forgotten)?;
        rows_within(table, asked, time)
    }

    /// The same as they were recorded.
    fn stored_rows(
        &self,
        asked: &Patchwork<'_, Authority>,
        snapshot: &Arc<Snapshot>,
        time: &Range<i64>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        rows_within(
            self.table_uncut(asked.permit, asked.source, snapshot)?,
            asked,
            time,
        )
    }

    /// The cells of a piece for a time that lies in one month; `None` when there are none to be had, or when
    /// reading the rows is less work.
    async fn cells(
        &self,
        asked: &Patchwork<'_, Authority>,
        piece: &SnapshotPiece,
        extent: &Extent,
        wanted: &Range<i64>,
    ) -> Result<Option<RecordBatch>, QueryError> {
        let Some((number, month)) = month_of(wanted.start) else {
            return Ok(None);
        };
        let key = Key {
            piece: piece.id,
            month: number,
            step: asked.step,
            kind: asked.kind.clone(),
        };
        let whole = month.start.max(extent.time.start)..month.end.min(extent.time.end);
        let held = match self.partials.held.get(&key).await {
            Some(held) => held,
            None if (wanted.end - wanted.start) * WORTH_A_QUARTER < whole.end - whole.start => {
                return Ok(None);
            }
            None => {
                let made = self
                    .partials
                    .held
                    .try_get_with(key, self.made(asked, piece, whole));
                made.await.map_err(DataFusionError::Shared)?
            }
        };
        Ok(match held {
            Held::Cells(cells) => Some(between(&cells, wanted)),
            Held::Unfit => None,
        })
    }

    /// Brings the rows of one piece down to cells.
    async fn made(
        &self,
        asked: &Patchwork<'_, Authority>,
        piece: &SnapshotPiece,
        time: Range<i64>,
    ) -> Result<Held> {
        let alone = Snapshot {
            person: asked.snapshot.person,
            data_type: asked.snapshot.data_type.clone(),
            version: asked.snapshot.version,
            digest: asked.snapshot.digest,
            records: piece.rows,
            pieces: vec![piece.clone()],
        };
        let rows = self.stored_rows(asked, &Arc::new(alone), &time)?;
        let step = asked.step.micros();
        if let Kind::Amounts(counting, _) = &asked.kind {
            let counting = *counting;
            let Some(range) = range(&time) else {
                return Ok(Held::Unfit);
            };
            let spec = SeriesSpec {
                column: "value".to_owned(),
                grid: Grid::uniform(range, step),
                zone: Zone::UTC,
                measure: Measure::Amounts(counting),
                calculations: Vec::new(),
                gaps: Gaps {
                    drop: true,
                    replace: false,
                },
                chosen_sources: Vec::new(),
            };
            let windows = Windows::new([range]);
            let plan = SeriesExec::new(rows, Arc::new(spec), windows, Arc::clone(asked.ranking));
            let mut sums = Vec::new();
            self.each_batch(Arc::new(plan), |batch| {
                sums.push(batch);
                Ok(true)
            })
            .await?;
            return Ok(Held::Cells(Arc::new(cells::of_amounts(&sums, step, counting)?)));
        }
        let mut gatherer = Gatherer::new(
            step,
            asked.kind.counting(),
            asked.kind == Kind::Starts,
            time.start,
        );
        let fit = self.each_batch(rows, |batch| gatherer.take(&batch)).await?;
        Ok(if fit {
            Held::Cells(Arc::new(gatherer.finish()?))
        } else {
            Held::Unfit
        })
    }

    /// Runs a plan until `take` has had enough; whether it took everything.
    async fn each_batch(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        mut take: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<bool> {
        let rows = self.engine.start(plan)?;
        let mut rows = Box::pin(self.engine.drive(rows, late));
        while let Some(batch) = rows.next().await.transpose()? {
            if !take(batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The columns that a series needs of what touches a time.
fn rows_within<Authority>(
    table: PartitionTable,
    asked: &Patchwork<'_, Authority>,
    time: &Range<i64>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let windows: Vec<TimeRange> = range(time).into_iter().collect();
    let columns: &[&str] = match asked.kind.counting() {
        Counting::BestSource => &["value", "source", "source_class"],
        Counting::Everything => &["value"],
    };
    table
        .within(&windows)
        .without_ids(true)
        .rows(columns.iter().copied())
}

impl Kind {
    const fn counting(&self) -> Counting {
        match self {
            Self::Points(counting) | Self::Amounts(counting, _) => *counting,
            Self::Starts => Counting::Everything,
        }
    }
}

fn extent(piece: &SnapshotPiece, step: i64) -> Extent {
    let (first, last) = (piece.bounds.min_start.micros(), piece.bounds.max_start.micros());
    let end = piece.bounds.max_end.micros().max(last.saturating_add(1));
    let cells = (last - first) / step + 1;
    let is_settled = matches!(piece.content, Content::Object(_)) && piece.dead.is_empty();
    Extent {
        time: down(first, step)..up(end, step),
        fit: is_settled && piece.rows >= cells.saturating_mul(ROWS_A_CELL),
    }
}

/// Rows are read in one go where nothing answers for them, and cells month by month.
fn rows_joined(spans: Vec<Span>) -> Vec<Span> {
    let mut result = Vec::with_capacity(spans.len());
    let mut rows = Vec::new();
    for span in spans {
        if span.alone.is_some() {
            result.append(&mut joined(std::mem::take(&mut rows)));
            result.push(span);
        } else {
            rows.push(span);
        }
    }
    result.append(&mut joined(rows));
    result
}

/// A span that a piece answers for, cut where months begin.
fn by_month(span: Span) -> Vec<Span> {
    if span.alone.is_none() {
        return vec![span];
    }
    let mut parts = Vec::new();
    let mut start = span.time.start;
    while start < span.time.end {
        let month_end = month_of(start).map_or(span.time.end, |(_, month)| month.end);
        let end = span.time.end.min(month_end.max(start + 1));
        parts.push(Span {
            time: start..end,
            alone: span.alone,
        });
        start = end;
    }
    parts
}

/// The number of the month that a moment lies in, and its bounds.
fn month_of(moment: i64) -> Option<(i64, Range<i64>)> {
    let date = DateTime::from_timestamp_micros(moment)?.date_naive();
    let first = date.with_day(1)?;
    let next = first.checked_add_months(chrono::Months::new(1))?;
    let micros = |date: NaiveDate| Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros());
    let number = i64::from(date.year()) * 12 + i64::from(date.month0());
    Some((number, micros(first)?..micros(next)?))
}

fn range(time: &Range<i64>) -> Option<TimeRange> {
    TimeRange::new(Instant::from_micros(time.start), Instant::from_micros(time.end))
}

/// The cells that start in `wanted`.
fn between(cells: &RecordBatch, wanted: &Range<i64>) -> RecordBatch {
    let Some(starts) = cells.column(0).as_primitive_opt::<TimestampMicrosecondType>() else {
        return cells.slice(0, 0);
    };
    let first = starts.values().partition_point(|start| *start < wanted.start);
    let last = starts.values().partition_point(|start| *start < wanted.end);
    cells.slice(first, last - first)
}
