//! Gets rollups from memory or from objects, and makes those that exist nowhere yet.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::Result;
use futures::StreamExt as _;

use crate::model::columns::VALUE;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::query::ground::engine::deadline_passed;
use crate::query::ground::errors::outside;
use crate::query::ground::measure::{Counting, Measure};
use crate::query::ground::operator::Plan;
use crate::query::ground::rollups::{CachedRollups, Kind};
use crate::query::series::SeriesExec;
use crate::query::series::spec::{Gaps, SeriesSpec};
use crate::store::rollups::{Gatherer, schema};

use super::as_rows::{of_amounts, of_rollups};
use super::rollup_source::{MonthRollups, RollupSource};
use super::spans::down;

/// The most rollups in a month that are replaced by living rows because they contain dead ones; with more,
/// the whole month is read as rows.
const MOST_HOLES: usize = 16;

/// How one part of the needed time of a piece is answered.
pub(super) enum FoundPart {
    Rollups(RecordBatch),
    Rows(Range<i64>),
}

/// How all of the needed time is answered, in the order of time.
pub(super) async fn find_or_make(source: &RollupSource, needed: &MonthRollups) -> Result<Vec<FoundPart>> {
    let holes = holes(source, needed).await?;
    let rollups = match &holes {
        Some(_) => rollups(source, needed).await?,
        None => None,
    };
    let (Some(holes), Some(rollups)) = (holes, rollups) else {
        return Ok(vec![FoundPart::Rows(needed.time.clone())]);
    };
    let mut found = Vec::new();
    let mut from = needed.time.start;
    for hole in holes {
        if from < hole.start {
            found.push(FoundPart::Rollups(between(&rollups, &(from..hole.start))));
        }
        from = hole.end;
        found.push(FoundPart::Rows(hole));
    }
    found.push(FoundPart::Rollups(between(&rollups, &(from..needed.time.end))));
    Ok(found)
}

/// The needed rollups that contain a dead row, in the order of time; `None` if that is unknown or they are
/// too many.
async fn holes(source: &RollupSource, needed: &MonthRollups) -> Result<Option<Vec<Range<i64>>>> {
    let Some(dead) = source.dead.of(&source.snapshot, &needed.piece).await? else {
        return Ok(None);
    };
    let step = source.meant.step.micros();
    let inside = dead.iter().filter(|row| needed.time.contains(&row.start));
    let mut holes: Vec<i64> = inside.map(|row| down(row.start, step)).collect();
    holes.dedup();
    let holes = Some(holes).filter(|holes| holes.len() <= MOST_HOLES);
    Ok(holes.map(|holes| holes.into_iter().map(|start| start..start + step).collect()))
}

/// All rollups of the piece in the month; `None` when there are none, or when reading the rows is less work.
async fn rollups(source: &RollupSource, needed: &MonthRollups) -> Result<Option<Arc<RecordBatch>>> {
    let held = match source.kept.held.get(&needed.key) {
        Some(held) => held,
        None if !needed.is_worth_making() => return Ok(None),
        None => {
            source
                .kept
                .held
                .get_or_find(&needed.key, made(source, needed))
                .await?
        }
    };
    Ok(match held {
        CachedRollups::Rollups(rollups) => Some(rollups),
        CachedRollups::Unfit => None,
    })
}

/// Reduces the rows of one piece to rollups.
async fn made(source: &RollupSource, needed: &MonthRollups) -> Result<CachedRollups> {
    let time = &needed.whole;
    let bounds = (Instant::from_micros(time.start), Instant::from_micros(time.end));
    let Some(range) = TimeRange::new(bounds.0, bounds.1) else {
        return Ok(CachedRollups::Unfit);
    };
    if let Kind::Amounts(counting, _) = &source.meant.kind {
        let rows = source.piece(&needed.piece, range)?;
        return amounts(source, rows, range, source.meant.step.micros(), *counting).await;
    }
    if let Some(kept) = source.kept_by(needed).await? {
        return held(source, &kept.rollups, kept.are_points);
    }
    let rows = source.piece(&needed.piece, range)?;
    let mut gatherer = Gatherer::new(source.meant.step, counts_by_source(source));
    let month = needed.key.month;
    let is_enough = each_batch(source, rows, |batch| {
        gatherer.take(&batch).map_err(outside)?;
        Ok(source.meant.kind == Kind::Starts || gatherer.are_points(month))
    });
    if !is_enough.await? {
        return Ok(CachedRollups::Unfit);
    }
    let is_free = !gatherer.lasts_beyond(time.start);
    let mut months = gatherer.finish().map_err(outside)?.into_iter();
    match months.find(|gathered| gathered.month == month) {
        Some(gathered) => held(source, &gathered.rollups, gathered.are_points),
        // No row starts in this month, but an earlier one may last into it.
        None => held(source, &RecordBatch::new_empty(schema()), is_free),
    }
}

fn held(source: &RollupSource, rollups: &RecordBatch, are_points: bool) -> Result<CachedRollups> {
    if source.meant.kind != Kind::Starts && !are_points {
        return Ok(CachedRollups::Unfit);
    }
    let rows = of_rollups(rollups, source.meant.kind.counting())?;
    Ok(CachedRollups::Rollups(Arc::new(rows)))
}

fn counts_by_source(source: &RollupSource) -> bool {
    source.meant.kind.counting() == Counting::BestSource
}

async fn amounts(
    source: &RollupSource,
    rows: Plan,
    range: TimeRange,
    step: i64,
    counting: Counting,
) -> Result<CachedRollups> {
    let spec = SeriesSpec {
        column: VALUE.to_owned(),
        grid: Grid::uniform(range, step),
        zone: Zone::UTC,
        measure: Measure::Amounts(counting),
        calculations: Vec::new(),
        gaps: Gaps::DROPPED,
        chosen_sources: Vec::new(),
    };
    let ranking = Arc::clone(&source.meant.ranking);
    let plan = SeriesExec::new(rows, Arc::new(spec), Windows::new([range]), ranking);
    let mut sums = Vec::new();
    each_batch(source, Arc::new(plan), |batch| {
        sums.push(batch);
        Ok(true)
    })
    .await?;
    Ok(CachedRollups::Rollups(Arc::new(of_amounts(
        &sums, step, counting,
    )?)))
}

/// Runs a plan until `take` returns `false`; whether it took everything.
async fn each_batch(
    source: &RollupSource,
    plan: Plan,
    mut take: impl FnMut(RecordBatch) -> Result<bool>,
) -> Result<bool> {
    let rows = source.engine.start(plan);
    let mut rows = Box::pin(source.engine.drive(rows, deadline_passed));
    while let Some(batch) = rows.next().await.transpose()? {
        if !take(batch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rollups that start in `time`.
fn between(rollups: &RecordBatch, time: &Range<i64>) -> RecordBatch {
    let Some(starts) = rollups.column(0).as_primitive_opt::<TimestampMicrosecondType>() else {
        return rollups.slice(0, 0);
    };
    let first = starts.values().partition_point(|start| *start < time.start);
    let last = starts.values().partition_point(|start| *start < time.end);
    rollups.slice(first, last - first)
}
