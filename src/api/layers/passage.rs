//! The steps of a request to the interface before its route and after it, in this order: how much its address
//! may ask for, the wall where tokens are checked, how much its person may ask for, repeated requests,
//! whether what is to be changed still is what was seen, what is disclosed to others, participants, and heads
//! without bodies.
//!
//! One layer instead of one for each step: a layer of the router clones what is inside of it and adds a
//! future of its own, for every request. Knows the steps and their order; each step's module says what it
//! does.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::app::{App, AppState};
use crate::api::layers::authentication::authenticate;
use crate::api::layers::disclosure::Reading;
use crate::api::layers::heads::heads;
use crate::api::layers::participants::resolve_participant;
use crate::api::layers::precondition::{self, PrecheckRoutes};
use crate::api::layers::rates::{ChargedRequest, Refusal, charge_address, charge_person};
use crate::api::layers::repeats::{PreviousAnswer, previous_answer};
use crate::api::problem::ApiError;

/// What the layer works with.
#[derive(Clone)]
pub struct Passage {
    pub app: AppState,
    pub prechecks: PrecheckRoutes,
}

/// The layer's function.
pub async fn passage(State(passage): State<Passage>, request: Request, next: Next) -> Response {
    match admitted(&passage.app, request).await {
        Ok((request, charged)) => charged.with_limit_headers(answered(&passage, request, next).await),
        Err(refusal) => *refusal,
    }
}

/// The part of it for a question within a request: the reader is known, and the outer request does the
/// disclosing.
pub async fn inner_passage(State(app): State<AppState>, request: Request, next: Next) -> Response {
    routed(&app, request, next).await
}

/// Authenticates a request, and charges its address and its person.
async fn admitted(app: &App, mut request: Request) -> Result<(Request, ChargedRequest), Refusal> {
    charge_address(app, &request)?;
    let authenticate = authenticate(app, &mut request).await;
    authenticate.map_err(|error| Box::new(error.into_response()))?;
    charge_person(app, request)
}

/// A repeated request gets its previous answer; any other is answered, noted, and logged if it discloses
/// others' data.
async fn answered(passage: &Passage, mut request: Request, next: Next) -> Response {
    let app = &passage.app;
    let seen = precondition::seen(&request);
    let repeatable = match previous_answer(app, &request) {
        PreviousAnswer::Found(answer) => {
            return match seen {
                Some(seen) => precondition::still(&seen, answer),
                None => answer,
            };
        }
        PreviousAnswer::NotFound(repeatable) => repeatable,
    };
    if let Some(condition) = precondition::condition(&request, &passage.prechecks) {
        if let Err(outdated) = condition.hold().await {
            return ApiError::from(outdated).into_response();
        }
        request.extensions_mut().insert(condition);
    }
    let reading = Reading::of(&request);
    let mut response = routed(app, request, next).await;
    if let Some(seen) = seen {
        response = precondition::still(&seen, response);
    }
    if let Some(reading) = reading {
        response = reading.disclosed(app, response).await;
    }
    if let Some(repeatable) = repeatable {
        repeatable.note(app, &response);
    }
    response
}

async fn routed(app: &App, request: Request, next: Next) -> Response {
    match resolve_participant(app, request).await {
        Ok(request) => heads(request, next).await,
        Err(error) => error.into_response(),
    }
}
