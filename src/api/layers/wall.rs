//! The wall: behind it, every request has a reader. Nothing else about a request is looked at before its
//! token is.
//!
//! A token that names a session is good for as long as the session is open, which the catalogue is asked each
//! time, be it by whether anything of the person's has changed since it said so: whoever was refused anywhere
//! is refused everywhere. While it cannot be asked, nobody is let in. The sessions of a person who is erased
//! are gone; a token without a session is refused while the erasure is under way, and afterwards if it was
//! not made since.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::app::{App, Shared};
use crate::api::extract::Notes;
use crate::api::problem::ApiError;
use crate::auth::tokens::{Reader, Refusal};
use crate::catalog::PersonState;
use crate::people::sessions::SessionError;

/// What a client is told to wait while the identity provider does not answer.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// The layer's function.
pub async fn wall(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let mut given = request.headers().get_all(AUTHORIZATION).iter();
    let verdict = match (given.next(), given.next()) {
        // Of two tokens, one would be checked and perhaps the other one meant.
        (Some(_), Some(_)) => Err(Refusal::Malformed),
        (one, _) => {
            app.verifier
                .verify(one.map(axum::http::HeaderValue::as_bytes))
                .await
        }
    };
    match verdict {
        Ok(reader) => match is_let_in(&app, &reader).await {
            Ok((true, state)) => {
                let is_safe = request.method().is_safe();
                if let Err(beyond) = reader.reach().admits(is_safe, request.uri().path()) {
                    return ApiError::forbidden(beyond.to_string()).into_response();
                }
                if let Some(notes) = request.extensions().get::<Notes>() {
                    notes.is_asked_by(&reader);
                }
                request.extensions_mut().insert(reader);
                if let Some(state) = state {
                    request.extensions_mut().insert(state);
                }
                next.run(request).await
            }
            Ok((false, _)) => {
                tracing::info!(
                    reason = "its session is not open, or its person was erased",
                    "token refused"
                );
                ApiError::unauthorized().into_response()
            }
            Err(error) => ApiError::from(error).into_response(),
        },
        Err(Refusal::Unavailable(reason)) => ApiError::unavailable(reason, RETRY_AFTER).into_response(),
        Err(refusal) => {
            tracing::info!(reason = %refusal, "token refused");
            ApiError::unauthorized().into_response()
        }
    }
}

/// And the state of what is the reader's own, from before anything else is read.
async fn is_let_in(app: &App, reader: &Reader) -> Result<(bool, Option<PersonState>), SessionError> {
    // A state that cannot be told, because something of theirs is damaged, keeps nobody out.
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
