//! What every black-box test stands on: the real binary, people with tokens, and answers that explain
//! themselves when they are wrong.
//!
//! A server lives as long as the value that started it, the shared one as long as the test binary. Knows the
//! command line, the settings and HTTP; knows nothing of the inside of the service.

mod backends;
mod client;
mod forwarder;
mod frames;
mod identity_provider;
mod metrics;
mod server;
mod tls_front;
mod values;

pub use backends::Backends;
pub use client::{Call, Person, Reply};
pub use forwarder::Forwarder;
pub use frames::{Frame, METHODS};
pub use identity_provider::{AUDIENCE, ISSUER, IdentityProvider, claims, now, sign};
pub use metrics::Metrics;
pub use server::{Almanac, Setup};
pub use tls_front::{Opening, TlsFront};
pub use values::{at, heart_rate, id, instant, jsonl, number, steps, texts};

/// Everything that any test stores lies inside.
pub const ALL_TIME: (&str, &str) = ("0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z");

/// The server that all tests share which need nothing but a person of their own.
pub fn shared() -> &'static Almanac {
    static SHARED: std::sync::LazyLock<Almanac> = std::sync::LazyLock::new(|| Setup::default().start());
    &SHARED
}

/// A new person on the shared server.
pub fn person() -> Person {
    shared().person()
}
