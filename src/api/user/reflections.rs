//! The caller's reflections: `/user/v1alpha1/reflection`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::api::app::AppState;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, aside, listed_as, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::reflections::{Reflection, ReflectionContent};

const COLUMNS: [ListedColumn; 11] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("svc_userid", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("schedule", ColumnKind::Json),
    ListedColumn::new("annotations", ColumnKind::Texts),
    ListedColumn::new("data_types", ColumnKind::Json),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("parent_template_id", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("updated_at", ColumnKind::Time),
    ListedColumn::new("deleted_at", ColumnKind::Time),
];

/// The caller's reflections, oldest first. Deleted ones are left out.
#[utoipa::path(get, path = "/user/v1alpha1/reflection", operation_id = "list_reflections", tag = "people",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Reflections", body = Vec<Reflection>), (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let mut reflections = app.reflections.all(reader.person()).await?;
        reflections.retain(|reflection| reflection.deleted_at.is_none());
        listed_as(&app, &headers, query.form, &COLUMNS, &reflections).await
    })
    .await
}

/// Creates a reflection.
#[utoipa::path(post, path = "/user/v1alpha1/reflection", operation_id = "create_reflection", tag = "people",
    params(Checked<NoParams>),
    request_body = ReflectionContent,
    responses((status = 201, description = "The new reflection", body = Reflection), (status = 413),
        (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(content): Sent<ReflectionContent>,
) -> Result<(StatusCode, Json<Reflection>), ApiError> {
    let reflection = app.reflections.create(reader.person(), &content).await?;
    Ok((StatusCode::CREATED, Json(reflection)))
}

/// One of the caller's reflections, deleted or not.
#[utoipa::path(get, path = "/user/v1alpha1/reflection/{reflection_id}", operation_id = "get_reflection",
    tag = "people",
    params(("reflection_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The reflection", body = Reflection), (status = 404),
        (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(reflection_id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = id_in_path("reflection_id", &reflection_id)?;
    let reflection = app.reflections.one(reader.person(), id).await?;
    one_as(&app, &headers, query.form, &COLUMNS, &reflection).await
}

/// Replaces the content of a reflection.
#[utoipa::path(put, path = "/user/v1alpha1/reflection/{reflection_id}", operation_id = "replace_reflection",
    tag = "people",
    params(("reflection_id" = Uuid, Path), Checked<NoParams>),
    request_body = ReflectionContent,
    responses((status = 200, description = "The reflection as it is then", body = Reflection),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn replace(
    State(app): State<AppState>,
    reader: Reader,
    Path(reflection_id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(content): Sent<ReflectionContent>,
) -> Result<Json<Reflection>, ApiError> {
    let id = id_in_path("reflection_id", &reflection_id)?;
    let replaced = app.reflections.replace(reader.person(), id, &content, &condition);
    Ok(Json(replaced.await?))
}

/// Deletes a reflection. It can still be read by its id.
#[utoipa::path(delete, path = "/user/v1alpha1/reflection/{reflection_id}",
    operation_id = "delete_reflection", tag = "people",
    params(("reflection_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "The deleted reflection", body = Reflection), (status = 404),
        (status = 409), (status = 422)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(reflection_id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<Json<Reflection>, ApiError> {
    let id = id_in_path("reflection_id", &reflection_id)?;
    let deleted = app.reflections.delete(reader.person(), id, &condition);
    Ok(Json(deleted.await?))
}
