//! Locations as they were recorded: updates of the device and of a maps provider, visits, and the bounds of
//! what is recorded.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::docs::answers::Rows;
use crate::api::extract::Checked;
use crate::api::listed::{ListingForm, body_of, computed};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, OpenEnds, Params};
use crate::auth::grants::GrantAuthority;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange};
use crate::output::{ColumnKind, ListedColumn};
use crate::query::Prepared;
use crate::query::paging::RowKey;
use crate::query::places::raw::{OneOf, RawSpec};
use crate::query::places::stays;
use crate::query::places::updates::{MAPS_COLUMNS, UPDATE_COLUMNS, UPDATE_KEY, UPDATES_KEY, Updates};
use crate::query::places::visits::VISIT_COLUMNS;
use crate::query::places::{LocationSource, MAPS_UPDATES, PLATFORM_UPDATES, PLATFORM_VISITS};

use super::asked_page::AskedPage;
use super::asking::Asking;

/// The columns that place a visit in the order of an answer.
const VISITS_KEY: RowKey = RowKey {
    start: "arrival_date",
    end: Some("departure_date"),
    id: Some("uuid"),
    kind: None,
};

/// A range of time.
#[derive(Debug)]
pub struct RangeQuery {
    range: TimeRange,
    form: AnswerForm,
}

impl FromParams for RangeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.range(), AnswerForm::paged(params, AnswerForm::read));
        Some(Self {
            range: range?,
            form: form?,
        })
    }
}

/// Positions that a device reported, unchanged.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/platform_location_updates", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<RangeQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn platform_location_updates(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<RangeQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let granted = asking.granted(&app, PLATFORM_UPDATES, query.range).await?;
    let granted = page.beginning(granted);
    let slot = asking.request.admitted(&app).await?;
    let spec = page.spec(UPDATE_COLUMNS, &UPDATE_KEY)?;
    let prepared = app.questions.raw(&granted, &spec).await?;
    page.answer(slot, prepared, &UPDATE_KEY).await
}

/// Visits in a range, as recorded or as computed.
#[derive(Debug)]
pub struct VisitsQuery {
    range: TimeRange,
    derive: bool,
    ends: OpenEnds,
    form: AnswerForm,
}

impl FromParams for VisitsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, derive, form) = (
            params.range(),
            params.flag_or("derive", false),
            AnswerForm::paged(params, AnswerForm::read),
        );
        let ends = params.choice_or("open_ends", OpenEnds::Sentinel);
        Some(Self {
            ends: ends?,
            range: range?,
            derive: derive?,
            form: form?,
        })
    }
}

/// Stays at places that share time with the range. An arrival in year 1 and a departure in year 4001 are
/// unknown.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/platform_location_visits", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<VisitsQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn platform_location_visits(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<VisitsQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let granted = asking.granted(&app, PLATFORM_VISITS, query.range).await?;
    let updates = if query.derive {
        Some(
            asking
                .granted(&app, PLATFORM_UPDATES, stays::reads(query.range))
                .await?,
        )
    } else {
        None
    };
    let slot = asking.request.admitted(&app).await?;
    let spec = RawSpec {
        columns: VISIT_COLUMNS.to_vec(),
        only: None,
        ids: query.form.ids(),
    };
    let mut prepared = app.questions.raw(&granted, &spec).await?;
    if let Some(updates) = updates
        && app.questions.location_bounds(&granted).await?.records == 0
    {
        let stays = app
            .questions
            .stays(&updates, query.range, &prepared.schema, spec.ids)
            .await?;
        let states = prepared.states.into_iter().chain(stays.states).collect();
        prepared = Prepared {
            states,
            scope: prepared.scope.and(stays.scope),
            ..stays
        };
    }
    let (mut prepared, next) = page.cut(prepared, &VISITS_KEY)?;
    if query.ends == OpenEnds::Null {
        prepared = prepared.with_open_ends()?;
    }
    page.send(slot, (prepared, next), "").await
}

/// A range of time, and one source.
#[derive(Debug)]
pub struct MapsQuery {
    range: TimeRange,
    source: Option<String>,
    form: AnswerForm,
}

impl FromParams for MapsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, source, form) = (
            params.range(),
            params.text("svc_source_id"),
            AnswerForm::paged(params, AnswerForm::read),
        );
        Some(Self {
            range: range?,
            source,
            form: form?,
        })
    }
}

/// Positions that a maps provider reported, unchanged.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/maps_location_updates", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<MapsQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn maps_location_updates(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<MapsQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let granted = asking.granted(&app, MAPS_UPDATES, query.range).await?;
    let granted = page.beginning(granted);
    let slot = asking.request.admitted(&app).await?;
    let spec = RawSpec {
        only: of_source(&app, asking.owner, query.source).await?,
        ..page.spec(MAPS_COLUMNS, &UPDATE_KEY)?
    };
    let prepared = app.questions.raw(&granted, &spec).await?;
    page.answer(slot, prepared, &UPDATE_KEY).await
}

/// One source, or all.
#[derive(Debug)]
pub struct BoundsQuery {
    source: Option<String>,
    form: ListingForm,
}

impl FromParams for BoundsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            source: params.text("source"),
            form: ListingForm::read(params)?,
        })
    }
}

/// The first and the last moment with a position.
#[derive(Debug, Serialize, ToSchema)]
pub struct Bounds {
    #[schema(required, format = DateTime)]
    start_date: Option<String>,
    #[schema(required, format = DateTime)]
    end_date: Option<String>,
}

const BOUNDS: [ListedColumn; 2] = [
    ListedColumn::new("start_date", ColumnKind::Time),
    ListedColumn::new("end_date", ColumnKind::Time),
];

/// When the first and the last position of a maps provider were, both null if there is none.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/maps_location_updates/bounds", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<BoundsQuery>),
    responses((status = 200, description = "Bounds", body = Bounds), (status = 403), (status = 422)))]
pub async fn maps_location_bounds(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<BoundsQuery>,
) -> Result<Response, ApiError> {
    let always = TimeRange::ALWAYS;
    let granted = asking.granted(&app, MAPS_UPDATES, always).await?;
    let slot = asking.request.admitted(&app).await?;
    let only = of_source(&app, asking.owner, query.source).await?;
    let prepared = app.questions.prepared_bounds(&granted).await?;
    let etag_parts = asking.owner.to_string();
    let tag = asking
        .request
        .tag(&app, &prepared.states, &prepared.scope, &etag_parts);
    let form = query.form;
    computed(
        &asking.request.headers,
        &form.clone(),
        &BOUNDS,
        &tag,
        async move {
            let bounds = app
                .questions
                .bounds_in(&prepared, &granted, only.as_ref())
                .await?;
            drop(slot);
            let bounds = Bounds {
                start_date: bounds.first_start.map(Instant::to_rfc3339),
                end_date: bounds.last_end.map(Instant::to_rfc3339),
            };
            body_of(&app, &form, &BOUNDS, (&bounds, std::slice::from_ref(&bounds))).await
        },
    )
}

/// A range of time, and which sources to prefer.
#[derive(Debug)]
pub struct UpdatesQuery {
    range: TimeRange,
    sources: Vec<LocationSource>,
    form: AnswerForm,
}

impl FromParams for UpdatesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, sources, form) = (
            params.range(),
            location_sources(params),
            AnswerForm::paged(params, AnswerForm::read),
        );
        Some(Self {
            range: range?,
            sources: sources?,
            form: form?,
        })
    }
}

/// Positions from both kinds of sources in one shape, by time; `location_source` names the kind of each row.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/location_updates", tag = "locations",
    params(("svc_userid" = Uuid, Path), Checked<UpdatesQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn location_updates(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<UpdatesQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let updates = updates_of(&app, &asking, &query.sources, query.range).await?;
    let updates: Vec<_> = updates
        .into_iter()
        .map(|Updates { source, granted }| Updates {
            source,
            granted: page.beginning(granted),
        })
        .collect();
    let slot = asking.request.admitted(&app).await?;
    let prepared = app.questions.location_updates(&updates, query.form.ids()).await?;
    page.answer(slot, prepared, &UPDATES_KEY).await
}

/// `location_sources`, each once; without any, no source is preferred. `Some` unless one of them is unknown.
pub(super) fn location_sources(params: &mut Params<'_>) -> Option<Vec<LocationSource>> {
    let mut sources: Vec<LocationSource> = params.choices("location_sources")?;
    sources.sort_unstable();
    sources.dedup();
    Some(sources)
}

/// The permits to read the updates of `sources`. Where none is named, those of the sources that the reader
/// may see, if there are any.
pub(super) async fn updates_of(
    app: &AppState,
    asking: &Asking,
    sources: &[LocationSource],
    range: TimeRange,
) -> Result<Vec<Updates<GrantAuthority>>, ApiError> {
    let wanted = if sources.is_empty() {
        &LocationSource::ALL
    } else {
        sources
    };
    let mut updates = Vec::with_capacity(wanted.len());
    for source in wanted {
        let granted = asking.granted_if_shared(app, source.updates(), range).await?;
        updates.extend(granted.map(|granted| Updates {
            source: *source,
            granted,
        }));
    }
    if updates.is_empty() || (!sources.is_empty() && updates.len() < wanted.len()) {
        return Err(asking.refusal().into());
    }
    Ok(updates)
}

/// The rows of the source that `text` names: by the id that sources are listed with, by its vendor's id, or
/// as its rows name it.
async fn of_source(app: &AppState, owner: PersonId, text: Option<String>) -> Result<Option<OneOf>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let mut values = Vec::new();
    if let Ok(id) = Uuid::try_parse(&text) {
        let sources = app.catalog.sources_of(owner).await?;
        values.extend(
            sources
                .into_iter()
                .filter(|source| source.id == id)
                .map(|source| source.key),
        );
    }
    values.push(text);
    Ok(Some(OneOf {
        columns: &["source_id", "source"],
        values,
    }))
}
