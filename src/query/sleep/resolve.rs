//! Turns samples into rows: one sample wins each moment, or all are shown; either way nothing outside of the
//! visible windows remains.
//!
//! Samples compete as they were recorded, and only the result is cut: the owner and a reader who sees a part
//! of a night see the same winners in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::query::sweep::{Stretch, Sweep};

use super::clip::OrderedWindowClip;
use super::samples::{Sample, SourceNumber};

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
        Self { clip, way }
    }

    pub(super) fn push(&mut self, sample: Sample, emit: &mut impl FnMut(Row)) {
        let clip = &mut self.clip;
        match &mut self.way {
            Way::Resolved(sweep) => sweep.push(sample, &mut |stretch| won(clip, &stretch, emit)),
            Way::Apart(waiting) => {
                while waiting
                    .peek()
                    .is_some_and(|Reverse(first)| first.start < sample.start)
                {
                    emit_first(waiting, emit);
                }
                clip.parts(sample.start, sample.end, &mut |start, end| {
                    waiting.push(Reverse(Row::of(&sample, start, end)));
                });
            }
        }
    }

    /// The number of samples and parts of samples that are held.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        match &self.way {
            Way::Resolved(sweep) => sweep.open(),
            Way::Apart(waiting) => waiting.len(),
        }
    }

    /// Emits what is left.
    pub(super) fn finish(&mut self, emit: &mut impl FnMut(Row)) {
        let clip = &mut self.clip;
        match &mut self.way {
            Way::Resolved(sweep) => sweep.finish(&mut |stretch| won(clip, &stretch, emit)),
            Way::Apart(waiting) => {
                while !waiting.is_empty() {
                    emit_first(waiting, emit);
                }
            }
        }
    }
}

fn won(clip: &mut OrderedWindowClip, stretch: &Stretch<'_, Sample>, emit: &mut impl FnMut(Row)) {
    if let Some(winner) = stretch.winners.first() {
        clip.parts(stretch.start, stretch.end, &mut |start, end| {
            emit(Row::of(winner, start, end));
        });
    }
}

fn emit_first(waiting: &mut BinaryHeap<Reverse<Row>>, emit: &mut impl FnMut(Row)) {
    if let Some(Reverse(row)) = waiting.pop() {
        emit(row);
    }
}
