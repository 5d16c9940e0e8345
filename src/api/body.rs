//! What the headers of any body say, and why a body could not be received whole. What only bodies with
//! records need is in `ingest::body_headers`.

use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::api::layers::arrival::is_stalled;
use crate::api::problem::ApiError;
use crate::ingest::decompress::ContentEncoding;

/// How the body is compressed, as the header says it. On several lines it says the same as on one, with
/// commas between them.
pub fn content_encoding(headers: &HeaderMap) -> Result<ContentEncoding, ApiError> {
    let lines = headers.get_all(CONTENT_ENCODING).iter().map(text_of);
    let said = lines.collect::<Vec<_>>().join(", ");
    ContentEncoding::from_header(&said)
        .map_err(|unknown| ApiError::unsupported_media_type(unknown.to_string()))
}

/// The length of the body, if a header says it.
pub fn declared_length(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let length = text(headers, &CONTENT_LENGTH).map(str::parse::<u64>).transpose();
    length.map_err(|_| ApiError::bad_request("the header `content-length` is not a number"))
}

/// A header as text. One that is not text is U+FFFD, which no known value is.
#[must_use]
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(text_of)
}

fn text_of(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}

/// The error for a body that did not arrive whole.
#[must_use]
pub fn broke_off(error: &axum::Error) -> ApiError {
    if is_stalled(error) {
        ApiError::too_slow()
    } else {
        ApiError::bad_request("the body cannot be read to its end: it broke off, or its chunks are malformed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_on_a_line_of_its_own_counts() {
        let encoding = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(line));
            }
            content_encoding(&headers).ok()
        };
        assert_eq!(encoding(&[]), Some(ContentEncoding::Identity));
        assert_eq!(encoding(&["gzip"]), Some(ContentEncoding::Gzip));
        for several in [["gzip", "br"], ["gzip", "gzip"], ["identity", "gzip"]] {
            assert_eq!(encoding(&several), None, "{several:?}");
            let line = several.join(", ");
            assert!(ContentEncoding::from_header(&line).is_err(), "{line}");
        }
    }
}
