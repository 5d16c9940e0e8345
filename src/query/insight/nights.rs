//! Nights: the duration and the time of sleep.
//!
//! The night of a day is the cycle of sleep that ends on it; if there are several, the one with most sleep. A
//! cycle counts once it can no longer grow, and if it tells more than that somebody was in bed: how long they
//! slept is not known then.

use crate::model::time::{Instant, MICROS_PER_DAY, MICROS_PER_HOUR, TimeRange};

use super::days::{BASELINE, Daily, Days, LEAST_OF_WEEK, WEEK, last};
use super::draft::{Draft, Look, shown, shown_change, shown_clock, skipped};
use super::metric::SLEEP;
use super::report::{Comparison, Coverage, Evidence, Kind, Outcome};
use super::statistics::{clock_times, interquartile_range, median, moved_near, robust_z};

/// The time without sleep that separates two cycles; the default of the routes.
pub(super) const CYCLE_GAP: i64 = 2 * MICROS_PER_HOUR;
const FORTNIGHT: usize = 14;
const LEAST_OF_FORTNIGHT: usize = 10;
const LEAST_OF_BASELINE: usize = 20;
/// The least sleep that adults need, by the consensus of the sleep societies (AASM and SRS).
const USUAL_TARGET: f64 = 7.0;

/// A cycle of sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    pub start: Instant,
    pub end: Instant,
    /// The end of the time in bed, which may go on after the sleep and links what follows.
    pub in_bed_end: Instant,
    /// Microseconds.
    pub asleep: i64,
    /// Whether nothing but being in bed is known of it.
    pub is_only_in_bed: bool,
}

/// The nights of some days.
#[derive(Clone, Debug)]
pub struct Nights {
    /// Hours.
    asleep: Daily,
    /// Hours after midnight of the day on which the night ends.
    middle: Daily,
    /// The day after the last one whose night can be known.
    end: usize,
}

/// The time in which cycles are read, early enough that those of the first day are whole.
#[must_use]
pub fn reads(days: &Days) -> Option<TimeRange> {
    let first = last(FORTNIGHT + BASELINE, days.today()).start;
    since(days, first)
}

fn since(days: &Days, first: usize) -> Option<TimeRange> {
    let start = Instant::from_micros(days.start(first).micros().saturating_sub(MICROS_PER_DAY));
    TimeRange::new(start, days.until())
}

impl Nights {
    #[must_use]
    pub fn of(days: &Days, cycles: &[Cycle]) -> Self {
        let mut main: Vec<Option<Cycle>> = vec![None; days.today() + 1];
        for cycle in cycles.iter().filter(|cycle| !cycle.is_only_in_bed) {
            let last = cycle.end.max(cycle.in_bed_end);
            let is_over = last.micros().saturating_add(CYCLE_GAP) <= days.until().micros();
            let day = days.of(Instant::from_micros(cycle.end.micros().saturating_sub(1)));
            let Some(night) = day.filter(|_| is_over).and_then(|day| main.get_mut(day)) else {
                continue;
            };
            if night.is_none_or(|known| known.asleep < cycle.asleep) {
                *night = Some(*cycle);
            }
        }
        let middle = |(day, cycle): (usize, &Option<Cycle>)| {
            let cycle = (*cycle)?;
            let middle = i64::midpoint(cycle.start.micros(), cycle.end.micros());
            Some(days.clock(day, Instant::from_micros(middle)))
        };
        let today_is_known = days.finished() > days.today() || main.last().copied().flatten().is_some();
        Self {
            asleep: Daily(
                main.iter()
                    .map(|cycle| cycle.map(|cycle| cycle.asleep as f64 / MICROS_PER_HOUR as f64))
                    .collect(),
            ),
            middle: Daily(main.iter().enumerate().map(middle).collect()),
            end: days.today() + usize::from(today_is_known),
        }
    }
}

/// The sleep that is lacking in a week.
pub(super) fn debt(look: &Look<'_>, nights: &Nights, chosen: Option<f64>) -> Outcome {
    let kind = Kind::SleepDebt;
    let week = last(WEEK, nights.end);
    let hours = nights.asleep.values(&week);
    if hours.len() < LEAST_OF_WEEK {
        let reason = format!("nights among the last {WEEK}");
        return skipped(kind, Some(SLEEP), reason, hours.len(), LEAST_OF_WEEK);
    }
    let target = chosen.unwrap_or(USUAL_TARGET);
    let lacking: f64 = hours.iter().map(|slept| (target - slept).max(0.0)).sum();
    let net: f64 = hours.iter().map(|slept| target - slept).sum();
    if lacking <= 0.0 {
        return Outcome::Nothing;
    }
    let (Some(period), Some(range)) = (look.range(&week), since(look.days, week.start)) else {
        return Outcome::Nothing;
    };
    let missing = nights.asleep.missing(&week);
    look.found(Draft {
        kind,
        metrics: vec![SLEEP.to_owned()],
        title: format!("{} h below {} h a night in a week", shown(lacking), shown(target)),
        summary: format!(
            "Over {} of {WEEK} nights, {} h were lacking to {} h a night; less what longer nights had beyond \
             it, the total is {} h.",
            hours.len(),
            shown(lacking),
            shown(target),
            shown(net),
        ),
        period,
        baseline: None,
        value: lacking,
        unit: "h".to_owned(),
        comparison: Some(Comparison {
            baseline_value: target,
            delta: net,
            method:
                "sum over the nights of what lacks to the target, of the longest cycle that ends on each \
                     day; delta: the same with what exceeds it taken off"
                    .into(),
            score: None,
            slope_per_day: None,
            interquartile_ranges: None,
        }),
        coverage: nights.asleep.coverage(&week),
        evidence: vec![Evidence::Nights { range }],
        caveats: look.missing("night", &missing).into_iter().collect(),
    })
}

/// The time of the middle of the night.
pub(super) fn timing(look: &Look<'_>, nights: &Nights) -> Outcome {
    let kind = Kind::SleepTiming;
    let fortnight = last(FORTNIGHT, nights.end);
    let baseline = last(BASELINE, fortnight.start);
    let (now, before) = (nights.middle.values(&fortnight), nights.middle.values(&baseline));
    if let Some(outcome) = too_few(now.len(), before.len()) {
        return outcome;
    }
    // Each of the two around its own middle: around that of the other, times twelve hours away from it would
    // come to lie a day apart.
    let (Some(now), Some(before)) = (clock_times(&now), clock_times(&before)) else {
        return Outcome::Nothing;
    };
    let usual = median(&before);
    let Some(now) = usual.and_then(|usual| moved_near(&now, usual)) else {
        return Outcome::Nothing;
    };
    let all = baseline.start..fortnight.end;
    let statistics = (
        median(&now),
        usual,
        interquartile_range(&now),
        interquartile_range(&before),
    );
    let ranges = (
        look.range(&fortnight),
        look.range(&baseline),
        since(look.days, all.start),
    );
    let (
        (Some(value), Some(usual), Some(spread), Some(usual_spread)),
        (Some(period), Some(past), Some(range)),
    ) = (statistics, ranges)
    else {
        return Outcome::Nothing;
    };
    let missing = nights.middle.missing(&all);
    look.found(Draft {
        kind,
        metrics: vec![SLEEP.to_owned()],
        title: format!("Middle of the night at {}", shown_clock(value)),
        summary: format!(
            "The middle of the night was at {} (median of {FORTNIGHT} days, interquartile range {} h); in \
             the {BASELINE} days before at {} ({} h): {} h.",
            shown_clock(value),
            shown(spread),
            shown_clock(usual),
            shown(usual_spread),
            shown_change(value - usual),
        ),
        period,
        baseline: Some((past, before.len())),
        value,
        unit: "h".to_owned(),
        comparison: Some(Comparison {
            baseline_value: usual,
            delta: value - usual,
            method: "medians of the hours between midnight and the middle of the longest cycle that ends on \
                     the day, by the clock: each plus or minus 24 where that is nearer to the circular \
                     mean of its group, then all of the 14 days where that brings their median nearer to \
                     that of the baseline; score: robust z, 0.6745 * delta / median deviation of the baseline"
                .into(),
            score: robust_z(value - usual, &before),
            slope_per_day: None,
            interquartile_ranges: Some([spread, usual_spread]),
        }),
        coverage: Coverage {
            observed: now.len() + before.len(),
            expected: all.len(),
        },
        evidence: vec![Evidence::Nights { range }],
        caveats: look.missing("night", &missing).into_iter().collect(),
    })
}

/// The outcome where too few nights of the fortnight, or before it, are known.
fn too_few(now: usize, before: usize) -> Option<Outcome> {
    let (reason, have, need) = if now < LEAST_OF_FORTNIGHT {
        let reason = format!("nights among the last {FORTNIGHT}");
        (reason, now, LEAST_OF_FORTNIGHT)
    } else if before < LEAST_OF_BASELINE {
        let reason = format!("nights among the {BASELINE} before");
        (reason, before, LEAST_OF_BASELINE)
    } else {
        return None;
    };
    Some(skipped(Kind::SleepTiming, Some(SLEEP), reason, have, need))
}
