//! Answers a repeated request with its previous answer, as long as nothing of its person's has changed:
//! decided here, before anything is read.

use std::time::Instant as Moment;

use axum::extract::Request;
use axum::response::Response;

use crate::api::app::App;
use crate::api::extract::Notes;
use crate::api::repeats::Wording;
use crate::catalog::PersonState;

/// What is known of a request.
pub enum PreviousAnswer {
    /// It was answered before, with this.
    Found(Response),
    /// It must be answered; the value notes the answer, if it may be repeated.
    NotFound(Option<Repeatable>),
}

/// A request whose answer can be noted.
pub struct Repeatable {
    wording: Wording,
    state: PersonState,
    notes: Option<Notes>,
}

/// Whether the request was answered before. The wall read the person's state before anything is read for the
/// answer, so if the state changes in between, the answer is noted under a state that no request has again.
pub fn previous_answer(app: &App, request: &Request) -> PreviousAnswer {
    let begun = Moment::now();
    let Some(wording) = Wording::of(request) else {
        return PreviousAnswer::NotFound(None);
    };
    let Some(state) = request.extensions().get::<PersonState>().copied() else {
        return PreviousAnswer::NotFound(None);
    };
    match app.repeats.answer(&wording, state, request, &app.recent, begun) {
        Some(answer) => PreviousAnswer::Found(answer),
        None => PreviousAnswer::NotFound(Some(Repeatable {
            wording,
            state,
            notes: request.extensions().get::<Notes>().cloned(),
        })),
    }
}

impl Repeatable {
    /// Notes the answer.
    pub fn note(self, app: &App, response: &Response) {
        app.repeats
            .note(self.wording, self.state, response, self.notes.as_ref());
    }
}
