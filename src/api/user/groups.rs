//! Groups, their members, and what their owners note about them: `/user/v1/group`.

mod bodies;
mod terms;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, ListingQuery, aside, document_as, listed_as, listing};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::tokens::Reader;
use crate::model::ids::ParticipantId;
use crate::people::condition::Condition;
use crate::people::sharing::SharingError;
use crate::people::sharing::members::MetadataChange;

pub use bodies::{GroupEntry, KeySet, MembershipEntry, OneGroup, SentGroup, SentGroupChange};

use bodies::{COLUMNS, MEMBERS};

/// Creates a group.
#[utoipa::path(post, path = "/user/v1/group",
    operation_id = "create_group", tag = "groups", params(Checked<NoParams>), request_body = SentGroup,
    responses((status = 201, description = "The new group", body = OneGroup), (status = 413), (status = 415),
        (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(body): Sent<SentGroup>,
) -> Result<(StatusCode, Json<OneGroup>), ApiError> {
    let group = app
        .sharing
        .create_group(app.types.registry(), reader.person(), body.group()?)
        .await?;
    let group = GroupEntry::of(group, &reader);
    Ok((StatusCode::CREATED, Json(OneGroup { group })))
}

/// Which groups.
#[derive(Debug)]
pub struct GroupsQuery {
    subscribed: bool,
    form: ListingForm,
}

impl FromParams for GroupsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (subscribed, form) = (
            params.flag_or("subscribed_only", false),
            ListingForm::read(params),
        );
        Some(Self {
            subscribed: subscribed?,
            form: form?,
        })
    }
}

/// The groups that the caller may see, oldest first: public ones, their own, those that they joined, and
/// those that invite them.
#[utoipa::path(get, path = "/user/v1/group", operation_id = "list_groups", tag = "groups",
    params(Checked<GroupsQuery>),
    responses((status = 200, description = "Groups", body = Vec<GroupEntry>), (status = 422),
        (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<GroupsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let groups = if query.subscribed {
            app.sharing.joined_groups(reader.person()).await?
        } else {
            app.sharing.groups_for(reader.person()).await?
        };
        let entries = groups.into_iter().map(|group| GroupEntry::of(group, &reader));
        listed_as(&app, &headers, query.form, &COLUMNS, &entries.collect::<Vec<_>>()).await
    })
    .await
}

/// One group that the caller may see.
#[utoipa::path(get, path = "/user/v1/group/{group_id}",
    operation_id = "get_group", tag = "groups", params(("group_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The group", body = OneGroup), (status = 404)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let group = app.sharing.group(reader.person(), group_id(&id)?).await?;
    let one = OneGroup {
        group: GroupEntry::of(group, &reader),
    };
    let row = std::slice::from_ref(&one.group);
    document_as(&app, &headers, query.form, &COLUMNS, (&one, row)).await
}

/// Changes description, images, view and invitations of one of the caller's groups. Null clears a member.
#[utoipa::path(put, path = "/user/v1/group/{group_id}",
    operation_id = "change_group", tag = "groups", params(("group_id" = Uuid, Path), Checked<NoParams>),
    request_body = SentGroupChange,
    responses((status = 200, description = "The group as it is then", body = OneGroup), (status = 403),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<SentGroupChange>,
) -> Result<Json<OneGroup>, ApiError> {
    let id = group_id(&id)?;
    let before = app.sharing.own_group(reader.person(), id).await?;
    let change = body.change(app.types.registry(), &GroupEntry::of(before, &reader))?;
    let changed = app.sharing.change_group(reader.person(), id, change, &condition);
    let group = GroupEntry::of(changed.await?, &reader);
    Ok(Json(OneGroup { group }))
}

/// Ends one of the caller's groups, its memberships, and what was shared with it.
#[utoipa::path(delete, path = "/user/v1/group/{group_id}",
    operation_id = "delete_group", tag = "groups", params(("group_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 403), (status = 404), (status = 409)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<StatusCode, ApiError> {
    let id = group_id(&id)?;
    app.sharing.remove_group(reader.person(), id, &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Joins a group. For somebody who is a member already, nothing changes.
#[utoipa::path(post, path = "/user/v1/group/{group_id}/membership",
    operation_id = "join_group", tag = "groups",
    params(("group_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "The membership", body = MembershipEntry), (status = 404),
        (status = 409), (status = 422)))]
pub async fn join(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
) -> Result<Json<MembershipEntry>, ApiError> {
    let joined = app.sharing.join(reader.person(), group_id(&id)?).await?;
    Ok(Json(MembershipEntry::of(joined)))
}

/// Leaves a group. Its owner can read nothing more; a member who joins again gets another id.
#[utoipa::path(delete, path = "/user/v1/group/{group_id}/membership",
    operation_id = "leave_group", tag = "groups",
    params(("group_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "The membership as it was", body = MembershipEntry),
        (status = 404), (status = 409)))]
pub async fn quit(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
) -> Result<Json<MembershipEntry>, ApiError> {
    let left = app.sharing.quit(reader.person(), group_id(&id)?).await?;
    Ok(Json(MembershipEntry::of(left)))
}

/// The participants of one of the caller's groups, in the order of their ids.
#[utoipa::path(get, path = "/user/v1/group/{group_id}/participants",
    operation_id = "list_participants", tag = "groups",
    params(("group_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "Participants", body = Vec<MembershipEntry>), (status = 403),
        (status = 404)))]
pub async fn participants(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let participants = app.sharing.participants(reader.person(), group_id(&id)?).await?;
        let entries = participants.into_iter().map(MembershipEntry::of);
        listed_as(&app, &headers, query.form, &MEMBERS, &entries.collect::<Vec<_>>()).await
    })
    .await
}

/// What the group's owner noted about a participant.
#[utoipa::path(get, path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
    operation_id = "get_participant_metadata", tag = "groups",
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "An object", body = Object), (status = 403), (status = 404)))]
pub async fn metadata(
    State(app): State<AppState>,
    reader: Reader,
    Path((group, participant)): Path<(String, String)>,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (group, participant) = (group_id(&group)?, participant_id(&participant)?);
    let metadata = app.sharing.metadata(reader.person(), group, participant).await?;
    listing(&headers, &metadata)
}

/// Replaces what is noted about a participant.
#[utoipa::path(put, path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
    operation_id = "replace_participant_metadata", tag = "groups",
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>),
    request_body = Object,
    responses((status = 200, description = "What is noted then", body = Object), (status = 403),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn replace_metadata(
    State(app): State<AppState>,
    reader: Reader,
    Path(place): Path<(String, String)>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    change_metadata(&app, &reader, &place, MetadataChange::Replace(body), &condition).await
}

/// Changes members of what is noted about a participant (RFC 7396): null removes one.
#[utoipa::path(patch, path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
    operation_id = "merge_participant_metadata", tag = "groups",
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>),
    request_body = Object,
    responses((status = 200, description = "What is noted then", body = Object), (status = 403),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn merge_metadata(
    State(app): State<AppState>,
    reader: Reader,
    Path(place): Path<(String, String)>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    change_metadata(&app, &reader, &place, MetadataChange::Merge(body), &condition).await
}

async fn change_metadata(
    app: &AppState,
    reader: &Reader,
    (group, participant): &(String, String),
    change: MetadataChange,
    condition: &Condition,
) -> Result<Json<Map<String, Value>>, ApiError> {
    let (group, participant) = (group_id(group)?, participant_id(participant)?);
    let metadata = app
        .sharing
        .change_metadata(reader.person(), group, participant, change, condition)
        .await?;
    Ok(Json(metadata))
}

/// The public keys of the service. There are none: its tokens are signed with a key that only it has.
#[utoipa::path(get, path = "/user/v1/group/.well-known/jwks.json",
    operation_id = "group_keys", tag = "groups", security(()),
    params(Checked<NoParams>),
    responses((status = 200, description = "A key set", body = KeySet), (status = 422)))]
pub async fn keys(_query: Checked<NoParams>) -> Json<KeySet> {
    Json(KeySet { keys: Vec::new() })
}

fn group_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| SharingError::Unknown("group").into())
}

fn participant_id(text: &str) -> Result<ParticipantId, ApiError> {
    text.parse()
        .map_err(|_| SharingError::Unknown("participant").into())
}
