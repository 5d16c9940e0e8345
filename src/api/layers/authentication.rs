//! The wall: behind it, every request has a reader. Nothing else about a request is looked at before its
//! token is.
//!
//! A token that names a session is valid for as long as the session is open. Every request checks that in the
//! catalogue, or checks that nothing of the person's has changed since the last check: a session that was
//! revoked anywhere is refused everywhere. While the catalogue does not answer, nobody is let in. The
//! sessions of a person who is erased are gone; a token without a session is refused while the erasure is
//! under way, and afterwards unless it was made since.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;

use crate::api::app::App;
use crate::api::extract::Notes;
use crate::api::problem::ApiError;
use crate::auth::tokens::{Reader, Refusal};
use crate::catalog::PersonState;
use crate::people::sessions::SessionError;

/// How long a client should wait while the identity provider does not answer.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// Finds out who sends the request, and attaches the reader to it.
pub async fn authenticate(app: &App, request: &mut Request) -> Result<(), ApiError> {
    let mut given = request.headers().get_all(AUTHORIZATION).iter();
    let verdict = match (given.next(), given.next()) {
        // Of two tokens, one would be checked although perhaps the other was meant.
        (Some(_), Some(_)) => Err(Refusal::Malformed),
        (one, _) => app.verifier.verify(one.map(HeaderValue::as_bytes)).await,
    };
    let reader = match verdict {
        Ok(reader) => reader,
        Err(Refusal::Unavailable(reason)) => return Err(ApiError::unavailable(reason, RETRY_AFTER)),
        Err(refusal) => {
            tracing::info!(reason = %refusal, "token refused");
            return Err(ApiError::unauthorized());
        }
    };
    let (true, state) = is_let_in(app, &reader).await? else {
        tracing::info!(
            reason = "its session is not open, or its person was erased",
            "token refused"
        );
        return Err(ApiError::unauthorized());
    };
    let is_safe = request.method().is_safe();
    if let Err(beyond) = reader.reach().admits(is_safe, request.uri().path()) {
        return Err(ApiError::forbidden(beyond.to_string()));
    }
    if let Some(notes) = request.extensions().get::<Notes>() {
        notes.is_asked_by(&reader);
    }
    request.extensions_mut().insert(reader);
    if let Some(state) = state {
        request.extensions_mut().insert(state);
    }
    Ok(())
}

/// Whether the reader is let in, and the state of the reader's own data from before anything else is read.
async fn is_let_in(app: &App, reader: &Reader) -> Result<(bool, Option<PersonState>), SessionError> {
    // A state that cannot be read, because something of the person's is damaged, locks nobody out.
    let state = app
        .catalog
        .person_state(reader.person())
        .await
        .unwrap_or_default();
    if state.is_some_and(|state| app.accepted.in_state(reader, state)) {
        return Ok((true, state));
    }
    let accepts = accepts(app, reader).await?;
    if let Some(state) = state.filter(|_| accepts) {
        app.accepted.note(reader, state);
    }
    Ok((accepts, state))
}

async fn accepts(app: &App, reader: &Reader) -> Result<bool, SessionError> {
    if let Some(session) = reader.session() {
        return app.sessions.accepts(reader.person(), session).await;
    }
    let erasure = app.catalog.erasure_of(reader.person()).await?;
    Ok(erasure.is_none_or(|erasure| erasure.admits(reader.issued())))
}
