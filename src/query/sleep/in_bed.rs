//! The time in bed, as sources recorded it: conflicts about stages do not reduce it.

use std::collections::VecDeque;

use crate::query::ground::clip_windows::WindowClip;

/// Samples of being in bed that a cycle may still touch. A sample inside another is redundant and dropped, so
/// starts and ends of the others both ascend: a month in bed hides every night in it.
#[derive(Debug)]
pub(super) struct InBed {
    clip: WindowClip,
    samples: VecDeque<(i64, i64)>,
}

impl InBed {
    #[must_use]
    pub(super) fn new(clip: WindowClip) -> Self {
        Self {
            clip,
            samples: VecDeque::new(),
        }
    }

    /// Takes a sample as it was recorded. Samples come in the order of their starts.
    pub(super) fn push(&mut self, start: i64, end: i64) {
        if self.samples.back().is_some_and(|last| last.1 >= end) {
            return;
        }
        if self.samples.back().is_some_and(|last| last.0 == start) {
            self.samples.pop_back();
        }
        self.samples.push_back((start, end));
    }

    /// Drops samples that no later cycle can touch; none starts before `moment`.
    pub(super) fn forget_before(&mut self, moment: i64) {
        while self.samples.front().is_some_and(|first| first.1 < moment) {
            self.samples.pop_front();
        }
    }

    /// The number of samples that are kept.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The union of the samples that touch a cycle: sorted, disjoint, not touching.
    #[must_use]
    pub(super) fn block(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let first = self.samples.partition_point(|sample| sample.1 < start);
        let near = self
            .samples
            .iter()
            .skip(first)
            .take_while(|sample| sample.0 <= end);
        let parts = near.flat_map(|&(from, to)| self.clip.parts(from, to));
        let mut touching: Vec<(i64, i64)> = parts.filter(|part| part.0 <= end && part.1 >= start).collect();
        touching.sort_unstable();
        union(touching)
    }
}

/// The union of spans that are sorted by their starts.
#[must_use]
pub(super) fn union(spans: impl IntoIterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}
