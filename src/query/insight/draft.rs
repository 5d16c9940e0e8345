//! Builds findings: the parts that all have in common, and the words that they share.

use std::ops::Range;

use uuid::Uuid;

use crate::model::ids::PersonId;
use crate::model::time::TimeRange;

use super::days::Days;
use super::report::{Comparison, Coverage, Evidence, Insight, Kind, Outcome, Skipped};

/// The namespace of the ids of findings.
const FINDINGS: Uuid = Uuid::from_u128(0x1f8e_2a5c_6b0d_4c7e_8e21_93d4_70ab_5c16);
/// The most dates that are listed one by one.
const DATES: usize = 7;

/// The days of a report, and whom it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    pub days: &'a Days,
    pub person: PersonId,
}

/// A finding before the parts that follow from the others.
#[derive(Debug)]
pub(super) struct Draft {
    pub kind: Kind,
    pub metrics: Vec<String>,
    pub title: String,
    pub summary: String,
    pub period: TimeRange,
    pub baseline: Option<(TimeRange, usize)>,
    pub value: f64,
    pub unit: String,
    pub comparison: Option<Comparison>,
    pub coverage: Coverage,
    pub evidence: Vec<Evidence>,
    pub caveats: Vec<String>,
}

impl Look<'_> {
    /// The finding, if coverage is sufficient.
    pub(super) fn found(&self, draft: Draft) -> Outcome {
        let Some(confidence) = draft.coverage.confidence() else {
            return Outcome::Skipped(Skipped {
                kind: draft.kind,
                metric: draft.metrics.first().cloned(),
                reason: "days with data, of those that there could be: less than half".to_owned(),
                have: draft.coverage.observed,
                need: draft.coverage.expected.div_ceil(2),
            });
        };
        let name = format!(
            "{} {} {} {} {}",
            draft.kind,
            draft.metrics.join(","),
            draft.period.start(),
            draft.period.end(),
            self.person
        );
        Outcome::Found(Box::new(Insight {
            id: Uuid::new_v5(&FINDINGS, name.as_bytes()),
            kind: draft.kind,
            title: draft.title,
            summary: draft.summary,
            period: draft.period,
            baseline: draft.baseline,
            metrics: draft.metrics,
            value: draft.value,
            unit: draft.unit,
            comparison: draft.comparison,
            coverage: draft.coverage,
            confidence,
            evidence: draft.evidence,
            caveats: draft.caveats,
        }))
    }

    /// Evidence for the values of a metric on some days.
    pub(super) fn daily(&self, metric: &str, range: TimeRange) -> Vec<Evidence> {
        vec![Evidence::Days {
            metric: metric.to_owned(),
            range,
            zone: *self.days.zone(),
        }]
    }

    /// A sentence that lists the days without data.
    pub(super) fn missing(&self, what: &str, days: &[usize]) -> Option<String> {
        if days.is_empty() {
            return None;
        }
        let named: Vec<String> = days
            .iter()
            .take(DATES)
            .map(|day| self.days.date(*day).to_string())
            .collect();
        let rest = match days.len().saturating_sub(DATES) {
            0 => String::new(),
            more => format!(" and {more} more days"),
        };
        Some(format!("There is no {what} for {}{rest}.", named.join(", ")))
    }

    /// The time of some days; the days of a draft always have one.
    pub(super) fn range(&self, days: &Range<usize>) -> Option<TimeRange> {
        self.days.range(days)
    }
}

/// The outcome of a check that has too little data.
pub(super) fn skipped(
    kind: Kind,
    metric: Option<&str>,
    reason: impl Into<String>,
    have: usize,
    need: usize,
) -> Outcome {
    Outcome::Skipped(Skipped {
        kind,
        metric: metric.map(str::to_owned),
        reason: reason.into(),
        have,
        need,
    })
}

/// A number for reading: one decimal, two for numbers below 1, without trailing zeros.
pub(super) fn shown(value: f64) -> String {
    let text = if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // What rounds to zero has no sign.
    if text == "-0" { "0" } else { text }.to_owned()
}

/// A number for reading, with a sign.
pub(super) fn shown_change(value: f64) -> String {
    let text = shown(value);
    if value > 0.0 { format!("+{text}") } else { text }
}

/// Hours after midnight as a time of day.
pub(super) fn shown_clock(hours: f64) -> String {
    let minutes = (hours * 60.0).round() as i64;
    let minutes = minutes.rem_euclid(24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_reading() {
        assert_eq!(
            [62.0, 1.84, -0.5, 0.166_66, 0.001, 12_345.67, -0.001].map(shown),
            ["62", "1.8", "-0.5", "0.17", "0", "12345.7", "0"]
        );
        assert_eq!([4.0, -4.0, 0.0].map(shown_change), ["+4", "-4", "0"]);
        assert_eq!(
            [3.5, -0.5, 24.25, 23.999].map(shown_clock),
            ["03:30", "23:30", "00:15", "00:00"]
        );
    }
}
