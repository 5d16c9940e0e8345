//! The bytes of a file on their way out, all or a range of them.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;

use super::media_type::{attachment, media_type};
use super::ranges::{Wanted, wanted};
use super::{OwnerQuery, readable_file};
use crate::api::answer::{header_value, is_known};
use crate::api::app::Shared;
use crate::api::body::text;
use crate::api::docs::bodies::RawBytes;
use crate::api::extract::{Checked, Path};
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::store::StoreError;

/// The bytes of a file, to be kept and not shown.
#[utoipa::path(get, path = "/{input_id}/download", tag = "files",
    params(("input_id" = String, Path), Checked<OwnerQuery>, ("range" = Option<String>, Header),
        ("if-range" = Option<String>, Header)),
    responses((status = 200, description = "The bytes", body = RawBytes, content_type = "*/*"),
        (status = 206, description = "The range of them", body = RawBytes, content_type = "*/*"),
        (status = 403), (status = 404), (status = 409), (status = 416), (status = 422)))]
pub async fn download_file(
    State(app): State<Shared>,
    reader: Reader,
    Path(input_id): Path<String>,
    Checked(query): Checked<OwnerQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = readable_file(&app, &reader, query.owner, &input_id).await?;
    let content = app.files.content(&file).await?;
    let tag = format!("\"{}\"", content.sha256.as_deref().unwrap_or_default());
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header_value(&tag)?)]).into_response());
    }
    let unchanged = text(&headers, &IF_RANGE).is_none_or(|known| known.trim() == tag);
    let range = text(&headers, &RANGE).filter(|_| unchanged);
    let length = content.length;
    let (status, range) = match wanted(range, length) {
        Wanted::All => (StatusCode::OK, 0..length),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => return Ok(ApiError::out_of_range(length).into_response()),
    };

    // The first bytes are there before the head is sent, so what fails early is an honest error.
    let mut bytes = app.files.contents().read(&content, range.clone());
    let first = bytes.next().await.transpose()?;
    let corrupt = app.metrics.meters.store.corrupt.clone();
    let rest = bytes.inspect(move |bytes| {
        if let Err(error) = bytes {
            if matches!(error, StoreError::Corrupt { .. }) {
                corrupt.inc();
            }
            tracing::error!(%error, "a download broke off");
        }
    });
    let body = Body::from_stream(futures::stream::iter(first.map(Ok)).chain(rest));
    let mut response = (status, body).into_response();
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, header_value(media_type(&file.content_type))?);
    head.insert(CONTENT_DISPOSITION, header_value(&attachment(&file.name))?);
    head.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    head.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    head.insert(ETAG, header_value(&tag)?);
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        head.insert(CONTENT_RANGE, header_value(&part)?);
    }
    Ok(response)
}
