//! Tags of answers and what clients say of them, and the answers for which that is enough: 304, and a recent
//! one that is given again. Knows no questions.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant as Moment;

use axum::Extension;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::api::entity_tags::{Comparison, is_tag_named, weak_tag};
use crate::api::header_names::SERVER_TIMING;
use crate::api::problem::ApiError;
use crate::api::recent_answers::RecentAnswer;
use crate::api::row_count::RowCount;
use crate::output::OutputMethod;

/// The answer to the same question, kept from a moment ago.
pub fn again(found: RecentAnswer, begun: Moment) -> Result<Response, ApiError> {
    let timing = format!("plan;dur={:.3}, again", begun.elapsed().as_secs_f64() * 1e3);
    let timing = [(SERVER_TIMING, header_value(&timing)?)];
    let body = Body::from(found.body);
    Ok((Extension(RowCount::of(found.rows)), timing, body).into_response())
}

/// The tag of an answer that is there. Weak, since a coding for the way makes other bytes of it.
#[must_use]
pub fn content_tag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    weak_tag(hasher.finish())
}

/// 304, for a caller who has the answer with `tag`. Its media type is that of the answer: it tells the layer
/// that compresses whether that varies by encoding, and goes no further.
pub fn not_modified(tag: &str, content_type: HeaderValue) -> Result<Response, ApiError> {
    let headers = [(ETAG, header_value(tag)?), (CONTENT_TYPE, content_type)];
    Ok((StatusCode::NOT_MODIFIED, headers).into_response())
}

/// Whether the caller already has what `tag` stands for.
#[must_use]
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    is_tag_named(headers.get_all(IF_NONE_MATCH), Some(tag), Comparison::Weak)
}

/// The `content-disposition` of an answer in rows: shown where it is asked for, and how it is called if kept.
pub fn answer_disposition(method: OutputMethod) -> Result<HeaderValue, ApiError> {
    header_value(&format!(
        "inline; filename=\"answer.{}\"",
        method.file_extension()
    ))
}

pub fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(ApiError::internal)
}
