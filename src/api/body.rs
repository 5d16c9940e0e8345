//! Bodies that are read whole before they are looked at: small documents, and the older forms of recording.
//!
//! One limit holds for every body, before and after decompression: the operator's.

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Path;

use crate::api::app::Shared;
use crate::api::layers::arrival::is_stalled;
use crate::api::problem::{ApiError, invalid};
use crate::auth::tokens::Reader;
use crate::ingest::body::BodyForm;
use crate::ingest::decompress::{ContentEncoding, DecompressError, Decompressor};
use crate::model::faults::{Fault, LocPart};
use crate::model::objects::Object;
use crate::model::text::{may_hold_nul, way_to_nul};

/// Bytes of a document that is no batch of records, decompressed: a thousand times what anybody writes.
const DOCUMENT_LIMIT: usize = 1 << 20;

/// A document takes so many times its size once each of its values is one of its own.
const FACTOR: usize = 16;

/// The JSON document in a request's body.
#[derive(Clone, Debug)]
pub struct Document(pub Value);

impl FromRequest<Shared> for Document {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, ApiError> {
        Sent::from_request(request, app)
            .await
            .map(|Sent(document)| Self(document))
    }
}

/// What the JSON document in a request's body says, in words of the domain.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Shared> for Sent<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        if BodyForm::from_media_type(text(&parts.headers, &CONTENT_TYPE)) != Some(BodyForm::Object) {
            return Err(ApiError::unsupported_media_type("expected application/json"));
        }
        let limit = app.settings.body_limit.min(DOCUMENT_LIMIT);
        let bytes = whole(limit, &parts.headers, body).await?;
        // What it is read into counts among the bodies that are on their way.
        let mut memory = None;
        if let Some(reader) = parts.extensions.get::<Reader>() {
            let allowance = memory.insert(app.bodies.allowance(reader.person()));
            allowance.resize(bytes.len().saturating_mul(FACTOR)).await?;
        }
        refuse_nul(&bytes)?;
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let Object(read) = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| ApiError::invalid_all(vec![misread(error.path(), error.inner())]))?;
        json.end()
            .map_err(|error| invalid(["body"], format!("the body is no JSON document: {error}")))?;
        Ok(Self(read))
    }
}

/// A document with U+0000 in one of its texts is not taken.
fn refuse_nul(json: &[u8]) -> Result<(), ApiError> {
    if !std::str::from_utf8(json).is_ok_and(may_hold_nul) {
        return Ok(());
    }
    let way = serde_json::from_slice(json)
        .ok()
        .and_then(|document: Value| way_to_nul(&document));
    let Some(way) = way else { return Ok(()) };
    let loc = std::iter::once(LocPart::from("body")).chain(way);
    Err(Fault::new(loc, "value_error", "U+0000 cannot be stored; leave it out").into())
}

/// What could not be read, and where it stands.
fn misread(path: &Path, error: &serde_json::Error) -> Fault {
    let loc = vec![LocPart::from("body")];
    if error.is_data() {
        Fault::misread(loc, path, error)
    } else {
        Fault::new(loc, "json_invalid", format!("the body is no JSON: {error}"))
    }
}

/// The whole body, decompressed, within `limit` before and after.
pub async fn whole(limit: usize, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let encoding = content_encoding(headers)?;
    let sent = within(limit, body).await?;
    if encoding == ContentEncoding::Identity {
        return Ok(sent);
    }
    let mut plain = Vec::new();
    let mut decompressor = Decompressor::new(encoding, limit as u64).map_err(ApiError::internal)?;
    let mut take = |piece: &[u8]| -> Result<(), std::convert::Infallible> {
        plain.extend_from_slice(piece);
        Ok(())
    };
    let fed = decompressor
        .feed(&sent, &mut take)
        .and_then(|()| decompressor.finish(&mut take));
    match fed {
        Ok(()) => Ok(plain.into()),
        Err(DecompressError::TooLarge { .. }) => Err(ApiError::too_large(limit)),
        Err(error) => Err(invalid(["body"], error.to_string())),
    }
}

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

/// A header as text; one that is no text is nothing that anybody knows.
#[must_use]
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// Why a body did not come whole.
#[must_use]
pub fn broke_off(error: &axum::Error) -> ApiError {
    if is_stalled(error) {
        ApiError::too_slow()
    } else {
        ApiError::bad_request("the body broke off before its announced length")
    }
}

async fn within(limit: usize, body: Body) -> Result<Bytes, ApiError> {
    // What is announced as too large is refused unread.
    if body.size_hint().lower() > limit as u64 {
        return Err(ApiError::too_large(limit));
    }
    let mut whole = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| broke_off(&error))?;
        if chunk.len() > limit - whole.len() {
            return Err(ApiError::too_large(limit));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}
