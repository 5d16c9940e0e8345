//! What every black-box test stands on: the real binary, people with tokens, and answers that explain
//! themselves when they are wrong.
//!
//! A server lives as long as the value that started it, the shared one as long as the test binary. Knows the
//! command line, the settings and HTTP; knows nothing of the inside of the service.

mod backends;
mod client;
mod forwarder;
mod identity_provider;
mod key_service;
mod metrics;
mod program;
mod server;
mod surroundings;
mod tables;
mod tls_front;
mod values;
mod waiting;

pub(crate) use backends::Backends;
pub(crate) use client::{Call, Person, Reply};
pub(crate) use forwarder::Forwarder;
pub(crate) use identity_provider::{AUDIENCE, ISSUER, IdentityProvider, claims, now, sign};
pub(crate) use key_service::{KeyService, TOKEN as KEY_SERVICE_TOKEN};
pub(crate) use metrics::Metrics;
pub(crate) use server::{Almanac, Ended, Setup};
pub(crate) use surroundings::skip_without;
pub(crate) use tables::{METHODS, Table};
pub(crate) use tls_front::{Opening, TlsFront};
pub(crate) use values::{at, heart_rate, id, instant, jsonl, number, steps, texts};
pub(crate) use waiting::until;

/// Everything that any test stores lies inside.
pub(crate) const ALL_TIME: (&str, &str) = ("0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z");

/// The server that all tests share which need nothing but a person of their own.
pub(crate) fn shared() -> &'static Almanac {
    static SHARED: std::sync::LazyLock<Almanac> = std::sync::LazyLock::new(|| Setup::default().start());
    &SHARED
}

/// A new person on the shared server.
pub(crate) fn person() -> Person {
    shared().person()
}
