//! Data shares: `/user/v1/datashare`.

pub mod bodies;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, aside, document_as, listed_as};
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::people::condition::Condition;
use crate::people::sharing::SharingError;

use bodies::{COLUMNS, Datashare, NewDatashare, OneDatashare, SentDatashare};

/// Shares data types and files with people and groups.
#[utoipa::path(post, path = "/user/v1/datashare",
    operation_id = "create_datashare", tag = "sharing",
    params(Checked<NoParams>), request_body = NewDatashare,
    responses((status = 201, description = "The new share", body = OneDatashare), (status = 400),
        (status = 413), (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(body): Sent<SentDatashare>,
) -> Result<(StatusCode, Json<OneDatashare>), ApiError> {
    let change = body.change()?;
    let share = app
        .sharing
        .create_share(&app.types, reader.person(), reader.name(), change)
        .await?;
    Ok((StatusCode::CREATED, Json(OneDatashare::of(&share))))
}

/// The caller's data shares, oldest first.
#[utoipa::path(get, path = "/user/v1/datashare",
    operation_id = "list_datashares", tag = "sharing", params(Checked<ListingQuery>),
    responses((status = 200, description = "Shares", body = Vec<Datashare>), (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let shares = app.sharing.shares_of(reader.person()).await?;
        let shares: Vec<Datashare> = shares.iter().map(Datashare::of).collect();
        listed_as(&app, &headers, query.form, &COLUMNS, &shares).await
    })
    .await
}

/// One of the caller's data shares.
#[utoipa::path(get, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "get_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The share", body = OneDatashare), (status = 404)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let share = app.sharing.share(reader.person(), share_id(&id)?).await?;
    let one = OneDatashare::of(&share);
    let row = std::slice::from_ref(&one.datashare);
    document_as(&app, &headers, query.form, &COLUMNS, (&one, row)).await
}

/// Changes the members of a data share that are sent: null opens an end of the time, an empty list takes it
/// back from all people or all groups. Nothing changes if any of it is wrong.
#[utoipa::path(put, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "change_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<NoParams>), request_body = SentDatashare,
    responses((status = 200, description = "The share as it is then", body = OneDatashare), (status = 400),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<SentDatashare>,
) -> Result<Json<OneDatashare>, ApiError> {
    let id = share_id(&id)?;
    // The check of the owner comes before the faults of the change.
    app.sharing.share(reader.person(), id).await?;
    let change = body.change()?;
    let share = app
        .sharing
        .change_share(&app.types, reader.person(), id, change, &condition)
        .await?;
    Ok(Json(OneDatashare::of(&share)))
}

/// Takes a data share back from everybody.
#[utoipa::path(delete, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "delete_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 404), (status = 409)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<StatusCode, ApiError> {
    let id = share_id(&id)?;
    app.sharing.remove_share(reader.person(), id, &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn share_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| SharingError::Unknown("data share").into())
}

impl From<SharingError> for ApiError {
    fn from(error: SharingError) -> Self {
        match error {
            SharingError::Invalid(faults) => Self::invalid_all(faults),
            SharingError::UnknownGroup(_) => Self::bad_request(error.to_string()),
            SharingError::Unknown(_) => Self::not_found(error.to_string()),
            SharingError::NotYours => Self::forbidden(error.to_string()),
            SharingError::LimitReached(reached) => Self::limit_reached(reached.to_string()),
            SharingError::Overtaken => Self::conflict(error.to_string()),
            SharingError::Outdated(outdated) => outdated.into(),
            SharingError::Catalog(error) => error.into(),
        }
    }
}
