//! Groups, their members, and what their owners note about them: `/user/v1/group`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::answer::listing;
use crate::api::app::Shared;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, ListingQuery, document_as, listed_as};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::tokens::Reader;
use crate::model::faults::Fault;
use crate::model::text::composed;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::sharing::SharingError;
use crate::people::sharing::groups::{Group, GroupChange, StoredGroup};
use crate::people::sharing::members::{MetadataChange, Participant};

use super::datashares::{bound, sent, written};

/// A group to create.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SentGroup {
    pub title: String,
    /// Who is responsible for what is done with the data.
    pub responsible_entity: Option<String>,
    pub description: Option<String>,
    /// Built-in types that the owner may read of each member. Without any, the group is only an audience.
    pub svc_data_types: Option<Vec<String>>,
    /// With an offset from UTC.
    #[schema(format = DateTime)]
    pub time_start: Option<String>,
    #[schema(format = DateTime)]
    pub time_end: Option<String>,
    /// Whether everybody may see it and join.
    pub is_public: Option<bool>,
    pub group_url: Option<String>,
    pub detail_markdown: Option<String>,
    pub agreement_markdown: Option<String>,
    pub withdraw_markdown: Option<String>,
    pub header_image_url: Option<String>,
    pub preview_image_url: Option<String>,
    pub friendly_id: Option<String>,
    pub view_description: Option<String>,
    /// Who may see and join a private group.
    pub invited_svc_userids: Option<Vec<Uuid>>,
}

/// The members of a group that can be changed. Any others that are sent must be equal to the stored ones,
/// since the people in the group agreed to those.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SentGroupChange {
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>)]
    pub header_image_url: Option<Option<String>>,
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>)]
    pub preview_image_url: Option<Option<String>>,
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>)]
    pub view_description: Option<Option<String>>,
    pub invited_svc_userids: Option<Vec<Uuid>>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub others: Map<String, Value>,
}

/// A group.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupEntry {
    pub group_id: Uuid,
    pub title: String,
    #[schema(required)]
    pub responsible_entity: Option<String>,
    #[schema(required)]
    pub description: Option<String>,
    pub svc_data_types: Vec<String>,
    #[schema(required, format = DateTime)]
    pub time_start: Option<String>,
    #[schema(required, format = DateTime)]
    pub time_end: Option<String>,
    pub is_public: bool,
    #[schema(required)]
    pub group_url: Option<String>,
    #[schema(required)]
    pub detail_markdown: Option<String>,
    #[schema(required)]
    pub agreement_markdown: Option<String>,
    #[schema(required)]
    pub withdraw_markdown: Option<String>,
    #[schema(required)]
    pub header_image_url: Option<String>,
    #[schema(required)]
    pub preview_image_url: Option<String>,
    #[schema(required)]
    pub friendly_id: Option<String>,
    #[schema(required)]
    pub view_description: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// For the group's owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invited_svc_userids: Option<Vec<Uuid>>,
}

/// One group.
#[derive(Debug, Serialize, ToSchema)]
pub struct OneGroup {
    pub group: GroupEntry,
}

/// A membership, as the member and the group's owner know it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MembershipEntry {
    pub group_id: Uuid,
    /// Does not reveal who the member is, and differs for each group and each time somebody joins.
    pub participant_id: Uuid,
    #[schema(format = DateTime)]
    pub joined_at: String,
}

/// Public keys for checking the service's signatures.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeySet {
    /// RFC 7517. Empty as long as the service signs nothing for groups with a key that has a public part.
    #[schema(value_type = Vec<Object>)]
    pub keys: Vec<Value>,
}

impl GroupEntry {
    fn of(stored: StoredGroup, reader: &Reader) -> Self {
        let group = stored.group;
        Self {
            group_id: stored.id,
            title: group.title,
            responsible_entity: group.responsible_entity,
            description: group.description,
            svc_data_types: group.data_types,
            time_start: group.time_start.map(written),
            time_end: group.time_end.map(written),
            is_public: group.is_public,
            group_url: group.group_url,
            detail_markdown: group.detail_markdown,
            agreement_markdown: group.agreement_markdown,
            withdraw_markdown: group.withdraw_markdown,
            header_image_url: group.header_image_url,
            preview_image_url: group.preview_image_url,
            friendly_id: group.friendly_id,
            view_description: group.view_description,
            created_at: stored.created_at.to_rfc3339(),
            invited_svc_userids: (stored.owner == reader.person()).then_some(group.invited),
        }
    }
}

impl MembershipEntry {
    fn of(participant: Participant) -> Self {
        Self {
            group_id: participant.group,
            participant_id: participant.id,
            joined_at: participant.joined_at.to_rfc3339(),
        }
    }
}

impl SentGroup {
    fn group(self) -> Result<Group, ApiError> {
        let mut faults = Vec::new();
        let mut moment = |member: &str, sent: Option<String>| {
            let bound = bound(&mut faults, member, Some(sent)).flatten();
            bound.map(crate::model::time::Instant::micros)
        };
        let (time_start, time_end) = (
            moment("time_start", self.time_start),
            moment("time_end", self.time_end),
        );
        if !faults.is_empty() {
            return Err(ApiError::invalid_all(faults));
        }
        Ok(Group {
            title: self.title,
            responsible_entity: self.responsible_entity,
            description: self.description,
            data_types: self.svc_data_types.unwrap_or_default(),
            time_start,
            time_end,
            is_public: self.is_public.unwrap_or(false),
            group_url: self.group_url,
            detail_markdown: self.detail_markdown,
            agreement_markdown: self.agreement_markdown,
            withdraw_markdown: self.withdraw_markdown,
            header_image_url: self.header_image_url,
            preview_image_url: self.preview_image_url,
            friendly_id: self.friendly_id,
            view_description: self.view_description,
            invited: self.invited_svc_userids.unwrap_or_default(),
        })
    }
}

impl SentGroupChange {
    fn change(self, before: &GroupEntry) -> Result<GroupChange, ApiError> {
        let before = serde_json::to_value(before).map_err(ApiError::internal)?;
        let fixed = |(name, value): (&String, &Value)| {
            let known = before.get(name)?;
            (!is_same(known, value)).then(|| {
                let message = "members agreed to this; only description, images, view_description and \
                               invitations change";
                Fault::new(["body", name.as_str()], "value_error", message)
            })
        };
        let faults: Vec<Fault> = self.others.iter().filter_map(fixed).collect();
        if !faults.is_empty() {
            return Err(ApiError::invalid_all(faults));
        }
        Ok(GroupChange {
            description: self.description,
            header_image_url: self.header_image_url,
            preview_image_url: self.preview_image_url,
            view_description: self.view_description,
            invited: self.invited_svc_userids,
        })
    }
}

/// Whether a member was sent with the value that the group has. A title is kept in its composed form.
fn is_same(known: &Value, sent: &Value) -> bool {
    match (known.as_str(), sent.as_str()) {
        (Some(known), Some(sent)) => composed(known) == composed(sent),
        _ => known == sent,
    }
}

/// Creates a group.
#[utoipa::path(post, path = "/user/v1/group",
    operation_id = "create_group", tag = "groups", params(Checked<NoParams>), request_body = SentGroup,
    responses((status = 201, description = "The new group", body = OneGroup), (status = 413), (status = 415),
        (status = 422)))]
pub async fn create(
    State(app): State<Shared>,
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

const COLUMNS: [ListedColumn; 18] = [
    ListedColumn::new("group_id", ColumnKind::Text),
    ListedColumn::new("title", ColumnKind::Text),
    ListedColumn::new("responsible_entity", ColumnKind::Text),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("svc_data_types", ColumnKind::Texts),
    ListedColumn::new("time_start", ColumnKind::Time),
    ListedColumn::new("time_end", ColumnKind::Time),
    ListedColumn::new("is_public", ColumnKind::Flag),
    ListedColumn::new("group_url", ColumnKind::Text),
    ListedColumn::new("detail_markdown", ColumnKind::Text),
    ListedColumn::new("agreement_markdown", ColumnKind::Text),
    ListedColumn::new("withdraw_markdown", ColumnKind::Text),
    ListedColumn::new("header_image_url", ColumnKind::Text),
    ListedColumn::new("preview_image_url", ColumnKind::Text),
    ListedColumn::new("friendly_id", ColumnKind::Text),
    ListedColumn::new("view_description", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("invited_svc_userids", ColumnKind::Texts),
];

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
    responses((status = 200, description = "Groups", body = Vec<GroupEntry>), (status = 422)))]
pub async fn list(
    State(app): State<Shared>,
    reader: Reader,
    Checked(query): Checked<GroupsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let groups = app.sharing.groups_for(reader.person(), query.subscribed).await?;
    let entries = groups.into_iter().map(|group| GroupEntry::of(group, &reader));
    listed_as(&app, &headers, query.form, &COLUMNS, &entries.collect::<Vec<_>>()).await
}

/// One group that the caller may see.
#[utoipa::path(get, path = "/user/v1/group/{group_id}",
    operation_id = "get_group", tag = "groups", params(("group_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The group", body = OneGroup), (status = 404)))]
pub async fn one(
    State(app): State<Shared>,
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
    responses((status = 200, description = "The group as it is then", body = OneGroup), (status = 403), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<SentGroupChange>,
) -> Result<Json<OneGroup>, ApiError> {
    let id = group_id(&id)?;
    let before = app.sharing.own_group(reader.person(), id).await?;
    let change = body.change(&GroupEntry::of(before, &reader))?;
    let changed = app.sharing.change_group(reader.person(), id, change, &condition);
    let group = GroupEntry::of(changed.await?, &reader);
    Ok(Json(OneGroup { group }))
}

/// Ends one of the caller's groups, its memberships, and what was shared with it.
#[utoipa::path(delete, path = "/user/v1/group/{group_id}",
    operation_id = "delete_group", tag = "groups", params(("group_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 403), (status = 404), (status = 409)))]
pub async fn remove(
    State(app): State<Shared>,
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
    responses((status = 200, description = "The membership", body = MembershipEntry), (status = 404), (status = 409),
        (status = 422)))]
pub async fn join(
    State(app): State<Shared>,
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
    responses((status = 200, description = "The membership as it was", body = MembershipEntry), (status = 404),
        (status = 409)))]
pub async fn quit(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
) -> Result<Json<MembershipEntry>, ApiError> {
    let left = app.sharing.quit(reader.person(), group_id(&id)?).await?;
    Ok(Json(MembershipEntry::of(left)))
}

const MEMBERS: [ListedColumn; 3] = [
    ListedColumn::new("group_id", ColumnKind::Text),
    ListedColumn::new("participant_id", ColumnKind::Text),
    ListedColumn::new("joined_at", ColumnKind::Time),
];

/// The participants of one of the caller's groups, in the order of their ids.
#[utoipa::path(get, path = "/user/v1/group/{group_id}/participants",
    operation_id = "list_participants", tag = "groups",
    params(("group_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "Participants", body = Vec<MembershipEntry>), (status = 403),
        (status = 404)))]
pub async fn participants(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let participants = app.sharing.participants(reader.person(), group_id(&id)?).await?;
    let entries = participants.into_iter().map(MembershipEntry::of);
    listed_as(&app, &headers, query.form, &MEMBERS, &entries.collect::<Vec<_>>()).await
}

/// What the group's owner noted about a participant.
#[utoipa::path(get, path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
    operation_id = "get_participant_metadata", tag = "groups",
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "An object", body = Object), (status = 403), (status = 404)))]
pub async fn metadata(
    State(app): State<Shared>,
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
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>), request_body = Object,
    responses((status = 200, description = "What is noted then", body = Object), (status = 403), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn replace_metadata(
    State(app): State<Shared>,
    reader: Reader,
    Path(place): Path<(String, String)>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    noted(&app, &reader, &place, MetadataChange::Replace(body), &condition).await
}

/// Changes members of what is noted about a participant (RFC 7396): null removes one.
#[utoipa::path(patch, path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
    operation_id = "merge_participant_metadata", tag = "groups",
    params(("group_id" = Uuid, Path), ("participant_id" = Uuid, Path), Checked<NoParams>), request_body = Object,
    responses((status = 200, description = "What is noted then", body = Object), (status = 403), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn merge_metadata(
    State(app): State<Shared>,
    reader: Reader,
    Path(place): Path<(String, String)>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    noted(&app, &reader, &place, MetadataChange::Merge(body), &condition).await
}

async fn noted(
    app: &Shared,
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

fn participant_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| SharingError::Unknown("participant").into())
}
