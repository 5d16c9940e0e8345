//! The caller's account as a whole: `/user/v1alpha1/account`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::{App, AppState};
use crate::api::extract::Checked;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::upkeep::{erase, erasure_notes};

/// How long the caller has to confirm.
const CONFIRMED_WITHIN: Duration = Duration::from_mins(10);
/// How long the answer waits for the store to take the note of an erasure.
const NOTED_WITHIN: Duration = Duration::from_secs(10);
const NOT_NOTED: &str = "an erasure has begun that the store does not know of yet; it is noted there when \
                         that is possible";

/// The confirmation, if there is one.
#[derive(Debug)]
pub struct ErasureQuery {
    confirm: Option<String>,
}

impl FromParams for ErasureQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            confirm: params.text("confirm"),
        })
    }
}

/// How far the erasure of an account has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountErasure {
    /// `to_be_confirmed`, then `begun`.
    pub state: &'static str,
    /// The value to send as `confirm` with the same request; null once the erasure has begun.
    #[schema(required)]
    pub confirmation: Option<String>,
    /// Until when it can be confirmed.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
    /// When the erasure began.
    #[schema(required, format = DateTime)]
    pub begun_at: Option<String>,
    /// When the account can be used again, empty, with a token made then.
    #[schema(required, format = DateTime)]
    pub ends_at: Option<String>,
}

/// Erases the caller and all of their data permanently, in two steps. Without `confirm` nothing happens: the
/// answer has a confirmation that is valid for ten minutes. With it the erasure begins: all tokens of the
/// caller are refused from the next request on, shares end, and everything stored is removed. It cannot be
/// stopped.
#[utoipa::path(delete, path = "/user/v1alpha1/account", operation_id = "erase_account", tag = "people",
    params(Checked<ErasureQuery>),
    responses((status = 202, description = "A confirmation to be sent, or the erasure that has begun",
        body = AccountErasure), (status = 422)))]
pub async fn erase_account(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ErasureQuery>,
) -> Result<(StatusCode, Json<AccountErasure>), ApiError> {
    let answer = match query.confirm {
        None => to_be_confirmed(&app, &reader),
        Some(confirmation) => begin_erasure(&app, &reader, &confirmation).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

fn to_be_confirmed(app: &App, reader: &Reader) -> AccountErasure {
    let until = app.clock.now().after(CONFIRMED_WITHIN);
    AccountErasure {
        state: "to_be_confirmed",
        confirmation: Some(app.tickets.of_erasures().issue(reader.person().0, until)),
        expires_at: Some(until.to_rfc3339()),
        begun_at: None,
        ends_at: None,
    }
}

async fn begin_erasure(app: &App, reader: &Reader, confirmation: &str) -> Result<AccountErasure, ApiError> {
    let named = app.tickets.of_erasures().opened_by(confirmation, app.clock.now());
    if named != Ok(reader.person().0) {
        let message =
            "this confirmation is not valid, or no longer: ask for a confirmation by leaving it out";
        return Err(invalid(["query", "confirm"], message));
    }
    let erasure = app.catalog.begin_erasure(reader.person()).await?;
    // It has begun, whatever the time is.
    let now = app.catalog.now().await.unwrap_or(erasure.begun_at);
    // Before the answer, if that can be: a catalogue that is rebuilt from the store later has to know of it.
    // But it has begun, whatever the store says, and the job writes the note before it does anything else.
    let noted = erasure_notes::remember(&app.intake.objects, &erasure);
    match tokio::time::timeout(NOTED_WITHIN, noted).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "{NOT_NOTED}"),
        Err(_) => tracing::warn!(error = "no answer in time", "{NOT_NOTED}"),
    }
    Ok(AccountErasure {
        state: "begun",
        confirmation: None,
        expires_at: None,
        begun_at: Some(erasure.begun_at.to_rfc3339()),
        ends_at: Some(erase::ends_by(erasure.begun_at, now).to_rfc3339()),
    })
}
