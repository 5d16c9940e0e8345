//! Who asks what they asked before hears what they heard, as long as nothing of theirs has changed: decided
//! here, before anything is read.

use std::time::Instant as Moment;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::api::app::Shared;
use crate::api::extract::Notes;
use crate::api::repeats::Wording;
use crate::catalog::PersonState;

/// The layer's function.
pub async fn repeats(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let begun = Moment::now();
    let Some(wording) = Wording::of(&request) else {
        return next.run(request).await;
    };
    // The wall read it before anything is read for the answer, so a change in between makes the answer belong
    // to no state that is asked for again.
    let Some(state) = request.extensions().get::<PersonState>().copied() else {
        return next.run(request).await;
    };
    if let Some(answer) = app.repeats.answer(&wording, state, &request, &app.recent, begun) {
        return answer;
    }
    let notes = request.extensions().get::<Notes>().cloned();
    let response = next.run(request).await;
    app.repeats.note(wording, state, &response, notes.as_ref());
    response
}
