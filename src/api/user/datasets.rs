//! What others share with the caller: `/user/v1/dataset`, and which types may be read throughout a range.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::extract::{Checked, Owner, Path};
use crate::api::listed::{ListingForm, ListingQuery, aside, listed_as, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange};
use crate::output::{ColumnKind, ListedColumn};
use crate::people::sharing::SharingError;
use crate::people::sharing::received::Received;

/// Data that the caller can read.
#[derive(Debug, Serialize, ToSchema)]
pub struct Dataset {
    #[schema(required)]
    pub grant_id: Option<Uuid>,
    /// `self`, `user` or `group`.
    pub grant_type: &'static str,
    #[schema(required)]
    pub datashare_id: Option<Uuid>,
    #[schema(required)]
    pub datashare_name: Option<String>,
    #[schema(required)]
    pub group_id: Option<Uuid>,
    #[schema(required)]
    pub sharing_svc_userid: Option<Uuid>,
    #[schema(required)]
    pub sharing_svc_user_name: Option<String>,
    pub svc_data_types: Vec<String>,
    pub share_all_data: bool,
    #[schema(required, format = DateTime)]
    pub time_start: Option<String>,
    #[schema(required, format = DateTime)]
    pub time_end: Option<String>,
}

/// The types of a person that may be read throughout a range.
#[derive(Debug, Serialize, ToSchema)]
pub struct AllowedTypes {
    pub all_data_types: bool,
    pub svc_data_types: Vec<String>,
}

impl Dataset {
    fn own() -> Self {
        Self {
            grant_id: None,
            grant_type: "self",
            datashare_id: None,
            datashare_name: None,
            group_id: None,
            sharing_svc_userid: None,
            sharing_svc_user_name: None,
            svc_data_types: Vec::new(),
            share_all_data: true,
            time_start: None,
            time_end: None,
        }
    }

    fn of(received: Received) -> Self {
        let terms = received.terms;
        Self {
            grant_id: Some(received.grant),
            grant_type: if received.group.is_some() { "group" } else { "user" },
            datashare_id: Some(received.share),
            datashare_name: Some(terms.name),
            group_id: received.group,
            sharing_svc_userid: Some(received.sharer.0),
            sharing_svc_user_name: terms.user_name,
            svc_data_types: terms.data_types,
            share_all_data: terms.share_all_data,
            time_start: terms.time_start.map(Instant::to_rfc3339),
            time_end: terms.time_end.map(Instant::to_rfc3339),
        }
    }
}

const COLUMNS: [ListedColumn; 11] = [
    ListedColumn::new("grant_id", ColumnKind::Text),
    ListedColumn::new("grant_type", ColumnKind::Text),
    ListedColumn::new("datashare_id", ColumnKind::Text),
    ListedColumn::new("datashare_name", ColumnKind::Text),
    ListedColumn::new("group_id", ColumnKind::Text),
    ListedColumn::new("sharing_svc_userid", ColumnKind::Text),
    ListedColumn::new("sharing_svc_user_name", ColumnKind::Text),
    ListedColumn::new("svc_data_types", ColumnKind::Texts),
    ListedColumn::new("share_all_data", ColumnKind::Flag),
    ListedColumn::new("time_start", ColumnKind::Time),
    ListedColumn::new("time_end", ColumnKind::Time),
];

/// What the caller can read: first their own data, then what others share with them or with their groups.
#[utoipa::path(get, path = "/user/v1/dataset",
    operation_id = "list_datasets", tag = "sharing", params(Checked<ListingQuery>),
    responses((status = 200, description = "Datasets", body = Vec<Dataset>), (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let received = app.sharing.received(reader.person()).await?;
        let rows = std::iter::once(Dataset::own()).chain(received.into_iter().map(Dataset::of));
        listed_as(&app, &headers, query.form, &COLUMNS, &rows.collect::<Vec<_>>()).await
    })
    .await
}

/// Gives up what was shared with the caller, or takes back from a group a share of the caller's own.
#[utoipa::path(delete, path = "/user/v1/dataset/{grant_id}",
    operation_id = "leave_dataset", tag = "sharing", params(("grant_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is given up"), (status = 404), (status = 409)))]
pub async fn leave(
    State(app): State<AppState>,
    reader: Reader,
    Path(grant): Path<String>,
    _query: Checked<NoParams>,
) -> Result<StatusCode, ApiError> {
    let unknown = || SharingError::Unknown("grant to give up");
    let grant = Uuid::try_parse(&grant).map_err(|_| unknown())?;
    app.sharing.leave(reader.person(), grant).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A range of time; a missing end is open.
#[derive(Debug)]
pub struct OpenRangeQuery {
    range: TimeRange,
    form: ListingForm,
}

impl FromParams for OpenRangeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.open_range(), ListingForm::read(params));
        Some(Self {
            range: range?,
            form: form?,
        })
    }
}

const ALLOWED_COLUMNS: [ListedColumn; 2] = [
    ListedColumn::new("all_data_types", ColumnKind::Flag),
    ListedColumn::new("svc_data_types", ColumnKind::Texts),
];

/// The types of another person that the caller may read throughout a range. Empty if nothing is shared.
#[utoipa::path(get, path = "/user/v1/shared/{svc_userid}/data_types",
    operation_id = "allowed_types", tag = "sharing",
    params(("svc_userid" = Uuid, Path), Checked<OpenRangeQuery>),
    responses((status = 200, description = "Types", body = AllowedTypes), (status = 422)))]
pub async fn allowed_types(
    State(app): State<AppState>,
    reader: Reader,
    Owner(sharer): Owner,
    Checked(query): Checked<OpenRangeQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    allowed(&app, &reader, sharer, query, &headers).await
}

async fn allowed(
    app: &AppState,
    reader: &Reader,
    sharer: PersonId,
    query: OpenRangeQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let access = app.sharing.access(reader.person(), sharer, query.range).await?;
    let types = AllowedTypes {
        all_data_types: access.all_data_types,
        svc_data_types: access
            .data_types
            .iter()
            .map(|data_type| data_type.as_str().to_owned())
            .collect(),
    };
    one_as(app, headers, query.form, &ALLOWED_COLUMNS, &types).await
}

/// The types of another person that the caller may read throughout a range, at the older address.
#[utoipa::path(get, path = "/user/v1alpha1/access/{sharer_svc_userid}/data_types",
    operation_id = "accessible_types", tag = "sharing",
    params(("sharer_svc_userid" = Uuid, Path), Checked<OpenRangeQuery>),
    responses((status = 200, description = "Types", body = AllowedTypes), (status = 422)))]
pub async fn accessible_types(
    State(app): State<AppState>,
    reader: Reader,
    Path(sharer): Path<String>,
    Checked(query): Checked<OpenRangeQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sharer = PersonId(id_in_path("sharer_svc_userid", &sharer)?);
    allowed(&app, &reader, sharer, query, &headers).await
}
