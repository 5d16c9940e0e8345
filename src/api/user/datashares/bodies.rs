//! What is sent and answered about data shares. Knows nothing of routes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};
use uuid::Uuid;

use crate::api::document::sent;
use crate::api::problem::ApiError;
use crate::api::user::bounds::bound;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::sharing::Grantee;
use crate::people::sharing::shares::{Share, ShareChange};

pub(super) const COLUMNS: [ListedColumn; 12] = [
    ListedColumn::new("datashare_id", ColumnKind::Text),
    ListedColumn::new("datashare_name", ColumnKind::Text),
    ListedColumn::new("svc_userid", ColumnKind::Text),
    ListedColumn::new("svc_user_name", ColumnKind::Text),
    ListedColumn::new("svc_data_types", ColumnKind::Texts),
    ListedColumn::new("share_all_data", ColumnKind::Flag),
    ListedColumn::new("time_start", ColumnKind::Time),
    ListedColumn::new("time_end", ColumnKind::Time),
    ListedColumn::new("permissions", ColumnKind::Json),
    ListedColumn::new("group_permissions", ColumnKind::Json),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("updated_at", ColumnKind::Time),
];

/// A data share, as sent. A missing member is not changed; null opens an end of the time, and is like a
/// missing member elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SentDatashare {
    pub datashare_name: Option<String>,
    /// The name under which recipients see the sharer.
    pub svc_user_name: Option<String>,
    /// Ids of data types; `file:/path` for the live version of a file or of all files below a folder;
    /// `filehistory:/path` for every version.
    pub svc_data_types: Option<Vec<String>>,
    /// Every data type, and no file.
    pub share_all_data: Option<bool>,
    /// With an offset from UTC.
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub time_start: Option<Option<String>>,
    #[serde(default, deserialize_with = "sent")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub time_end: Option<Option<String>>,
    /// Replaces all people that it is shared with.
    pub permissions: Option<Vec<SentPermission>>,
    /// Replaces all groups that it is shared with.
    pub group_permissions: Option<Vec<SentGroupPermission>>,
}

/// A data share to create: as a change, but with a name. Only the documentation knows it: a missing name is
/// reported together with whatever else is wrong.
#[derive(Debug)]
pub struct NewDatashare;

impl utoipa::PartialSchema for NewDatashare {
    fn schema() -> RefOr<Schema> {
        let mut schema = <SentDatashare as utoipa::PartialSchema>::schema();
        if let RefOr::T(Schema::Object(share)) = &mut schema {
            let name = "datashare_name".to_owned();
            share.description = Some("A data share to create.".to_owned());
            share
                .properties
                .insert(name.clone(), <String as utoipa::PartialSchema>::schema());
            share.required.push(name);
        }
        schema
    }
}

impl ToSchema for NewDatashare {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewDatashare")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SentDatashare::schemas(schemas);
    }
}

/// Somebody to share with.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SentPermission {
    pub allowed_svc_userid: Uuid,
}

/// A group to share with.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SentGroupPermission {
    pub allowed_group_id: Uuid,
}

/// A data share.
#[derive(Debug, Serialize, ToSchema)]
pub struct Datashare {
    pub datashare_id: Uuid,
    pub datashare_name: String,
    pub svc_userid: Uuid,
    #[schema(required)]
    pub svc_user_name: Option<String>,
    pub svc_data_types: Vec<String>,
    pub share_all_data: bool,
    #[schema(required, format = DateTime)]
    pub time_start: Option<String>,
    #[schema(required, format = DateTime)]
    pub time_end: Option<String>,
    pub permissions: Vec<Permission>,
    pub group_permissions: Vec<GroupPermission>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Permission {
    pub grant_id: Uuid,
    pub allowed_svc_userid: Uuid,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct GroupPermission {
    pub grant_id: Uuid,
    pub allowed_group_id: Uuid,
}

/// One data share.
#[derive(Debug, Serialize, ToSchema)]
pub struct OneDatashare {
    pub datashare: Datashare,
}

impl SentDatashare {
    pub(super) fn change(self) -> Result<ShareChange, ApiError> {
        let mut faults = Vec::new();
        let mut bound_of = |member: &str, sent: Option<_>| match sent? {
            Some(text) => bound(&mut faults, member, text).map(Some),
            None => Some(None),
        };
        let change = ShareChange {
            name: self.datashare_name,
            user_name: self.svc_user_name,
            data_types: self.svc_data_types,
            share_all_data: self.share_all_data,
            time_start: bound_of("time_start", self.time_start),
            time_end: bound_of("time_end", self.time_end),
            people: self.permissions.map(|list| {
                list.into_iter()
                    .map(|one| PersonId(one.allowed_svc_userid))
                    .collect()
            }),
            groups: self
                .group_permissions
                .map(|list| list.into_iter().map(|one| one.allowed_group_id).collect()),
        };
        if faults.is_empty() {
            Ok(change)
        } else {
            Err(ApiError::invalid_all(faults))
        }
    }
}

impl Datashare {
    pub(super) fn of(share: &Share) -> Self {
        let terms = &share.terms;
        let permission = |person: &PersonId| Permission {
            grant_id: share.grant(Grantee::Person(*person)),
            allowed_svc_userid: person.0,
        };
        let group_permission = |group: &Uuid| GroupPermission {
            grant_id: share.grant(Grantee::Group(*group)),
            allowed_group_id: *group,
        };
        Self {
            datashare_id: share.id,
            datashare_name: terms.name.clone(),
            svc_userid: share.owner.0,
            svc_user_name: terms.user_name.clone(),
            svc_data_types: terms.data_types.clone(),
            share_all_data: terms.share_all_data,
            time_start: terms.time_start.map(Instant::to_rfc3339),
            time_end: terms.time_end.map(Instant::to_rfc3339),
            permissions: share.people.iter().map(permission).collect(),
            group_permissions: share.groups.iter().map(group_permission).collect(),
            created_at: share.created_at.to_rfc3339(),
            updated_at: share.updated_at.to_rfc3339(),
        }
    }
}

impl OneDatashare {
    pub(super) fn of(share: &Share) -> Self {
        Self {
            datashare: Datashare::of(share),
        }
    }
}
