//! The body of a report, as JSON and as rows. Knows nothing of how insights are found.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::listed::ListingForm;
use crate::api::query_params::InsightReportVersion;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::model::units::UnitSystem;
use crate::model::zone::Zone;
use crate::output::{ColumnKind, ListedColumn};
use crate::query::insight::report::{Comparison, Confidence, Evidence, Insight, Report, Skipped};

/// What the records show as of a moment.
#[derive(Debug, Serialize, ToSchema)]
pub struct InsightReport {
    /// Always `v0`.
    pub version: String,
    /// Records that start after this moment are not looked at.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// The zone whose days are counted: the one in the preferences, else UTC.
    pub time_zone: &'static str,
    /// The most significant first; at most five.
    pub insights: Vec<InsightEntry>,
    pub skipped: Vec<SkippedEntry>,
    /// How many more insights there were.
    pub suppressed: usize,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct InsightEntry {
    pub id: Uuid,
    pub kind: &'static str,
    pub title: String,
    pub summary: String,
    pub period: DateRange,
    pub baseline: Option<Baseline>,
    pub metrics: Vec<String>,
    pub value: f64,
    pub unit: String,
    pub comparison: Option<ComparisonEntry>,
    pub coverage: CoverageEntry,
    pub confidence: ConfidenceEntry,
    /// Questions whose answers contain the numbers.
    pub evidence: Vec<EvidenceEntry>,
    pub caveats: Vec<String>,
}

impl InsightReport {
    /// A row for each insight and each skipped entry, if rows are wanted.
    pub(super) fn rows(&self, form: &ListingForm) -> Vec<Value> {
        if !form.is_of_rows() {
            return Vec::new();
        }
        let insights = self.insights.iter().map(|entry| json!(entry));
        let skipped = self.skipped.iter().map(|entry| json!(entry));
        let of_report = json!({"version": self.version, "as_of": self.as_of, "time_zone": self.time_zone,
            "suppressed": self.suppressed});
        let mut rows: Vec<Value> = insights.chain(skipped).collect();
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.extend(of_report.as_object().cloned().unwrap_or_default());
        }
        rows
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DateRange {
    #[schema(format = DateTime)]
    pub start: String,
    #[schema(format = DateTime)]
    pub end: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Baseline {
    #[schema(format = DateTime)]
    pub start: String,
    #[schema(format = DateTime)]
    pub end: String,
    /// How many days of it have a value.
    pub n: usize,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ComparisonEntry {
    pub baseline_value: f64,
    pub delta: f64,
    /// How the numbers are computed from those of the evidence.
    pub method: String,
    /// How unusual it is; null where there is no measure for that.
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope_per_day: Option<f64>,
    /// Those of the period and of the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interquartile_ranges: Option<[f64; 2]>,
}

/// How many days have data, and how many could.
#[derive(Debug, Serialize, ToSchema)]
pub struct CoverageEntry {
    pub observed: usize,
    pub expected: usize,
}

/// Based on the coverage alone: `high` from 90 %, `medium` from 70 %, `low` from 50 %.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfidenceEntry {
    Low,
    Medium,
    High,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct EvidenceEntry {
    pub path: String,
    pub query: BTreeMap<&'static str, String>,
}

/// What was skipped because there was too little data.
#[derive(Debug, Serialize, ToSchema)]
pub struct SkippedEntry {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// What there is too little of.
    pub reason: String,
    pub have: usize,
    pub need: usize,
}

pub(super) const COLUMNS: [ListedColumn; 22] = [
    ListedColumn::new("version", ColumnKind::Text),
    ListedColumn::new("as_of", ColumnKind::Time),
    ListedColumn::new("time_zone", ColumnKind::Text),
    ListedColumn::new("suppressed", ColumnKind::Whole),
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("kind", ColumnKind::Text),
    ListedColumn::new("title", ColumnKind::Text),
    ListedColumn::new("summary", ColumnKind::Text),
    ListedColumn::new("period", ColumnKind::Json),
    ListedColumn::new("baseline", ColumnKind::Json),
    ListedColumn::new("metrics", ColumnKind::Texts),
    ListedColumn::new("value", ColumnKind::Number),
    ListedColumn::new("unit", ColumnKind::Text),
    ListedColumn::new("comparison", ColumnKind::Json),
    ListedColumn::new("coverage", ColumnKind::Json),
    ListedColumn::new("confidence", ColumnKind::Text),
    ListedColumn::new("evidence", ColumnKind::Json),
    ListedColumn::new("caveats", ColumnKind::Texts),
    ListedColumn::new("metric", ColumnKind::Text),
    ListedColumn::new("reason", ColumnKind::Text),
    ListedColumn::new("have", ColumnKind::Whole),
    ListedColumn::new("need", ColumnKind::Whole),
];

pub(super) fn shown(report: Report, person: PersonId, as_of: Instant, zone: Zone) -> InsightReport {
    InsightReport {
        version: InsightReportVersion::V0.name().to_owned(),
        as_of: as_of.to_rfc3339(),
        time_zone: zone.name(),
        insights: report
            .insights
            .into_iter()
            .map(|insight| entry(insight, person))
            .collect(),
        skipped: report.skipped.into_iter().map(SkippedEntry::from).collect(),
        suppressed: report.suppressed,
    }
}

fn entry(insight: Insight, person: PersonId) -> InsightEntry {
    InsightEntry {
        id: insight.id,
        kind: insight.kind.name(),
        title: insight.title,
        summary: insight.summary,
        period: DateRange {
            start: insight.period.start().to_rfc3339(),
            end: insight.period.end().to_rfc3339(),
        },
        baseline: insight.baseline.map(|(range, n)| Baseline {
            start: range.start().to_rfc3339(),
            end: range.end().to_rfc3339(),
            n,
        }),
        metrics: insight.metrics,
        value: insight.value,
        unit: insight.unit,
        comparison: insight.comparison.map(ComparisonEntry::from),
        coverage: CoverageEntry {
            observed: insight.coverage.observed,
            expected: insight.coverage.expected,
        },
        confidence: match insight.confidence {
            Confidence::Low => ConfidenceEntry::Low,
            Confidence::Medium => ConfidenceEntry::Medium,
            Confidence::High => ConfidenceEntry::High,
        },
        evidence: insight
            .evidence
            .into_iter()
            .map(|evidence| asked(&evidence, person))
            .collect(),
        caveats: insight.caveats,
    }
}

/// The request whose answer is the evidence.
fn asked(evidence: &Evidence, person: PersonId) -> EvidenceEntry {
    let (route, range, more) = match evidence {
        Evidence::Days { metric, range, zone } => (
            "metric_time_series",
            range,
            vec![
                ("metric", metric.clone()),
                ("samprate", "1d".to_owned()),
                ("tz", zone.name().to_owned()),
                // Findings are in the units that values are kept in, whichever the caller prefers.
                ("units", UnitSystem::Catalogue.name().to_owned()),
            ],
        ),
        Evidence::Nights { range } => ("sleep_cycles", range, Vec::new()),
        Evidence::Visits { range } => ("platform_location_visits", range, Vec::new()),
        Evidence::Updates { range } => ("platform_location_updates", range, Vec::new()),
    };
    let mut query = BTreeMap::from([
        ("start_time", range.start().to_rfc3339()),
        ("end_time", range.end().to_rfc3339()),
        ("output", "jstable".to_owned()),
    ]);
    query.extend(more);
    EvidenceEntry {
        path: format!("/data/v0/{person}/{route}"),
        query,
    }
}

impl From<Comparison> for ComparisonEntry {
    fn from(comparison: Comparison) -> Self {
        Self {
            baseline_value: comparison.baseline_value,
            delta: comparison.delta,
            method: comparison.method.into_owned(),
            score: comparison.score,
            slope_per_day: comparison.slope_per_day,
            interquartile_ranges: comparison.interquartile_ranges,
        }
    }
}

impl From<Skipped> for SkippedEntry {
    fn from(skipped: Skipped) -> Self {
        Self {
            kind: skipped.kind.name(),
            metric: skipped.metric,
            reason: skipped.reason,
            have: skipped.have,
            need: skipped.need,
        }
    }
}
