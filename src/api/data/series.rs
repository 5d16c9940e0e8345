//! Metrics on a regular grid: one with its statistics, or several side by side.

use axum::extract::State;
use axum::response::Response;
use uuid::Uuid;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::cursor::Pages;
use crate::api::docs::answers::Rows;
use crate::api::extract::{Checked, Owner};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::Readable;
use crate::model::columns::UNIT;
use crate::model::duration::SampleRate;
use crate::model::grid::Grid;
use crate::model::ids::PersonId;
use crate::model::permit::Windows;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::query::Prepared;
use crate::query::paging::{RowKey, RowPosition};
use crate::query::partial::WholeBins;
use crate::query::series::{AskedSeries, Calculation, Counting, Gaps, Measure, SeriesSpec};
use crate::query::units::{DisplayUnit, UnitRole};

use super::computed_metric::{
    Computation, hindrance, in_unit_of_metric, refuse_calculations, windows_of_each,
};
use super::named_metrics::{each_once, named_metrics, series_traits, stages};
use super::names::{resolve_name, resolve_names};
use super::partitions::metric_partition;
use super::read_request::ReadRequest;
use super::units::RequestedUnits;

/// The column in which windows begin.
const TIME: &str = "time";
/// The parameter that says what is computed.
const CALCULATIONS: &str = "calculations";
/// The default length of a bin, in seconds.
const DEFAULT_RATE: &str = "60";

/// One metric, and which of its values.
#[derive(Debug)]
pub struct SeriesQuery {
    metric: String,
    grid_query: GridQuery,
    calculations: Vec<Calculation>,
    gaps: Gaps,
}

/// Several metrics.
#[derive(Debug)]
pub struct GroupedQuery {
    metrics: Vec<String>,
    owner: Option<PersonId>,
    grid_query: GridQuery,
    gaps: Gaps,
}

/// Which bins, and in which form they are answered.
#[derive(Debug)]
struct GridQuery {
    range: TimeRange,
    rate: SampleRate,
    zone: Zone,
    /// Whether a column marks windows that are not whole.
    partial: bool,
    units: RequestedUnits,
    form: AnswerForm,
}

impl FromParams for SeriesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (metric, grid_query) = (params.required_text("metric"), GridQuery::read(params));
        let calculations = params.choices(CALCULATIONS);
        let (drop, replace) = (
            params.flag_or("drop_nulls", false),
            params.flag_or("replace_nulls", false),
        );
        Some(Self {
            metric: metric?,
            grid_query: grid_query?,
            calculations: each_once(calculations?),
            gaps: Gaps {
                drop: drop?,
                replace: replace?,
            },
        })
    }
}

impl FromParams for GroupedQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let metrics = params.required_list("metrics", "name at least one metric");
        let (owner, grid_query) = (params.owner(), GridQuery::read(params));
        let replace = params.flag_or("replace_nulls", false);
        Some(Self {
            metrics: metrics?,
            owner,
            grid_query: grid_query?,
            gaps: Gaps {
                drop: false,
                replace: replace?,
            },
        })
    }
}

impl GridQuery {
    fn read(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.range(), AnswerForm::paged(params, AnswerForm::required));
        let rate = params.parsed_or("samprate", DEFAULT_RATE, SampleRate::parse);
        let zone = params.zone("tz");
        let partial = params.flag_or("partial", false);
        let units = RequestedUnits::read(params);
        Some(Self {
            range: range?,
            rate: rate?,
            zone: zone?,
            partial: partial?,
            units: units?,
            form: form?,
        })
    }

    fn grid(&self) -> Grid {
        match &self.rate {
            SampleRate::Width(micros) => Grid::uniform(self.range, *micros),
            SampleRate::Calendar(truncation) => truncation.grid(&self.zone, self.range),
        }
    }

    /// The windows that the reader may see in full, if the answer is to mark them.
    fn whole(&self, grid: &Grid, visible: &Windows) -> Option<WholeBins> {
        let end = self.range.end();
        let ends_at_edge = match &self.rate {
            SampleRate::Width(micros) => (end.micros() - self.range.start().micros()) % micros == 0,
            SampleRate::Calendar(truncation) => truncation.trunc(&self.zone, end) == end,
        };
        self.partial
            .then(|| WholeBins::of(grid, ends_at_edge, &visible.within(self.range)))
    }
}

/// One metric on a regular grid, a row for each window, empty ones included.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/metric_time_series", tag = "series",
    params(("svc_userid" = Uuid, Path), Checked<SeriesQuery>),
    responses(Rows, (status = 403), (status = 404), (status = 422)))]
pub async fn metric_time_series(
    State(app): State<AppState>,
    request: ReadRequest,
    Owner(owner): Owner,
    Checked(query): Checked<SeriesQuery>,
) -> Result<Response, ApiError> {
    let (reader, grid_query) = (&request.reader, &query.grid_query);
    let page = SeriesPage::of(&app, &request, owner, "series", grid_query)?;
    let metric = resolve_name(&app, reader, owner, &query.metric).await?;
    let permit = app
        .grants
        .windows(reader, owner, &TypeId::new(&metric), grid_query.range)
        .await?;
    let resolved = app.types.find(owner, &metric).await?;
    let traits = series_traits(&app, owner, &resolved)
        .await?
        .map_err(|message| invalid(["query", "metric"], message))?;
    refuse_calculations(&query.calculations, &traits, &query.metric, CALCULATIONS)?;
    let mut spec = SeriesSpec {
        column: traits.value_column.clone(),
        grid: grid_query.grid(),
        zone: grid_query.zone,
        measure: Measure::of(&traits),
        calculations: query.calculations,
        gaps: query.gaps,
        chosen_sources: Vec::new(),
    };
    refuse_too_many(&app, spec.cells())?;
    let unit = grid_query
        .units
        .display_unit(&app, reader, &resolved.data_type, |moves_zero| {
            hindrance(&spec, CALCULATIONS, moves_zero)
        })
        .await?;
    let slot = request.admitted(&app).await?;
    if spec.measure.counting() == Counting::BestSource {
        spec.chosen_sources = Preferences::of(&app.catalog, owner)
            .await?
            .chosen_sources(&resolved.data_type.id);
    }
    let etag_parts = format!(
        "{owner} {metric} {:?} {:?} {unit:?}",
        spec.measure, spec.chosen_sources
    );
    let unit = unit.map(|unit| (unit, measured(&spec), UNIT.to_owned()));
    let (partition, conditions) = metric_partition(&app, reader, owner, &resolved).await?;
    let question = AskedSeries {
        permit: &permit,
        partition: &partition,
        conditions: &conditions,
        spec,
        stages: stages(&app, &traits),
    };
    let whole = grid_query.whole(&question.spec.grid, permit.windows());
    let prepared = app.questions.series_from(question, page.start()).await?;
    page.send(slot, (prepared, whole), unit.as_slice(), &etag_parts)
        .await
}

/// Several metrics on one regular grid, a column for each.
#[utoipa::path(get, path = "/data/v0/time_series_grouped", tag = "series",
    params(Checked<GroupedQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn time_series_grouped(
    State(app): State<AppState>,
    request: ReadRequest,
    Checked(query): Checked<GroupedQuery>,
) -> Result<Response, ApiError> {
    let (reader, grid_query) = (&request.reader, &query.grid_query);
    let owner = reader.asks_about(query.owner);
    let page = SeriesPage::of(&app, &request, owner, "series side by side", grid_query)?;
    let names = resolve_names(&app, reader, owner, &query.metrics).await?;
    let permits = windows_of_each(&app, reader, owner, &names, grid_query.range).await?;
    let metrics = named_metrics(&app, owner, &names).await?;
    let grid = grid_query.grid();
    refuse_too_many(&app, grid.len().saturating_mul(metrics.len() as u64))?;
    let slot = request.admitted(&app).await?;
    let computation = Computation {
        app: &app,
        reader,
        owner,
        preferences: Preferences::of(&app.catalog, owner).await?,
        grid: &grid,
        zone: grid_query.zone,
        calculations: &[],
        parameter: CALCULATIONS,
        gaps: query.gaps,
        units: grid_query.units,
    };
    let series = computation.of_each(metrics).await?;
    let units = series.iter().filter_map(|one| {
        let unit_column = format!("{}_unit", one.spec.column);
        Some((one.unit.clone()?, measured(&one.spec), unit_column))
    });
    let units: Vec<UnitOfColumns> = units.collect();
    let computed = series
        .iter()
        .map(|one| (one.spec.measure, &one.spec.chosen_sources));
    let computed: Vec<(Measure, &Vec<Uuid>)> = computed.collect();
    let etag_parts = format!("{owner} {names:?} {computed:?} {units:?}");
    let questions = permits.iter().zip(&series);
    let questions = questions.map(|(permit, one)| one.within(permit)).collect();
    // A window is whole where all of its metrics are.
    let whole = grid_query.whole(&grid, &visible_in_all(grid_query.range, &permits));
    let prepared = app.questions.series_grouped(questions).await?;
    page.send(slot, (prepared, whole), &units, &etag_parts).await
}

/// The page of a series that a request asks for.
struct SeriesPage<'a> {
    app: &'a App,
    request: &'a ReadRequest,
    grid_query: &'a GridQuery,
    pages: Pages<'a>,
    /// Where the page begins.
    after: Option<RowPosition>,
}

impl<'a> SeriesPage<'a> {
    /// `route`: a name for what is asked, so that a cursor fits no other route.
    fn of(
        app: &'a App,
        request: &'a ReadRequest,
        owner: PersonId,
        route: &str,
        grid_query: &'a GridQuery,
    ) -> Result<Self, ApiError> {
        let pages = Pages::of_address(&app.tickets, owner, route, request.words());
        let after = pages.place(grid_query.form.cursor.as_deref())?;
        Ok(Self {
            app,
            request,
            grid_query,
            pages,
            after,
        })
    }

    /// The start of the window that the page before ended with.
    fn start(&self) -> Option<Instant> {
        self.after.map(|place| Instant::from_micros(place.start))
    }

    /// The page of the series `prepared`, shown in `units`, and with the windows marked that are not among
    /// the whole ones, if the answer is to mark them.
    async fn send(
        self,
        slot: AdmissionSlot,
        (prepared, whole): (Prepared, Option<WholeBins>),
        units: &[UnitOfColumns],
        etag_parts: &str,
    ) -> Result<Response, ApiError> {
        let form = &self.grid_query.form;
        let (mut prepared, next) = prepared.page(&RowKey::start(TIME), self.after.as_ref(), form.limit)?;
        for (unit, columns, unit_column) in units {
            prepared = prepared.in_unit(unit, &by_name(columns), unit_column)?;
        }
        let prepared = prepared.marking(whole, TIME)?;
        let answer = self
            .request
            .answer(self.app, slot, prepared, form, etag_parts)
            .await?;
        self.pages.with_next_cursor(self.app, form, answer, next).await
    }
}

/// A unit with the columns that are shown in it, and the name of the column that tells it.
type UnitOfColumns = (DisplayUnit, Vec<(String, UnitRole)>, String);

/// The parts of `range` in which everything is visible that the permits are for.
fn visible_in_all(range: TimeRange, permits: &[Readable]) -> Windows {
    permits.iter().fold(Windows::new([range]), |visible, permit| {
        let each = permit.windows().as_slice().iter();
        Windows::new(each.flat_map(|window| visible.within(*window).as_slice().to_vec()))
    })
}

/// The columns of a series that are in the unit of its metric.
fn measured(spec: &SeriesSpec) -> Vec<(String, UnitRole)> {
    in_unit_of_metric(&spec.column, &spec.calculations, |calculation| {
        calculation.column(&spec.column)
    })
}

fn by_name(columns: &[(String, UnitRole)]) -> Vec<(&str, UnitRole)> {
    columns
        .iter()
        .map(|(name, holds)| (name.as_str(), holds.clone()))
        .collect()
}

fn refuse_too_many(app: &App, cells: u64) -> Result<(), ApiError> {
    let limit = app.settings.cell_limit;
    if cells <= limit {
        return Ok(());
    }
    Err(invalid(
        ["query", "samprate"],
        format!("{cells} cells exceed the limit of {limit}; ask for wider windows or a shorter range"),
    ))
}
