//! What others read of the caller: `/user/v1alpha1/access_log`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::extract::Checked;
use crate::api::listed::{ListingForm, document_as};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::model::stored_json;
use crate::output::{ColumnKind, ListedColumn};

/// Entries of a page by default.
const PAGE: i64 = 100;
/// The most entries of a page.
const LARGEST_PAGE: i64 = 1_000;

/// Which page.
#[derive(Debug)]
pub struct LogQuery {
    before: Option<Uuid>,
    limit: usize,
    form: ListingForm,
}

impl FromParams for LogQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let before = params.uuid("before");
        let limit = params.integer_or("limit", (1, LARGEST_PAGE), PAGE);
        let form = ListingForm::read(params);
        Some(Self {
            before,
            limit: usize::try_from(limit?).ok()?,
            form: form?,
        })
    }
}

/// A read by somebody else, or a change of a share.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessEntry {
    pub id: Uuid,
    #[schema(format = DateTime)]
    pub at: String,
    /// Who did it. If they read as the owner of a group, `detail` has its `group_id`.
    pub actor_svc_userid: Uuid,
    /// What was read: endpoint, grants, types and files, the ranges asked for and used. Or which share was
    /// changed, and its new content: its receivers only if these changed.
    #[schema(value_type = Object)]
    pub detail: Value,
    /// Rows of the answer, if it has rows.
    #[schema(required)]
    pub row_count: Option<i64>,
    /// `begun` until it is over, then `answered`, `not_modified`, `broken_off`, `revoked` or `failed`; of
    /// changes of shares `done` or `refused`.
    pub outcome: String,
}

/// A page of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccessPage {
    /// Newest first.
    pub entries: Vec<AccessEntry>,
    /// What to send as `before` for the next page; null on the last one.
    #[schema(required)]
    pub next: Option<Uuid>,
}

const COLUMNS: [ListedColumn; 6] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("at", ColumnKind::Time),
    ListedColumn::new("actor_svc_userid", ColumnKind::Text),
    ListedColumn::new("detail", ColumnKind::Json),
    ListedColumn::new("row_count", ColumnKind::Whole),
    ListedColumn::new("outcome", ColumnKind::Text),
];

/// What others read of the caller's data and when, and how the caller's shares changed, newest first. In a
/// table the last row holds the value to send as `before`.
#[utoipa::path(get, path = "/user/v1alpha1/access_log", operation_id = "access_log", tag = "sharing",
    params(Checked<LogQuery>),
    responses((status = 200, description = "A page", body = AccessPage), (status = 422)))]
pub async fn access_log(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = app
        .sharing
        .log()
        .entries(reader.person(), query.before, query.limit)
        .await?;
    let next = found
        .entries
        .last()
        .filter(|_| !found.is_last)
        .map(|entry| entry.id);
    let mut entries = Vec::with_capacity(found.entries.len());
    for entry in found.entries {
        entries.push(AccessEntry {
            id: entry.id,
            at: entry.at.to_rfc3339(),
            actor_svc_userid: entry.actor.0,
            detail: stored_json::read(&entry.body).map_err(ApiError::damaged)?,
            row_count: entry.rows,
            outcome: entry.outcome,
        });
    }
    let page = AccessPage { entries, next };
    document_as(&app, &headers, query.form, &COLUMNS, (&page, &page.entries)).await
}
