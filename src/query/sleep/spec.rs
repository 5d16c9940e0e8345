//! Questions about sleep as plain data. Equal questions have equal answers on equal data.

use std::collections::HashMap;

use uuid::Uuid;

use crate::model::duration::Truncation;
use crate::model::names::named;
use crate::model::time::{Instant, MICROS_PER_HOUR, TimeRange};
use crate::model::zone::Zone;
use crate::query::statistic::Statistic;

pub use super::stages::StageSet;

/// How far beyond the range a cycle is followed if it is not clipped.
const LOOK_AROUND: i64 = 48 * MICROS_PER_HOUR;

/// The range, and what lies around it as far as a cycle is followed.
#[must_use]
pub fn around(range: TimeRange) -> TimeRange {
    let start = Instant::from_micros(range.start().micros().saturating_sub(LOOK_AROUND));
    let end = Instant::from_micros(range.end().micros().saturating_add(LOOK_AROUND));
    TimeRange::new(start, end).unwrap_or(range)
}

/// A question about sleep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Rows without conflicts, for other questions to build on.
    Resolved,
    /// Rows with the number of their cycle.
    Stages(StagesSpec),
    /// A row for each cycle.
    Cycles(CyclesSpec),
    /// A row for each period and stage.
    Aggregate(SleepTotalsSpec),
}

impl Question {
    /// Whether the answer depends on which source a sample comes from.
    #[must_use]
    pub const fn needs_sources(&self) -> bool {
        match self {
            Self::Stages(spec) => !(spec.merge_overlapping && spec.merge_contiguous),
            Self::Resolved | Self::Cycles(_) | Self::Aggregate(_) => false,
        }
    }

    /// This question, restricted to the visible part.
    #[must_use]
    pub(super) fn clipped(mut self) -> Self {
        match &mut self {
            Self::Resolved => {}
            Self::Stages(spec) => spec.cycles.clip = true,
            Self::Cycles(spec) => spec.clip = true,
            Self::Aggregate(spec) => spec.cycles.clip = true,
        }
        self
    }
}

/// Which cycles are requested, and how they are separated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CyclesSpec {
    pub range: TimeRange,
    /// Whether samples are cut to the visible windows. Otherwise cycles stay whole, and are included if they
    /// share time with the range.
    pub clip: bool,
    /// The shortest time without sleep that separates two cycles, in microseconds.
    pub gap: i64,
    /// Stages that count as such time.
    pub gap_stages: StageSet,
    /// Stages that are shown; `None` shows all.
    pub shown: Option<StageSet>,
    /// The zone whose noon separates nights; if set, rows name the night of their cycle.
    pub nights: Option<Zone>,
}

impl CyclesSpec {
    #[must_use]
    pub fn shows(&self, stage: i64) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(stage))
    }

    /// The time in which samples are looked for. They may begin before it and end after it.
    #[must_use]
    pub fn reads(&self) -> TimeRange {
        if self.clip { self.range } else { around(self.range) }
    }
}

/// Rows of a hypnogram.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StagesSpec {
    pub cycles: CyclesSpec,
    /// Whether one sample wins each moment. Otherwise all samples are shown.
    pub merge_overlapping: bool,
    /// Whether neighbours of the same stage become one row. Otherwise rows name their source.
    pub merge_contiguous: bool,
}

/// Totals of stages by period.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SleepTotalsSpec {
    pub cycles: CyclesSpec,
    pub mode: Mode,
    pub period: Truncation,
    pub zone: Zone,
    /// Each at most once, in the order of their columns.
    pub functions: Vec<Statistic>,
    /// The most cells of the answer: periods times functions.
    pub most_cells: u64,
}

/// The answer would have more cells than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cells} cells exceed the limit of {limit}; ask for a longer period or a shorter range")]
pub struct TooManyPeriods {
    pub cells: u64,
    pub limit: u64,
}

impl SleepTotalsSpec {
    /// The number of periods that touch a range. Those without sleep have no rows, but this is the largest
    /// possible number.
    #[must_use]
    pub fn periods_in(&self, range: TimeRange) -> u64 {
        self.period.grid(&self.zone, range).len()
    }

    /// Refuses so many periods if they are too many cells.
    pub fn refuse_too_many(&self, periods: u64) -> Result<(), TooManyPeriods> {
        let cells = periods.saturating_mul(self.functions.len() as u64);
        if cells <= self.most_cells {
            return Ok(());
        }
        Err(TooManyPeriods {
            cells,
            limit: self.most_cells,
        })
    }
}

/// The ids under which a person's sources are listed, by their stored keys.
pub type SourceNames = HashMap<String, Uuid>;

named! {
    "mode",
    /// The period to which a cycle belongs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Mode {
        /// The one in which it starts.
        Start = "start",
        /// The one in which it ends.
        #[default]
        End = "end",
        /// Each period gets the part that lies in it.
        Split = "split",
    }
}
