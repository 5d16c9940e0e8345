//! The same request again gets the answer that it got, as long as nothing of its person has changed: decided
//! here, before anything is read.

use std::time::Instant as Moment;

use axum::extract::Request;
use axum::response::Response;

use crate::api::app::App;
use crate::api::extract::Notes;
use crate::api::repeats::Wording;
use crate::catalog::PersonState;

/// What becomes of a request.
pub enum Remembered {
    /// It has the answer that it had.
    Answer(Response),
    /// It is to be answered; where the answer may be given again, together with what it is noted by.
    Unknown(Option<Repeatable>),
}

/// What an answer is noted by.
pub struct Repeatable {
    wording: Wording,
    state: PersonState,
    notes: Option<Notes>,
}

/// Whether the request was answered before. The wall read the state of its person before anything is read for
/// the answer, so a change in between makes the answer belong to no state that is asked for again.
pub fn remembered(app: &App, request: &Request) -> Remembered {
    let begun = Moment::now();
    let Some(wording) = Wording::of(request) else {
        return Remembered::Unknown(None);
    };
    let Some(state) = request.extensions().get::<PersonState>().copied() else {
        return Remembered::Unknown(None);
    };
    match app.repeats.answer(&wording, state, request, &app.recent, begun) {
        Some(answer) => Remembered::Answer(answer),
        None => Remembered::Unknown(Some(Repeatable {
            wording,
            state,
            notes: request.extensions().get::<Notes>().cloned(),
        })),
    }
}

impl Repeatable {
    /// Takes note of the answer.
    pub fn note(self, app: &App, response: &Response) {
        app.repeats
            .note(self.wording, self.state, response, self.notes.as_ref());
    }
}
