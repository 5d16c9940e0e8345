//! What reads of one person's places and calendars have in common: who asks about whom, for what, and how the
//! answer is sent.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::extract::Owner;
use crate::api::problem::ApiError;
use crate::auth::grants::{Denied, GrantAuthority, Refused};
use crate::auth::reach::Beyond;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::query::Prepared;
use crate::query::places::Granted;

use super::names::{grant_builtin, granted_builtin};
use super::read_request::ReadRequest;

/// A request for data of the person in its path.
#[derive(Debug)]
pub struct Asking {
    pub request: ReadRequest,
    pub owner: PersonId,
}

impl FromRequestParts<AppState> for Asking {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let request = ReadRequest::from_request_parts(parts, state).await?;
        let Owner(owner) = Owner::from_request_parts(parts, state).await?;
        Ok(Self { request, owner })
    }
}

impl Asking {
    /// The permit to read a built-in type in `range`.
    pub async fn granted(
        &self,
        app: &AppState,
        name: &str,
        range: TimeRange,
    ) -> Result<Granted<GrantAuthority>, ApiError> {
        grant_builtin(app, &self.request.reader, self.owner, name, range).await
    }

    /// The permit to read a built-in type in `range`, or `None` where the reader may not read the type.
    pub async fn granted_if_shared(
        &self,
        app: &AppState,
        name: &str,
        range: TimeRange,
    ) -> Result<Option<Granted<GrantAuthority>>, ApiError> {
        let data_type = TypeId::new(name);
        let permit = app
            .grants
            .windows(&self.request.reader, self.owner, &data_type, range)
            .await;
        let permit = match permit {
            Err(Denied::Refused(_) | Denied::Beyond(_)) => return Ok(None),
            permit => permit?,
        };
        granted_builtin(app, name, permit).await.map(Some)
    }

    /// Why nothing of what was asked for may be read. Only a token keeps people from their own data.
    #[must_use]
    pub fn refusal(&self) -> Denied {
        if self.request.reader.owns(self.owner) {
            Beyond::Types.into()
        } else {
            Refused.into()
        }
    }

    /// The answer. `etag_parts`: what shapes it and is not part of the address.
    pub async fn answer(
        &self,
        app: &App,
        slot: AdmissionSlot,
        prepared: Prepared,
        form: &AnswerForm,
        etag_parts: &str,
    ) -> Result<Response, ApiError> {
        let prepared = prepared.with_units_by_name();
        let etag_parts = format!("{} {etag_parts}", self.owner);
        self.request.answer(app, slot, prepared, form, &etag_parts).await
    }
}
