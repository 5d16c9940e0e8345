//! How much may be asked for: requests that read and requests that write, and bytes of both, per person; and
//! requests per address.
//!
//! Each is a bucket that fills evenly over a minute and holds what a minute brings. When it is empty, the
//! answer says when to come back. Each node counts for itself. Answers say what is left, in the fields of the
//! draft for rate limit headers (`RateLimit`, `RateLimit-Policy`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::api::app::{App, AppState};
use crate::api::header_names::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::api::problem::ApiError;
use crate::api::rates::{Buckets, Empty, LeftInBucket, WINDOW};
use crate::api::serve::Peer;
use crate::api::serve::addresses::household;
use crate::auth::reach::only_reads;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;

/// Refuses a request from an address with nothing left, before anything else is looked at.
pub fn charge_address(app: &App, request: &Request) -> Result<(), Refusal> {
    let peer = request.extensions().get::<Peer>().copied();
    let (Some(buckets), Some(Peer(peer))) = (&app.rates.addresses, peer) else {
        return Ok(());
    };
    let client = app.settings.trusted_proxies.client(peer, request.headers());
    let taken = buckets.take(household(client), 1.0, Instant::now());
    taken
        .map(drop)
        .map_err(|empty| Box::new(refused(empty, Vec::new())))
}

/// The answer to a request that is refused unseen. Boxed, since few are refused.
pub type Refusal = Box<Response>;

/// What a person has left after a request of theirs.
pub struct ChargedRequest {
    left: Vec<LeftInBucket>,
    /// Charges the bytes of the answer.
    meter: Option<Meter>,
}

/// Refuses a request of a person with nothing left. The bytes of its body are charged as they are read.
pub fn charge_person(app: &App, request: Request) -> Result<(Request, ChargedRequest), Refusal> {
    let mut charged = ChargedRequest {
        left: Vec::new(),
        meter: None,
    };
    let Some(person) = request.extensions().get::<Reader>().map(Reader::person) else {
        return Ok((request, charged));
    };
    let rates = &app.rates;
    let requests = if only_reads(request.method().is_safe(), request.uri().path()) {
        &rates.reads
    } else {
        &rates.writes
    };
    for (buckets, amount) in [(requests, 1.0), (&rates.bytes, 0.0)] {
        let Some(buckets) = buckets else { continue };
        match buckets.take(person, amount, Instant::now()) {
            Ok(one) => charged.left.push(one),
            Err(empty) => return Err(Box::new(refused(empty, charged.left))),
        }
    }
    let Some(bytes) = &rates.bytes else {
        return Ok((request, charged));
    };
    let meter = Meter {
        buckets: bytes.clone(),
        person,
    };
    charged.meter = Some(meter.clone());
    Ok((request.map(|body| meter.metered(body)), charged))
}

/// The layer of routes that a ticket opens, which have no wall. A ticket that somebody tries is counted
/// before it is looked at. The bytes of an answer that carries a meter are charged as they are sent.
pub async fn charge_ticket(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if let Err(refusal) = charge_address(&app, &request) {
        return *refusal;
    }
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Meter>() {
        None => response,
        Some(meter) => response.map(|body| meter.metered(body)),
    }
}

/// What charges `owner` for the bytes that somebody sends or reads with a ticket of theirs, who is refused
/// where nothing is left; `None` where there is no limit.
pub fn charge_owner(app: &App, owner: PersonId) -> Result<Option<Meter>, Refusal> {
    let Some(buckets) = &app.rates.bytes else {
        return Ok(None);
    };
    match buckets.take(owner, 0.0, Instant::now()) {
        Ok(_) => Ok(Some(Meter {
            buckets: buckets.clone(),
            person: owner,
        })),
        Err(empty) => Err(Box::new(refused(empty, Vec::new()))),
    }
}

impl ChargedRequest {
    /// The answer to the request, with headers that say what is left; its bytes are charged as they are sent.
    #[must_use]
    pub fn with_limit_headers(self, response: Response) -> Response {
        let Self { left, meter } = self;
        match meter {
            None => with_limit_headers(response, &left),
            Some(meter) => with_limit_headers(response.map(|body| meter.metered(body)), &left),
        }
    }
}

/// 429, with what is left in this bucket and in those that were looked at `before`.
fn refused(empty: Empty, mut before: Vec<LeftInBucket>) -> Response {
    let whole = Duration::from_secs(empty.wait.as_secs_f64().ceil() as u64);
    let detail = format!(
        "the limit of {} per minute is reached; come back when the header `retry-after` says",
        empty.left.name
    );
    before.push(empty.left);
    with_limit_headers(ApiError::too_many(detail, whole).into_response(), &before)
}

fn with_limit_headers(mut response: Response, left: &[LeftInBucket]) -> Response {
    if left.is_empty() {
        return response;
    }
    let policies: Vec<String> = left
        .iter()
        .map(|one| format!("\"{}\";q={};w={}", one.name, one.size, WINDOW.as_secs()))
        .collect();
    let levels: Vec<String> = left
        .iter()
        .map(|one| format!("\"{}\";r={};t={}", one.name, one.rest, one.full.as_secs()))
        .collect();
    for (name, items) in [(RATE_LIMIT_POLICY, policies), (RATE_LIMIT, levels)] {
        if let Ok(value) = HeaderValue::from_str(&items.join(", ")) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Charges bytes to somebody.
#[derive(Clone)]
pub struct Meter {
    buckets: Buckets<PersonId>,
    person: PersonId,
}

impl Meter {
    /// `body`, whose bytes are charged as they pass.
    pub fn metered(self, body: Body) -> Body {
        Body::new(Metered { body, meter: self })
    }
}

/// A body whose bytes are charged to somebody as they pass.
struct Metered {
    body: Body,
    meter: Meter,
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &next {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.meter.buckets.charge(self.meter.person, bytes as f64);
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
