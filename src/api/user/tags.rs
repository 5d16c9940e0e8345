//! The caller's tags: `/user/v1alpha1/tag`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::api::app::AppState;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, listed_as, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::tags::{NewTag, Tag};

const COLUMNS: [ListedColumn; 2] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
];

/// The caller's tags, oldest first.
#[utoipa::path(get, path = "/user/v1alpha1/tag", operation_id = "list_tags", tag = "people",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Tags", body = Vec<Tag>)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tags = app.tags.all(reader.person()).await?;
    listed_as(&app, &headers, query.form, &COLUMNS, &tags).await
}

/// Creates a tag. 409 if the caller has a tag of that name already.
#[utoipa::path(post, path = "/user/v1alpha1/tag", operation_id = "create_tag", tag = "people",
    params(Checked<NoParams>),
    request_body = NewTag,
    responses((status = 201, description = "The new tag", body = Tag), (status = 409), (status = 413),
        (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(wished): Sent<NewTag>,
) -> Result<(StatusCode, Json<Tag>), ApiError> {
    let tag = app.tags.create(reader.person(), wished).await?;
    Ok((StatusCode::CREATED, Json(tag)))
}

/// One of the caller's tags.
#[utoipa::path(get, path = "/user/v1alpha1/tag/id/{tag_id}", operation_id = "get_tag", tag = "people",
    params(("tag_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The tag", body = Tag), (status = 404), (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(tag_id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tag = app
        .tags
        .by_id(reader.person(), id_in_path("tag_id", &tag_id)?)
        .await?;
    one_as(&app, &headers, query.form, &COLUMNS, &tag).await
}

/// The caller's tag with this name.
#[utoipa::path(get, path = "/user/v1alpha1/tag/name/{tag_name}", operation_id = "get_tag_by_name",
    tag = "people",
    params(("tag_name" = String, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The tag", body = Tag), (status = 404), (status = 422)))]
pub async fn by_name(
    State(app): State<AppState>,
    reader: Reader,
    Path(tag_name): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tag = app.tags.by_name(reader.person(), &tag_name).await?;
    one_as(&app, &headers, query.form, &COLUMNS, &tag).await
}

/// Deletes a tag. Records that have it stay as they were recorded.
#[utoipa::path(delete, path = "/user/v1alpha1/tag/id/{tag_id}", operation_id = "delete_tag", tag = "people",
    params(("tag_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 404), (status = 409),
        (status = 422)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(tag_id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<StatusCode, ApiError> {
    let id = id_in_path("tag_id", &tag_id)?;
    app.tags.remove(reader.person(), id, &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}
