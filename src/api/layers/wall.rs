//! The wall: behind it, every request has a reader. Nothing else about a request is looked at before its
//! token is.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::app::Shared;
use crate::api::problem::ApiError;
use crate::auth::tokens::Refusal;

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
        Ok(reader) => {
            request.extensions_mut().insert(reader);
            next.run(request).await
        }
        Err(Refusal::Unavailable(reason)) => ApiError::unavailable(reason, RETRY_AFTER).into_response(),
        Err(refusal) => {
            tracing::info!(reason = %refusal, "token refused");
            ApiError::unauthorized().into_response()
        }
    }
}
