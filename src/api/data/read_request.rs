//! A read on its way: who asks, in which words, and since when they wait; and how the answer goes out.

use std::time::Instant as Moment;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;

use crate::api::admission::Ticket;
use crate::api::answer::{Request, Sending, answer};
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, Shared};
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::query::Prepared;

/// What every read brings along.
#[derive(Debug)]
pub struct ReadRequest {
    pub reader: Reader,
    pub headers: HeaderMap,
    path: String,
    words: String,
    begun: Moment,
}

impl FromRequestParts<Shared> for ReadRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, ApiError> {
        let begun = Moment::now();
        Ok(Self {
            reader: Reader::from_request_parts(parts, state).await?,
            headers: parts.headers.clone(),
            path: parts.uri.path().to_owned(),
            words: parts.uri.query().unwrap_or_default().to_owned(),
            begun,
        })
    }
}

impl ReadRequest {
    /// The path of the address.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query of the address, as it was written.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// A place among those whose questions are computed.
    pub async fn admitted(&self, app: &App) -> Result<Ticket, ApiError> {
        Ok(app.queries.enter(self.reader.person()).await?)
    }

    /// The answer, or 304 where the caller has it already. `besides`: what shapes it and does not stand in
    /// the address, such as whom a reader asks about who does not say so.
    pub async fn answer(
        &self,
        app: &App,
        ticket: Ticket,
        prepared: Prepared,
        form: &AnswerForm,
        besides: &str,
    ) -> Result<Response, ApiError> {
        let request = Request {
            app,
            headers: &self.headers,
            question: &format!("{} {} {besides}", self.path, self.words),
            begun: self.begun,
            ticket,
        };
        answer(request, prepared, form).await
    }

    /// The same of a query whose author decided what is computed.
    pub const fn sending<'a>(&self, app: &'a App, ticket: Ticket) -> Sending<'a> {
        Sending {
            app,
            begun: self.begun,
            ticket,
        }
    }
}
