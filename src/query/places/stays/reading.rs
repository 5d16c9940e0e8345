//! Reads updates until the stays of a range are found in their whole length.

use std::collections::VecDeque;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;

use crate::model::time::{Instant, TimeRange};
use crate::query::ground::turn::Turn;
use crate::query::operator::Input;

use super::beginning::Beginning;
use super::search::{Search, Stay};
use super::update::Update;

/// Reads the same updates over more and more time, until it is enough.
pub(super) struct Reading {
    range: TimeRange,
    /// The inputs that were not read yet, with their time.
    inputs: VecDeque<(Input, TimeRange)>,
    /// The time that is read, and the rows of it; `None` after the last one.
    read: TimeRange,
    rows: Option<SendableRecordBatchStream>,
    /// `None` as soon as it is certain where stays begin, or nothing earlier is read.
    beginning: Option<Beginning>,
    search: Search,
    /// Where what may be read begins again: what happened before it is not known.
    gaps: VecDeque<Instant>,
    /// Stays that begin before this were found in an earlier input.
    found_until: i64,
    turn: Turn,
}

/// What to read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    More,
    /// The next input, which has more before and after.
    Farther,
    Nothing,
}

impl Reading {
    /// `windows`: what may be read of the range, by time.
    pub(super) fn new(
        range: TimeRange,
        windows: &[TimeRange],
        inputs: VecDeque<(Input, TimeRange)>,
    ) -> Result<Self> {
        let mut reading = Self {
            range,
            inputs,
            read: range,
            rows: None,
            beginning: None,
            search: Search::default(),
            gaps: windows.iter().skip(1).map(|window| window.start()).collect(),
            found_until: i64::MIN,
            turn: Turn::new(),
        };
        reading.open()?;
        Ok(reading)
    }

    /// The next stays, which may be none, and also some outside the range; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Stay>>> {
        let Some(mut rows) = self.rows.take() else {
            return Ok(None);
        };
        let mut found = Vec::new();
        let next = match rows.next().await.transpose()? {
            Some(batch) => self.look_through(&batch, &mut found).await?,
            None => self.finish(&mut found),
        };
        found.retain(|stay| stay.from >= self.found_until);
        match next {
            Next::More => self.rows = Some(rows),
            Next::Farther => self.open()?,
            Next::Nothing => {}
        }
        Ok(Some(found))
    }

    /// Begins with the next input.
    fn open(&mut self) -> Result<()> {
        let Some((input, read)) = self.inputs.pop_front() else {
            return Ok(());
        };
        self.read = read;
        self.rows = Some(input.open()?);
        self.search = Search::default();
        let (range, known) = (self.range.start(), read.start());
        let can_begin_earlier = self.inputs.front().is_some_and(|(_, next)| next.start() < known);
        self.beginning = can_begin_earlier.then(|| Beginning::new(range.micros(), known.micros()));
        Ok(())
    }

    async fn look_through(&mut self, batch: &RecordBatch, found: &mut Vec<Stay>) -> Result<Next> {
        let (start, end) = (self.range.start().micros(), self.range.end().micros());
        for update in Update::all_of(batch)? {
            if let Some(beginning) = &mut self.beginning {
                beginning.take(&update);
                if beginning.is_found() {
                    self.beginning = None;
                } else if update.time >= start {
                    // Nothing of the range was found yet.
                    return Ok(Next::Farther);
                }
            }
            while let Some(start) = self.gaps.front()
                && start.micros() <= update.time
            {
                self.search.finish(found);
                self.gaps.pop_front();
            }
            self.search.take(update, found, &mut self.turn).await;
            if update.time >= end && !self.search.began_before(end) {
                return Ok(Next::Nothing);
            }
        }
        Ok(Next::More)
    }

    /// There are no more rows of the input.
    fn finish(&mut self, found: &mut Vec<Stay>) -> Next {
        let end = self.read.end();
        let can_end_later = self.inputs.front().is_some_and(|(_, next)| next.end() > end);
        if can_end_later && let Some(since) = self.search.going_on_at(end.micros()) {
            self.found_until = since;
            return Next::Farther;
        }
        self.search.finish(found);
        Next::Nothing
    }
}
