//! Samples that do not compete for time, on a grid: each is laid by itself into the bins that it touches.
//!
//! A level is a point of every such bin, rule 1.5a, and per bin the points of one source or of all count,
//! rules 1.4c and 1.4d. A logged amount gives each bin its part, rules 1.3 and 1.4b. Holds the samples that
//! reach beyond the current bin, and the state of that bin.

use super::bins::CurrentBin;
use super::calculation::Calculation;
use super::output::{Cell, Output};
use super::points::{Point, PointNeeds, Points};
use super::ranking::Standing;
use super::rows::Rows;
use super::spec::SeriesSpec;
use crate::model::summary::Summary;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::{Base, prorated};
use crate::query::ground::turn::Turn;

/// The bins of one question about samples that do not compete.
#[derive(Debug)]
pub(super) struct Independent {
    reading: Reading,
    needs: PointNeeds,
    rolls: bool,
    /// Whether only the mean of levels is asked for.
    means_alone: bool,
    current: CurrentBin,
    clip: WindowClip,
    rows: Option<Rows>,
    row: usize,
    ended: bool,
    /// Samples that reach beyond this bin, in the order of their starts.
    spans: Vec<Span>,
    /// How many of them were touched in this bin, if it is still being opened.
    opened: Option<usize>,
    /// Whether the points of this bin are those of all spans and of nothing else.
    only_spans: bool,
    /// When the first of the spans ends, as of when the bin was opened.
    spans_until: i64,
    /// How much is done for each point of a bin, compared with touching its sample.
    weight: usize,
    /// The sources that have a point in this bin; those from `taken` on are kept to reuse their memory.
    seats: Vec<Seat>,
    taken: usize,
    /// All points that counted in bins before this one.
    so_far: Summary,
}

/// How much more than touching a sample it is to sort its value among others.
const SORTING: usize = 8;
/// How many sources are passed in the time in which a sample is touched.
const SOURCES: usize = 16;

/// How a sample is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Level(Base),
    Amount,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: i64,
    end: i64,
    value: f64,
    id: [u8; 16],
    standing: Standing,
}

#[derive(Clone, Debug)]
struct Seat {
    source: u32,
    /// The best rank among its points.
    rank: u64,
    points: Points,
}

impl Independent {
    pub(super) fn new(spec: &SeriesSpec, reading: Reading, current: CurrentBin, clip: WindowClip) -> Self {
        let needs = PointNeeds {
            values: spec.needs_values(),
            order: spec.calculations.contains(&Calculation::AllPoints),
            places: spec.needs_places(),
            energy: reading == Reading::Level(Base::EquivalentLevel),
        };
        let is_mean = reading == Reading::Level(Base::Mean) && needs.only_summary();
        Self {
            reading,
            needs,
            means_alone: is_mean && spec.calculations.is_empty(),
            rolls: spec.calculations.contains(&Calculation::RollingMean),
            current,
            clip,
            rows: None,
            row: 0,
            ended: false,
            spans: Vec::new(),
            opened: None,
            only_spans: false,
            spans_until: i64::MIN,
            weight: 1 + SORTING * spec.sorted_statistics(),
            seats: Vec::new(),
            taken: 0,
            so_far: Summary::default(),
        }
    }

    /// Takes the next rows once the previous ones are drained.
    pub(super) fn feed(&mut self, rows: Rows) {
        self.rows = Some(rows);
        self.row = 0;
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Lays the rows into bins. `false`: the output is full or the turn is over, and there is more.
    pub(super) fn drain(&mut self, out: &mut Output, turn: &mut Turn) -> bool {
        if !self.open(turn) {
            return false;
        }
        if let Some(rows) = self.rows.take() {
            while let Some(start) = rows.starts.get(self.row).copied() {
                if start >= self.current.end {
                    let target = self.current.bin_of(start);
                    if !self.move_to(target, out, turn) {
                        self.rows = Some(rows);
                        return false;
                    }
                }
                if self.current.is_past() {
                    break;
                }
                if !(self.means_alone && self.take_means(&rows, out)) {
                    self.take(&rows);
                }
            }
        }
        !self.ended || self.move_to(self.current.last(), out, turn)
    }

    /// Takes consecutive rollups bin by bin without keeping state for them: most bins of long series are like
    /// that. Returns whether there were any.
    fn take_means(&mut self, rows: &Rows, out: &mut Output) -> bool {
        if self.taken > 0 || !self.spans.is_empty() || out.is_full() {
            return false;
        }
        let first = rows.starts.get(self.row).copied().unwrap_or(i64::MAX);
        if first < self.current.start || first >= self.current.end {
            return false;
        }
        let most = self.current.even_bins().min(out.room());
        let (start, width) = (self.current.start, self.current.width());
        let (bins, taken) = if let Some(means) = rows.means_in_turn(self.row, start, width, most) {
            let bins = means.len();
            out.push_means(start, width, means);
            (bins, bins)
        } else if let Some((means, taken)) = rows.means_of_several(self.row, start, width, most) {
            let bins = means.len();
            out.push_means(start, width, means.into_iter());
            (bins, taken)
        } else {
            return false;
        };
        self.row += taken;
        self.current.skip_even(bins);
        true
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        let points: usize = self.seats.iter().map(|seat| seat.points.memory()).sum();
        points + self.spans.capacity() * size_of::<Span>()
    }

    /// Takes the row, and following ones that can be handled together. They begin before the end of the bin.
    fn take(&mut self, rows: &Rows) {
        let row = self.row;
        let (Some(&start), Some(&end), Some(&value)) =
            (rows.starts.get(row), rows.ends.get(row), rows.values.get(row))
        else {
            return;
        };
        self.row += 1;
        self.only_spans = false;
        if let Some(rollup) = rows.rollup(row) {
            self.seat(rows.standing(row)).summary.merge(&rollup);
            return;
        }
        if start < end {
            let span = Span {
                start,
                end,
                value,
                id: rows.id(row),
                standing: rows.standing(row),
            };
            self.touch(&span);
            if end > self.current.end {
                self.spans.push(span);
            }
            return;
        }
        let Some(until) = self.clip.until(start) else {
            return;
        };
        if self.needs.only_summary() {
            self.row = row + self.summarise(rows, row, until.min(self.current.end));
            return;
        }
        let point = Point {
            value,
            start,
            id: rows.id(row),
            overlap: 0,
        };
        let needs = self.needs;
        self.seat(rows.standing(row)).add(point, needs);
    }

    /// Takes instants of one standing from `row` on while they lie before `limit`; returns how many.
    fn summarise(&mut self, rows: &Rows, row: usize, limit: i64) -> usize {
        let starts = rows.starts.get(row..).unwrap_or_default();
        let ends = rows.ends.get(row..).unwrap_or_default();
        let inside = starts
            .iter()
            .zip(ends)
            .take_while(|(start, end)| **start < limit && start == end)
            .count();
        let count = rows.alike(row, inside);
        let values = rows.values.get(row..row + count).unwrap_or_default();
        let summary = &mut self.seat(rows.standing(row)).summary;
        let mut sum = *summary;
        for value in values {
            sum.add(*value);
        }
        *summary = sum;
        count.max(1)
    }

    fn touch(&mut self, span: &Span) {
        let overlap = self
            .clip
            .length(span.start.max(self.current.start), span.end.min(self.current.end));
        if overlap > 0 {
            let value = match self.reading {
                Reading::Level(_) => span.value,
                Reading::Amount => prorated(span.value, overlap, span.end - span.start),
            };
            let point = Point {
                value,
                start: span.start,
                id: span.id,
                overlap,
            };
            let needs = self.needs;
            self.seat(span.standing).add(point, needs);
        }
    }

    fn seat(&mut self, standing: Standing) -> &mut Points {
        let taken = self.seats.iter().take(self.taken);
        let found = taken.into_iter().position(|seat| seat.source == standing.source);
        let at = found.unwrap_or(self.taken);
        if found.is_none() {
            self.taken += 1;
            if at == self.seats.len() {
                self.seats.push(Seat {
                    source: standing.source,
                    rank: standing.rank,
                    points: Points::default(),
                });
            } else {
                let seat = &mut self.seats[at];
                (seat.source, seat.rank) = (standing.source, standing.rank);
                seat.points.clear();
            }
        }
        let seat = &mut self.seats[at];
        seat.rank = seat.rank.min(standing.rank);
        &mut seat.points
    }

    /// Closes bins until `target` is the one being filled. `false`: the output is full or the turn is over
    /// before that.
    fn move_to(&mut self, target: u64, out: &mut Output, turn: &mut Turn) -> bool {
        while self.current.index < target {
            if out.is_full() {
                return false;
            }
            if self.taken == 0 && self.spans.is_empty() {
                let rolling = self.rolling();
                out.push_empty(&mut self.current, target, rolling);
                continue;
            }
            if turn.is_over() {
                return false;
            }
            turn.spend(1);
            self.close(out);
            let (start, end) = (self.current.start, self.current.end);
            self.current.move_to(self.current.index + 1);
            if self.is_like(start, end) {
                if self.needs.values {
                    turn.spend(self.weight * self.spans.len());
                }
                continue;
            }
            self.taken = 0;
            let begin = self.current.start;
            self.spans.retain(|span| span.end > begin);
            let ends = self.spans.iter().map(|span| span.end);
            self.spans_until = ends.min().unwrap_or(i64::MIN);
            (self.opened, self.only_spans) = (Some(0), true);
            if !self.open(turn) {
                return false;
            }
        }
        true
    }

    /// Whether the points of this bin are those of the bin before, `[start, end)`: the same spans cover
    /// all of both, as much of both is visible, and so far nothing begins in it. Most bins under long spans
    /// are like that, however many spans there are.
    fn is_like(&self, start: i64, end: i64) -> bool {
        self.only_spans
            && self.spans_until >= self.current.end
            && self.clip.length(start, end) == self.clip.length(self.current.start, self.current.end)
    }

    /// Emits the bin. Its points stay.
    fn close(&mut self, out: &mut Output) {
        if self.needs.order {
            for seat in self.seats.iter_mut().take(self.taken) {
                seat.points.settle();
            }
        }
        let best = self.seats.iter().take(self.taken).min_by_key(|seat| seat.rank);
        let Some(best) = best else {
            return out.push(self.current.start, Cell::empty(self.rolling()));
        };
        self.so_far.merge(&best.points.summary);
        let cell = Cell {
            base: match self.reading {
                Reading::Level(base) => best.points.base(base),
                Reading::Amount => best.points.number(Calculation::Sum),
            },
            count: best.points.summary.count,
            points: Some(&best.points),
            rolling: self.rolling(),
        };
        out.push(self.current.start, cell);
    }

    /// Begins a bin with the samples that reach into it. `false`: the turn is over before that.
    fn open(&mut self, turn: &mut Turn) -> bool {
        let Some(from) = self.opened.take() else {
            return true;
        };
        let spans = std::mem::take(&mut self.spans);
        for (place, span) in spans.iter().enumerate().skip(from) {
            if turn.is_over() {
                self.opened = Some(place);
                break;
            }
            self.touch(span);
            turn.spend(self.weight + self.taken / SOURCES);
        }
        self.spans = spans;
        self.opened.is_none()
    }

    fn rolling(&self) -> Option<f64> {
        let any = self.rolls && self.so_far.count > 0;
        any.then(|| self.so_far.sum.value() / self.so_far.count as f64)
    }
}
