//! The rows that a series needs, and where rollups may replace them.
//!
//! The snapshot says in which stretches of time a piece is the only one with rows, so nothing is read here.
//! Knows snapshots, permits and tables.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use crate::model::columns::{SOURCE, SOURCE_CLASS, VALUE};
use crate::model::permit::{ReadPermit, Windows};
use crate::model::time::{Instant, TimeRange};
use crate::query::for_others::{MOST_SCANNED, OriginalLength};
use crate::query::ground::dead::{DeadRows, MOST_DEAD};
use crate::query::ground::engine::Engine;
use crate::query::ground::measure::Counting;
use crate::query::ground::operator::Plan;
use crate::query::ground::rollups::{Key, Kind, Rollups};
use crate::query::ground::table::PartitionTable;
use crate::query::series::ranking::Ranking;
use crate::query::{Questions, TypedPartition};
use crate::store::kept_rollups::KeptRollups;
use crate::store::rollups::{Month, ROWS_A_ROLLUP, Step};
use crate::store::snapshot::{PieceContent, Snapshot, SnapshotPiece};

use super::as_rows;
use super::cut_stretch::Cut;
use super::mixed_input::InputPart;
use super::spans::{Extent, Span, by_month, down, layers, spans, up};

/// A question that needs at least one part in this many of a piece's month reads or makes rollups; smaller
/// ones read rows, which is less work.
const WORTH_A_QUARTER: i64 = 4;

/// From this many amounts on, a rollup may replace as little as one each: such rollups are kept in memory
/// only, and save decoding the rows and resolving them again. With fewer amounts, that costs less than making
/// rollups.
const MANY_AMOUNTS: i64 = 4096;

/// The required content and step of rollups.
#[derive(Clone, Debug)]
pub(in crate::query) struct RollupsAsked {
    pub(in crate::query) step: Step,
    pub(in crate::query) kind: Kind,
    pub(in crate::query) ranking: Arc<Ranking>,
}

/// The rows that a series is made from, and the rollups that may replace them.
#[derive(Clone, Debug)]
pub(super) struct RollupSource {
    pub(super) engine: Arc<Engine>,
    pub(super) kept: Rollups,
    pub(super) dead: DeadRows,
    pub(super) snapshot: Arc<Snapshot>,
    /// The rows as the reader sees them.
    seen: PartitionTable,
    /// The rows as they were recorded.
    recorded: PartitionTable,
    windows: Windows,
    is_own: bool,
    pub(super) meant: RollupsAsked,
}

/// A stretch of time, and how it is answered; stretches come in order.
#[derive(Debug)]
pub(super) enum Stretch {
    /// Samples that reach into a window from before it.
    ReachingInto(Range<i64>),
    /// Rows are read.
    Rows(Range<i64>),
    /// The rollups of a piece may replace its rows.
    Rollups(MonthRollups),
}

/// Rollups of one piece and month.
#[derive(Debug)]
pub(super) struct MonthRollups {
    pub(super) key: Key,
    pub(super) piece: SnapshotPiece,
    /// The time of the piece in that month, and the part of it that is needed.
    pub(super) whole: Range<i64>,
    pub(super) time: Range<i64>,
}

impl MonthRollups {
    /// Whether the needed part is large enough to make them.
    pub(super) const fn is_worth_making(&self) -> bool {
        (self.time.end - self.time.start) * WORTH_A_QUARTER >= self.whole.end - self.whole.start
    }
}

/// Parts of a snapshot that are planned one by one and merged by time; none where no piece can have rollups.
/// Amounts compete across pieces, so they are one part. Points do not: where their pieces overlap, rollups of
/// each may replace its own rows.
pub(super) fn snapshot_parts(snapshot: &Arc<Snapshot>, rollups: &RollupsAsked) -> Vec<Arc<Snapshot>> {
    let extents = extents(&snapshot.pieces, rollups);
    if !extents.iter().any(|extent| extent.fit) {
        return Vec::new();
    }
    let layers = layers(&extents);
    if layers.len() == 1 || matches!(rollups.kind, Kind::Amounts(..)) {
        return vec![Arc::clone(snapshot)];
    }
    let part = |layer: Vec<usize>| {
        let pieces = layer.into_iter().filter_map(|number| snapshot.pieces.get(number));
        Arc::new(snapshot.only(pieces.cloned().collect()))
    };
    layers.into_iter().map(part).collect()
}

impl RollupSource {
    /// The question for a snapshot and a permit. `None` where there are too many windows for rollups to be
    /// worthwhile.
    pub(super) fn of<Authority>(
        questions: &Questions<Authority>,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Arc<Snapshot>,
        rollups: RollupsAsked,
    ) -> Result<Option<Self>> {
        if permit.windows().as_slice().len() > MOST_SCANNED {
            return Ok(None);
        }
        Ok(Some(Self {
            engine: Arc::clone(&questions.engine),
            kept: questions.rollups.clone(),
            dead: questions.dead.clone(),
            snapshot: Arc::clone(snapshot),
            seen: questions.table(permit, partition, snapshot, OriginalLength::Dropped)?,
            recorded: questions.table_uncut(permit, partition, snapshot)?,
            windows: permit.windows().clone(),
            is_own: permit.is_own(),
            meant: rollups,
        }))
    }

    /// Whether rollups exist or are worth making.
    pub(super) fn may_serve(&self, stretch: &Stretch) -> bool {
        match stretch {
            Stretch::Rollups(needed) => needed.is_worth_making() || self.kept.held.contains(&needed.key),
            Stretch::ReachingInto(_) | Stretch::Rows(_) => false,
        }
    }

    /// The columns of rows, and of rollups in their place.
    pub(super) fn schema(&self) -> SchemaRef {
        let kind = &self.meant.kind;
        as_rows::schema(kind.counting(), matches!(kind, Kind::Amounts(..)))
    }

    /// How each stretch of time is answered, in the order of time.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let step = self.meant.step.micros();
        let pieces = &self.snapshot.pieces;
        let extents = extents(pieces, &self.meant);
        let mut stretches = Vec::new();
        for window in self.windows.as_slice() {
            let time = micros(*window);
            let mut rollups_from = time.start;
            if self.meant.kind == Kind::Starts {
                if !self.is_own {
                    // What reaches into the window starts with it once it is cut, which rollups do not show.
                    rollups_from += 1;
                } else if pieces.iter().any(|piece| reaches_into(piece, window.start())) {
                    stretches.push(Stretch::ReachingInto(time.clone()));
                }
            }
            let spans = spans(&extents, time, rollups_from, step);
            let stretch = |span: Span| match self.month_rollups(&extents, &span) {
                Some(needed) => Stretch::Rollups(needed),
                None => Stretch::Rows(span.time),
            };
            stretches.extend(spans.into_iter().flat_map(by_month).map(stretch));
        }
        stretches
    }

    /// The rollups that may replace rows in a span that lies in one month.
    fn month_rollups(&self, extents: &[Extent], span: &Span) -> Option<MonthRollups> {
        let alone = span.alone?;
        let (piece, extent) = (self.snapshot.pieces.get(alone)?, extents.get(alone)?);
        let month = Month::of(span.time.start)?;
        let key = Key {
            piece: piece.id,
            month: month.number,
            step: self.meant.step,
            kind: self.meant.kind.clone(),
        };
        Some(MonthRollups {
            key,
            piece: piece.clone(),
            whole: month.time.start.max(extent.time.start)..month.time.end.min(extent.time.end),
            time: span.time.clone(),
        })
    }

    /// The rows of consecutive stretches of time that rollups do not replace.
    pub(super) fn rows(&self, times: &[Range<i64>]) -> Result<Vec<InputPart>> {
        let (table, cut, at_once) = match self.meant.kind {
            // A level that lasts from one window into the next is one point, so all windows are read at once.
            Kind::Points(_) => (&self.seen, Cut::Whole, times.len().max(1)),
            Kind::Starts => (&self.seen, Cut::StartInside, 1),
            // Read uncut: they are cut to the time of their part anyway, and ranked by their original
            // length.
            Kind::Amounts(..) => (&self.recorded, Cut::Inside, 1),
        };
        let parts = times.chunks(at_once).filter_map(|times| {
            let time = times.first()?.start..times.last()?.end;
            Some((time, times.iter().filter_map(range).collect::<Vec<_>>()))
        });
        let parts = parts.map(|(time, windows)| {
            let plan = self.read(table.clone().within(&windows))?;
            Ok(InputPart::Rows { plan, time, cut })
        });
        parts.collect()
    }

    /// Samples that start before a window and last into it.
    pub(super) fn reaching_into(&self, window: &Range<i64>) -> Result<InputPart> {
        let first = window.start..window.start + 1;
        Ok(InputPart::Rows {
            plan: self.read(self.recorded.clone().within(range(&first).as_slice()))?,
            time: i64::MIN..window.start,
            cut: Cut::StartInside,
        })
    }

    /// All rows of a piece in a range.
    pub(super) fn piece(&self, piece: &SnapshotPiece, time: TimeRange) -> Result<Plan> {
        self.read(self.recorded.piece_in(piece, time))
    }

    /// The rollups that a piece itself stores.
    pub(super) async fn kept_by(&self, needed: &MonthRollups) -> Result<Option<KeptRollups>> {
        let (step, month) = (needed.key.step, needed.key.month);
        self.recorded.rollups_in(&needed.piece, step, month).await
    }

    /// Reads the columns that a series needs.
    fn read(&self, table: PartitionTable) -> Result<Plan> {
        let columns: &[&str] = match self.meant.kind.counting() {
            Counting::BestSource => &[VALUE, SOURCE, SOURCE_CLASS],
            Counting::Everything => &[VALUE],
        };
        table.without_ids(true).rows(columns.iter().copied())
    }
}

fn extents(pieces: &[SnapshotPiece], meant: &RollupsAsked) -> Vec<Extent> {
    pieces.iter().map(|piece| extent(piece, meant)).collect()
}

fn extent(piece: &SnapshotPiece, meant: &RollupsAsked) -> Extent {
    let step = meant.step.micros();
    let (first, last) = (piece.bounds.min_start.micros(), piece.bounds.max_start.micros());
    let end = piece.bounds.max_end.micros().max(last.saturating_add(1));
    let rollups = (last - first) / step + 1;
    // A dead amount influenced what counted wherever it reached.
    let most_dead = match meant.kind {
        Kind::Amounts(..) => 0,
        Kind::Points(_) | Kind::Starts => MOST_DEAD,
    };
    let worth = match meant.kind {
        Kind::Amounts(..) if piece.rows >= MANY_AMOUNTS => 1,
        Kind::Amounts(..) | Kind::Points(_) | Kind::Starts => ROWS_A_ROLLUP,
    };
    let is_settled = matches!(piece.content, PieceContent::Object(_)) && piece.dead.len() <= most_dead;
    Extent {
        time: down(first, step)..up(end, step),
        fit: is_settled && piece.rows >= rollups.saturating_mul(worth),
    }
}

fn reaches_into(piece: &SnapshotPiece, start: Instant) -> bool {
    piece.bounds.min_start < start && piece.bounds.max_end > start
}

fn micros(range: TimeRange) -> Range<i64> {
    range.start().micros()..range.end().micros()
}

/// `None` if it is empty.
fn range(time: &Range<i64>) -> Option<TimeRange> {
    TimeRange::new(Instant::from_micros(time.start), Instant::from_micros(time.end))
}
