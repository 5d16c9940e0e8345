//! Where somebody was: at one moment, and at regular moments.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::docs::answers::Rows;
use crate::api::extract::Checked;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::GrantAuthority;
use crate::model::time::{Instant, MICROS_PER_SECOND, TimeRange};
use crate::query::Prepared;
use crate::query::paging::RowKey;
use crate::query::places::at_time::AtTimeSpec;
use crate::query::places::named::with_names;
use crate::query::places::series::{PlaceSeriesSpec, SLOT};
use crate::query::places::updates::Updates;
use crate::query::places::{Granted, LocationSource, PLATFORM_VISITS};

use super::asked_page::AskedPage;
use super::asking::Asking;
use super::locations::{location_sources, updates_of};

/// Seconds for which a position stays valid, by default.
pub(super) const LOOK_BACK: i64 = 14_400;
/// Seconds from one slot to the next, by default.
const SAMPLE_RATE: i64 = 900;

/// A moment, and how far around it to look.
#[derive(Debug)]
pub struct AtTimeQuery {
    time: Instant,
    window: i64,
    include_after: bool,
    names: bool,
    form: AnswerForm,
}

impl FromParams for AtTimeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (time, window) = (
            params.required_instant("time"),
            seconds(params, "window_size", LOOK_BACK, 0),
        );
        let include_after = params.flag_or("include_after", false);
        let (names, form) = (wants_names(params), AnswerForm::read(params));
        Some(Self {
            time: time?,
            window: window?,
            include_after: include_after?,
            names: names?,
            form: form?,
        })
    }
}

/// Where the person was: the update at the time itself, or the nearest one within the window. An array of one
/// row or of none.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/location_at_time", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<AtTimeQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn location_at_time(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<AtTimeQuery>,
) -> Result<Response, ApiError> {
    let spec = AtTimeSpec::new(query.time, query.window, query.include_after, query.form.ids())
        .ok_or_else(|| invalid(["query", "time"], "there is no time after this"))?;
    let updates = updates_of(&app, &asking, &[], spec.reads()).await?;
    let visits = visits_of(&app, &asking, &updates, spec.reads_visits()).await?;
    let slot = asking.request.admitted(&app).await?;
    let prepared = app.questions.location_at(&updates, visits.as_ref(), spec).await?;
    let (prepared, edition) = named(
        &app,
        &asking,
        prepared,
        query.names,
        ("latitude_degrees", "longitude_degrees"),
    );
    asking.answer(&app, slot, prepared, &query.form, &edition).await
}

/// A series of places.
#[derive(Debug)]
pub struct SeriesQuery {
    spec: PlaceSeriesSpec,
    sources: Vec<LocationSource>,
    names: bool,
    form: AnswerForm,
}

impl FromParams for SeriesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let range: Option<TimeRange> = params.range();
        let (rate, look_back) = (
            seconds(params, "sample_rate", SAMPLE_RATE, 1),
            seconds(params, "look_back", LOOK_BACK, 0),
        );
        let change_meters = params.number_from("change_meters", 0.0);
        if change_meters.is_some_and(|meters| meters < 0.0) {
            params.fault(
                "change_meters",
                "greater_than_equal",
                "expected a distance of at least 0 metres",
            );
        }
        let (sources, names, form) = (
            location_sources(params),
            wants_names(params),
            AnswerForm::paged(params, AnswerForm::read),
        );
        Some(Self {
            spec: PlaceSeriesSpec {
                range: range?,
                sample_rate: rate?,
                look_back: look_back?,
                change_meters,
            },
            sources: sources?,
            names: names?,
            form: form?,
        })
    }
}

/// Where the person was at regular moments: at each the latest position known by then, and how far that is
/// from the row before.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/location_time_series", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<SeriesQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn location_time_series(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<SeriesQuery>,
) -> Result<Response, ApiError> {
    let SeriesQuery {
        spec,
        sources,
        names,
        form,
    } = query;
    let page = AskedPage::of(&app, &asking, &form)?;
    let limit = app.settings.cell_limit;
    if spec.slots() > limit {
        let message = format!(
            "{} rows exceed the limit of {limit}; ask for a greater sample_rate or a shorter range",
            spec.slots()
        );
        return Err(invalid(["query", "sample_rate"], message));
    }
    let updates = updates_of(&app, &asking, &sources, spec.reads()).await?;
    let visits = visits_of(&app, &asking, &updates, spec.reads_visits()).await?;
    let slot = asking.request.admitted(&app).await?;
    let prepared = app
        .questions
        .location_series(&updates, visits.as_ref(), &spec)
        .await?;
    let (prepared, next) = page.cut(prepared, &RowKey::start(SLOT))?;
    let (prepared, edition) = named(&app, &asking, prepared, names, ("lat", "long"));
    page.send(slot, (prepared, next), &edition).await
}

/// `reverse_geocode`.
fn wants_names(params: &mut Params<'_>) -> Option<bool> {
    params.flag_or("reverse_geocode", false)
}

/// The rows with the names of their places, if these are wanted, and what the names depend on.
fn named(
    app: &AppState,
    asking: &Asking,
    prepared: Prepared,
    wanted: bool,
    columns: (&'static str, &'static str),
) -> (Prepared, String) {
    if !wanted {
        return (prepared, String::new());
    }
    asking.request.depends_on_more();
    let edition = app.geocoder.edition().to_string();
    let reader = asking.request.reader.person();
    let named = with_names(prepared, Arc::clone(&app.geocoder), reader, columns);
    (named, edition)
}

/// The visits to fall back on: the device's, if it is among the sources and the reader may see them.
async fn visits_of(
    app: &AppState,
    asking: &Asking,
    updates: &[Updates<GrantAuthority>],
    range: TimeRange,
) -> Result<Option<Granted<GrantAuthority>>, ApiError> {
    if !updates
        .iter()
        .any(|updates| updates.source == LocationSource::MobileOs)
    {
        return Ok(None);
    }
    asking.granted_if_shared(app, PLATFORM_VISITS, range).await
}

/// A parameter in whole seconds, as microseconds.
fn seconds(params: &mut Params<'_>, name: &'static str, otherwise: i64, least: i64) -> Option<i64> {
    let bounds = (least, i64::MAX / MICROS_PER_SECOND);
    let given = params.integer_or(name, bounds, otherwise)?;
    Some(given * MICROS_PER_SECOND)
}
