//! JSON documents in the bodies of requests.

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Path;

use crate::api::app::Shared;
use crate::api::body::text;
use crate::api::problem::{ApiError, invalid};
use crate::api::whole_body::{Bounds, whole};
use crate::auth::tokens::Reader;
use crate::ingest::body::BodyForm;
use crate::model::faults::{Fault, LocPart};
use crate::model::nul::{may_hold_nul, path_to_nul};
use crate::model::strict_json::{EachOnce, Object};

/// Bytes of a document that is not a batch of records, decompressed: a thousand times what anybody writes.
const DOCUMENT_LIMIT: usize = 1 << 20;

/// A parsed document, with an object for each value, takes this many times its size in memory.
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

/// The JSON document in a request's body, as a domain type.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Shared> for Sent<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        if BodyForm::from_media_type(text(&parts.headers, &CONTENT_TYPE)) != Some(BodyForm::Object) {
            return Err(ApiError::unsupported_media_type("expected application/json"));
        }
        let bounds = Bounds {
            limit: app.settings.body_limit.min(DOCUMENT_LIMIT),
            factor: FACTOR,
        };
        let reader = Reader::from_request_parts(&mut parts, app).await?;
        // Held until the document is parsed.
        let mut memory = app.bodies.allowance(reader.person());
        let spill = app.engine.spill_files();
        let bytes = whole(bounds, &parts.headers, body, spill, &mut memory).await?;
        refuse_nul(&bytes)?;
        refuse_duplicates(&bytes)?;
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let Object(read) = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| misread::<T>(error.path(), error.inner(), &bytes))?;
        json.end()
            .map_err(|error| invalid(["body"], format!("the body is not a JSON document: {error}")))?;
        Ok(Self(read))
    }
}

/// Refuses a document with U+0000 in one of its texts.
fn refuse_nul(json: &[u8]) -> Result<(), ApiError> {
    if !std::str::from_utf8(json).is_ok_and(may_hold_nul) {
        return Ok(());
    }
    let way = serde_json::from_slice(json)
        .ok()
        .and_then(|document: Value| path_to_nul(&document));
    let Some(way) = way else { return Ok(()) };
    let loc = std::iter::once(LocPart::from("body")).chain(way);
    Err(Fault::new(loc, "value_error", "U+0000 cannot be stored; leave it out").into())
}

/// Refuses a document with two members of the same name in one object. Structs refuse them by themselves, but
/// documents are read as maps too, and have parts that are kept as they are.
fn refuse_duplicates(json: &[u8]) -> Result<(), ApiError> {
    let mut json = serde_json::Deserializer::from_slice(json);
    match serde_path_to_error::deserialize::<_, EachOnce>(&mut json) {
        Err(error) if error.inner().is_data() => {
            let fault = Fault::misread(vec![LocPart::from("body")], error.path(), error.inner());
            Err(ApiError::invalid_all(vec![fault]))
        }
        // What is no JSON is refused when it is read.
        _ => Ok(()),
    }
}

/// The part that could not be read, and its place in the document.
fn misread<T: DeserializeOwned>(path: &Path, error: &serde_json::Error, json: &[u8]) -> Fault {
    let loc = vec![LocPart::from("body")];
    if error.is_data() {
        return Fault::misread(loc, path, error);
    }
    // The parser takes a value of another type in the place of a name for no JSON; a document does not.
    if let Ok(document) = serde_json::from_slice::<Value>(json)
        && let Err(error) = serde_path_to_error::deserialize::<_, Object<T>>(document)
    {
        return Fault::misread(loc, error.path(), error.inner());
    }
    Fault::new(loc, "json_invalid", format!("the body is not JSON: {error}"))
}
