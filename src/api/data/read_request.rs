//! A read in progress: who asks, in which words, and since when they wait; and how the answer is sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as Moment;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;

use crate::api::admission::AdmissionSlot;
use crate::api::answer::{Request, Sending, answer, entity_tag};
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::time::Instant;
use crate::query::{Prepared, ReadState, Scope};

/// What every read brings along.
#[derive(Debug)]
pub struct ReadRequest {
    pub reader: Reader,
    pub headers: HeaderMap,
    path: String,
    words: String,
    begun: Moment,
    /// Whether the answer depends on more than what was asked and the reader's own data.
    depends_on_more: AtomicBool,
}

impl FromRequestParts<AppState> for ReadRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let begun = Moment::now();
        Ok(Self {
            reader: Reader::from_request_parts(parts, state).await?,
            headers: parts.headers.clone(),
            path: parts.uri.path().to_owned(),
            words: parts.uri.query().unwrap_or_default().to_owned(),
            begun,
            depends_on_more: AtomicBool::new(false),
        })
    }
}

impl ReadRequest {
    /// The path of the address.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query of the address, unchanged.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The current time, for an answer that depends on it.
    pub fn now(&self, app: &App) -> Instant {
        self.depends_on_more();
        app.clock.now()
    }

    /// Marks the answer as depending on more than what was asked and the reader's own data: on the time, on
    /// what others do, on an external service. The same request may then get another answer although none of
    /// the reader's data changed.
    pub fn depends_on_more(&self) {
        self.depends_on_more.store(true, Ordering::Relaxed);
    }

    /// A place among the questions that are being computed.
    pub async fn admitted(&self, app: &App) -> Result<AdmissionSlot, ApiError> {
        Ok(app.queries.enter(self.reader.person()).await?)
    }

    /// The answer, or 304 where the caller has it already. `etag_parts`: what shapes it and is not part of
    /// the address, such as the person whom a reader asks about without naming them.
    pub async fn answer(
        &self,
        app: &App,
        slot: AdmissionSlot,
        prepared: Prepared,
        form: &AnswerForm,
        etag_parts: &str,
    ) -> Result<Response, ApiError> {
        let request = Request {
            app,
            headers: &self.headers,
            question: &self.question(etag_parts),
            begun: self.begun,
            slot,
            follows: !self.depends_on_more.load(Ordering::Relaxed),
        };
        answer(request, prepared, form).await
    }

    /// What an answer is sent with whose query says what is computed.
    pub const fn sending<'a>(&self, app: &'a App, slot: AdmissionSlot) -> Sending<'a> {
        Sending {
            app,
            begun: self.begun,
            slot,
        }
    }

    /// The tag of an answer that is computed whole from what has these states.
    pub fn tag(&self, app: &App, states: &[ReadState], scope: &Scope, etag_parts: &str) -> String {
        entity_tag(states, scope, &self.question(etag_parts), None, &app.tickets)
    }

    fn question(&self, etag_parts: &str) -> String {
        format!("{} {} {etag_parts}", self.path, self.words)
    }
}
