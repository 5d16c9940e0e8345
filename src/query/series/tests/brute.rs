//! The rules written down a second time, moment by moment and without cleverness, against random samples.
//!
//! Time is a row of cells, each as long as one unit. Samples, bins and windows begin and end between cells,
//! so looking at every cell by itself is exact.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::super::Base;
use super::*;
use crate::model::duration::Truncation;

const CELLS: i64 = 64;
const LONG: i64 = 7 * 86_400_000_000;

/// A sample, and how many cells of a bin it covers.
type Touching = (Sample, f64);

/// One question about random samples.
#[derive(Clone, Debug)]
struct Case {
    /// Where cell 0 begins, and how long cells are.
    origin: i64,
    unit: i64,
    samples: Vec<Sample>,
    grid: Grid,
    windows: Vec<TimeRange>,
    /// The person's own order of sources.
    order: Vec<usize>,
    step: usize,
}

impl Case {
    fn sees(&self, moment: i64) -> bool {
        let moment = Instant::from_micros(moment);
        let bounds = self.grid.edge(0)..self.grid.edge(self.grid.len());
        bounds.contains(&moment)
            && self
                .windows
                .iter()
                .any(|window| window.start() <= moment && moment < window.end())
    }

    fn bin(&self, moment: i64) -> usize {
        self.grid.bin_of(Instant::from_micros(moment)).unwrap() as usize
    }

    /// What a source is worth: less is better.
    fn rank(&self, sample: &Sample) -> (usize, i8, usize) {
        match self.order.iter().position(|source| *source == sample.source) {
            Some(place) => (place, 0, 0),
            None => (self.order.len(), sample.class, sample.source),
        }
    }

    /// Numbers of the samples that cover a cell and count there.
    fn counting(&self, counting: Counting, cell: i64) -> Vec<usize> {
        let covering = self.samples.iter().enumerate();
        let covering: Vec<(usize, &Sample)> = covering
            .filter(|(_, sample)| sample.start <= cell && cell < sample.end)
            .collect();
        let key = |sample: &Sample| (sample.end - sample.start > LONG, self.rank(sample));
        let Some((_, best)) = covering.iter().min_by_key(|(_, sample)| key(sample)) else {
            return vec![];
        };
        let counts = |sample: &Sample| {
            counting == Counting::Everything || (sample.source == best.source && key(sample).0 == key(best).0)
        };
        covering
            .iter()
            .filter(|(_, sample)| counts(sample))
            .map(|(number, _)| *number)
            .collect()
    }

    fn instant_counts(&self, counting: Counting, instant: &Sample) -> bool {
        let is_there = |other: &&Sample| {
            let covers =
                other.start <= instant.start && instant.start < other.end && other.end - other.start <= LONG;
            covers || other.start == other.end && other.start == instant.start
        };
        let there = self.samples.iter().filter(is_there);
        let best = there.min_by_key(|sample| self.rank(sample)).unwrap();
        counting == Counting::Everything || best.source == instant.source
    }

    /// Amounts and counts per bin.
    fn amounts(&self, counting: Counting) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
        let bins = self.grid.len() as usize;
        let mut amounts: Vec<Option<f64>> = vec![None; bins];
        let mut counted: Vec<Vec<usize>> = vec![Vec::new(); bins];
        for cell in 0..CELLS {
            let moment = self.origin + cell * self.unit;
            if !self.sees(moment) {
                continue;
            }
            let bin = self.bin(moment);
            for number in self.counting(counting, moment) {
                let sample = &self.samples[number];
                let part = sample.value * self.unit as f64 / (sample.end - sample.start) as f64;
                *amounts[bin].get_or_insert(0.0) += part;
                counted[bin].push(number);
            }
        }
        let instants = self
            .samples
            .iter()
            .enumerate()
            .filter(|(_, sample)| sample.start == sample.end);
        for (number, instant) in instants.filter(|(_, instant)| self.sees(instant.start)) {
            if self.instant_counts(counting, instant) {
                let bin = self.bin(instant.start);
                *amounts[bin].get_or_insert(0.0) += instant.value;
                counted[bin].push(number);
            }
        }
        let distinct = |mut numbers: Vec<usize>| {
            numbers.sort_unstable();
            numbers.dedup();
            Some(numbers.len() as f64)
        };
        (amounts, counted.into_iter().map(distinct).collect())
    }

    /// Per bin the points that count there, by start and id, with how much of the bin each covers.
    fn points(&self, counting: Counting) -> Vec<Vec<Touching>> {
        let mut order: Vec<Sample> = self.samples.clone();
        order.sort_by_key(|sample| sample.start);
        let mut bins: Vec<Vec<Touching>> = vec![Vec::new(); self.grid.len() as usize];
        for sample in order {
            let mut cells = vec![0.0; bins.len()];
            let mut touched = vec![false; bins.len()];
            for moment in (0..CELLS)
                .map(|cell| self.origin + cell * self.unit)
                .filter(|moment| self.sees(*moment))
            {
                if sample.start <= moment && moment < sample.end {
                    cells[self.bin(moment)] += 1.0;
                    touched[self.bin(moment)] = true;
                }
            }
            if sample.start == sample.end && self.sees(sample.start) {
                touched[self.bin(sample.start)] = true;
            }
            for (bin, points) in bins.iter_mut().enumerate().filter(|(bin, _)| touched[*bin]) {
                points.push((sample, cells[bin]));
            }
        }
        for points in &mut bins {
            let best = points
                .iter()
                .min_by_key(|(sample, _)| self.rank(sample))
                .map(|(sample, _)| sample.source);
            if counting == Counting::BestSource {
                points.retain(|(sample, _)| Some(sample.source) == best);
            }
        }
        bins
    }
}

fn case() -> impl Strategy<Value = Case> {
    let sample = (
        0_i64..CELLS - 1,
        prop_oneof![3 => Just(0_i64), 5 => 1_i64..6, 2 => 6_i64..50],
        0_u8..6,
        0_usize..4,
        2_i8..7,
    );
    let bins = prop_oneof![
        (1_i64..20).prop_map(Bins::Width),
        (0_usize..4).prop_map(Bins::Calendar)
    ];
    let windows = prop::collection::vec((0_i64..CELLS, 1_i64..40), 1..4);
    (
        prop::collection::vec(sample, 0..16),
        bins,
        windows,
        any::<bool>(),
        prop::collection::vec(0_usize..4, 0..3),
        1_usize..6,
        0_i64..8,
    )
        .prop_map(|(samples, bins, windows, whole, order, step, from)| {
            // Six hours, so that some samples last more than seven days; or quarter hours around a night that
            // has one hour less.
            let (origin, unit) = match bins {
                Bins::Width(_) => (1_000_003, 6 * 3600 * 1_000_000),
                Bins::Calendar(_) => (micros("2024-03-10T03:00Z"), 15 * 60 * 1_000_000),
            };
            let at = |cell: i64| origin + cell.min(CELLS) * unit;
            let asked = range(at(from), at(CELLS));
            let grid = match bins {
                Bins::Width(cells) => Grid::uniform(asked, cells * unit),
                Bins::Calendar(every) => {
                    let every = Truncation::parse(["1h", "2h", "1d", "45m"][every]).unwrap();
                    every.grid(&Zone::parse("America/New_York").unwrap(), asked)
                }
            };
            let windows = if whole {
                vec![asked]
            } else {
                windows
                    .iter()
                    .map(|(start, length)| range(at(*start).max(at(from)), at(start + length).max(at(from))))
                    .collect()
            };
            let sample = |(start, length, value, source, class)| Sample {
                start: at(start),
                end: at(start + length),
                value: f64::from(value),
                source,
                class,
            };
            Case {
                origin,
                unit,
                samples: samples.into_iter().map(sample).collect(),
                grid,
                windows,
                order,
                step,
            }
        })
}

#[derive(Clone, Copy, Debug)]
enum Bins {
    Width(i64),
    Calendar(usize),
}

fn run<C: AsyncFn(&Case)>(check: &C) {
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(2000)
    });
    let outcome = runner.run(&case(), |case| {
        runtime.block_on(check(&case));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

async fn answer(case: &Case, measure: Measure, calculations: &[&str]) -> RecordBatch {
    let mut spec = calculating(calculations, spec(measure, case.grid.clone()));
    spec.chosen_sources = case
        .order
        .iter()
        .map(|source| Uuid::from_u128(*source as u128))
        .collect();
    let found = series(&case.samples, &spec, &case.windows, case.step).await;
    let labels: Vec<i64> = (0..case.grid.len())
        .map(|index| case.grid.edge(index).micros())
        .collect();
    assert_eq!(times(&found), labels);
    found
}

#[test]
fn rule_1_4a_amounts_agree_with_a_look_at_every_moment() {
    run(&async |case: &Case| {
        for counting in [Counting::BestSource, Counting::Everything] {
            let found = answer(case, Measure::Amounts(counting), &["count"]).await;
            let (amounts, counts) = case.amounts(counting);
            assert_close(&numbers(&found, "value"), &amounts, &(counting, case));
            assert_close(&numbers(&found, "count_value"), &counts, &(counting, case));
        }
    });
}

#[test]
fn rule_1_5_levels_agree_with_a_look_at_every_moment() {
    run(&async |case: &Case| {
        for counting in [Counting::BestSource, Counting::Everything] {
            let bins = case.points(counting);
            let each = |of: &dyn Fn(&[Touching]) -> f64| -> Vec<Option<f64>> {
                bins.iter()
                    .map(|points| (!points.is_empty()).then(|| of(points)))
                    .collect()
            };
            let mean = each(&|points| {
                points.iter().map(|(sample, _)| sample.value).sum::<f64>() / points.len() as f64
            });
            let levels = |base| Measure::Levels { base, counting };
            let plain = answer(case, levels(Base::Mean), &[]).await;
            assert_close(&numbers(&plain, "value"), &mean, &(counting, case));

            let calculations = ["max", "min", "uniques", "allpoints", "rollingmean", "count"];
            let found = answer(case, levels(Base::Mean), &calculations).await;
            assert_close(&numbers(&found, "value"), &mean, &(counting, case));
            let max = each(&|points| {
                points
                    .iter()
                    .map(|(sample, _)| sample.value)
                    .fold(f64::MIN, f64::max)
            });
            assert_close(&numbers(&found, "max_value"), &max, case);
            let min = each(&|points| {
                points
                    .iter()
                    .map(|(sample, _)| sample.value)
                    .fold(f64::MAX, f64::min)
            });
            assert_close(&numbers(&found, "min_value"), &min, case);
            let count: Vec<Option<f64>> = bins.iter().map(|points| Some(points.len() as f64)).collect();
            assert_close(&numbers(&found, "count_value"), &count, case);
            let values = |points: &Vec<Touching>| {
                points
                    .iter()
                    .map(|(sample, _)| sample.value)
                    .collect::<Vec<f64>>()
            };
            let listed: Vec<Option<Vec<f64>>> = bins
                .iter()
                .map(|points| (!points.is_empty()).then(|| values(points)))
                .collect();
            let mut rolling = Vec::new();
            let mut so_far = Vec::new();
            for points in &bins {
                so_far.extend(values(points));
                rolling.push((!so_far.is_empty()).then(|| so_far.iter().sum::<f64>() / so_far.len() as f64));
            }
            assert_close(&numbers(&found, "rollingmean_value"), &rolling, case);
            assert_eq!(lists(&found, "all_value"), listed, "{case:?}");
            let distinct = |mut values: Vec<f64>| {
                values.sort_unstable_by(f64::total_cmp);
                values.dedup();
                values
            };
            let expected: Vec<Option<Vec<f64>>> =
                listed.into_iter().map(|values| values.map(distinct)).collect();
            assert_eq!(lists(&found, "uniq_value"), expected, "{case:?}");

            let last = answer(case, levels(Base::Last), &[]).await;
            let number = |sample: &Sample| case.samples.iter().rposition(|other| other == sample);
            let expected = each(&|points| {
                let last = points
                    .iter()
                    .max_by_key(|(sample, _)| (sample.start, number(sample)));
                last.unwrap().0.value
            });
            assert_close(&numbers(&last, "value"), &expected, &(counting, case));

            let sound = answer(case, levels(Base::EquivalentLevel), &[]).await;
            let expected = each(&|points| {
                let lasting = points.iter().any(|(_, cells)| *cells > 0.0);
                let weight = |cells: f64| if lasting { cells } else { 1.0 };
                let energy: f64 = points
                    .iter()
                    .map(|(sample, cells)| weight(*cells) * 10_f64.powf(sample.value / 10.0))
                    .sum();
                10.0 * (energy / points.iter().map(|(_, cells)| weight(*cells)).sum::<f64>()).log10()
            });
            assert_close(&numbers(&sound, "value"), &expected, &(counting, case));
        }
    });
}
