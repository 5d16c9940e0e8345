//! Calendars and the events in them.

use axum::extract::State;
use axum::response::Response;
use uuid::Uuid;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::docs::answers::{CalendarEvents, Calendars};
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::model::time::TimeRange;
use crate::query::places::calendar::{
    CALENDAR_COLUMNS, CALENDAR_DEFAULTS, CALENDAR_KEY, DAY_MARGIN, EVENT_COLUMNS, EVENT_KEY,
};
use crate::query::places::raw::{OneOf, RawSpec};
use crate::query::places::{CALENDAR_EVENTS, CALENDARS, widened};

use super::asked_page::AskedPage;
use super::asking::Asking;

/// Which calendars.
#[derive(Debug)]
pub struct CalendarsQuery {
    identifiers: Vec<String>,
    form: AnswerForm,
}

impl FromParams for CalendarsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (identifiers, form) = (
            params.list_and_whole("vendor_ids"),
            AnswerForm::paged(params, AnswerForm::read),
        );
        Some(Self {
            identifiers,
            form: form?,
        })
    }
}

/// A person's calendars, in the order in which they were first uploaded.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/calendars", tag = "calendars",
    params(("svc_userid" = Uuid, Path), Checked<CalendarsQuery>),
    responses(Calendars, (status = 403), (status = 422)))]
pub async fn calendars(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<CalendarsQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let always = TimeRange::ALWAYS;
    let granted = asking.granted(&app, CALENDARS, always).await?;
    let slot = asking.request.admitted(&app).await?;
    let spec = RawSpec {
        only: one_of(&["calendar_identifier"], query.identifiers),
        ..page.spec(CALENDAR_COLUMNS, &CALENDAR_KEY)?
    };
    let prepared = app
        .questions
        .completed(&granted, &spec, CALENDAR_DEFAULTS)
        .await?;
    page.answer(slot, prepared, &CALENDAR_KEY).await
}

/// Which events.
#[derive(Debug)]
pub struct EventsQuery {
    range: TimeRange,
    calendars: Vec<String>,
    form: AnswerForm,
}

impl FromParams for EventsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, calendars, form) = (
            params.range(),
            params.uuids("calendar_ids"),
            AnswerForm::paged(params, AnswerForm::read),
        );
        Some(Self {
            range: range?,
            calendars: calendars?.into_iter().flat_map(spellings).collect(),
            form: form?,
        })
    }
}

/// The events that take place in the range. An event that lasts all day takes place on whole days of its own
/// time zone (UTC where it names none); dates that are midnights in UTC mean these days in that zone.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/calendar_events", tag = "calendars",
    params(("svc_userid" = Uuid, Path), Checked<EventsQuery>),
    responses(CalendarEvents, (status = 403), (status = 422)))]
pub async fn calendar_events(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<EventsQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    asking.request.reader.disclosures().are_about(query.range);
    let margin = if query.range.is_empty() { 0 } else { DAY_MARGIN };
    let granted = asking
        .granted(&app, CALENDAR_EVENTS, widened(query.range, margin, margin))
        .await?;
    let slot = asking.request.admitted(&app).await?;
    let spec = RawSpec {
        only: one_of(&["calendar_id"], query.calendars),
        ..page.spec(EVENT_COLUMNS, &EVENT_KEY)?
    };
    let prepared = app
        .questions
        .calendar_events(&granted, &spec, query.range)
        .await?;
    page.answer(slot, prepared, &EVENT_KEY).await
}

/// The spellings of an id: stored ids have the first one, but older rows may have another.
fn spellings(id: Uuid) -> [String; 4] {
    let (hyphenated, simple) = (id.to_string(), id.simple().to_string());
    let (loud, loud_simple) = (hyphenated.to_uppercase(), simple.to_uppercase());
    [hyphenated, loud, simple, loud_simple]
}

fn one_of(columns: &'static [&'static str], values: Vec<String>) -> Option<OneOf> {
    (!values.is_empty()).then_some(OneOf { columns, values })
}
