//! The tags by which a client recognises a file, and the description of a file that carries its tag.
//!
//! Knows files and headers; knows nothing of who may see a file.

use axum::Json;
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};

use super::shapes::FileInput;
use crate::api::answer_headers::header_value;
use crate::api::entity_tags::{Comparison, is_tag_named};
use crate::api::problem::ApiError;
use crate::people::files::File;

/// The tag of a file's description: of its bytes and of every change to it.
pub(super) fn description_tag(file: &File) -> String {
    let bytes = file
        .sha256
        .clone()
        .unwrap_or_else(|| file.id.simple().to_string());
    format!("\"{bytes}.{}\"", file.version)
}

/// The tag of its bytes, once they are stored.
fn bytes_tag(file: &File) -> Option<String> {
    file.sha256.as_ref().map(|sha256| format!("\"{sha256}\""))
}

/// Whether a header names the file, by its own tag or by that of its bytes. `If-None-Match` names it also by
/// the weak form of one, which proxies that compress make of it.
pub(super) fn is_named(headers: &HeaderMap, header: &HeaderName, file: &File) -> bool {
    let comparison = if header == IF_NONE_MATCH {
        Comparison::Weak
    } else {
        Comparison::Strong
    };
    let mut tags = std::iter::once(description_tag(file)).chain(bytes_tag(file));
    tags.any(|tag| is_tag_named(headers.get_all(header), Some(&tag), comparison))
}

/// The description of a file of the reader's own, with its tag.
pub(super) fn shown(file: &File) -> Result<Response, ApiError> {
    tagged(file, FileInput::from(file))
}

/// A description of a file, with the file's tag.
pub(super) fn tagged(file: &File, answer: FileInput) -> Result<Response, ApiError> {
    let tag = header_value(&description_tag(file))?;
    Ok(([(ETAG, tag)], Json(answer)).into_response())
}
