//! How much may be asked for: requests that read and requests that write, and bytes of both, of one person;
//! and requests from one address.
//!
//! Each is a bucket that fills evenly over a minute and holds what a minute brings. Who has none left hears
//! when to come back. Buckets live in memory: each node counts for itself. Answers say what is left, as the
//! draft of the header fields for rate limits has it (`RateLimit`, `RateLimit-Policy`).

use std::hash::Hash;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use moka::sync::Cache;
use tokio::time::Instant;

use crate::api::app::Shared;
use crate::api::problem::ApiError;
use crate::api::serve::Peer;
use crate::api::serve::addresses::household;
use crate::api::settings::RateSettings;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;

pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The time in which a bucket fills.
const WINDOW: Duration = Duration::from_mins(1);
/// Buckets that are remembered. One that is forgotten is full again.
const REMEMBERED: u64 = 100_000;

/// What is left for somebody to ask for.
#[derive(Debug)]
struct Bucket(Mutex<Level>);

#[derive(Clone, Copy, Debug)]
struct Level {
    left: f64,
    at: Instant,
}

/// Buckets of one kind, by whose they are.
#[derive(Clone)]
pub struct Buckets<K> {
    name: &'static str,
    /// What a minute brings.
    size: f64,
    of: Cache<K, Arc<Bucket>>,
}

/// What somebody has left, after a request was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    name: &'static str,
    size: u64,
    /// Requests, or bytes.
    rest: u64,
    /// Until the bucket is full again.
    full: Duration,
}

impl<K: Hash + Eq + Send + Sync + Clone + 'static> Buckets<K> {
    /// None where there is no limit.
    fn new(name: &'static str, size: u64) -> Option<Self> {
        (size > 0).then(|| Self {
            name,
            size: size as f64,
            of: Cache::builder()
                .max_capacity(REMEMBERED)
                .time_to_idle(WINDOW * 2)
                .build(),
        })
    }

    fn bucket(&self, whose: K, now: Instant) -> Arc<Bucket> {
        let full = || {
            Arc::new(Bucket(Mutex::new(Level {
                left: self.size,
                at: now,
            })))
        };
        self.of.get_with(whose, full)
    }

    /// Takes `amount` at `now`, if there is anything left; what is taken beyond is owed. `Err`: how long
    /// until there is.
    fn take(&self, whose: K, amount: f64, now: Instant) -> Result<Left, Duration> {
        let bucket = self.bucket(whose, now);
        let mut level = bucket.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = self.size / WINDOW.as_secs_f64();
        let filled = now.duration_since(level.at).as_secs_f64() * each;
        level.left = (level.left + filled).min(self.size);
        level.at = now;
        let least = amount.min(1.0);
        if level.left < least {
            return Err(Duration::from_secs_f64((least - level.left) / each));
        }
        level.left -= amount;
        Ok(Left {
            name: self.name,
            size: self.size as u64,
            rest: level.left.max(0.0) as u64,
            full: Duration::from_secs_f64((self.size - level.left) / each),
        })
    }

    /// Takes what was used already.
    fn charge(&self, whose: K, amount: f64) {
        let bucket = self.bucket(whose, Instant::now());
        bucket.0.lock().unwrap_or_else(PoisonError::into_inner).left -= amount;
    }
}

/// All buckets of the service.
#[derive(Clone)]
pub struct Rates {
    reads: Option<Buckets<PersonId>>,
    writes: Option<Buckets<PersonId>>,
    bytes: Option<Buckets<PersonId>>,
    addresses: Option<Buckets<IpAddr>>,
}

impl Rates {
    #[must_use]
    pub fn new(settings: RateSettings) -> Self {
        Self {
            reads: Buckets::new("reads", settings.reads),
            writes: Buckets::new("writes", settings.writes),
            bytes: Buckets::new("bytes", settings.bytes),
            addresses: Buckets::new("address", settings.address),
        }
    }
}

/// The layer's function for addresses, before anything else is looked at.
pub async fn of_addresses(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let (Some(buckets), Some(Peer(peer))) = (&app.rates.addresses, peer) else {
        return next.run(request).await;
    };
    let client = app.settings.trusted_proxies.client(peer, request.headers());
    match buckets.take(household(client), 1.0, Instant::now()) {
        Ok(_) => next.run(request).await,
        Err(wait) => refused(buckets.name, wait),
    }
}

/// The layer's function for people, behind the wall.
pub async fn of_people(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let Some(person) = request.extensions().get::<Reader>().map(Reader::person) else {
        return next.run(request).await;
    };
    let rates = &app.rates;
    let requests = if request.method().is_safe() {
        &rates.reads
    } else {
        &rates.writes
    };
    let mut left = Vec::new();
    for (buckets, amount) in [(requests, 1.0), (&rates.bytes, 0.0)] {
        let Some(buckets) = buckets else { continue };
        match buckets.take(person, amount, Instant::now()) {
            Ok(one) => left.push(one),
            Err(wait) => return refused(buckets.name, wait),
        }
    }
    let Some(bytes) = &rates.bytes else {
        return told(next.run(request).await, &left);
    };
    let meter = Meter {
        buckets: bytes.clone(),
        person,
    };
    let sent = meter.clone();
    let request = request.map(|body| Body::new(Metered { body, meter }));
    let response = next.run(request).await;
    told(
        response.map(|body| Body::new(Metered { body, meter: sent })),
        &left,
    )
}

fn refused(name: &'static str, wait: Duration) -> Response {
    let whole = Duration::from_secs(wait.as_secs_f64().ceil() as u64);
    let detail =
        format!("the limit of {name} per minute is reached; come back when the header `retry-after` says");
    ApiError::too_many(detail, whole).into_response()
}

fn told(mut response: Response, left: &[Left]) -> Response {
    let policies: Vec<String> = left
        .iter()
        .map(|one| format!("\"{}\";q={};w={}", one.name, one.size, WINDOW.as_secs()))
        .collect();
    let levels: Vec<String> = left
        .iter()
        .map(|one| format!("\"{}\";r={};t={}", one.name, one.rest, one.full.as_secs()))
        .collect();
    for (name, items) in [(RATE_LIMIT_POLICY, policies), (RATE_LIMIT, levels)] {
        if let Ok(value) = HeaderValue::from_str(&items.join(", "))
            && !items.is_empty()
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[derive(Clone)]
struct Meter {
    buckets: Buckets<PersonId>,
    person: PersonId,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_empty_after_a_minutes_worth_and_fills_evenly() {
        let buckets = Buckets::new("reads", 60).unwrap();
        let mut now = Instant::now();
        for rest in (0..60).rev() {
            assert_eq!(buckets.take(1, 1.0, now).unwrap().rest, rest);
        }
        assert_eq!(buckets.take(1, 1.0, now), Err(Duration::from_secs(1)));
        assert!(buckets.take(2, 1.0, now).is_ok(), "another has another bucket");
        now += Duration::from_millis(1500);
        assert!(buckets.take(1, 1.0, now).is_ok());
        assert!(buckets.take(1, 1.0, now).is_err());
        now += Duration::from_hours(1);
        assert_eq!(buckets.take(1, 1.0, now).unwrap().rest, 59);
    }

    #[test]
    fn what_was_used_beyond_is_owed() {
        let buckets = Buckets::new("bytes", 6000).unwrap();
        let now = Instant::now();
        buckets.take(1, 0.0, now).unwrap();
        buckets.charge(1, 12_000.0);
        assert_eq!(buckets.take(1, 0.0, now), Err(Duration::from_mins(1)));
    }

    #[test]
    fn nothing_is_counted_where_there_is_no_limit() {
        assert!(Buckets::<u8>::new("reads", 0).is_none());
    }
}
