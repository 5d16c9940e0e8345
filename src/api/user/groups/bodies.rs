//! What is sent and answered about groups and their members. Knows nothing of routes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::terms::changed_terms;
use crate::api::document::sent;
use crate::api::problem::ApiError;
use crate::api::user::bounds::bound;
use crate::auth::tokens::Reader;
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::sharing::groups::{Group, GroupChange, StoredGroup};
use crate::people::sharing::members::Participant;

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

/// The columns of a group in a table.
pub(super) const COLUMNS: [ListedColumn; 18] = [
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

/// The columns of a membership in a table.
pub(super) const MEMBERS: [ListedColumn; 3] = [
    ListedColumn::new("group_id", ColumnKind::Text),
    ListedColumn::new("participant_id", ColumnKind::Text),
    ListedColumn::new("joined_at", ColumnKind::Time),
];

/// Public keys for checking the service's signatures.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeySet {
    /// RFC 7517. Empty as long as the service signs nothing for groups with a key that has a public part.
    #[schema(value_type = Vec<Object>)]
    pub keys: Vec<Value>,
}

impl GroupEntry {
    pub(super) fn of(stored: StoredGroup, reader: &Reader) -> Self {
        let group = stored.group;
        Self {
            group_id: stored.id,
            title: group.title,
            responsible_entity: group.responsible_entity,
            description: group.description,
            svc_data_types: group.data_types,
            time_start: group.time_start.map(Instant::to_rfc3339),
            time_end: group.time_end.map(Instant::to_rfc3339),
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
    pub(super) fn of(participant: Participant) -> Self {
        Self {
            group_id: participant.group,
            participant_id: participant.id.0,
            joined_at: participant.joined_at.to_rfc3339(),
        }
    }
}

impl SentGroup {
    pub(super) fn group(self) -> Result<Group, ApiError> {
        let mut faults = Vec::new();
        let mut moment = |member: &str, sent: Option<String>| bound(&mut faults, member, sent?);
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
    pub(super) fn change(self, registry: &Registry, before: &GroupEntry) -> Result<GroupChange, ApiError> {
        let before = serde_json::to_value(before).map_err(ApiError::internal)?;
        let faults = changed_terms(registry, &before, &self.others);
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
