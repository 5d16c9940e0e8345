//! Archives of everything that the caller has: `/user/v1alpha1/export`.
//!
//! They are the caller's alone: no grant gives access to them.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::answer_headers::header_value;
use crate::api::app::AppState;
use crate::api::docs::bodies::RawBytes;
use crate::api::download::{FileLabel, download};
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, listed_as, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::model::time::Instant;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::takeout::{Export, ExportError, ExportState};

const PATH: &str = "/user/v1alpha1/export";
/// When to check again for a place, or for an archive that is being made.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The length of a date.
const DATE: usize = 10;

/// An archive of everything that the caller has, or the order for one.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportStatus {
    pub id: Uuid,
    pub state: ExportProgress,
    /// Files of the archive that are already written.
    pub done: u64,
    /// How many files there will be, as far as is known.
    pub total: u64,
    /// Bytes of the archive that are written; all of them once it is ready.
    pub bytes: u64,
    /// SHA-256 of the whole archive, in hexadecimal digits, once it is ready.
    #[schema(required)]
    pub sha256: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it was ready, or given up.
    #[schema(required, format = DateTime)]
    pub finished_at: Option<String>,
    /// When it is removed.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
    /// Why it was given up.
    #[schema(required)]
    pub error: Option<String>,
    /// The address of the archive, once it is ready.
    #[schema(required)]
    pub url: Option<String>,
}

/// How far an export has come.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportProgress {
    /// Work has not begun.
    Waiting,
    Running,
    /// The archive can be fetched.
    Ready,
    /// It could not be made.
    Failed,
}

impl From<ExportState> for ExportProgress {
    fn from(state: ExportState) -> Self {
        match state {
            ExportState::Waiting => Self::Waiting,
            ExportState::Running => Self::Running,
            ExportState::Ready => Self::Ready,
            ExportState::Failed => Self::Failed,
        }
    }
}

impl ExportStatus {
    fn of(export: &Export, public_url: &str) -> Self {
        let is_ready = export.state == ExportState::Ready;
        Self {
            id: export.id,
            state: export.state.into(),
            done: export.done,
            total: export.total,
            bytes: export.bytes(),
            sha256: export.sha256.clone(),
            created_at: export.created_at.to_rfc3339(),
            updated_at: export.updated_at.to_rfc3339(),
            finished_at: export.finished_at.map(Instant::to_rfc3339),
            expires_at: export.expires_at.map(Instant::to_rfc3339),
            error: export.reason.clone(),
            url: is_ready.then(|| format!("{public_url}{PATH}/{}/content", export.id)),
        }
    }
}

const COLUMNS: [ListedColumn; 12] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("state", ColumnKind::Text),
    ListedColumn::new("done", ColumnKind::Whole),
    ListedColumn::new("total", ColumnKind::Whole),
    ListedColumn::new("bytes", ColumnKind::Whole),
    ListedColumn::new("sha256", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("updated_at", ColumnKind::Time),
    ListedColumn::new("finished_at", ColumnKind::Time),
    ListedColumn::new("expires_at", ColumnKind::Time),
    ListedColumn::new("error", ColumnKind::Text),
    ListedColumn::new("url", ColumnKind::Text),
];

/// The caller's exports, oldest first.
#[utoipa::path(get, path = "/user/v1alpha1/export", operation_id = "list_exports", tag = "people",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Exports", body = [ExportStatus])))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let exports = app.exports.of_person(reader.person()).await?;
    let shown = exports
        .iter()
        .map(|export| ExportStatus::of(export, &app.settings.public_url));
    listed_as(&app, &headers, query.form, &COLUMNS, &shown.collect::<Vec<_>>()).await
}

/// Orders one archive with everything that the caller has. It is made in the background.
#[utoipa::path(post, path = "/user/v1alpha1/export", operation_id = "create_export", tag = "people",
    params(Checked<NoParams>),
    responses((status = 202, description = "The order", body = ExportStatus, headers(("location"))),
        (status = 422), (status = 429)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
) -> Result<Response, ApiError> {
    let export = app.exports.create(reader.person()).await?;
    let place = header_value(&format!("{}{PATH}/{}", app.settings.path_before(), export.id))?;
    let status = ExportStatus::of(&export, &app.settings.public_url);
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], Json(status)).into_response())
}

/// One of the caller's exports, and how far it has come.
#[utoipa::path(get, path = "/user/v1alpha1/export/{export_id}", operation_id = "get_export", tag = "people",
    params(("export_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The export", body = ExportStatus), (status = 404),
        (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(export_id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = id_in_path("export_id", &export_id)?;
    let export = app.exports.get(reader.person(), id).await?;
    let status = ExportStatus::of(&export, &app.settings.public_url);
    one_as(&app, &headers, query.form, &COLUMNS, &status).await
}

/// Removes an export and its archive; if it is being made, the work ends.
#[utoipa::path(delete, path = "/user/v1alpha1/export/{export_id}", operation_id = "delete_export",
    tag = "people",
    params(("export_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 404), (status = 409),
        (status = 422)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(export_id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<StatusCode, ApiError> {
    let id = id_in_path("export_id", &export_id)?;
    app.exports.remove(reader.person(), id, &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The archive, all of it or a range: a ZIP file, to be saved and not displayed. 409 until it is ready.
#[utoipa::path(get, path = "/user/v1alpha1/export/{export_id}/content", operation_id = "download_export",
    tag = "people",
    params(("export_id" = Uuid, Path), Checked<NoParams>, ("range" = Option<String>, Header),
        ("if-range" = Option<String>, Header)),
    responses((status = 200, description = "The archive", body = RawBytes, content_type = "application/zip"),
        (status = 206, description = "The range of it", body = RawBytes, content_type = "application/zip"),
        (status = 404), (status = 409), (status = 416), (status = 422)))]
pub async fn content(
    State(app): State<AppState>,
    reader: Reader,
    Path(export_id): Path<String>,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = id_in_path("export_id", &export_id)?;
    let export = app.exports.get(reader.person(), id).await?;
    let content = app.exports.content(&export)?;
    let created = export.created_at.to_rfc3339();
    let name = format!("almanac-{}.zip", created.get(..DATE).unwrap_or("export"));
    let label = FileLabel {
        name: &name,
        media_type: "application/zip",
    };
    download(&app, &headers, &app.exports.contents(), &content, label)
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> Self {
        let detail = error.to_string();
        match error {
            ExportError::Unknown(_) => Self::not_found(detail),
            ExportError::Busy(_) => Self::too_many(detail, LOOK_AGAIN),
            ExportError::LimitReached(_) => Self::limit_reached(detail),
            ExportError::NotReady | ExportError::Failed | ExportError::Overtaken => Self::conflict(detail),
            ExportError::Outdated(outdated) => outdated.into(),
            ExportError::Damaged { .. } => Self::damaged(detail),
            // No request makes the service write local files.
            ExportError::Unwritable { .. } => Self::internal(detail),
            ExportError::Store(error) => error.into(),
        }
    }
}
