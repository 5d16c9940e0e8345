//! Compares the last week with the four before it: resting heart rate, its variability, activity.

use crate::model::registry::MetricKind;

use super::days::{BASELINE, Daily, LEAST_OF_WEEK, WEEK, last};
use super::draft::{Draft, Look, shown, shown_change, skipped};
use super::metric::Metric;
use super::report::{Comparison, Kind, Outcome};
use super::statistics::{median, robust_z, shift, slope};

/// The fewest days with a value before the week: for metrics of the heart, and for activity.
const LEAST_OF_HEART: usize = 14;
const LEAST_OF_ACTIVITY: usize = 20;
/// A smaller score is within the usual range.
const LEAST_Z: f64 = 2.0;
/// The smallest change of the resting heart rate that is reported, in beats per minute.
const LEAST_BEATS: f64 = 3.0;

/// The scale on which values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Plain,
    /// For values that vary by factors.
    Logarithm,
}

impl Scale {
    fn of(self, value: f64) -> Option<f64> {
        match self {
            Self::Plain => Some(value),
            Self::Logarithm => (value > 0.0).then(|| value.ln()),
        }
    }

    fn back(self, value: f64) -> f64 {
        match self {
            Self::Plain => value,
            Self::Logarithm => value.exp(),
        }
    }
}

pub(super) fn resting_heart_rate(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let method = "difference of medians; score: robust z, 0.6745 * delta / median deviation of the baseline; \
                  slope: Theil-Sen over all days";
    shifted(
        look,
        Kind::RestingHeartRateShift,
        metric,
        values,
        Scale::Plain,
        method,
    )
}

pub(super) fn heart_rate_variability(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let method = "difference of medians; score: robust z of the medians of ln(value), 0.6745 * delta / \
                  median deviation of the baseline; slope: Theil-Sen of ln(value) over all days";
    shifted(
        look,
        Kind::HeartRateVariabilityShift,
        metric,
        values,
        Scale::Logarithm,
        method,
    )
}

fn shifted(
    look: &Look<'_>,
    kind: Kind,
    metric: &Metric,
    values: &Daily,
    scale: Scale,
    method: &'static str,
) -> Outcome {
    let scaled = Daily(
        values
            .0
            .iter()
            .map(|value| value.and_then(|value| scale.of(value)))
            .collect(),
    );
    let compared = match Compared::new(look, kind, metric, &scaled, LEAST_OF_HEART) {
        Ok(compared) => compared,
        Err(outcome) => return outcome,
    };
    let delta = compared.value - compared.usual;
    let Some(score) = robust_z(delta, &compared.baseline_values) else {
        let reason = "different values in the baseline, whose median deviation is 0";
        return skipped(kind, Some(&metric.id), reason, 1, 2);
    };
    let beats_are_few = kind == Kind::RestingHeartRateShift && delta.abs() < LEAST_BEATS;
    if score.abs() < LEAST_Z || beats_are_few {
        return Outcome::Nothing;
    }
    let points: Vec<(f64, f64)> = scaled
        .points(&compared.all)
        .map(|(day, value)| (day as f64, value))
        .collect();
    let (value, usual) = (scale.back(compared.value), scale.back(compared.usual));
    let comparison = Comparison {
        baseline_value: usual,
        delta: value - usual,
        method: method.into(),
        score: Some(score),
        slope_per_day: slope(&points),
        interquartile_ranges: None,
    };
    let change = shown_change(comparison.delta);
    compared.found(look, kind, metric, value, comparison, &change)
}

/// How much more or less activity there is than usual.
///
/// The days may differ from each other the one way as a rule, and their medians the other way: then there is
/// neither more nor less, and nothing to tell.
pub(super) fn activity(look: &Look<'_>, metric: &Metric, values: &Daily) -> Outcome {
    let kind = Kind::ActivityChange;
    let compared = match Compared::new(look, kind, metric, values, LEAST_OF_ACTIVITY) {
        Ok(compared) => compared,
        Err(outcome) => return outcome,
    };
    let delta = shift(&compared.values, &compared.baseline_values).unwrap_or_default();
    let of_medians = compared.value - compared.usual;
    let is_more = delta > 0.0 && of_medians > 0.0;
    let is_less = delta < 0.0 && of_medians < 0.0;
    if !is_more && !is_less {
        return Outcome::Nothing;
    }
    let comparison = Comparison {
        baseline_value: compared.usual,
        delta,
        method: "medians; delta: Hodges-Lehmann, the median of all differences between a day of the period \
                 and one of the baseline; score: 0.6745 * delta / median deviation of the baseline"
            .into(),
        score: robust_z(delta, &compared.baseline_values),
        slope_per_day: None,
        interquartile_ranges: None,
    };
    let value = compared.value;
    let change = format!(
        "the median difference between a day of the one and a day of the other is {}",
        shown_change(delta)
    );
    compared.found(look, kind, metric, value, comparison, &change)
}

/// A week and what came before it, both with enough days.
struct Compared {
    week: std::ops::Range<usize>,
    baseline: std::ops::Range<usize>,
    all: std::ops::Range<usize>,
    values: Vec<f64>,
    baseline_values: Vec<f64>,
    value: f64,
    usual: f64,
    missing: Vec<usize>,
}

impl Compared {
    fn new(
        look: &Look<'_>,
        kind: Kind,
        metric: &Metric,
        values: &Daily,
        least: usize,
    ) -> Result<Self, Outcome> {
        let finished = look.days.finished();
        let week = last(WEEK, finished);
        let baseline = last(BASELINE, week.start);
        let (now, before) = (values.values(&week), values.values(&baseline));
        let few =
            |reason: String, have: usize, need| Err(skipped(kind, Some(&metric.id), reason, have, need));
        if now.len() < LEAST_OF_WEEK {
            let reason = format!("days with a value among the last {WEEK}");
            return few(reason, now.len(), LEAST_OF_WEEK);
        }
        if before.len() < least {
            let reason = format!("days with a value among the {BASELINE} before");
            return few(reason, before.len(), least);
        }
        let (Some(value), Some(usual)) = (median(&now), median(&before)) else {
            return Err(Outcome::Nothing);
        };
        Ok(Self {
            all: baseline.start..week.end,
            missing: values.missing(&(baseline.start..week.end)),
            week,
            baseline,
            values: now,
            baseline_values: before,
            value,
            usual,
        })
    }

    /// What is told of the two, `change` after their medians.
    fn found(
        self,
        look: &Look<'_>,
        kind: Kind,
        metric: &Metric,
        value: f64,
        comparison: Comparison,
        change: &str,
    ) -> Outcome {
        let ranges = (
            look.range(&self.week),
            look.range(&self.baseline),
            look.range(&self.all),
        );
        let (Some(period), Some(baseline), Some(all)) = ranges else {
            return Outcome::Nothing;
        };
        let (name, unit) = (metric.words(), &metric.unit);
        let direction = if comparison.delta > 0.0 { "higher" } else { "lower" };
        let per_day = match metric.kind {
            Some(MetricKind::Cumulative) => " a day",
            _ => "",
        };
        let summary = format!(
            "The median of {name} over the last {WEEK} days is {} {unit}{per_day}; over the {BASELINE} days \
             before it was {} {unit}{per_day} ({change}).",
            shown(value),
            shown(comparison.baseline_value),
        );
        look.found(Draft {
            kind,
            metrics: vec![metric.id.clone()],
            title: format!("{} {direction} than in the four weeks before", metric.title()),
            summary,
            period,
            baseline: Some((baseline, self.baseline_values.len())),
            value,
            unit: unit.clone(),
            comparison: Some(comparison),
            coverage: super::report::Coverage {
                observed: self.values.len() + self.baseline_values.len(),
                expected: self.week.len() + self.baseline.len(),
            },
            evidence: look.daily(&metric.id, all),
            caveats: look.missing("value", &self.missing).into_iter().collect(),
        })
    }
}
