//! Gets rollups from memory or from objects, and makes those that exist nowhere yet.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::Result;
use futures::StreamExt as _;

use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::query::ground::engine::deadline_passed;
use crate::query::ground::errors::outside;
use crate::query::ground::measure::{Counting, Measure};
use crate::query::ground::operator::Plan;
use crate::query::ground::rollups::{Held, Kind};
use crate::query::series::exec::SeriesExec;
use crate::query::series::spec::{Gaps, SeriesSpec};
use crate::store::rollups::{Gatherer, schema};

use super::as_rows::{of_amounts, of_rollups};
use super::asked::{Asked, Wanted};
use super::spans::down;

/// The most rollups in a month that are replaced by living rows because they contain dead ones; with more,
/// the whole month is read as rows.
const MOST_HOLES: usize = 16;

/// How one part of the wanted time of a piece is answered.
pub(super) enum Told {
    Rollups(RecordBatch),
    Rows(Range<i64>),
}

impl Asked {
    /// How all of the wanted time is answered, in the order of time.
    pub(super) async fn told(&self, wanted: &Wanted) -> Result<Vec<Told>> {
        let holes = self.holes(wanted).await?;
        let rollups = match &holes {
            Some(_) => self.rollups(wanted).await?,
            None => None,
        };
        let (Some(holes), Some(rollups)) = (holes, rollups) else {
            return Ok(vec![Told::Rows(wanted.time.clone())]);
        };
        let mut told = Vec::new();
        let mut from = wanted.time.start;
        for hole in holes {
            if from < hole.start {
                told.push(Told::Rollups(between(&rollups, &(from..hole.start))));
            }
            from = hole.end;
            told.push(Told::Rows(hole));
        }
        told.push(Told::Rollups(between(&rollups, &(from..wanted.time.end))));
        Ok(told)
    }

    /// The wanted rollups that contain a dead row, in the order of time; `None` if that is unknown or they
    /// are too many.
    async fn holes(&self, wanted: &Wanted) -> Result<Option<Vec<Range<i64>>>> {
        let Some(dead) = self.dead.of(&self.snapshot, &wanted.piece).await? else {
            return Ok(None);
        };
        let step = self.meant.step.micros();
        let inside = dead.iter().filter(|row| wanted.time.contains(&row.start));
        let mut holes: Vec<i64> = inside.map(|row| down(row.start, step)).collect();
        holes.dedup();
        let holes = Some(holes).filter(|holes| holes.len() <= MOST_HOLES);
        Ok(holes.map(|holes| holes.into_iter().map(|start| start..start + step).collect()))
    }

    /// All rollups of the piece in the month; `None` when there are none, or when reading the rows is less
    /// work.
    async fn rollups(&self, wanted: &Wanted) -> Result<Option<Arc<RecordBatch>>> {
        let held = match self.kept.held.get(&wanted.key) {
            Some(held) => held,
            None if !wanted.is_worth_making() => return Ok(None),
            None => self.kept.held.get_or_find(&wanted.key, self.made(wanted)).await?,
        };
        Ok(match held {
            Held::Rollups(rollups) => Some(rollups),
            Held::Unfit => None,
        })
    }

    /// Reduces the rows of one piece to rollups.
    async fn made(&self, wanted: &Wanted) -> Result<Held> {
        let time = &wanted.whole;
        let bounds = (Instant::from_micros(time.start), Instant::from_micros(time.end));
        let Some(range) = TimeRange::new(bounds.0, bounds.1) else {
            return Ok(Held::Unfit);
        };
        if let Kind::Amounts(counting, _) = &self.meant.kind {
            let rows = self.piece(&wanted.piece, range)?;
            return self
                .amounts(rows, range, self.meant.step.micros(), *counting)
                .await;
        }
        if let Some(kept) = self.kept_by(wanted).await? {
            return self.held(&kept.rollups, kept.are_points);
        }
        let rows = self.piece(&wanted.piece, range)?;
        let mut gatherer = Gatherer::new(self.meant.step, self.counts_by_source());
        let month = wanted.key.month;
        let is_enough = self.each_batch(rows, |batch| {
            gatherer.take(&batch).map_err(outside)?;
            Ok(self.meant.kind == Kind::Starts || gatherer.are_points(month))
        });
        if !is_enough.await? {
            return Ok(Held::Unfit);
        }
        let mut months = gatherer.finish().map_err(outside)?.into_iter();
        match months.find(|gathered| gathered.month == month) {
            Some(gathered) => self.held(&gathered.rollups, gathered.are_points),
            None => self.held(&RecordBatch::new_empty(schema()), true),
        }
    }

    fn held(&self, rollups: &RecordBatch, are_points: bool) -> Result<Held> {
        if self.meant.kind != Kind::Starts && !are_points {
            return Ok(Held::Unfit);
        }
        let rows = of_rollups(rollups, self.meant.kind.counting())?;
        Ok(Held::Rollups(Arc::new(rows)))
    }

    fn counts_by_source(&self) -> bool {
        self.meant.kind.counting() == Counting::BestSource
    }

    async fn amounts(&self, rows: Plan, range: TimeRange, step: i64, counting: Counting) -> Result<Held> {
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
        let ranking = Arc::clone(&self.meant.ranking);
        let plan = SeriesExec::new(rows, Arc::new(spec), Windows::new([range]), ranking);
        let mut sums = Vec::new();
        self.each_batch(Arc::new(plan), |batch| {
            sums.push(batch);
            Ok(true)
        })
        .await?;
        Ok(Held::Rollups(Arc::new(of_amounts(&sums, step, counting)?)))
    }

    /// Runs a plan until `take` returns `false`; whether it took everything.
    async fn each_batch(
        &self,
        plan: Plan,
        mut take: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<bool> {
        let rows = self.engine.start(plan)?;
        let mut rows = Box::pin(self.engine.drive(rows, deadline_passed));
        while let Some(batch) = rows.next().await.transpose()? {
            if !take(batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The rollups that start in `wanted`.
fn between(rollups: &RecordBatch, wanted: &Range<i64>) -> RecordBatch {
    let Some(starts) = rollups.column(0).as_primitive_opt::<TimestampMicrosecondType>() else {
        return rollups.slice(0, 0);
    };
    let first = starts.values().partition_point(|start| *start < wanted.start);
    let last = starts.values().partition_point(|start| *start < wanted.end);
    rollups.slice(first, last - first)
}
