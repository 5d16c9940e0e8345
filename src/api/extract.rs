//! What a handler can ask for in its signature. If any of it is wrong, the request is answered before the
//! handler runs.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use crate::api::header_names::PREFER;
use crate::api::path_ids::id_in_path;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params, ReadParam, described};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::time::TimeRange;
use crate::people::condition::Condition;

/// The parameter that names a person.
const SVC_USERID: &str = "svc_userid";

/// The query of a request, read and found valid.
#[derive(Clone, Copy, Debug)]
pub struct Checked<Q>(pub Q);

impl<S: Send + Sync, Q: FromParams> FromRequestParts<S> for Checked<Q> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut params = Params::parse(parts.uri.query().unwrap_or_default());
        let reader = parts.extensions.get::<Reader>();
        let participation = reader.and_then(|reader| reader.disclosures().participation());
        if participation.is_some() {
            // The participant has been named already.
            params.do_not_know(SVC_USERID);
        }
        let read = Q::from_params(&mut params);
        let strict = params.strict() || prefers_strict(&parts.headers);
        let ignored = params.ignored();
        if strict {
            params.refuse(&ignored);
        } else if let (Some(notes), false) = (parts.extensions.get::<Notes>(), ignored.is_empty()) {
            notes.ignored_parameters(params.ignored_header(&ignored));
        }
        if let (Some(notes), Some(range)) = (parts.extensions.get::<Notes>(), params.understood()) {
            notes.understood_range(range);
        }
        let about = participation.map(|participation| (participation, params.stated()));
        let faults = params.into_faults();
        match read {
            Some(query) if faults.is_empty() => {
                if let Some((participation, stated)) = about {
                    stated.keep_to(participation)?;
                }
                Ok(Self(query))
            }
            None if faults.is_empty() => Err(ApiError::internal("a query was refused without a reason")),
            _ => Err(ApiError::invalid_all(faults)),
        }
    }
}

impl<Q: FromParams> IntoParams for Checked<Q> {
    /// The parameters that `Q` reads. Nothing else says which parameters a route takes.
    fn into_params(_place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        described::<Q>().iter().map(ReadParam::parameter).collect()
    }
}

/// Whether the client would rather be refused than misunderstood: `Prefer: handling=strict`, RFC 7240.
fn prefers_strict(headers: &HeaderMap) -> bool {
    let lines = headers
        .get_all(PREFER)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let mut preferences = lines.flat_map(|line| line.split(','));
    preferences.any(|preference| {
        let token = preference.split(';').next().unwrap_or_default();
        let (name, value) = token.split_once('=').unwrap_or((token, ""));
        name.trim().eq_ignore_ascii_case("handling")
            && value.trim().trim_matches('"').eq_ignore_ascii_case("strict")
    })
}

impl<S: Send + Sync> FromRequestParts<S> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a route that needs a reader stands outside the wall"))
    }
}

/// The named parts of a path, decoded.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(read)| Self(read))
            .map_err(|rejection| unreadable(&rejection))
    }
}

/// Only invalid text in the path is the client's fault: the route decides which parts there are.
fn unreadable(rejection: &PathRejection) -> ApiError {
    if let PathRejection::FailedToDeserializePathParams(failed) = rejection
        && let ErrorKind::InvalidUtf8InPathParam { key } = failed.kind()
    {
        return invalid(["path", key.as_str()], "expected percent-encoded UTF-8");
    }
    ApiError::internal(rejection)
}

/// The person in a path `/…/{svc_userid}/…` whose data is asked for, or the one behind a participant's id.
#[derive(Clone, Copy, Debug)]
pub struct Owner(pub PersonId);

impl<S: Send + Sync> FromRequestParts<S> for Owner {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if let Some(reader) = parts.extensions.get::<Reader>()
            && let Some(participant) = reader.disclosures().subject_of(None)
        {
            return Ok(Self(participant));
        }
        let Path(names) = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let text = names
            .into_iter()
            .find(|(name, _)| name == SVC_USERID)
            .map(|(_, value)| value);
        let text =
            text.ok_or_else(|| ApiError::internal("a route that needs an owner has none in its path"))?;
        Ok(Self(PersonId(id_in_path(SVC_USERID, &text)?)))
    }
}

/// That what is to be changed still is what the caller has seen, where they said so.
impl<S: Send + Sync> FromRequestParts<S> for Condition {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// The id of a request, for answers and logs.
#[derive(Clone, Debug)]
pub struct RequestId(pub Arc<str>);

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a request without an id"))
    }
}

/// Facts found while a request is read that belong on its answer, whatever that will be.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<NotedFacts>);

// A request has one query; a second extractor would note the same values.
#[derive(Debug, Default)]
struct NotedFacts {
    ignored: OnceLock<String>,
    range: OnceLock<TimeRange>,
    asked_by: OnceLock<(PersonId, Option<Arc<str>>)>,
}

impl Notes {
    /// Notes the parameters that the route does not know.
    pub fn ignored_parameters(&self, names: String) {
        let _already_noted = self.0.ignored.set(names);
    }

    /// Notes which range was asked for.
    pub fn understood_range(&self, range: TimeRange) {
        let _already_noted = self.0.range.set(range);
    }

    /// The range that was asked for, as it was understood.
    #[must_use]
    pub fn range(&self) -> Option<TimeRange> {
        self.0.range.get().copied()
    }

    /// The parameters that the route does not know.
    #[must_use]
    pub fn ignored(&self) -> Option<&str> {
        self.0.ignored.get().map(String::as_str)
    }

    /// Notes who asks, once that is known.
    pub fn is_asked_by(&self, reader: &Reader) {
        let _already_noted = self.0.asked_by.set((reader.person(), reader.token().cloned()));
    }

    /// Who asks, and the id of their token.
    #[must_use]
    pub fn asked_by(&self) -> Option<&(PersonId, Option<Arc<str>>)> {
        self.0.asked_by.get()
    }
}
