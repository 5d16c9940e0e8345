//! What the headers of a body with records say: that it is not too long, in which form and encoding it is,
//! and by which name its request is recognised when it is sent again.
//!
//! Knows headers and limits; knows nothing of what is in the body.

use axum::http::header::{CONTENT_TYPE, HeaderMap};

use crate::api::app::App;
use crate::api::body::{content_encoding, declared_length, text};
use crate::api::header_names::IDEMPOTENCY_KEY;
use crate::api::problem::{ApiError, invalid};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::model::excerpt::beginning;

/// The longest idempotency key.
const LONGEST_KEY: usize = 255;

/// The length of the body according to its header. The header is required: a client that does not know the
/// length has not finished writing.
pub(super) fn content_length(app: &App, headers: &HeaderMap) -> Result<u64, ApiError> {
    let length = declared_length(headers)?.ok_or_else(ApiError::length_required)?;
    if length > app.settings.body_limit as u64 {
        Err(ApiError::too_many_records(app.settings.body_limit))
    } else {
        Ok(length)
    }
}

/// The name under which the request is recognised, if it has one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    let place = ["header", "idempotency-key"];
    if keys.any(|other| other != key) {
        return Err(invalid(place, "several keys; send one"));
    }
    let wrong = || {
        invalid(
            place,
            format!("expected 1 to {LONGEST_KEY} printable characters of ASCII"),
        )
    };
    let key = key.to_str().map_err(|_| wrong())?.trim();
    let is_printable = key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if key.is_empty() || key.len() > LONGEST_KEY || !is_printable {
        Err(wrong())
    } else {
        Ok(Some(key.to_owned()))
    }
}

/// What reads a body of this media type and encoding.
pub(super) fn body_reader(app: &App, headers: &HeaderMap) -> Result<BodyReader, ApiError> {
    let media_type = text(headers, &CONTENT_TYPE);
    let form = BodyForm::from_media_type(media_type).ok_or_else(|| {
        ApiError::unsupported_media_type(format!(
            "found {:?}; send application/json with one record, or application/x-jsonl with a record a line",
            beginning(media_type.unwrap_or_default())
        ))
    })?;
    let encoding = content_encoding(headers)?;
    let limits = BodyLimits {
        body: app.settings.body_limit as u64,
        line: app.settings.body_limit,
    };
    BodyReader::new(form, encoding, limits).map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_has_one_key() {
        let key = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(line));
            }
            idempotency_key(&headers).ok()
        };
        assert_eq!(key(&[]), Some(None));
        assert_eq!(key(&["a"]), Some(Some("a".to_owned())));
        assert_eq!(key(&["a", "a"]), Some(Some("a".to_owned())));
        assert_eq!(key(&["a", "b"]), None);
        assert_eq!(key(&["a", ""]), None);
    }
}
