//! Streaks of days with enough steps.

use std::borrow::Cow;
use std::ops::Range;

use super::days::{Daily, Days, last};
use super::draft::{Draft, Look, shown, skipped};
use super::metric::Metric;
use super::report::{Comparison, Kind, Outcome};
use super::statistics::median;

/// The days whose median is the default target, where the person has set none.
const TRAILING_DAYS: usize = 56;
const LEAST_HISTORY: usize = 14;
/// One day is not a streak.
const SHORTEST_STREAK: usize = 2;

pub(super) fn steps(look: &Look<'_>, metric: &Metric, values: &Daily, chosen: Option<f64>) -> Outcome {
    let kind = Kind::StepStreak;
    let trailing = last(TRAILING_DAYS, look.days.finished());
    let history = values.values(&trailing);
    if history.len() < LEAST_HISTORY {
        let reason = format!("days with a value among the last {TRAILING_DAYS}");
        return skipped(kind, Some(&metric.id), reason, history.len(), LEAST_HISTORY);
    }
    let enough = chosen.or_else(|| median(&history)).unwrap_or_default();
    let streak = last_streak(look.days, values, enough);
    if streak.len() < SHORTEST_STREAK {
        return Outcome::Nothing;
    }
    let shown_days = trailing.start.min(streak.start)..streak.end;
    let (Some(period), Some(history_range), Some(range)) = (
        look.range(&streak),
        look.range(&trailing),
        look.range(&shown_days),
    ) else {
        return Outcome::Nothing;
    };
    let (threshold, method) = threshold(chosen.is_some());
    look.found(Draft {
        kind,
        metrics: vec![metric.id.clone()],
        title: format!(
            "{} days in a row with {} steps or more",
            streak.len(),
            shown(enough)
        ),
        summary: format!(
            "On each of {} days from {} to {} there were at least {} steps ({threshold}).",
            streak.len(),
            look.days.date(streak.start),
            look.days.date(streak.end - 1),
            shown(enough),
        ),
        period,
        baseline: Some((history_range, history.len())),
        value: streak.len() as f64,
        unit: "d".to_owned(),
        comparison: Some(Comparison {
            baseline_value: enough,
            delta: values.values(&streak).into_iter().fold(f64::MAX, f64::min) - enough,
            method,
            score: None,
            slope_per_day: None,
            interquartile_ranges: None,
        }),
        coverage: values.coverage_since_first(&trailing),
        evidence: look.daily(&metric.id, range),
        caveats: look
            .missing("value", &values.missing(&trailing))
            .into_iter()
            .collect(),
    })
}

/// The last days in a row with enough.
fn last_streak(days: &Days, values: &Daily, enough: f64) -> Range<usize> {
    let reached = |day: usize| values.get(day).is_some_and(|value| value >= enough);
    let finished = days.finished();
    let first = (0..finished)
        .rev()
        .find(|day| !reached(*day))
        .map_or(0, |broken| broken + 1);
    // Today cannot break a streak, because it is not over.
    let until = if finished <= days.today() && reached(days.today()) {
        days.today() + 1
    } else {
        finished
    };
    first..until
}

/// What is enough, in words, and how the streak is computed from it.
fn threshold(is_chosen: bool) -> (Cow<'static, str>, Cow<'static, str>) {
    if is_chosen {
        let method = "days in a row that reach the person's own target; delta: by how much the lowest day \
                      exceeds it";
        return ("target".into(), method.into());
    }
    let method = format!(
        "days in a row that reach the median of the {TRAILING_DAYS} finished days; delta: by how much the \
         lowest day exceeds it"
    );
    let median = format!("own median of {TRAILING_DAYS} days");
    (median.into(), method.into())
}
