//! Requests about participants: the owner of a group asks about somebody whom they know only by an id of that
//! group. The person behind the id is found here before the route sees the request; the route never tells.

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::Method;
use uuid::Uuid;

use crate::api::app::App;
use crate::api::extract::Path;
use crate::api::path_ids::id_in_path;
use crate::api::problem::ApiError;
use crate::api::query_params::Params;
use crate::auth::tokens::Reader;
use crate::model::ids::ParticipantId;

/// The prefix of paths that name a participant.
const BY_PATH: &str = "/data/v0/pool/";
/// The prefixes of paths whose query may name one.
const BY_QUERY: [&str; 2] = ["/data/v1alpha1/event/", "/data/v1alpha1/metric/"];

/// Finds the person whom the request names, and notes them with its reader.
pub async fn resolve_participant(app: &App, request: Request) -> Result<Request, ApiError> {
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        // Participants are only read. The route refuses any other method, whoever is named.
        return Ok(request);
    }
    let is_by_path = path.starts_with(BY_PATH);
    if !is_by_path && !BY_QUERY.iter().any(|prefix| path.starts_with(prefix)) {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    let named = if is_by_path {
        by_path(&mut parts).await?
    } else {
        by_query(parts.uri.query().unwrap_or_default())
    };
    if let (Some((group, participant)), Some(reader)) = (named, parts.extensions.get::<Reader>()) {
        let found = app.grants.participant(reader, group, participant);
        // Boxed: few requests name a participant, and every request's future would be that much larger.
        Box::pin(found).await?;
    }
    Ok(Request::from_parts(parts, body))
}

async fn by_path(parts: &mut axum::http::request::Parts) -> Result<Option<(Uuid, ParticipantId)>, ApiError> {
    let named = match RawPathParams::from_request_parts(parts, &()).await {
        Ok(named) => named,
        // Without a route there is nobody to be found.
        Err(RawPathParamsRejection::MissingPathParams(_)) => return Ok(None),
        // A path that cannot be read may name somebody. It is refused as every such path is.
        Err(_) => {
            let unreadable = Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
            return unreadable.map(|_| None);
        }
    };
    let id = |wanted: &'static str| match named.iter().find(|(name, _)| *name == wanted) {
        None => Ok(None),
        Some((_, text)) => id_in_path(wanted, text).map(Some),
    };
    Ok(id("group_id")?.zip(id("participant_id")?.map(ParticipantId)))
}

/// Group and participant of a query that names both. A group alone is a question about all of its
/// participants, which some routes support. What names nobody is for the route to refuse, together with
/// whatever else is wrong.
fn by_query(query: &str) -> Option<(Uuid, ParticipantId)> {
    let mut params = Params::parse(query);
    let mut sent = |name: &'static str| params.text(name);
    let (group, participant, person) = (sent("pool_id"), sent("participant_id"), sent("svc_userid"));
    if person.is_some() {
        return None;
    }
    let id = |text: Option<String>| Uuid::try_parse(&text?).ok();
    id(group).zip(id(participant).map(ParticipantId))
}
