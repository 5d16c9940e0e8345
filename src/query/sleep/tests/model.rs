//! Sleep by looking at every second. Slow, and simple enough to be believed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::GivenSample;

/// Seconds that the model looks at.
pub(super) const HORIZON: i64 = 1000;

pub(super) const PRIORITY: [i64; 6] = [0, 2, 1, 2, 2, 2];

#[derive(Clone, Debug)]
pub(super) struct ModelQuestion {
    /// What may be seen; one window over everything where nothing is clipped.
    pub windows: Vec<(i64, i64)>,
    /// Cycles that share time with this are told of.
    pub range: (i64, i64),
    pub gap: i64,
    pub gap_stages: Vec<i64>,
}

impl ModelQuestion {
    fn sees(&self, second: i64) -> bool {
        self.windows
            .iter()
            .any(|&(start, end)| start <= second && second < end)
    }

    /// The parts of a sample that may be seen.
    pub(super) fn parts(&self, sample: &GivenSample) -> Vec<(i64, i64)> {
        let parts = self
            .windows
            .iter()
            .map(|&(start, end)| (sample.start.max(start), sample.end.min(end)));
        parts.filter(|(start, end)| start < end).collect()
    }
}

/// Who wins each second: the place of the sample.
pub(super) fn winners(samples: &[GivenSample], asked: &ModelQuestion) -> Vec<Option<usize>> {
    let rank = |place: usize| {
        let sample = &samples[place];
        (
            PRIORITY[sample.stage as usize],
            sample.start,
            Reverse(sample.end),
            sample.stage,
            sample.id,
        )
    };
    let winner = |second: i64| {
        let covering =
            (0..samples.len()).filter(|&place| samples[place].start <= second && second < samples[place].end);
        covering
            .max_by_key(|&place| rank(place))
            .filter(|_| asked.sees(second))
    };
    (0..HORIZON).map(winner).collect()
}

/// Runs of equal values over time: start, end, value.
pub(super) fn runs<T: PartialEq + Copy>(values: impl IntoIterator<Item = Option<T>>) -> Vec<(i64, i64, T)> {
    let mut runs: Vec<(i64, i64, T)> = Vec::new();
    for (second, value) in (0_i64..).zip(values) {
        let Some(value) = value else { continue };
        match runs.last_mut() {
            Some((_, end, last)) if *end == second && *last == value => *end = second + 1,
            _ => runs.push((second, second + 1, value)),
        }
    }
    runs
}

/// The stage of each second.
pub(super) fn stages(samples: &[GivenSample], asked: &ModelQuestion) -> Vec<Option<i64>> {
    let winners = winners(samples, asked);
    winners
        .into_iter()
        .map(|winner| winner.map(|place| samples[place].stage))
        .collect()
}

/// For each second the number of the cycle whose span it lies in, and the spans.
pub(super) fn spans(stages: &[Option<i64>], asked: &ModelQuestion) -> Vec<(i64, i64)> {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for (second, stage) in (0_i64..).zip(stages) {
        if stage.is_none_or(|stage| asked.gap_stages.contains(&stage)) {
            continue;
        }
        match spans.last_mut() {
            Some(last) if second - last.1 < asked.gap => last.1 = second + 1,
            _ => spans.push((second, second + 1)),
        }
    }
    spans.retain(|&(start, end)| start < asked.range.1 && end > asked.range.0);
    spans
}

/// Rows of a cycle: number, start, end, stage.
pub(super) fn cycle_rows(samples: &[GivenSample], asked: &ModelQuestion) -> Vec<(i64, i64, i64, i64)> {
    let stages = stages(samples, asked);
    let mut rows = Vec::new();
    for (number, (start, end)) in (0..).zip(spans(&stages, asked)) {
        let inside = (0_i64..)
            .zip(&stages)
            .map(|(second, stage)| stage.filter(|_| start <= second && second < end));
        rows.extend(
            runs(inside)
                .into_iter()
                .map(|(start, end, stage)| (number, start, end, stage)),
        );
    }
    rows
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Night {
    pub start: i64,
    pub end: i64,
    pub asleep: i64,
    pub latency: Option<i64>,
    pub in_bed: Vec<(i64, i64)>,
    pub intervals: Vec<(i64, i64, i64)>,
    /// stage, seconds, latency
    pub totals: Vec<(i64, i64, i64)>,
}

/// Every cycle by counting seconds.
pub(super) fn nights(samples: &[GivenSample], asked: &ModelQuestion) -> Vec<Night> {
    let stages = stages(samples, asked);
    let night = |(start, end): (i64, i64)| {
        let inside = |second: i64| stages[second as usize].filter(|_| start <= second && second < end);
        let stage_or_bed = |second: i64| inside(second).filter(|stage| *stage != 0);
        let only_in_bed = (0..HORIZON).all(|second| stage_or_bed(second).is_none());
        let told = |second: i64| {
            if only_in_bed {
                inside(second)
            } else {
                stage_or_bed(second)
            }
        };
        let first = (0..HORIZON).find(|&second| told(second).is_some()).unwrap();
        let last = (0..HORIZON).rfind(|&second| told(second).is_some()).unwrap();
        let asleep: Vec<i64> = (0..HORIZON)
            .filter(|&second| inside(second).is_some_and(|stage| stage >= 2))
            .collect();
        let mut totals: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for second in 0..HORIZON {
            if let Some(stage) = told(second) {
                totals.entry(stage).or_insert((0, second - first)).0 += 1;
            }
        }
        let in_bed_parts: Vec<(i64, i64)> = samples
            .iter()
            .filter(|sample| sample.stage == 0 && sample.end > sample.start)
            .flat_map(|sample| asked.parts(sample))
            .filter(|part| part.0 <= end && part.1 >= start)
            .collect();
        let lies_in_bed = |second: i64| {
            if in_bed_parts.is_empty() {
                inside(second).is_some()
            } else {
                in_bed_parts
                    .iter()
                    .any(|part| part.0 <= second && second < part.1)
            }
        };
        Night {
            start: first,
            end: last + 1,
            asleep: asleep.len() as i64,
            latency: asleep.first().map(|second| second - first),
            in_bed: runs((0..HORIZON).map(|second| lies_in_bed(second).then_some(())))
                .into_iter()
                .map(|(start, end, ())| (start, end))
                .collect(),
            intervals: runs((0..HORIZON).map(told)),
            totals: totals
                .into_iter()
                .map(|(stage, (length, latency))| (stage, length, latency))
                .collect(),
        }
    };
    spans(&stages, asked).into_iter().map(night).collect()
}

/// One row of an aggregate: period, stage, cycles, sum, min, max, first start, last end.
pub(super) type Total = (i64, i64, i64, i64, i64, i64, i64, i64);

/// Which period a second counts for, given the cycle it lies in.
pub(super) fn totals(
    samples: &[GivenSample],
    asked: &ModelQuestion,
    period_of: impl Fn((i64, i64), i64) -> i64,
) -> Vec<Total> {
    let stages = stages(samples, asked);
    let mut units: BTreeMap<(i64, i64, usize), (i64, i64, i64)> = BTreeMap::new();
    for (number, span) in spans(&stages, asked).into_iter().enumerate() {
        for second in span.0..span.1 {
            let Some(stage) = stages[second as usize] else {
                continue;
            };
            let unit = units
                .entry((period_of(span, second), stage, number))
                .or_insert((0, second, second));
            *unit = (unit.0 + 1, unit.1, second + 1);
        }
    }
    let mut totals: BTreeMap<(i64, i64), Total> = BTreeMap::new();
    for ((period, stage, _), (length, first, last)) in units {
        let total = totals
            .entry((period, stage))
            .or_insert((period, stage, 0, 0, i64::MAX, 0, first, last));
        *total = (
            period,
            stage,
            total.2 + 1,
            total.3 + length,
            total.4.min(length),
            total.5.max(length),
            total.6.min(first),
            total.7.max(last),
        );
    }
    totals.into_values().collect()
}
