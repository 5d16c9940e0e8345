//! Annotations, by which people record what they choose to: `/user/v1alpha1/annotation`.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::api::app::{App, AppState};
use crate::api::docs::bodies::{AnnotationReplacement, NewAnnotation};
use crate::api::document::Document;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, aside, listed_as, listing, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::grants::{ReadableTypes, Refused};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::time::TimeRange;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::annotations::measurement::MeasurementConfiguration;
use crate::people::annotations::{AnnotationRoot, AnnotationRow, AnnotationType, schema};
use crate::people::condition::Condition;
use crate::people::documents::DocumentError;

const COLUMNS: [ListedColumn; 12] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("svc_userid", ColumnKind::Text),
    ListedColumn::new("svc_source_id", ColumnKind::Text),
    ListedColumn::new("annotation_type", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("tags", ColumnKind::Texts),
    ListedColumn::new("measurement_spec", ColumnKind::Json),
    ListedColumn::new("spec", ColumnKind::Json),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("updated_at", ColumnKind::Time),
    ListedColumn::new("deleted_at", ColumnKind::Time),
];

/// Which annotations, and whose.
#[derive(Debug)]
pub struct ListQuery {
    owner: Option<PersonId>,
    annotation_type: Option<AnnotationType>,
    form: ListingForm,
}

impl FromParams for ListQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
            annotation_type: params.choice("annotation_type"),
            form: ListingForm::read(params)?,
        })
    }
}

/// Whose annotation it is.
#[derive(Debug)]
pub struct OwnerQuery {
    owner: Option<PersonId>,
    form: ListingForm,
}

impl FromParams for OwnerQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
            form: ListingForm::read(params)?,
        })
    }
}

/// Whose annotation is to be changed; nobody can change somebody else's.
#[derive(Debug)]
pub struct ChangeQuery {
    owner: Option<PersonId>,
}

impl FromParams for ChangeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
        })
    }
}

/// What the caller wants as the answer to a creation.
#[derive(Debug)]
pub struct CreateQuery;

impl FromParams for CreateQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        // Whatever its value, the answer is the whole annotation.
        params.text("response_class");
        Some(Self)
    }
}

/// A person's annotations, oldest first. Deleted ones are left out.
#[utoipa::path(get, path = "/user/v1alpha1/annotation", operation_id = "list_annotations",
    tag = "annotations",
    params(Checked<ListQuery>),
    responses((status = 200, description = "Annotations", body = Vec<AnnotationRow>), (status = 403),
        (status = 422), (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let permit = readable(&app, &reader, query.owner).await?;
        let annotations = app.annotations.all(permit.owner()).await?;
        let is_asked_for = |annotation: &&AnnotationRow| {
            let kind = annotation.root.annotation_type();
            annotation.is_live()
                && query.annotation_type.is_none_or(|asked| asked == kind)
                && is_visible(&permit, annotation)
        };
        let found = annotations.iter().filter(is_asked_for);
        let found: Vec<Cow<AnnotationRow>> = found.map(|annotation| seen_by(&reader, annotation)).collect();
        listed_as(&app, &headers, query.form, &COLUMNS, &found).await
    })
    .await
}

/// Creates an annotation.
#[utoipa::path(post, path = "/user/v1alpha1/annotation", operation_id = "create_annotation",
    tag = "annotations",
    params(Checked<CreateQuery>),
    request_body = NewAnnotation,
    responses((status = 201, description = "The new annotation", body = AnnotationRow), (status = 413),
        (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<CreateQuery>,
    Document(body): Document,
) -> Result<(StatusCode, Json<AnnotationRow>), ApiError> {
    let annotation = app.annotations.create(reader.person(), &body).await?;
    Ok((StatusCode::CREATED, Json(annotation)))
}

/// One annotation, deleted or not.
#[utoipa::path(get, path = "/user/v1alpha1/annotation/{annotation_id}", operation_id = "get_annotation",
    tag = "annotations",
    params(("annotation_id" = Uuid, Path), Checked<OwnerQuery>),
    responses((status = 200, description = "The annotation", body = AnnotationRow), (status = 403),
        (status = 404), (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(annotation_id): Path<String>,
    Checked(query): Checked<OwnerQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let permit = readable(&app, &reader, query.owner).await?;
    let id = id_in_path("annotation_id", &annotation_id)?;
    let annotation = match app.annotations.one(permit.owner(), id).await {
        Ok(annotation) if is_visible(&permit, &annotation) => annotation,
        // Others are not told which of those that they may not see exist.
        Ok(_) => return Err(Refused.into()),
        Err(DocumentError::Unknown(_)) if !permit.is_own() => return Err(Refused.into()),
        Err(error) => return Err(error.into()),
    };
    let seen = seen_by(&reader, &annotation);
    one_as(&app, &headers, query.form, &COLUMNS, &seen).await
}

/// Replaces an annotation.
#[utoipa::path(put, path = "/user/v1alpha1/annotation/{annotation_id}", operation_id = "replace_annotation",
    tag = "annotations",
    params(("annotation_id" = Uuid, Path), Checked<ChangeQuery>),
    request_body = AnnotationReplacement,
    responses((status = 200, description = "The annotation as it is then", body = AnnotationRow),
        (status = 403), (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn replace(
    State(app): State<AppState>,
    reader: Reader,
    Path(annotation_id): Path<String>,
    Checked(query): Checked<ChangeQuery>,
    condition: Condition,
    Document(body): Document,
) -> Result<Json<AnnotationRow>, ApiError> {
    let person = only_ones_own(&reader, &query)?;
    let id = id_in_path("annotation_id", &annotation_id)?;
    let replaced = app.annotations.replace(person, id, &body, &condition);
    Ok(Json(replaced.await?))
}

/// Deletes an annotation. It leaves the catalogue, can still be read by its id, and can be restored.
#[utoipa::path(delete, path = "/user/v1alpha1/annotation/{annotation_id}",
    operation_id = "delete_annotation", tag = "annotations",
    params(("annotation_id" = Uuid, Path), Checked<ChangeQuery>),
    responses((status = 200, description = "The deleted annotation", body = AnnotationRow), (status = 403),
        (status = 404), (status = 409), (status = 422)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(annotation_id): Path<String>,
    Checked(query): Checked<ChangeQuery>,
    condition: Condition,
) -> Result<Json<AnnotationRow>, ApiError> {
    let person = only_ones_own(&reader, &query)?;
    let id = id_in_path("annotation_id", &annotation_id)?;
    Ok(Json(app.annotations.delete(person, id, &condition).await?))
}

/// Restores a deleted annotation.
#[utoipa::path(post, path = "/user/v1alpha1/annotation/{annotation_id}/cancel_deletion",
    operation_id = "cancel_annotation_deletion", tag = "annotations",
    params(("annotation_id" = Uuid, Path), Checked<ChangeQuery>),
    responses((status = 200, description = "The active annotation", body = AnnotationRow), (status = 403),
        (status = 404), (status = 409), (status = 422)))]
pub async fn cancel_deletion(
    State(app): State<AppState>,
    reader: Reader,
    Path(annotation_id): Path<String>,
    Checked(query): Checked<ChangeQuery>,
) -> Result<Json<AnnotationRow>, ApiError> {
    let person = only_ones_own(&reader, &query)?;
    let id = id_in_path("annotation_id", &annotation_id)?;
    Ok(Json(app.annotations.cancel_deletion(person, id).await?))
}

/// The JSON Schema of an annotation, as it is sent.
#[utoipa::path(get, path = "/user/v1alpha1/schema/annotation", operation_id = "annotation_schema",
    tag = "annotations",
    params(Checked<NoParams>),
    responses((status = 200, description = "JSON Schema, draft 2020-12", body = Object)))]
pub async fn annotation_schema(
    _reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let schema = schema::of::<AnnotationRoot>().map_err(ApiError::internal)?;
    listing(&headers, &schema)
}

/// The JSON Schema of a measurement configuration.
#[utoipa::path(get, path = "/user/v1alpha1/schema/measurement", operation_id = "measurement_schema",
    tag = "annotations",
    params(Checked<NoParams>),
    responses((status = 200, description = "JSON Schema, draft 2020-12", body = Object)))]
pub async fn measurement_schema(
    _reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let schema = schema::of::<MeasurementConfiguration>().map_err(ApiError::internal)?;
    listing(&headers, &schema)
}

/// Which of the owner's annotations the reader may see.
async fn readable(app: &App, reader: &Reader, owner: Option<PersonId>) -> Result<ReadableTypes, ApiError> {
    let owner = reader.asks_about(owner);
    let always = TimeRange::ALWAYS;
    Ok(app.grants.readable_types(reader, owner, always).await?)
}

/// An annotation is visible if its records are.
fn is_visible(permit: &ReadableTypes, annotation: &AnnotationRow) -> bool {
    permit.windows_of(&annotation.type_id()).is_some()
}

/// Removes the tags for other readers: tags are private, whatever is shared.
fn seen_by<'a>(reader: &Reader, annotation: &'a AnnotationRow) -> Cow<'a, AnnotationRow> {
    let mut seen = Cow::Borrowed(annotation);
    if !reader.owns(annotation.svc_userid) {
        seen.to_mut().root.untag();
    }
    seen
}

/// Only the owner may change something, shared or not.
fn only_ones_own(reader: &Reader, query: &ChangeQuery) -> Result<PersonId, ApiError> {
    match query.owner {
        Some(owner) if owner != reader.person() => Err(Refused.into()),
        _ => Ok(reader.person()),
    }
}
