//! A report: findings with all that is needed to check them, and checks that had too little data.

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use crate::model::time::TimeRange;
use crate::model::zone::Zone;

/// The most findings that are shown: among many, the last ones are chance.
pub const MOST_INSIGHTS: usize = 5;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    SleepDebt,
    SleepTiming,
    RestingHeartRateShift,
    HeartRateVariabilityShift,
    StepStreak,
    ActivityChange,
    Anomaly,
    NewPlace,
    DataGap,
    Record,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::SleepDebt,
        Self::SleepTiming,
        Self::RestingHeartRateShift,
        Self::HeartRateVariabilityShift,
        Self::StepStreak,
        Self::ActivityChange,
        Self::Anomaly,
        Self::NewPlace,
        Self::DataGap,
        Self::Record,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SleepDebt => "sleep_debt",
            Self::SleepTiming => "sleep_timing",
            Self::RestingHeartRateShift => "resting_hr_shift",
            Self::HeartRateVariabilityShift => "hrv_shift",
            Self::StepStreak => "step_streak",
            Self::ActivityChange => "activity_change",
            Self::Anomaly => "anomaly",
            Self::NewPlace => "new_place",
            Self::DataGap => "data_gap",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How many days have data, and how many could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    pub observed: usize,
    pub expected: usize,
}

/// How far a finding can be relied on. It follows from the coverage alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    Low,
    Medium,
    High,
}

impl Coverage {
    #[must_use]
    pub fn share(self) -> f64 {
        if self.expected == 0 {
            return 0.0;
        }
        self.observed as f64 / self.expected as f64
    }

    /// `None` where there is too little data to conclude anything.
    #[must_use]
    pub const fn confidence(self) -> Option<Confidence> {
        let (observed, expected) = (self.observed * 100, self.expected);
        match () {
            () if expected == 0 || observed < 50 * expected => None,
            () if observed < 70 * expected => Some(Confidence::Low),
            () if observed < 90 * expected => Some(Confidence::Medium),
            () => Some(Confidence::High),
        }
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            observed: self.observed + other.observed,
            expected: self.expected + other.expected,
        }
    }
}

/// The comparison behind a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub baseline_value: f64,
    pub delta: f64,
    pub method: Cow<'static, str>,
    /// How unusual it is, if that can be measured.
    pub score: Option<f64>,
    /// The change of the values from one day to the next.
    pub slope_per_day: Option<f64>,
    /// Of the period, and of the baseline.
    pub interquartile_ranges: Option<[f64; 2]>,
}

/// A question whose answer contains the numbers of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// A value for each day.
    Days {
        metric: String,
        range: TimeRange,
        zone: Zone,
    },
    /// Cycles of sleep.
    Nights { range: TimeRange },
    /// Recorded visits.
    Visits { range: TimeRange },
    /// Updates, from which visits follow.
    Updates { range: TimeRange },
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Insight {
    pub id: Uuid,
    pub kind: Kind,
    pub title: String,
    pub summary: String,
    pub period: TimeRange,
    /// With the number of its days that have data.
    pub baseline: Option<(TimeRange, usize)>,
    pub metrics: Vec<String>,
    pub value: f64,
    pub unit: String,
    pub comparison: Option<Comparison>,
    pub coverage: Coverage,
    pub confidence: Confidence,
    pub evidence: Vec<Evidence>,
    pub caveats: Vec<String>,
}

/// A check that had too little data, and what it lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    pub kind: Kind,
    pub metric: Option<String>,
    pub reason: String,
    pub have: usize,
    pub need: usize,
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Found(Box<Insight>),
    Skipped(Skipped),
    /// There was enough data, and no finding.
    Nothing,
}

/// All findings, and all skipped checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The most significant first.
    pub insights: Vec<Insight>,
    pub skipped: Vec<Skipped>,
    /// How many more findings there were.
    pub suppressed: usize,
}

impl Report {
    /// Sorts the findings by significance: score times coverage. A finding without a score counts as one with
    /// a score of 1.
    #[must_use]
    pub fn of(outcomes: Vec<Outcome>) -> Self {
        let mut report = Self::default();
        for outcome in outcomes {
            match outcome {
                Outcome::Found(insight) => report.insights.push(*insight),
                Outcome::Skipped(skipped) => report.skipped.push(skipped),
                Outcome::Nothing => {}
            }
        }
        report.insights.sort_by(|one, other| {
            let telling = other.weight().total_cmp(&one.weight());
            telling.then_with(|| (one.kind, &one.metrics).cmp(&(other.kind, &other.metrics)))
        });
        report.suppressed = report.insights.len().saturating_sub(MOST_INSIGHTS);
        report.insights.truncate(MOST_INSIGHTS);
        report
    }
}

impl Insight {
    fn weight(&self) -> f64 {
        let score = self.comparison.as_ref().and_then(|comparison| comparison.score);
        score.map_or(1.0, f64::abs) * self.coverage.share()
    }
}
