//! Sends the bytes of a file, all or a range of them.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::named_file::{OwnerQuery, readable_file};
use crate::api::app::AppState;
use crate::api::docs::bodies::RawBytes;
use crate::api::download::{FileLabel, download};
use crate::api::extract::{Checked, Path};
use crate::api::problem::{ApiError, Problem};
use crate::auth::tokens::Reader;

/// The bytes of a file, to be saved and not displayed.
#[utoipa::path(get, path = "/{input_id}/download", tag = "files",
    params(("input_id" = String, Path), Checked<OwnerQuery>, ("range" = Option<String>, Header),
        ("if-range" = Option<String>, Header)),
    responses((status = 200, description = "The bytes", body = RawBytes, content_type = "*/*"),
        (status = 206, description = "The range of them", body = RawBytes, content_type = "*/*"),
        (status = 403), (status = 404), (status = 409), (status = 416), (status = 422),
        (status = "default", description = "Any other refusal", body = Problem,
            content_type = "application/problem+json")))]
pub(super) async fn download_file(
    State(app): State<AppState>,
    reader: Reader,
    Path(input_id): Path<String>,
    Checked(query): Checked<OwnerQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = readable_file(&app, &reader, query.owner, &input_id).await?;
    let content = app.files.content(&file).await?;
    let label = FileLabel {
        name: &file.name,
        media_type: &file.content_type,
    };
    download(&app, &headers, app.files.contents(), &content, label)
}
