//! What the headers of bodies say, and why a body could not be received whole.

use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, HeaderName};

use crate::api::layers::arrival::is_stalled;
use crate::api::problem::ApiError;
use crate::ingest::decompress::ContentEncoding;

/// How the body is compressed, as the header says it.
pub fn content_encoding(headers: &HeaderMap) -> Result<ContentEncoding, ApiError> {
    let encoding =
        text(headers, &CONTENT_ENCODING).map_or(Ok(ContentEncoding::Identity), ContentEncoding::from_header);
    encoding.map_err(|unknown| {
        ApiError::unsupported_media_type(format!(
            "content-encoding {:?} is not known; use gzip, zstd or none",
            unknown.0
        ))
    })
}

/// A header as text; `None` if it is not text, which no known value is.
#[must_use]
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// The error for a body that did not arrive whole.
#[must_use]
pub fn broke_off(error: &axum::Error) -> ApiError {
    if is_stalled(error) {
        ApiError::too_slow()
    } else {
        ApiError::bad_request("the body broke off before its announced length")
    }
}
