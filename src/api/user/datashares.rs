//! Data shares: `/user/v1/datashare`.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};
use uuid::Uuid;

use crate::api::app::Shared;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, document_as, listed_as};
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::model::faults::Fault;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, parse_instant};
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::sharing::shares::{Share, ShareChange};
use crate::people::sharing::{Grantee, SharingError};

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

/// Shares data types and files with people and groups.
#[utoipa::path(post, path = "/user/v1/datashare",
    operation_id = "create_datashare", tag = "sharing",
    params(Checked<NoParams>), request_body = NewDatashare,
    responses((status = 201, description = "The new share", body = OneDatashare), (status = 400),
        (status = 413), (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<Shared>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(body): Sent<SentDatashare>,
) -> Result<(StatusCode, Json<OneDatashare>), ApiError> {
    let change = body.change()?;
    let share = app
        .sharing
        .create_share(&app.types, reader.person(), reader.name(), change)
        .await?;
    Ok((StatusCode::CREATED, Json(OneDatashare::of(&share))))
}

const COLUMNS: [ListedColumn; 12] = [
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

/// The caller's data shares, oldest first.
#[utoipa::path(get, path = "/user/v1/datashare",
    operation_id = "list_datashares", tag = "sharing", params(Checked<ListingQuery>),
    responses((status = 200, description = "Shares", body = Vec<Datashare>)))]
pub async fn list(
    State(app): State<Shared>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let shares = app.sharing.shares_of(reader.person()).await?;
    let shares: Vec<Datashare> = shares.iter().map(Datashare::of).collect();
    listed_as(&app, &headers, query.form, &COLUMNS, &shares).await
}

/// One of the caller's data shares.
#[utoipa::path(get, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "get_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The share", body = OneDatashare), (status = 404)))]
pub async fn one(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let share = app.sharing.share(reader.person(), share_id(&id)?).await?;
    let one = OneDatashare::of(&share);
    let row = std::slice::from_ref(&one.datashare);
    document_as(&app, &headers, query.form, &COLUMNS, (&one, row)).await
}

/// Changes the members of a data share that are sent: null opens an end of the time, an empty list takes it
/// back from all people or all groups. Nothing changes if any of it is wrong.
#[utoipa::path(put, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "change_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<NoParams>), request_body = SentDatashare,
    responses((status = 200, description = "The share as it is then", body = OneDatashare), (status = 400),
        (status = 404), (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<SentDatashare>,
) -> Result<Json<OneDatashare>, ApiError> {
    let id = share_id(&id)?;
    // The check of the owner comes before the faults of the change.
    app.sharing.share(reader.person(), id).await?;
    let change = body.change()?;
    let share = app
        .sharing
        .change_share(&app.types, reader.person(), id, change, &condition)
        .await?;
    Ok(Json(OneDatashare::of(&share)))
}

/// Takes a data share back from everybody.
#[utoipa::path(delete, path = "/user/v1/datashare/{datashare_id}",
    operation_id = "delete_datashare", tag = "sharing",
    params(("datashare_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 404), (status = 409)))]
pub async fn remove(
    State(app): State<Shared>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<StatusCode, ApiError> {
    let id = share_id(&id)?;
    app.sharing.remove_share(reader.person(), id, &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn share_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| SharingError::Unknown("data share").into())
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

/// The moment that a bound names. A bound without an offset would mean another moment to the next reader.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things to say"
)]
pub(super) fn bound(
    faults: &mut Vec<Fault>,
    member: &str,
    sent: Option<Option<String>>,
) -> Option<Option<Instant>> {
    let Some(text) = sent? else {
        return Some(None);
    };
    let moment = match parse_instant(&text) {
        Ok(moment) if has_offset(&text) => return Some(Some(moment)),
        Ok(_) => "a bound needs an offset from UTC, such as 2024-01-24T00:00:00+01:00".to_owned(),
        Err(error) => error.to_string(),
    };
    faults.push(Fault::new(["body", member], "datetime_parsing", moment).with_value(text));
    None
}

/// Whether the text of an instant states its offset.
fn has_offset(text: &str) -> bool {
    let time = text.get(10..).unwrap_or_default();
    time.ends_with(['Z', 'z']) || time.contains(['+', '-'])
}

impl SentDatashare {
    fn change(self) -> Result<ShareChange, ApiError> {
        let mut faults = Vec::new();
        let change = ShareChange {
            name: self.datashare_name,
            user_name: self.svc_user_name,
            data_types: self.svc_data_types,
            share_all_data: self.share_all_data,
            time_start: bound(&mut faults, "time_start", self.time_start),
            time_end: bound(&mut faults, "time_end", self.time_end),
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
    fn of(share: &Share) -> Self {
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
            time_start: terms.time_start.map(written),
            time_end: terms.time_end.map(written),
            permissions: share.people.iter().map(permission).collect(),
            group_permissions: share.groups.iter().map(group_permission).collect(),
            created_at: share.created_at.to_rfc3339(),
            updated_at: share.updated_at.to_rfc3339(),
        }
    }
}

impl OneDatashare {
    fn of(share: &Share) -> Self {
        Self {
            datashare: Datashare::of(share),
        }
    }
}

/// A stored bound as text.
pub(super) fn written(micros: i64) -> String {
    Instant::from_micros(micros).to_rfc3339()
}

impl From<SharingError> for ApiError {
    fn from(error: SharingError) -> Self {
        match error {
            SharingError::Invalid(faults) => Self::invalid_all(faults),
            SharingError::UnknownGroup(_) => Self::bad_request(error.to_string()),
            SharingError::Unknown(_) => Self::not_found(error.to_string()),
            SharingError::NotYours => Self::forbidden(error.to_string()),
            SharingError::TooMany { .. } => {
                Self::invalid_all(vec![Fault::new(["body"], "too_many", error.to_string())])
            }
            SharingError::Overtaken => Self::conflict(error.to_string()),
            SharingError::Outdated(outdated) => outdated.into(),
            SharingError::Catalog(error) => error.into(),
        }
    }
}
