//! `almanac query`: one SQL query about one person, on standard output. Works beside a running service with
//! the same settings.
//!
//! It takes the path of every request, with a token of its own that ends with it, so it may read what the
//! person may and nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::api::app::AppState;
use crate::api::routes;
use crate::auth::mint::{Minter, TokenOrder};
use crate::auth::reach::Reach;
use crate::auth::settings::Provider;
use crate::auth::tickets::Tickets;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::PersonId;
use crate::model::registry::Registry;
use crate::people::condition::Condition;
use crate::people::text::Name;
use crate::upkeep::identity;

use super::assembly::{Assembly, Foundations, assemble};
use super::closing::close;
use super::dependencies::AlwaysReady;
use super::failed::Failed;
use super::settings::Settings;
use super::standard_output::{print, print_bytes};
use super::stores::{self, OpenedStore};
use super::token_keys::{ring, verifier};
use super::{installation, runtimes};

/// The name of the session while the query runs.
const SESSION: &str = "almanac query";
/// Longer than any query may take.
const TOKEN_LIFETIME: Duration = Duration::from_hours(1);
/// How long the parts of the program may take to stop.
const CLOSING_LIMIT: Duration = Duration::from_secs(5);

/// A query, and how to answer it.
#[derive(Clone, Debug)]
pub(super) struct QueryOrder {
    pub person: PersonId,
    pub text: String,
    /// An array or an object.
    pub parameters: Option<Value>,
    pub output: String,
}

pub(super) fn run(settings: &Settings, order: &QueryOrder) -> Result<(), Failed> {
    if matches!(settings.identity.provider, Provider::Outside(_)) {
        return Err(Failed::because(
            "tokens come from an identity provider here: send the query to /data/v1/sql with one of its \
             tokens",
        ));
    }
    installation::signing_key(settings)?;
    let body = json!({"query": order.text, "parameters": order.parameters, "output": order.output});
    let runtime = runtimes::many_threads()?;
    runtime.block_on(Box::pin(asked(settings, order.person, body)))
}

async fn asked(settings: &Settings, person: PersonId, body: Value) -> Result<(), Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = stores::catalog(settings).await?;
    let OpenedStore { objects, keys } = stores::open(settings).await?;
    identity::compare(&catalog, &objects)
        .await
        .map_err(Failed::from_error)?;
    let ring = ring(settings, &clock)?;
    let foundations = Foundations {
        verifier: verifier(settings, ring.as_ref(), &clock)?,
        minter: ring.map(|ring| Minter::following(ring, settings.identity.clone())),
        tickets: Tickets::open(&catalog).await.map_err(Failed::from_error)?,
        readiness: Box::new(AlwaysReady),
        clock,
        catalog,
        objects,
        keys,
        registry: Registry::builtin().map_err(Failed::from_error)?,
    };
    let assembly = assemble(settings, foundations)?;
    let answered = answered(&assembly, person, &body).await;
    close(assembly, CLOSING_LIMIT).await;
    answered
}

async fn answered(assembly: &Assembly, person: PersonId, body: &Value) -> Result<(), Failed> {
    let app = &assembly.app;
    let Some(minter) = &app.minter else {
        return Err(Failed::because("this installation does not issue tokens"));
    };
    installation::knows(&app.catalog, person).await?;
    let name = Name::try_from(SESSION.to_owned()).map_err(Failed::from_error)?;
    let lifetime = minter.lifetime(TOKEN_LIFETIME);
    let session = app
        .sessions
        .open(person, name, lifetime)
        .await
        .map_err(Failed::from_error)?;
    let order = TokenOrder {
        person,
        name: None,
        lifetime,
        reach: Reach::default(),
    };
    let answered = match minter.token(&order, session.id, session.created_at) {
        Ok(token) => print_answer(app, &token, body).await,
        Err(error) => Err(Failed::from_error(error)),
    };
    let ended = app.sessions.revoke(person, session.id, &Condition::NONE).await;
    answered.and(ended.map(drop).map_err(Failed::from_error))
}

/// Sends the query in `body` the way of every request, and prints what comes back.
async fn print_answer(app: &AppState, token: &str, body: &Value) -> Result<(), Failed> {
    let request = Request::post("/data/v1/sql")
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .map_err(Failed::from_error)?;
    let router = routes::router(Arc::clone(app));
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let refused = !response.status().is_success();
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|form| form == "application/json");
    let mut chunks = response.into_body().into_data_stream();
    let mut refusal = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(Failed::from_error)?;
        if refused {
            refusal.extend_from_slice(&chunk);
        } else {
            print_bytes(&chunk)?;
        }
    }
    if refused {
        return Err(Failed::because(reason(&refusal)));
    }
    // The other forms end their last line themselves, or are not lines of text.
    if is_json { print("\n") } else { Ok(()) }
}

/// The readable reason in a refusal.
fn reason(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = document["detail"][0]["msg"]
        .as_str()
        .or(document["detail"].as_str());
    message.unwrap_or("the query was refused").to_owned()
}
