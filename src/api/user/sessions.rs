//! The sessions of the caller's tokens: `/user/v1alpha1/session`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::document::Sent;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingQuery, listed_as, one_as};
use crate::api::path_ids::id_in_path;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::NoParams;
use crate::auth::mint::{TokenOrder, USUAL_LIFETIME};
use crate::auth::reach::Reach;
use crate::auth::tokens::Reader;
use crate::model::time::Instant;
use crate::model::whole_units::in_whole_units;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::condition::Condition;
use crate::people::sessions::{Session, SessionError};
use crate::people::text::Name;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
const MOST_DAYS: u64 = 36_500;

/// A session to be opened.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// What the token is for, such as the name of a device or a program.
    pub name: Name,
    /// How many days the token is accepted; if left out, 365, or as long as the operator allows.
    #[schema(minimum = 1, maximum = 36_500)]
    pub days: Option<u64>,
}

/// The members of a session that can be changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionName {
    pub name: Name,
}

/// A session of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApiSession {
    pub id: Uuid,
    pub svc_userid: Uuid,
    pub name: String,
    /// Always null: a session may do everything that its person may.
    #[schema(required)]
    pub policy_id: Option<Uuid>,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When its token expires.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// When it was revoked.
    #[schema(format = DateTime, required)]
    pub deleted_at: Option<String>,
    /// Whether the token of this request belongs to it.
    pub is_current: bool,
}

/// A session that was just opened.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenedSession {
    #[serde(flatten)]
    pub session: ApiSession,
    /// Shown only this once and stored nowhere.
    pub token: String,
}

impl ApiSession {
    fn of(session: Session, reader: &Reader) -> Self {
        Self {
            id: session.id,
            svc_userid: session.person.0,
            policy_id: None,
            created_at: session.created_at.to_rfc3339(),
            expires_at: session.expires_at.to_rfc3339(),
            deleted_at: session.revoked_at.map(Instant::to_rfc3339),
            is_current: reader.session() == Some(session.id),
            name: session.name.into(),
        }
    }
}

const COLUMNS: [ListedColumn; 8] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("svc_userid", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("policy_id", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("expires_at", ColumnKind::Time),
    ListedColumn::new("deleted_at", ColumnKind::Time),
    ListedColumn::new("is_current", ColumnKind::Flag),
];

/// The caller's open sessions, oldest first.
#[utoipa::path(get, path = "/user/v1alpha1/session", operation_id = "list_sessions",
    tag = "people",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Open sessions", body = [ApiSession])))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sessions = app.sessions.open_of(reader.person()).await?;
    let shown = sessions
        .into_iter()
        .map(|session| ApiSession::of(session, &reader));
    listed_as(&app, &headers, query.form, &COLUMNS, &shown.collect::<Vec<_>>()).await
}

/// Opens a session and makes its token, if this service issues tokens.
#[utoipa::path(post, path = "/user/v1alpha1/session", operation_id = "open_session",
    tag = "people",
    params(Checked<NoParams>),
    request_body = NewSession,
    responses((status = 201, description = "The session, with its token", body = OpenedSession),
        (status = 409), (status = 413), (status = 415), (status = 422), (status = 501)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Sent(body): Sent<NewSession>,
) -> Result<(StatusCode, Json<OpenedSession>), ApiError> {
    let minter = app.minter.as_ref().ok_or_else(|| {
        ApiError::not_available("tokens come from an identity provider; this service makes none")
    })?;
    let lifetime = match body.days {
        Some(days) => asked_for(days, minter.longest())?,
        None => minter.lifetime(USUAL_LIFETIME),
    };
    let order = TokenOrder {
        person: reader.person(),
        name: reader.name().map(str::to_owned),
        lifetime,
        reach: Reach::default(),
    };
    let session = app.sessions.open(order.person, body.name, order.lifetime).await?;
    let token = minter
        .token(&order, session.id, session.created_at)
        .map_err(ApiError::internal)?;
    let opened = OpenedSession {
        session: ApiSession::of(session, &reader),
        token,
    };
    Ok((StatusCode::CREATED, Json(opened)))
}

/// The lifetime of so many days, if a token may be valid for so long.
fn asked_for(days: u64, longest: Duration) -> Result<Duration, ApiError> {
    let refusal = |message: String| Err(invalid(["body", "days"], message));
    if !(1..=MOST_DAYS).contains(&days) {
        return refusal(format!("expected a whole number from 1 to {MOST_DAYS}"));
    }
    let lifetime = Duration::from_secs(days * SECONDS_PER_DAY);
    if lifetime > longest {
        return refusal(format!(
            "tokens are valid for {} at most; this is the operator's setting ALMANAC_TOKEN_LIFETIME_LIMIT",
            in_whole_units(longest)
        ));
    }
    Ok(lifetime)
}

/// One of the caller's sessions, open or not.
#[utoipa::path(get, path = "/user/v1alpha1/session/{session_id}", operation_id = "get_session",
    tag = "people",
    params(("session_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The session", body = ApiSession), (status = 404),
        (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = app
        .sessions
        .get(reader.person(), id_in_path("session_id", &id)?)
        .await?;
    let session = ApiSession::of(session, &reader);
    one_as(&app, &headers, query.form, &COLUMNS, &session).await
}

/// Renames a session.
#[utoipa::path(put, path = "/user/v1alpha1/session/{session_id}", operation_id = "rename_session",
    tag = "people",
    params(("session_id" = Uuid, Path), Checked<NoParams>),
    request_body = SessionName,
    responses((status = 200, description = "The session as it is then", body = ApiSession), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn rename(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
    Sent(body): Sent<SessionName>,
) -> Result<Json<ApiSession>, ApiError> {
    let id = id_in_path("session_id", &id)?;
    let renamed = app.sessions.rename(reader.person(), id, &body.name, &condition);
    Ok(Json(ApiSession::of(renamed.await?, &reader)))
}

/// Revokes a session permanently: from the next request on, no node accepts its token.
#[utoipa::path(delete, path = "/user/v1alpha1/session/{session_id}", operation_id = "revoke_session",
    tag = "people",
    params(("session_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 200, description = "The session as it is then", body = ApiSession), (status = 404),
        (status = 409), (status = 422)))]
pub async fn revoke(
    State(app): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    _query: Checked<NoParams>,
    condition: Condition,
) -> Result<Json<ApiSession>, ApiError> {
    let session = app
        .sessions
        .revoke(reader.person(), id_in_path("session_id", &id)?, &condition)
        .await?;
    Ok(Json(ApiSession::of(session, &reader)))
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unknown(_) => Self::not_found(error.to_string()),
            SessionError::Revoked(_) | SessionError::Overtaken => Self::conflict(error.to_string()),
            SessionError::Outdated(outdated) => outdated.into(),
            SessionError::LimitReached(_) => Self::limit_reached(error.to_string()),
            SessionError::Damaged { .. } => Self::damaged(error),
            SessionError::Catalog(error) => error.into(),
        }
    }
}
