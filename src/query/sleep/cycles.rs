//! Finds cycles: the time between two gaps.
//!
//! Rows of gap stages neither make a cycle nor lengthen it; those inside a cycle belong to it, others to
//! none. Cycles that share no time with the requested range are skipped and not numbered.

use std::collections::VecDeque;

use super::resolve::Row;
use super::stages::StageSet;

/// Receives rows and cycles in order as they are found: the rows of a cycle, then its end.
pub(super) trait CycleSink {
    /// A row of cycle `number`.
    fn row(&mut self, number: i64, row: &Row);
    /// The cycle is complete.
    fn closed(&mut self, cycle: Cycle);
    /// No cycle is open, and no later one starts before `moment`.
    fn idle(&mut self, _moment: i64) {}
}

/// A cycle, from the first start to the last end of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub number: i64,
    pub start: i64,
    pub end: i64,
}

/// Finds cycles in rows that come in their order.
#[derive(Debug)]
pub(super) struct CycleFinder {
    gap: i64,
    gap_stages: StageSet,
    /// Cycles that share time with this range are emitted.
    asked: (i64, i64),
    open: Option<Open>,
    /// Rows of gap stages that start where the next cycle may start.
    early: Vec<Row>,
    next_number: i64,
}

#[derive(Debug)]
struct Open {
    /// `None` until it is known to share time with the range.
    number: Option<i64>,
    start: i64,
    /// The last end of rows that make the cycle.
    end: i64,
    /// Rows that cannot be emitted yet.
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    row: Row,
    /// Whether it makes the cycle. A row of a gap stage belongs to the cycle if it ends no later.
    makes: bool,
}

impl CycleFinder {
    #[must_use]
    pub(super) fn new(gap: i64, gap_stages: StageSet, asked: (i64, i64)) -> Self {
        Self {
            gap,
            gap_stages,
            asked,
            open: None,
            early: Vec::new(),
            next_number: 0,
        }
    }

    pub(super) fn push(&mut self, row: Row, sink: &mut impl CycleSink) {
        if self
            .open
            .as_ref()
            .is_some_and(|open| row.start.saturating_sub(open.end) >= self.gap)
        {
            self.close(sink);
        }
        let makes = !self.gap_stages.contains(row.stage);
        match &mut self.open {
            Some(open) => {
                if makes {
                    open.end = open.end.max(row.end);
                }
                open.waiting.push_back(Waiting { row, makes });
            }
            None if makes => {
                let early = self.early.drain(..).filter(|early| early.start == row.start);
                let mut waiting: VecDeque<Waiting> = early.map(|row| Waiting { row, makes: false }).collect();
                waiting.push_back(Waiting { row, makes: true });
                self.open = Some(Open {
                    number: None,
                    start: row.start,
                    end: row.end,
                    waiting,
                });
            }
            None => {
                if self.early.last().is_some_and(|early| early.start < row.start) {
                    self.early.clear();
                }
                self.early.push(row);
                sink.idle(row.start);
                return;
            }
        }
        self.tell(sink);
    }

    /// The number of rows that cannot be emitted yet.
    #[must_use]
    pub(super) fn waiting(&self) -> usize {
        self.early.len() + self.open.as_ref().map_or(0, |open| open.waiting.len())
    }

    pub(super) fn finish(&mut self, sink: &mut impl CycleSink) {
        self.close(sink);
        self.early.clear();
    }

    /// Emits the rows that are known to belong to the open cycle, as far as their order allows.
    fn tell(&mut self, sink: &mut impl CycleSink) {
        let Some(open) = &mut self.open else { return };
        if open.number.is_none() && open.start < self.asked.1 && open.end > self.asked.0 {
            open.number = Some(self.next_number);
            self.next_number += 1;
        }
        let Some(number) = open.number else { return };
        while let Some(first) = open.waiting.front() {
            if !first.makes && first.row.end > open.end {
                return;
            }
            sink.row(number, &first.row);
            open.waiting.pop_front();
        }
    }

    fn close(&mut self, sink: &mut impl CycleSink) {
        let Some(open) = self.open.take() else { return };
        let Some(number) = open.number else { return };
        let inside = |waiting: &&Waiting| waiting.makes || waiting.row.end <= open.end;
        for waiting in open.waiting.iter().filter(inside) {
            sink.row(number, &waiting.row);
        }
        sink.closed(Cycle {
            number,
            start: open.start,
            end: open.end,
        });
    }
}
