//! Sends bytes, all or a range of them, to be saved and not displayed: those of files and of exports.

use std::ops::Range;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use prometheus_client::metrics::counter::Counter;
use tracing::Span;

use self::ranges::{RequestedRange, requested_range};
use crate::api::answer_headers::{header_value, is_known};
use crate::api::app::App;
use crate::api::body::text;
use crate::api::layers::heads::deferred;
use crate::api::layers::precondition::must_be_seen;
use crate::api::problem::ApiError;
use crate::auth::tickets::InvalidTicket;
use crate::store::StoreError;
use crate::store::contents::{Content, ContentKind, Contents};

pub mod media_type;
pub mod ranges;
#[cfg(test)]
mod tests;

/// The name and the media type of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct FileLabel<'a> {
    pub name: &'a str,
    pub media_type: &'a str,
}

/// A complete content, or the range of it that `headers` ask for.
pub fn download(
    app: &App,
    headers: &HeaderMap,
    contents: &Contents,
    content: &Content,
    label: FileLabel<'_>,
) -> Result<Response, ApiError> {
    let tag = format!("\"{}\"", content.sha256.as_deref().unwrap_or_default());
    must_be_seen(headers, &tag)?;
    if is_known(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header_value(&tag)?)]).into_response());
    }
    let unchanged = text(headers, &IF_RANGE).is_none_or(|known| known.trim() == tag);
    let range = text(headers, &RANGE).filter(|_| unchanged);
    let length = content.length;
    let (status, range) = match requested_range(range, length) {
        RequestedRange::All => (StatusCode::OK, 0..length),
        RequestedRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        RequestedRange::Nothing => return Ok(ApiError::out_of_range(length).into_response()),
    };
    let corrupt = app.metrics.meters.store.corrupt.clone();
    let bytes = body(corrupt, contents.clone(), content.clone(), range.clone());
    let mut response = deferred(status, async move { Ok((status, bytes.await?).into_response()) });
    let head = response.headers_mut();
    head.insert(
        CONTENT_TYPE,
        header_value(media_type::media_type(label.media_type))?,
    );
    head.insert(
        CONTENT_DISPOSITION,
        header_value(&media_type::attachment(label.name))?,
    );
    head.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    head.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    head.insert(ETAG, header_value(&tag)?);
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        head.insert(CONTENT_RANGE, header_value(&part)?);
    }
    Ok(response)
}

/// Waits for the first bytes before the head is sent, so an early failure still gets an error status.
async fn body(
    corrupt: Counter,
    contents: Contents,
    content: Content,
    range: Range<u64>,
) -> Result<Body, ApiError> {
    let mut bytes = contents.read(&content, range);
    let first = bytes.next().await.transpose().map_err(|error| match error {
        StoreError::Missing { .. } => gone(content.of),
        error => error.into(),
    })?;
    // The body is read when the request has left its span, which names it in the log.
    let span = Span::current();
    let rest = bytes.inspect(move |bytes| {
        if let Err(error) = bytes {
            span.in_scope(|| note_break(&corrupt, error));
        }
    });
    Ok(Body::from_stream(
        futures::stream::iter(first.map(Ok)).chain(rest),
    ))
}

/// Logs and counts what ends a download in the middle.
fn note_break(corrupt: &Counter, error: &StoreError) {
    if let StoreError::Missing { path } = error {
        tracing::info!(%path, "a download broke off: what it sent was deleted or has expired");
        return;
    }
    if error.is_damage() {
        corrupt.inc();
    }
    tracing::error!(%error, "a download broke off");
}

/// The answer to whoever asks for what is no longer there: the same as a moment later.
fn gone(of: ContentKind) -> ApiError {
    match of {
        ContentKind::File | ContentKind::Export => {
            ApiError::not_found("what you ask for was deleted or has expired just now")
        }
        ContentKind::Frame => InvalidTicket.into(),
    }
}
