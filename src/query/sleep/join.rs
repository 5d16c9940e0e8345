//! Joins neighbours of the same stage into one row.

use std::collections::{BTreeSet, VecDeque};

use super::resolve::Row;
use super::samples::SourceNumber;

/// Joins rows that come in their order.
#[derive(Debug)]
pub(super) enum Joiner {
    /// Leaves rows as they are.
    Nothing,
    /// For rows that do not overlap: touching rows of one stage are joined, whatever their sources.
    Neighbours(Option<Row>),
    /// For rows that may overlap: touching rows of one stage and one source are joined.
    OfOneSource(Chains),
}

impl Joiner {
    pub(super) fn push(&mut self, row: Row, emit: &mut impl FnMut(Row)) {
        match self {
            Self::Nothing => emit(row),
            Self::Neighbours(last) => match last {
                Some(last) if last.end == row.start && last.stage == row.stage => last.end = row.end,
                _ => {
                    if let Some(last) = last.replace(row) {
                        emit(last);
                    }
                }
            },
            Self::OfOneSource(chains) => chains.push(row, emit),
        }
    }

    /// The number of rows that are held: those that may be continued, and those behind them.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Neighbours(last) => usize::from(last.is_some()),
            Self::OfOneSource(chains) => chains.waiting.len(),
        }
    }

    /// Emits what is left.
    pub(super) fn finish(&mut self, emit: &mut impl FnMut(Row)) {
        match self {
            Self::Nothing => {}
            Self::Neighbours(last) => {
                if let Some(last) = last.take() {
                    emit(last);
                }
            }
            Self::OfOneSource(chains) => chains.release(i64::MAX, emit),
        }
    }
}

/// Rows that another may still continue, and rows that wait behind them.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// In the order of their starts.
    waiting: VecDeque<Row>,
    /// The number of rows that were emitted.
    released: u64,
    /// How many of the waiting rows, from the first on, end before every later row.
    ended: usize,
    /// The ends at which rows can be continued: end, stage, source, number of the row.
    ends: BTreeSet<(i64, i64, SourceNumber, u64)>,
}

impl Chains {
    fn push(&mut self, row: Row, emit: &mut impl FnMut(Row)) {
        self.release(row.start, emit);
        let from = (row.start, row.stage, row.source, 0);
        let to = (row.start, row.stage, row.source, u64::MAX);
        let continued = self.ends.range(from..=to).next().copied();
        let number = if let Some(continued) = continued {
            self.ends.remove(&continued);
            if let Some(first) = self.waiting.get_mut((continued.3 - self.released) as usize) {
                first.end = row.end;
            }
            continued.3
        } else {
            self.waiting.push_back(row);
            self.released + self.waiting.len() as u64 - 1
        };
        self.ends.insert((row.end, row.stage, row.source, number));
    }

    /// Emits rows that nothing starting at `moment` or later can continue or precede.
    fn release(&mut self, moment: i64, emit: &mut impl FnMut(Row)) {
        while self.waiting.get(self.ended).is_some_and(|row| row.end < moment) {
            self.ended += 1;
        }
        // Rows of the same start leave together, because their ends decide their order.
        while let Some(first) = self.waiting.front().filter(|_| self.ended > 0) {
            let start = first.start;
            // They are in the order of their starts: what is in between has this one, too.
            if self.waiting.get(self.ended).is_some_and(|row| row.start == start) {
                return;
            }
            let group = self
                .waiting
                .iter()
                .take(self.ended)
                .take_while(|row| row.start == start)
                .count();
            let mut rows: Vec<Row> = Vec::with_capacity(group);
            for row in self.waiting.drain(..group) {
                self.ends.remove(&(row.end, row.stage, row.source, self.released));
                self.released += 1;
                rows.push(row);
            }
            self.ended -= group;
            rows.sort_unstable();
            rows.into_iter().for_each(&mut *emit);
        }
    }
}
