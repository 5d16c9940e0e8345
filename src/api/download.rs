//! Bytes on their way out, all or a range of them, to be kept and not shown: those of files and of exports.

use std::ops::Range;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;

use self::ranges::{Wanted, wanted};
use crate::api::answer::{header_value, is_known};
use crate::api::app::App;
use crate::api::body::text;
use crate::api::problem::ApiError;
use crate::store::StoreError;
use crate::store::contents::{Content, Contents};

pub mod media_type;
pub mod ranges;

/// What is said of bytes beside themselves.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    pub name: &'a str,
    pub media_type: &'a str,
}

/// The bytes of a content that is whole, as far as `headers` want them.
pub async fn download(
    app: &App,
    headers: &HeaderMap,
    contents: &Contents,
    content: &Content,
    called: Called<'_>,
) -> Result<Response, ApiError> {
    let tag = format!("\"{}\"", content.sha256.as_deref().unwrap_or_default());
    if is_known(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header_value(&tag)?)]).into_response());
    }
    let unchanged = text(headers, &IF_RANGE).is_none_or(|known| known.trim() == tag);
    let range = text(headers, &RANGE).filter(|_| unchanged);
    let length = content.length;
    let (status, range) = match wanted(range, length) {
        Wanted::All => (StatusCode::OK, 0..length),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => return Ok(ApiError::out_of_range(length).into_response()),
    };
    let body = body(app, contents, content, range.clone()).await?;
    let mut response = (status, body).into_response();
    let head = response.headers_mut();
    head.insert(
        CONTENT_TYPE,
        header_value(media_type::media_type(called.media_type))?,
    );
    head.insert(
        CONTENT_DISPOSITION,
        header_value(&media_type::attachment(called.name))?,
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

/// The first bytes are there before the head is sent, so what fails early is an honest error.
async fn body(
    app: &App,
    contents: &Contents,
    content: &Content,
    range: Range<u64>,
) -> Result<Body, ApiError> {
    let mut bytes = contents.read(content, range);
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
    Ok(Body::from_stream(
        futures::stream::iter(first.map(Ok)).chain(rest),
    ))
}
