//! Competing of which the best source counts, on a grid: each bin has the part of every sample that counts in
//! it, rule 1.3.

use super::bins::Place;
use super::calculation::Calculation;
use super::clip::Clip;
use super::ledger::{LONG_RANK, Sample};
use super::output::{Cell, Output};
use super::resolve::Resolver;
use super::rows::Rows;
use super::spec::SeriesSpec;
use crate::model::sum::Sum;

/// The bins of one question about amounts that compete for time.
#[derive(Debug)]
pub(super) struct Competing {
    place: Place,
    resolver: Resolver,
    ended: bool,
    bin: Amount,
    /// How far the resolver's portions and instants have been laid into bins.
    portion: usize,
    within_portion: i64,
    instant: usize,
}

/// What the bin has so far.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    sum: Sum,
    /// A sample may count for nothing and still be there.
    touched: bool,
    samples: u64,
}

impl Competing {
    pub(super) fn new(spec: &SeriesSpec, place: Place, clip: Clip) -> Self {
        let counts = spec.calculations.contains(&Calculation::Count);
        Self {
            place,
            resolver: Resolver::new(clip, counts.then(|| spec.grid.clone())),
            ended: false,
            bin: Amount::default(),
            portion: 0,
            within_portion: i64::MIN,
            instant: 0,
        }
    }

    pub(super) fn feed(&mut self, rows: &Rows) {
        let nexts = rows.starts.iter().skip(1).chain(rows.starts.last());
        let times = rows.starts.iter().zip(rows.ends.iter()).zip(nexts);
        for (row, (((start, end), next), value)) in times.zip(rows.values.iter()).enumerate() {
            let mut standing = rows.standing(row);
            if rows.is_part_of_long(row) {
                standing.rank |= LONG_RANK;
            }
            let sample = Sample {
                start: *start,
                end: *end,
                value: *value,
                standing,
                group: 0,
            };
            self.resolver.push(sample, *next);
        }
        if let Some(last) = rows.starts.last() {
            self.resolver.advance(*last);
        }
    }

    pub(super) fn end(&mut self) {
        self.resolver.finish();
        self.ended = true;
    }

    /// Lays what was resolved into bins. `false`: the output is full, and there is more.
    pub(super) fn drain(&mut self, out: &mut Output) -> bool {
        while !self.place.is_past() {
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
            if moment >= self.place.end {
                let target = self.place.bin_of(moment);
                if !self.move_to(target, out) {
                    return false;
                }
                continue;
            }
            match (instant, portion) {
                (Some(instant), _) if instant.at == moment => {
                    self.bin.sum.add(instant.value);
                    self.bin.touched = true;
                    self.bin.samples += 1;
                    self.instant += 1;
                }
                (_, Some(portion)) => {
                    let end = portion.end.min(self.place.end);
                    self.bin.sum.add(portion.amount(moment, end));
                    self.bin.touched = true;
                    self.bin.samples += if moment == portion.start {
                        portion.new_samples
                    } else {
                        portion.samples
                    };
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
        !self.ended || self.move_to(self.place.last(), out)
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.resolver.memory()
    }

    /// Closes bins until `target` is the one being filled. `false`: the output is full before that.
    fn move_to(&mut self, target: u64, out: &mut Output) -> bool {
        while self.place.index < target {
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
                out.push(self.place.start, cell);
                self.place.move_to(self.place.index + 1);
            } else {
                out.push_empty(&mut self.place, target, None);
            }
        }
        true
    }
}
