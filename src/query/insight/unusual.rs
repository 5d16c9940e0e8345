//! Single days that stand out: far from what is usual, never seen before, or without data that is always
//! there.

use std::ops::Range;

use super::days::{Daily, last};
use super::draft::{Draft, Look, shown, shown_change, skipped};
use super::metric::Metric;
use super::report::{Comparison, Coverage, Kind, Outcome};
use super::statistics::{median, robust_z};

/// The days that define what is usual.
const TRAILING_DAYS: usize = 56;
const LEAST_USUAL: usize = 21;
/// Iglewicz and Hoaglin's limit.
const LEAST_Z: f64 = 3.5;
/// The least history, in days, that can have records.
const LEAST_HISTORY: usize = 90;
/// The days in which a type has to be recorded daily.
const RECENT_DAYS: usize = 90;
const LEAST_DAYS: usize = 14;
/// The longest silence, as a multiple of the usual interval.
const INTERVALS: f64 = 3.0;

/// One day of a metric that stands out from the days before it.
struct UnusualDay<'a> {
    kind: Kind,
    metric: &'a Metric,
    title: String,
    summary: String,
    value: f64,
    baseline_value: f64,
    /// How many of the days before have a value.
    baseline_days: usize,
    method: &'static str,
    score: Option<f64>,
    coverage: Coverage,
    caveat: &'static str,
}

impl UnusualDay<'_> {
    /// The finding about `day`, which was compared with the days `before` it.
    fn found(self, look: &Look<'_>, day: &Range<usize>, before: &Range<usize>) -> Outcome {
        let all = before.start..day.end;
        let (Some(period), Some(baseline), Some(range)) =
            (look.range(day), look.range(before), look.range(&all))
        else {
            return Outcome::Nothing;
        };
        look.found(Draft {
            kind: self.kind,
            metrics: vec![self.metric.id.clone()],
            title: self.title,
            summary: self.summary,
            period,
            baseline: Some((baseline, self.baseline_days)),
            value: self.value,
            unit: self.metric.unit.clone(),
            comparison: Some(Comparison {
                baseline_value: self.baseline_value,
                delta: self.value - self.baseline_value,
                method: self.method.into(),
                score: self.score,
                slope_per_day: None,
                interquartile_ranges: None,
            }),
            coverage: self.coverage,
            evidence: look.daily(&self.metric.id, range),
            caveats: vec![self.caveat.to_owned()],
        })
    }
}

/// Reports the last day, if it is far from the [`TRAILING_DAYS`] before it.
pub(super) fn anomaly(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let kind = Kind::Anomaly;
    let finished = look.days.finished();
    let day = last(1, finished);
    let before = last(TRAILING_DAYS, day.start);
    let Some(value) = values.get(day.start) else {
        return skipped(kind, Some(&metric.id), "values of the last day", 0, 1);
    };
    let baseline = values.values(&before);
    if baseline.len() < LEAST_USUAL {
        let reason = format!("days with a value among the {TRAILING_DAYS} before the last");
        return skipped(kind, Some(&metric.id), reason, baseline.len(), LEAST_USUAL);
    }
    let usual = median(&baseline).unwrap_or_default();
    let Some(score) = robust_z(value - usual, &baseline) else {
        let reason = "different values in the baseline, whose median deviation is 0";
        return skipped(kind, Some(&metric.id), reason, 1, 2);
    };
    if score.abs() < LEAST_Z {
        return Outcome::Nothing;
    }
    let date = look.days.date(day.start);
    let (name, unit) = (metric.words(), &metric.unit);
    let unusual = UnusualDay {
        kind,
        metric,
        title: format!("{} on {date} outside of the usual range", metric.title()),
        summary: format!(
            "On {date} {name} was {} {unit}; the median of the {TRAILING_DAYS} days before is {} {unit} \
             ({}).",
            shown(value),
            shown(usual),
            shown_change(value - usual),
        ),
        value,
        baseline_value: usual,
        baseline_days: baseline.len(),
        method: "value less median; score: robust z, 0.6745 * delta / median deviation of the baseline",
        score: Some(score),
        coverage: values.coverage_since_first(&(before.start..day.end)),
        caveat: "Many metrics are looked at each day, so that some days stand out by chance.",
    };
    unusual.found(look, &day, &before)
}

/// Reports the last day, if it is higher or lower than all before.
pub(super) fn record(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let kind = Kind::Record;
    let finished = look.days.finished();
    let day = last(1, finished);
    let earlier: Vec<(usize, f64)> = values.points(&(0..day.start)).collect();
    let Some(value) = values.get(day.start) else {
        return skipped(kind, Some(&metric.id), "values of the last day", 0, 1);
    };
    if earlier.len() < LEAST_HISTORY {
        let reason = "days with a value before the last";
        return skipped(kind, Some(&metric.id), reason, earlier.len(), LEAST_HISTORY);
    }
    let first = earlier.first().map_or(0, |(day, _)| *day);
    let numbers = || earlier.iter().map(|(_, value)| *value);
    let (most, least) = (
        numbers().fold(f64::MIN, f64::max),
        numbers().fold(f64::MAX, f64::min),
    );
    let (held, word, method) = match value {
        value if value > most => (most, "highest", "value less the greatest of all days before"),
        value if value < least => (least, "lowest", "value less the least of all days before"),
        _ => return Outcome::Nothing,
    };
    let date = look.days.date(day.start);
    let (name, unit) = (metric.words(), &metric.unit);
    let unusual = UnusualDay {
        kind,
        metric,
        title: format!("{}: the {word} day so far", metric.title()),
        summary: format!(
            "On {date} {name} was {} {unit}, the {word} of {} days since {}; before, that was {} {unit}.",
            shown(value),
            earlier.len() + 1,
            look.days.date(first),
            shown(held),
        ),
        value,
        baseline_value: held,
        baseline_days: earlier.len(),
        method,
        score: None,
        coverage: values.coverage(&(first..day.end)),
        caveat: "Days on which only a part was recorded count as they are.",
    };
    unusual.found(look, &day, &(first..day.start))
}

/// Reports that data is missing where there usually is some each day.
pub(super) fn data_gap(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let kind = Kind::DataGap;
    let until = look.days.today() + 1;
    let recent = last(RECENT_DAYS, until);
    let observed: Vec<usize> = values.points(&recent).map(|(day, _)| day).collect();
    if observed.len() < LEAST_DAYS {
        let reason = format!("days with a value among the last {RECENT_DAYS}");
        return skipped(kind, Some(&metric.id), reason, observed.len(), LEAST_DAYS);
    }
    let (Some(first), Some(latest)) = (observed.first().copied(), observed.last().copied()) else {
        return Outcome::Nothing;
    };
    let intervals: Vec<f64> = observed
        .windows(2)
        .filter_map(|pair| Some((pair.last()? - pair.first()?) as f64))
        .collect();
    let usual = median(&intervals).unwrap_or_default();
    let silent = look.days.finished().saturating_sub(latest + 1);
    if usual > 1.0 || (silent as f64) < INTERVALS * usual {
        return Outcome::Nothing;
    }
    let (gap, before) = (latest + 1..look.days.finished(), first..latest + 1);
    let (Some(period), Some(history), Some(range)) =
        (look.range(&gap), look.range(&before), look.range(&(first..until)))
    else {
        return Outcome::Nothing;
    };
    let name = metric.words();
    look.found(Draft {
        kind,
        title: format!("No {name} for {silent} days"),
        summary: format!(
            "{} was last recorded on {}; before, there was a value on {} of {} days.",
            metric.title(),
            look.days.date(latest),
            observed.len(),
            before.len(),
        ),
        period,
        baseline: Some((history, observed.len())),
        value: silent as f64,
        unit: "d".to_owned(),
        comparison: Some(Comparison {
            baseline_value: usual,
            delta: silent as f64 - usual,
            method: "whole days without a value, and the median distance between days with one".into(),
            score: None,
            slope_per_day: None,
            interquartile_ranges: None,
        }),
        coverage: Coverage {
            observed: observed.len(),
            expected: before.len(),
        },
        evidence: look.daily(&metric.id, range),
        caveats: vec!["What was not sent yet cannot be told from what was not recorded.".to_owned()],
        metrics: vec![metric.id.clone()],
    })
}
