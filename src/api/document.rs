//! JSON documents in the bodies of requests.

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::app::AppState;
use crate::api::body::text;
use crate::api::problem::ApiError;
use crate::api::whole_body::{Bounds, whole};
use crate::auth::tokens::Reader;
use crate::ingest::body::BodyForm;
use crate::model::faults::{Fault, LocPart};
use crate::model::nul::path_to_nul;
use crate::model::strict_json::{self, BEYOND_NUMBERS, EachOnce, OUT_OF_RANGE};

/// Bytes of a document that is not a batch of records, decompressed: a thousand times what anybody writes.
const DOCUMENT_LIMIT: usize = 1 << 20;

/// A parsed document, with an object for each value, takes this many times its size in memory.
const FACTOR: usize = 16;

/// The JSON document in a request's body.
#[derive(Clone, Debug)]
pub struct Document(pub Value);

impl FromRequest<AppState> for Document {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        receive(request, app, Ok).await.map(Self)
    }
}

/// The JSON document in a request's body, as a domain type.
#[derive(Clone, Copy, Debug)]
pub struct Sent<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Sent<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let read = |document: Value| {
            strict_json::read(&document).map_err(|error| {
                ApiError::from(Fault::misread(vec!["body".into()], error.path(), error.inner()))
            })
        };
        receive(request, app, read).await.map(Self)
    }
}

/// What `read` makes of the JSON object in a request's body, while memory for the object is held.
async fn receive<T>(
    request: Request,
    app: &AppState,
    read: impl FnOnce(Value) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let (mut parts, body) = request.into_parts();
    let media_type = text(&parts.headers, &CONTENT_TYPE);
    let is_patch = parts.method == Method::PATCH && media_type.is_some_and(names_merge_patch);
    if !is_patch && BodyForm::from_media_type(media_type) != Some(BodyForm::Object) {
        return Err(ApiError::unsupported_media_type(
            if parts.method == Method::PATCH {
                "expected application/json or application/merge-patch+json"
            } else {
                "expected application/json"
            },
        ));
    }
    let bounds = Bounds {
        limit: app.settings.body_limit.min(DOCUMENT_LIMIT),
        factor: FACTOR,
    };
    let reader = Reader::from_request_parts(&mut parts, app).await?;
    // Held until the document is read.
    let mut memory = app.bodies.allowance(reader.person());
    let spill = app.engine.spill_files();
    let bytes = whole(bounds, &parts.headers, body, spill, &mut memory).await?;
    refuse_duplicates(&bytes)?;
    let document: Value = serde_json::from_slice(&bytes).map_err(|error| no_json(&error))?;
    if let Ok(json) = std::str::from_utf8(&bytes)
        && let Some(way) = path_to_nul(json, &document)
    {
        let loc = std::iter::once(LocPart::from("body")).chain(way);
        return Err(Fault::new(loc, "value_error", "U+0000 cannot be stored; leave it out").into());
    }
    if !document.is_object() {
        return Err(Fault::new(["body"], "object_type", "expected an object").into());
    }
    read(document)
}

/// A member that was sent, even if as null.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things to say"
)]
pub(super) fn sent<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Whether a media type is that of a document which is merged into another (RFC 7396). It is JSON, too.
fn names_merge_patch(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/merge-patch+json")
}

/// Refuses a document with two members of the same name in one object, of which a reader of JSON would keep
/// the last one, and names the place of a number that is too large to be one.
fn refuse_duplicates(json: &[u8]) -> Result<(), ApiError> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let Err(error) = serde_path_to_error::deserialize::<_, EachOnce>(&mut json) else {
        return Ok(());
    };
    let fault = Fault::misread(vec!["body".into()], error.path(), error.inner());
    if error.inner().is_data() {
        return Err(fault.into());
    }
    if fault.message == OUT_OF_RANGE {
        return Err(Fault::new(fault.loc, "too_large", BEYOND_NUMBERS).into());
    }
    Err(no_json(error.inner()))
}

fn no_json(error: &serde_json::Error) -> ApiError {
    Fault::new(["body"], "json_invalid", format!("the body is not JSON: {error}")).into()
}
