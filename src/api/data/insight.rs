//! `GET /data/v1alpha1/insight`: what the last days show, with the questions that show it.

mod report;

use std::ops::RangeInclusive;

use axum::extract::State;
use axum::response::Response;

use crate::api::app::{App, AppState};
use crate::api::extract::Checked;
use crate::api::listed::{ListingForm, body_of, computed};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, InsightReportVersion, Params};
use crate::auth::grants::GrantAuthority;
use crate::auth::tokens::Reader;
use crate::catalog::records::PartitionSummary;
use crate::model::duration::Truncation;
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange};
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::query::Scope;
use crate::query::insight::{
    AskedMetric, Days, InsightSources, METRICS, SLEEP, SleepSource, Targets, nights_read, updates_read,
    visits_read,
};
use crate::query::places::{Granted, PLATFORM_UPDATES, PLATFORM_VISITS};

use super::names::grant_builtin;
use super::read_request::ReadRequest;
use super::sleep::stage_table;

pub use report::InsightReport;

use report::{COLUMNS, shown};

/// Days before the moment of a report that it always looks at.
const LEAST_DAYS: i64 = 120;
/// The longest history that a report looks at: nobody measured anything earlier, whatever a record says.
const MOST_DAYS: i64 = 100 * 366;
/// The moments that a report can be about: with enough days before them, and an end.
const MOMENTS: RangeInclusive<Instant> = RangeInclusive::new(
    Instant::from_micros(Instant::MIN.micros() + (MOST_DAYS + 366) * MICROS_PER_DAY),
    Instant::from_micros(Instant::MAX.micros() - 366 * MICROS_PER_DAY),
);

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
        if as_of.is_some_and(|moment| !MOMENTS.contains(&moment)) {
            let message = format!("expected a moment from {} to {}", MOMENTS.start(), MOMENTS.end());
            params.fault("timestamp", "value_error", message);
        }
        let form = ListingForm::read(params)?;
        Some(Self { as_of, form })
    }
}

/// What the caller's last days show compared with those before. Every number can be computed from the
/// evidence; what has too little data is skipped. In a table each insight is a row that repeats the members
/// of the report, and so is each skipped entry, with a `reason`.
#[utoipa::path(get, path = "/data/v1alpha1/insight", tag = "data v1alpha1",
    params(Checked<InsightQuery>),
    responses((status = 200, description = "The report", body = InsightReport), (status = 422),
        (status = 429), (status = 504)))]
pub async fn insight(
    State(app): State<AppState>,
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
            stages: stage_table(app),
        })
    } else {
        None
    };
    let places = if is_stored(PLATFORM_VISITS) || is_stored(PLATFORM_UPDATES) {
        let range = visits_read(&days).ok_or_else(no_time)?;
        let visits = grant_builtin(app, reader, person, PLATFORM_VISITS, range).await?;
        let updates_in = updates_read(&days).ok_or_else(no_time)?;
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
            stages: (name == SLEEP).then(|| stage_table(app)),
        });
    }
    Ok(metrics)
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
