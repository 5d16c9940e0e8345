//! Turns samples into rows: one sample wins each moment, or all are shown; either way nothing outside of the
//! visible windows remains.
//!
//! Samples compete as they were recorded, and only the result is cut: the owner and a reader who sees a part
//! of a night see the same winners in it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::query::ground::turn::Turn;
use crate::query::sweep::{Stretch, Sweep};

use super::clip::OrderedWindowClip;
use super::samples::{Sample, SourceNumber};

/// How many rows take up as much memory as a sample in the sweep, whose heap may have room for as many again.
const ROWS_OF_SAMPLE: usize = 4;

/// A span of time in one stage. Rows are ordered as answers are: by start, end and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Microseconds since 1970.
    pub start: i64,
    pub end: i64,
    /// The id of its (first) sample.
    pub id: u128,
    pub stage: i64,
    pub source: SourceNumber,
}

impl Row {
    fn of(sample: &Sample, start: i64, end: i64) -> Self {
        Self {
            start,
            end,
            id: sample.id,
            stage: sample.stage,
            source: sample.source,
        }
    }
}

/// Makes rows of samples that come in the order of their starts. Emits rows in order.
#[derive(Debug)]
pub(super) struct Rows {
    /// Samples that were taken and have not competed yet.
    coming: VecDeque<Sample>,
    clip: OrderedWindowClip,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// One sample wins each moment. Rows are disjoint.
    Resolved(Sweep<Sample>),
    /// Every sample is shown. Parts wait until nothing can come before them.
    Apart(BinaryHeap<Reverse<Row>>),
}

impl Rows {
    #[must_use]
    pub(super) fn new(clip: OrderedWindowClip, merge_overlapping: bool) -> Self {
        let way = if merge_overlapping {
            Way::Resolved(Sweep::default())
        } else {
            Way::Apart(BinaryHeap::new())
        };
        Self {
            coming: VecDeque::new(),
            clip,
            way,
        }
    }

    /// Takes the next sample, which competes in a turn.
    pub(super) fn take(&mut self, sample: Sample) {
        self.coming.push_back(sample);
    }

    /// Lets the samples compete that were taken, as far as the turn goes. `false`: there are more.
    pub(super) fn go_on(&mut self, turn: &mut Turn, emit: &mut impl FnMut(Row)) -> bool {
        while let Some(&sample) = self.coming.front() {
            if !self.settle(sample.start, turn, emit) {
                return false;
            }
            self.coming.pop_front();
            self.push(sample, emit);
        }
        true
    }

    /// Emits what is certain once no later sample starts before `moment`, as far as the turn goes. `false`:
    /// there is more.
    fn settle(&mut self, moment: i64, turn: &mut Turn, emit: &mut impl FnMut(Row)) -> bool {
        let Self { clip, way, .. } = self;
        while !turn.is_over() {
            turn.spend(1);
            let goes_on = match way {
                Way::Resolved(sweep) => sweep.settle_next(moment, &mut |stretch| won(clip, &stretch, emit)),
                Way::Apart(waiting) => emit_first(waiting, moment, emit),
            };
            if !goes_on {
                return true;
            }
        }
        false
    }

    /// Takes a sample before whose start everything is settled.
    fn push(&mut self, sample: Sample, emit: &mut impl FnMut(Row)) {
        let clip = &mut self.clip;
        match &mut self.way {
            Way::Resolved(sweep) => sweep.push(sample, &mut |stretch| won(clip, &stretch, emit)),
            Way::Apart(waiting) => clip.parts(sample.start, sample.end, &mut |start, end| {
                waiting.push(Reverse(Row::of(&sample, start, end)));
            }),
        }
    }

    /// The number of rows that take up as much memory as the samples and parts of samples that are held once
    /// all that were taken have competed.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        match &self.way {
            Way::Resolved(sweep) => sweep.open() * ROWS_OF_SAMPLE,
            Way::Apart(waiting) => waiting.len(),
        }
    }

    /// Emits what is left once nothing more comes, as far as the turn goes. `false`: there is more.
    pub(super) fn finish(&mut self, turn: &mut Turn, emit: &mut impl FnMut(Row)) -> bool {
        self.go_on(turn, emit) && self.settle(i64::MAX, turn, emit)
    }
}

fn won(clip: &mut OrderedWindowClip, stretch: &Stretch<'_, Sample>, emit: &mut impl FnMut(Row)) {
    if let Some(winner) = stretch.winners.first() {
        clip.parts(stretch.start, stretch.end, &mut |start, end| {
            emit(Row::of(winner, start, end));
        });
    }
}

/// Emits the first of the rows if it starts before `moment`; whether it did.
fn emit_first(waiting: &mut BinaryHeap<Reverse<Row>>, moment: i64, emit: &mut impl FnMut(Row)) -> bool {
    let is_certain = waiting.peek().is_some_and(|Reverse(first)| first.start < moment);
    if is_certain && let Some(Reverse(row)) = waiting.pop() {
        emit(row);
    }
    is_certain
}
