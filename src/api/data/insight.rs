//! `GET /data/v1alpha1/insight`: what the last days show, with the questions that show it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::{App, Shared};
use crate::api::extract::Checked;
use crate::api::listed::{ListingForm, body_of, computed};
use crate::api::problem::ApiError;
use crate::api::query_params::{Choice, FromParams, Params};
use crate::auth::grants::GrantAuthority;
use crate::auth::tokens::Reader;
use crate::catalog::records::PartitionSummary;
use crate::model::duration::Truncation;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange};
use crate::model::units::UnitSystem;
use crate::model::zone::Zone;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::preferences::Preferences;
use crate::query::Scope;
use crate::query::insight::report::{Comparison, Confidence, Evidence, Insight, Report, Skipped};
use crate::query::insight::{
    AskedMetric, Days, InsightSources, METRICS, SLEEP, SleepSource, Targets, nights_read, visits_read,
};
use crate::query::places::{Granted, PLATFORM_UPDATES, PLATFORM_VISITS, stays};
use crate::query::sleep::StageTable;

use super::names::grant_builtin;
use super::read_request::ReadRequest;

/// Days before the moment of a report that it always looks at.
const LEAST_DAYS: i64 = 120;
/// The longest history that a report looks at: nobody measured anything earlier, whatever a record says.
const MOST_DAYS: i64 = 100 * 366;
/// The moments that a report can be about: with enough days before them, and an end.
const MOMENTS: (Instant, Instant) = (
    Instant::from_micros(Instant::MIN.micros() + (MOST_DAYS + 366) * MICROS_PER_DAY),
    Instant::from_micros(Instant::MAX.micros() - 366 * MICROS_PER_DAY),
);

/// The forms that reports have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsightReportVersion {
    V0,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such version of reports; use v0")]
pub struct UnknownVersion;

impl FromStr for InsightReportVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let found = Self::all().into_iter().find(|version| version.name() == text);
        found.ok_or(UnknownVersion)
    }
}

impl Choice for InsightReportVersion {
    fn all() -> Vec<Self> {
        vec![Self::V0]
    }

    fn name(self) -> &'static str {
        match self {
            Self::V0 => "v0",
        }
    }
}

/// The moment that the report is about.
#[derive(Debug)]
pub struct InsightQuery {
    as_of: Option<Instant>,
    form: ListingForm,
}

impl FromParams for InsightQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let _only_one = params.choice_or("version", InsightReportVersion::V0);
        let as_of = params.instant("timestamp");
        if as_of.is_some_and(|moment| moment < MOMENTS.0 || moment > MOMENTS.1) {
            let message = format!("expected a moment from {} to {}", MOMENTS.0, MOMENTS.1);
            params.fault("timestamp", "value_error", message);
        }
        let form = ListingForm::read(params)?;
        Some(Self { as_of, form })
    }
}

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
    fn rows(&self, form: &ListingForm) -> Vec<Value> {
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

const COLUMNS: [ListedColumn; 22] = [
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

/// What the caller's last days show compared with those before. Every number can be computed from the
/// evidence; what has too little data is skipped. In a table each insight is a row that repeats the members
/// of the report, and so is each skipped entry, with a `reason`.
#[utoipa::path(get, path = "/data/v1alpha1/insight", tag = "data v1alpha1",
    params(Checked<InsightQuery>),
    responses((status = 200, description = "The report", body = InsightReport), (status = 422),
        (status = 429), (status = 504)))]
pub async fn insight(
    State(app): State<Shared>,
    request: ReadRequest,
    Checked(query): Checked<InsightQuery>,
) -> Result<Response, ApiError> {
    let reader = &request.reader;
    let as_of = query.as_of.unwrap_or_else(|| app.clock.now());
    let preferences = Preferences::of(&app.catalog, reader.person()).await?;
    let zone = preferences.time_zone().unwrap_or(Zone::UTC);
    let slot = request.admitted(&app).await?;
    let sources = sources(&app, reader, &preferences, zone, as_of).await?;
    // Read before the report is: if anything changes meanwhile, the earlier tag is never computed again.
    let states = app.questions.states_of_insights(&sources).await?;
    let etag_parts = shaped_by(&sources, as_of);
    let tag = request.tag(&app, &states, &Scope::default(), &etag_parts);
    let (person, form) = (reader.person(), query.form);
    computed(&request.headers, &form.clone(), &COLUMNS, &tag, async move {
        let report = app.questions.insights(sources).await?;
        drop(slot);
        let report = shown(report, person, as_of, zone);
        let rows = report.rows(&form);
        body_of(&app, &form, &COLUMNS, (&report, &rows)).await
    })
}

/// What shapes the report besides the address and what is stored.
fn shaped_by(sources: &InsightSources<GrantAuthority>, as_of: Instant) -> String {
    let InsightSources {
        person,
        days,
        metrics,
        targets,
        ..
    } = sources;
    let chosen: Vec<_> = metrics.iter().map(|metric| &metric.chosen_sources).collect();
    let (first, zone) = (days.start(0), days.zone().name());
    format!("{person} {as_of} {first} {zone} {targets:?} {chosen:?}")
}

/// Which of the caller's data there is to look at.
async fn sources(
    app: &App,
    reader: &Reader,
    preferences: &Preferences,
    zone: Zone,
    as_of: Instant,
) -> Result<InsightSources<GrantAuthority>, ApiError> {
    let person = reader.person();
    let stored = app.catalog.partitions_of(person).await?;
    let days = days(&stored, zone, as_of).ok_or_else(|| ApiError::internal("a report without days"))?;
    let no_time = || ApiError::internal("a report without time");
    let all = days.range(&(0..days.today() + 1)).ok_or_else(no_time)?;
    let is_stored = |name: &str| {
        stored
            .iter()
            .any(|partition| partition.records > 0 && partition.data_type.as_str() == name)
    };
    let names = METRICS.into_iter().chain([SLEEP]);
    let names: Vec<&str> = names.filter(|name| is_stored(name)).collect();
    let metrics = metrics_of(app, reader, preferences, &names, all).await?;
    let sleep = if is_stored(SLEEP) {
        let range = nights_read(&days).ok_or_else(no_time)?;
        let granted = grant_builtin(app, reader, person, SLEEP, range).await?;
        Some(SleepSource {
            granted,
            stages: stages(app),
        })
    } else {
        None
    };
    let places = if is_stored(PLATFORM_VISITS) || is_stored(PLATFORM_UPDATES) {
        let range = visits_read(&days).ok_or_else(no_time)?;
        let visits = grant_builtin(app, reader, person, PLATFORM_VISITS, range).await?;
        let updates_in = stays::reads(range);
        let updates = grant_builtin(app, reader, person, PLATFORM_UPDATES, updates_in).await?;
        Some((visits, updates))
    } else {
        None
    };
    Ok(InsightSources {
        person,
        days,
        metrics,
        sleep,
        places,
        targets: Targets {
            sleep_hours: preferences.target("sleep_hours"),
            daily_steps: preferences.target("daily_steps"),
        },
    })
}

/// Those of the metrics called `names` that have a series, in `range`.
async fn metrics_of(
    app: &App,
    reader: &Reader,
    preferences: &Preferences,
    names: &[&str],
    range: TimeRange,
) -> Result<Vec<AskedMetric<GrantAuthority>>, ApiError> {
    let mut metrics = Vec::new();
    for &name in names {
        let Granted { permit, partition } = grant_builtin(app, reader, reader.person(), name, range).await?;
        let Some(traits) = partition.data_type.metric.clone() else {
            continue;
        };
        metrics.push(AskedMetric {
            chosen_sources: preferences.chosen_sources(&partition.data_type.id),
            permit,
            partition,
            traits,
            stages: (name == SLEEP).then(|| stages(app)),
        });
    }
    Ok(metrics)
}

/// The meanings of the stages of sleep.
fn stages(app: &App) -> Arc<StageTable> {
    Arc::new(StageTable::new(app.types.registry().sleep_stages()))
}

/// The days of the report: all days from the first record that is looked at.
fn days(stored: &[PartitionSummary], zone: Zone, as_of: Instant) -> Option<Days> {
    let before = |days: i64| Instant::from_micros(as_of.micros() - days * MICROS_PER_DAY);
    let looked_at = |partition: &&PartitionSummary| METRICS.contains(&partition.data_type.as_str());
    let first = stored
        .iter()
        .filter(looked_at)
        .filter_map(|partition| Some(partition.bounds?.min_start))
        .min();
    let first = first.map_or_else(|| before(LEAST_DAYS), |first| first.min(before(LEAST_DAYS)));
    let day = Truncation::parse("1d").ok()?;
    Days::new(zone, day, first.max(before(MOST_DAYS)), as_of)
}

fn shown(report: Report, person: PersonId, as_of: Instant, zone: Zone) -> InsightReport {
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
        Evidence::Visits { range } => (
            "platform_location_visits",
            range,
            vec![("derive", "true".to_owned())],
        ),
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
