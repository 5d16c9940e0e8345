//! Bins over a range of time: all of one width, or the periods of a calendar in some zone.
//!
//! A grid is computed once for a question and holds its edges as runs of equal width, so that a year of
//! seconds takes as much memory as a day, and no row needs a look at a zone. Bins are half-open, ascending
//! and without gaps; the first may begin before the range, the last ends with it.

mod calendar;
#[cfg(test)]
mod tests;

use super::time::{Instant, TimeRange};

pub use calendar::start_of_day;

/// Bins, numbered from 0 on. Edge `i` begins bin `i`; edge `len` ends the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    runs: Vec<Run>,
    end: i64,
    len: u64,
}

/// Edges at equal distances: `start`, `start + width`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    /// The number of the bin that the first edge begins.
    first: u64,
    start: i64,
    /// At least one microsecond.
    width: i64,
    /// At least one.
    count: u64,
}

impl Run {
    const fn edge(self, within: u64) -> i64 {
        self.start
            .saturating_add(self.width.saturating_mul(within as i64))
    }

    /// The bin of an instant that is not before the run. The last bin takes everything later.
    fn bin_of(self, micros: i64) -> u64 {
        let within = (micros.saturating_sub(self.start) / self.width) as u64;
        self.first + within.min(self.count - 1)
    }
}

/// One bin with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    pub index: u64,
    pub start: Instant,
    pub end: Instant,
}

impl Grid {
    /// Bins of `width` microseconds from the start of the range on. The last is cut where the range ends.
    /// A width below one counts as one.
    #[must_use]
    pub fn uniform(range: TimeRange, width: i64) -> Self {
        let (start, end) = (range.start().micros(), range.end().micros());
        let mut edges = Edges::default();
        let width = width.max(1);
        // The length of a range fits into 64 bits: instants lie within the calendar.
        let length = end.saturating_sub(start) as u64;
        if length > 0 {
            edges.push(start, width, length.div_ceil(width as u64));
        }
        edges.into_grid(start, end)
    }

    /// The number of bins. Costs nothing, so it can be asked before anything else is done.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// The bins from the one on that contains an instant; all of them for an instant before the first.
    #[must_use]
    pub fn starting(&self, from: Instant) -> Self {
        let runs = self.runs.clone();
        Edges { runs }.into_grid(from.micros(), self.end)
    }

    /// Whether every bin begins at a multiple of `step` microseconds since 1970.
    #[must_use]
    pub fn begins_at_multiples_of(&self, step: i64) -> bool {
        let is_multiple = |micros: i64| micros.rem_euclid(step) == 0;
        self.runs
            .iter()
            .all(|run| is_multiple(run.start) && (run.count == 1 || is_multiple(run.width)))
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The start of bin `index`; at `len` and beyond, the end of the last bin.
    #[must_use]
    pub fn edge(&self, index: u64) -> Instant {
        let after = self.runs.partition_point(|run| run.first <= index);
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at));
        match run {
            Some(run) if index < self.len => Instant::from_micros(run.edge(index - run.first)),
            _ => Instant::from_micros(self.end),
        }
    }

    /// The bin that contains an instant.
    #[must_use]
    pub fn bin_of(&self, instant: Instant) -> Option<u64> {
        let micros = instant.micros();
        if micros >= self.end {
            return None;
        }
        let after = self.runs.partition_point(|run| run.start <= micros);
        let run = self.runs.get(after.checked_sub(1)?)?;
        Some(run.bin_of(micros))
    }

    /// How many of the bins after `index` are known to be as wide as it is, and that width.
    #[must_use]
    pub fn alike_after(&self, index: u64) -> (u64, i64) {
        let after = self.runs.partition_point(|run| run.first <= index);
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at));
        // The last bin of a run may be cut short by the next run.
        let alike = |run: &Run| (run.count.saturating_sub(index - run.first + 2), run.width);
        run.map_or((0, 0), alike)
    }

    /// The bounds of all bins, in order.
    pub fn bins(&self) -> impl Iterator<Item = (Instant, Instant)> + '_ {
        self.bins_from(0).map(|bin| (bin.start, bin.end))
    }

    /// The bins from `index` on.
    #[must_use]
    pub fn bins_from(&self, index: u64) -> Bins<'_> {
        let run = self
            .runs
            .partition_point(|run| run.first <= index)
            .saturating_sub(1);
        Bins {
            grid: self,
            run,
            next: index,
        }
    }

    /// A cursor that finds the bins of ascending instants without searching for each.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        let at = Instant::from_micros(i64::MIN);
        Cursor {
            grid: self,
            run: 0,
            bin: Bin {
                index: 0,
                start: at,
                end: at,
            },
        }
    }

    /// Bin number `index`, which is in run number `run`.
    fn bin(&self, run: usize, index: u64) -> Option<Bin> {
        let held = self.runs.get(run)?;
        let within = index.checked_sub(held.first)?;
        let end = if within + 1 < held.count {
            held.edge(within + 1)
        } else {
            self.runs.get(run + 1).map_or(self.end, |next| next.start)
        };
        Some(Bin {
            index,
            start: Instant::from_micros(held.edge(within)),
            end: Instant::from_micros(end),
        })
    }
}

/// Iterates over bins.
#[derive(Clone, Debug)]
pub struct Bins<'a> {
    grid: &'a Grid,
    run: usize,
    next: u64,
}

impl Iterator for Bins<'_> {
    type Item = Bin;

    fn next(&mut self) -> Option<Bin> {
        let run = self.grid.runs.get(self.run)?;
        if self.next - run.first >= run.count {
            self.run += 1;
        }
        let bin = self.grid.bin(self.run, self.next)?;
        self.next += 1;
        Some(bin)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.grid.len.saturating_sub(self.next) as usize;
        (left, Some(left))
    }
}

/// Remembers the last bin found, because the next instant is mostly in it or the one after. Finds instants in
/// any order, ascending ones fast.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    grid: &'a Grid,
    run: usize,
    bin: Bin,
}

impl Cursor<'_> {
    /// The bin that contains an instant, as `Grid::bin_of` finds it.
    #[must_use]
    pub fn find(&mut self, instant: Instant) -> Option<Bin> {
        if instant < self.bin.start || instant >= self.bin.end {
            self.bin = self.seek(instant)?;
        }
        Some(self.bin)
    }

    #[must_use]
    pub fn bin_of(&mut self, instant: Instant) -> Option<u64> {
        self.find(instant).map(|bin| bin.index)
    }

    fn seek(&mut self, instant: Instant) -> Option<Bin> {
        let (runs, micros) = (&self.grid.runs, instant.micros());
        if micros >= self.grid.end {
            return None;
        }
        let begun = |at: usize| runs.get(at).is_some_and(|run| run.start <= micros);
        if !begun(self.run) || begun(self.run + 2) {
            self.run = runs.partition_point(|run| run.start <= micros).checked_sub(1)?;
        } else if begun(self.run + 1) {
            self.run += 1;
        }
        let index = runs.get(self.run)?.bin_of(micros);
        self.grid.bin(self.run, index)
    }
}

/// Collects edges in ascending order.
#[derive(Debug, Default)]
struct Edges {
    runs: Vec<Run>,
}

impl Edges {
    /// Adds `count` edges. The first lies after all earlier ones.
    fn push(&mut self, start: i64, width: i64, count: u64) {
        if count == 0 {
            return;
        }
        let width = width.max(1);
        let Some(last) = self.runs.last_mut() else {
            return self.begin(start, width, count, 0);
        };
        let latest = last.edge(last.count - 1);
        debug_assert!(start > latest, "edges come in ascending order");
        let distance = start - latest;
        let goes_on = (last.count == 1 || last.width == distance) && (count == 1 || distance == width);
        if goes_on {
            last.width = distance;
            last.count += count;
        } else {
            let first = last.first + last.count;
            self.begin(start, width, count, first);
        }
    }

    fn begin(&mut self, start: i64, width: i64, count: u64, first: u64) {
        self.runs.push(Run {
            first,
            start,
            width,
            count,
        });
    }

    /// The grid that covers `[start, end)`. Drops edges before the last one that is not after `start`, and
    /// edges not before `end`.
    fn into_grid(self, start: i64, end: i64) -> Grid {
        let mut runs = Vec::with_capacity(self.runs.len());
        let mut len = 0;
        if start < end {
            let begins = self
                .runs
                .partition_point(|run| run.start <= start)
                .saturating_sub(1);
            for (at, run) in self.runs.into_iter().enumerate().skip(begins) {
                if run.start >= end {
                    break;
                }
                let skipped = if at == begins {
                    run.bin_of(start.max(run.start)) - run.first
                } else {
                    0
                };
                let before_end = (end.saturating_sub(run.start) as u64).div_ceil(run.width as u64);
                let count = run.count.min(before_end) - skipped;
                runs.push(Run {
                    first: len,
                    start: run.edge(skipped),
                    width: run.width,
                    count,
                });
                len += count;
            }
        }
        Grid { runs, end, len }
    }
}
