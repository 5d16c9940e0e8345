//! What reads of one person's places and calendars have in common: who asks about whom, for what, and how the
//! answer is sent.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;

use crate::api::admission::Ticket;
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, Shared};
use crate::api::cursor::Pages;
use crate::api::extract::Owner;
use crate::api::problem::ApiError;
use crate::auth::grants::{Denied, GrantAuthority, Refused};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::query::paging::RowPlace;
use crate::query::places::Granted;
use crate::query::{Order, Partition, Prepared};

use super::read_request::ReadRequest;

/// A request for data of the person in its path.
#[derive(Debug)]
pub struct Asking {
    pub request: ReadRequest,
    pub owner: PersonId,
}

impl FromRequestParts<Shared> for Asking {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, ApiError> {
        let request = ReadRequest::from_request_parts(parts, state).await?;
        let Owner(owner) = Owner::from_request_parts(parts, state).await?;
        Ok(Self { request, owner })
    }
}

impl Asking {
    /// The permit to read a built-in type in `range`.
    pub async fn granted(
        &self,
        app: &Shared,
        name: &str,
        range: TimeRange,
    ) -> Result<Granted<GrantAuthority>, ApiError> {
        let granted = self.granted_if_shared(app, name, range).await?;
        granted.ok_or_else(|| Denied::from(Refused).into())
    }

    /// The same, or `None` where the type is not shared with the reader.
    pub async fn granted_if_shared(
        &self,
        app: &Shared,
        name: &str,
        range: TimeRange,
    ) -> Result<Option<Granted<GrantAuthority>>, ApiError> {
        let partition = TypeId::new(name);
        let decision = app
            .grants
            .windows(&self.request.reader, self.owner, &partition, range)
            .await;
        let permit = match decision {
            Err(Denied::Refused(_)) => return Ok(None),
            decision => decision?,
        };
        let named = app.types.find(self.owner, name).await?;
        let partition = Partition {
            data_type: named.data_type,
            id: partition,
            definitions: None,
        };
        Ok(Some(Granted { permit, partition }))
    }

    /// The pages of the answer.
    pub fn pages<'a>(&self, app: &'a Shared) -> Pages<'a> {
        Pages::of_address(
            &app.tickets,
            self.owner,
            self.request.path(),
            self.request.words(),
        )
    }

    /// The answer. `besides`: what shapes it and is not part of the address.
    pub async fn answer(
        &self,
        app: &App,
        ticket: Ticket,
        prepared: Prepared,
        form: &AnswerForm,
        besides: &str,
    ) -> Result<Response, ApiError> {
        let prepared = prepared.with_units_by_name();
        let besides = format!("{} {besides}", self.owner);
        self.request.answer(app, ticket, prepared, form, &besides).await
    }
}

/// The granted rows, from the beginning of the page on.
pub(super) fn beginning(
    granted: Granted<GrantAuthority>,
    page: Option<&RowPlace>,
) -> Granted<GrantAuthority> {
    let Some(place) = page else { return granted };
    Granted {
        permit: granted.permit.within(place.starts_after(Order::Ascending)),
        ..granted
    }
}
