//! Sleep cycles with the values of other metrics during them.

use axum::extract::State;
use axum::response::Response;

use crate::api::app::AppState;
use crate::api::data::asking::Asking;
use crate::api::data::computed_metric::{Computation, in_unit_of_metric, windows_of_each};
use crate::api::data::named_metrics::{each_once, named_metrics};
use crate::api::data::names::resolve_names;
use crate::api::data::units::RequestedUnits;
use crate::api::docs::answers::Rows;
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::{Choice as _, Form, FromParams, Need, Params};
use crate::auth::grants::Readable;
use crate::model::columns::VALUE;
use crate::model::grid::Grid;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::query::attached::Reach;
use crate::query::series::{Calculation, Gaps, SeriesSpec};
use crate::query::sleep::spec::around;
use crate::query::units::UnitRole;

use super::PermittedSleepQuery;
use super::query::CyclesQuery;

/// The length of the bins of metrics around a cycle.
const BIN: i64 = 60_000_000;
/// Windows may reach a month beyond their cycles on either side. Beyond that, neighbouring cycles repeat the
/// same samples; a series holds them once.
const LONGEST_REACH: f64 = 30.0 * 86_400.0;

const CALCULATIONS: &str = "metric_calculations";

/// Which cycles, and with which metrics.
#[derive(Debug)]
pub struct ExtendedQuery {
    cycles: CyclesQuery,
    metrics: Vec<String>,
    calculations: Vec<Calculation>,
    units: RequestedUnits,
    reach: Reach,
}

impl FromParams for ExtendedQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let metrics = params.bracketed("metrics", Form::Text, Need::Optional);
        let names = params.bracketed(CALCULATIONS, Form::Word(Calculation::words()), Need::Optional);
        let mut calculations = Vec::new();
        for name in names.unwrap_or_default() {
            match name.parse() {
                Ok(calculation) => calculations.push(calculation),
                Err(error) => params.fault(CALCULATIONS, "enum", format!("{error}")),
            }
        }
        let reach = Reach {
            before: seconds(params, "metric_seconds_before"),
            after: seconds(params, "metric_seconds_after"),
            bin: BIN,
            most_cells: u64::MAX,
        };
        let units = RequestedUnits::read(params);
        Some(Self {
            cycles: CyclesQuery::from_params(params)?,
            metrics: metrics.unwrap_or_default(),
            calculations: each_once(calculations),
            units: units?,
            reach,
        })
    }
}

/// A number of seconds in the query as microseconds; 0 if it is not given.
fn seconds(params: &mut Params<'_>, name: &'static str) -> i64 {
    let seconds = params
        .number_or(name, (0.0, LONGEST_REACH), 0.0)
        .unwrap_or_default();
    if !(0.0..=LONGEST_REACH).contains(&seconds) {
        params.fault(
            name,
            "value_error",
            format!("expected seconds from 0 to {LONGEST_REACH}, which is 30 days"),
        );
        return 0;
    }
    (seconds * 1e6).round() as i64
}

/// Sleep cycles, each with the series of some metrics around it, in bins of a minute.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_cycles_extended", tag = "sleep",
    params(("svc_userid" = Uuid, Path), Checked<ExtendedQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn sleep_cycles_extended(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<ExtendedQuery>,
) -> Result<Response, ApiError> {
    let (reader, owner) = (&asking.request.reader, asking.owner);
    let permitted = PermittedSleepQuery::new(&app, &asking, &query.cycles).await?;
    let spec = permitted.cycles(&query.cycles)?;
    let range = window(&query, permitted.clip);
    let names = resolve_names(&app, reader, owner, &query.metrics).await?;
    let permits = windows_of_each(&app, reader, owner, &names, range).await?;
    let named = named_metrics(&app, owner, &names).await?;
    let computation = Computation {
        app: &app,
        reader,
        owner,
        preferences: Preferences::of(&app.catalog, owner).await?,
        grid: &Grid::uniform(range, BIN),
        zone: Zone::UTC,
        calculations: &query.calculations,
        parameter: CALCULATIONS,
        gaps: Gaps::DROPPED,
        units: query.units,
    };
    let metrics = computation.of_each(named).await?;
    let partition = permitted.partition().await?;
    let slot = asking.request.admitted(&app).await?;
    let series = permits
        .iter()
        .zip(&metrics)
        .map(|(permit, metric)| metric.within(permit));
    let reach = Reach {
        most_cells: app.settings.cell_limit,
        ..query.reach
    };
    let mut prepared = app
        .questions
        .sleep_with_metrics(
            &permitted.permit,
            &partition,
            &permitted.stages,
            spec,
            series.collect(),
            reach,
        )
        .await?;
    for metric in &metrics {
        if let Some(unit) = &metric.unit {
            let column = metric.spec.column.as_str();
            let held = [(column, UnitRole::Members(members(&metric.spec)))];
            prepared = prepared.in_unit(unit, &held, &format!("{column}_unit"))?;
        }
    }
    let units: Vec<_> = metrics.iter().map(|metric| &metric.unit).collect();
    let seen: Vec<_> = permits.iter().map(Readable::windows).collect();
    let computed = metrics
        .iter()
        .map(|metric| (metric.spec.measure, &metric.spec.chosen_sources));
    let computed: Vec<_> = computed.collect();
    let etag_parts = format!("{} {seen:?} {computed:?} {units:?}", permitted.etag_parts);
    asking
        .answer(&app, slot, prepared, &query.cycles.form, &etag_parts)
        .await
}

/// The range in which samples of the metrics may belong to a cycle.
fn window(query: &ExtendedQuery, clip: bool) -> TimeRange {
    let range = if clip {
        query.cycles.range
    } else {
        around(query.cycles.range)
    };
    let start = Instant::from_micros(range.start().micros().saturating_sub(query.reach.before));
    let end = Instant::from_micros(range.end().micros().saturating_add(query.reach.after));
    TimeRange::new(start, end).unwrap_or(range)
}

/// The members of a metric's windows that are in its unit.
fn members(spec: &SeriesSpec) -> Vec<(String, UnitRole)> {
    in_unit_of_metric(VALUE, &spec.calculations, |calculation| {
        calculation.name().to_owned()
    })
}
