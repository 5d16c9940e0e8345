//! Amounts of which only the best source counts, on a grid: each bin gets the part of every sample that
//! counts in it, rule 1.3.

use super::bins::CurrentBin;
use super::calculation::Calculation;
use super::contest::Sample;
use super::output::{Cell, Output};
use super::resolve::Resolver;
use super::rows::Rows;
use super::spec::SeriesSpec;
use crate::model::sum::Sum;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::prorated;
use crate::query::ground::turn::Turn;

/// The bins of one question about amounts that compete for time.
#[derive(Debug)]
pub(super) struct Competing {
    current: CurrentBin,
    resolver: Resolver,
    rows: Option<Rows>,
    row: usize,
    /// How far the current row has been laid, if only in part.
    within_sample: i64,
    /// Whether there are no more rows, and whether all of them are resolved.
    ended: bool,
    resolved: bool,
    /// Whether the turn was over while rows were resolved.
    resolving: bool,
    bin: Amount,
    /// How far the resolver's portions and instants have been laid into bins.
    portion: usize,
    within_portion: i64,
    instant: usize,
}

/// Where resolving stopped.
#[derive(Clone, Copy, Debug)]
enum Stopped {
    /// At a row that shares its time with no other; the moment by which such rows must end.
    Apart(i64),
    /// Behind the last row.
    End,
    TurnIsOver,
}

/// The amount of a bin so far.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    sum: Sum,
    /// A sample may count for nothing but still touch the bin.
    touched: bool,
    samples: u64,
}

impl Amount {
    fn add(&mut self, part: f64, samples: u64) {
        self.sum.add(part);
        self.touched = true;
        self.samples += samples;
    }
}

impl Competing {
    pub(super) fn new(spec: &SeriesSpec, current: CurrentBin, clip: WindowClip) -> Self {
        let counts = spec.calculations.contains(&Calculation::Count);
        Self {
            current,
            resolver: Resolver::new(clip, counts.then(|| spec.grid.clone())),
            rows: None,
            row: 0,
            within_sample: i64::MIN,
            ended: false,
            resolved: false,
            resolving: false,
            bin: Amount::default(),
            portion: 0,
            within_portion: i64::MIN,
            instant: 0,
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
        loop {
            // What is resolved in part is not laid yet: something earlier may follow.
            if !self.resolving && !self.lay_resolved(out, turn) {
                return false;
            }
            let Some(rows) = self.rows.take() else {
                if !self.ended {
                    return true;
                }
                if self.resolved {
                    return self.move_to(self.current.last(), out);
                }
                self.resolving = !self.resolve_rest(turn);
                if self.resolving {
                    return false;
                }
                continue;
            };
            let stopped = self.resolve(&rows, turn);
            self.resolving = matches!(stopped, Stopped::TurnIsOver);
            // What was resolved lies before the samples that need no resolving.
            let goes_on = !self.resolving
                && self.lay_resolved(out, turn)
                && match stopped {
                    Stopped::Apart(until) => self.lay_apart(&rows, until, out),
                    Stopped::End | Stopped::TurnIsOver => true,
                };
            if self.resolving || self.row < rows.starts.len() {
                self.rows = Some(rows);
            }
            if !goes_on {
                return false;
            }
        }
    }

    /// Resolves rows up to the first that shares its time with no other, as far as the turn goes.
    fn resolve(&mut self, rows: &Rows, turn: &mut Turn) -> Stopped {
        while let Some(sample) = rows.sample(self.row) {
            if !self.resolver.settle(sample.start, turn) {
                return Stopped::TurnIsOver;
            }
            if rows.is_apart(self.row)
                && let Some(until) = self.resolver.clear_from(sample.start)
                && sample.end <= until
            {
                return Stopped::Apart(until);
            }
            self.row += 1;
            let next = rows.starts.get(self.row).copied();
            self.resolver.push(sample, next.unwrap_or(sample.start));
        }
        if let Some(last) = rows.starts.last() {
            if !self.resolver.settle(*last, turn) {
                return Stopped::TurnIsOver;
            }
            self.resolver.advance(*last);
        }
        Stopped::End
    }

    /// Resolves what is left when there are no more rows. `false`: the turn is over before that.
    fn resolve_rest(&mut self, turn: &mut Turn) -> bool {
        self.resolved = self.resolver.finish(turn);
        self.resolved
    }

    /// Lays rows that share their time with no other, as most do, and end by `until`. `false`: the output is
    /// full, and there is more.
    fn lay_apart(&mut self, rows: &Rows, until: i64, out: &mut Output) -> bool {
        while rows.is_apart(self.row)
            && let Some(sample) = rows.sample(self.row).filter(|sample| sample.end <= until)
        {
            if !self.lay_whole(&sample, out) {
                return false;
            }
            self.resolver.pass(&sample);
            self.row += 1;
            self.lay_inside(rows, until);
        }
        true
    }

    /// Lays rows of the same standing that end in the bin.
    fn lay_inside(&mut self, rows: &Rows, until: i64) {
        let values = rows.apart_until(self.row, until.min(self.current.end));
        let Some(last) = values.len().checked_sub(1) else {
            return;
        };
        let mut bin = self.bin;
        for value in values {
            bin.add(*value, 1);
        }
        self.bin = bin;
        if let Some(sample) = rows.sample(self.row + last) {
            self.resolver.pass(&sample);
        }
        self.row += values.len();
    }

    /// Lays a sample that counts in full. `false`: the output is full before that.
    fn lay_whole(&mut self, sample: &Sample, out: &mut Output) -> bool {
        let mut moment = sample.start.max(self.within_sample);
        while moment < sample.end {
            if moment >= self.current.end {
                let target = self.current.bin_of(moment);
                if !self.move_to(target, out) {
                    self.within_sample = moment;
                    return false;
                }
            }
            if self.current.is_past() {
                break;
            }
            let end = sample.end.min(self.current.end);
            let part = prorated(sample.value, end - moment, sample.end - sample.start);
            self.bin.add(part, 1);
            moment = end;
        }
        self.within_sample = i64::MIN;
        true
    }

    /// Lays what was resolved into bins. `false`: the output is full or the turn is over, and there is more.
    fn lay_resolved(&mut self, out: &mut Output, turn: &mut Turn) -> bool {
        if !self.resolver.go_on(turn) {
            return false;
        }
        while !self.current.is_past() {
            let portion = self.resolver.portion(self.portion);
            let portion_start = portion.map(|portion| portion.start.max(self.within_portion));
            let instant = self.resolver.instants.get(self.instant).copied();
            let Some(moment) = portion_start
                .into_iter()
                .chain(instant.map(|instant| instant.at))
                .min()
            else {
                break;
            };
            if moment >= self.current.end {
                let target = self.current.bin_of(moment);
                if !self.move_to(target, out) {
                    return false;
                }
                continue;
            }
            match (instant, portion) {
                (Some(instant), _) if instant.at == moment => {
                    self.bin.add(instant.value, 1);
                    self.instant += 1;
                }
                (_, Some(portion)) => {
                    let end = portion.end.min(self.current.end);
                    let samples = if moment == portion.start {
                        portion.new_samples
                    } else {
                        portion.samples
                    };
                    self.bin.add(portion.amount(moment, end), samples);
                    (self.portion, self.within_portion) = if end == portion.end {
                        (self.portion + 1, i64::MIN)
                    } else {
                        (self.portion, end)
                    };
                }
                (_, None) => break,
            }
        }
        self.resolver.forget(self.instant);
        (self.portion, self.within_portion, self.instant) = (0, i64::MIN, 0);
        true
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.resolver.memory()
    }

    /// Closes bins until `target` is the one being filled. `false`: the output is full before that.
    fn move_to(&mut self, target: u64, out: &mut Output) -> bool {
        while self.current.index < target {
            if out.is_full() {
                return false;
            }
            if self.bin.touched {
                let bin = std::mem::take(&mut self.bin);
                let cell = Cell {
                    base: Some(bin.sum.value()),
                    count: bin.samples,
                    points: None,
                    rolling: None,
                };
                out.push(self.current.start, cell);
                self.current.move_to(self.current.index + 1);
            } else {
                out.push_empty(&mut self.current, target, None);
            }
        }
        true
    }
}
