//! An identity provider outside the service: it publishes its keys and signs what it is asked to sign.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const ISSUER: &str = "https://identity.example/";
pub(crate) const AUDIENCE: &str = "almanac-tests";

/// Serves its key set for as long as the runtime of the test lives.
#[derive(Debug)]
pub(crate) struct IdentityProvider {
    url: String,
    published: Arc<Mutex<JwkSet>>,
    asked: Arc<AtomicU64>,
}

impl IdentityProvider {
    /// A provider that publishes the keys called `names`.
    pub(crate) async fn start(names: &[&str]) -> Self {
        let published = Arc::new(Mutex::new(key_set(names)));
        let asked = Arc::new(AtomicU64::new(0));
        let (served, counted) = (Arc::clone(&published), Arc::clone(&asked));
        let answer = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let keys = served.lock().expect("lock").clone();
            async move { Json(keys) }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/keys", get(answer))).await });
        Self {
            url,
            published,
            asked,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How often the keys were fetched.
    pub(crate) fn fetches(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Publishes other keys from now on.
    pub(crate) fn rotate(&self, names: &[&str]) {
        *self.published.lock().expect("lock") = key_set(names);
    }
}

/// A token signed with the key called `name`, whether any provider publishes it or not.
pub(crate) fn sign(name: &str, claims: &Value) -> String {
    let header = Header {
        kid: Some(name.to_owned()),
        ..Header::new(Algorithm::ES256)
    };
    jsonwebtoken::encode(&header, claims, &key(name)).expect("a signed token")
}

/// Claims that hold for an hour.
pub(crate) fn claims(person: uuid::Uuid) -> Value {
    json!({
        "sub": person, "svc_userid": person, "iss": ISSUER, "aud": AUDIENCE, "iat": now(),
        "exp": now() + 3600,
    })
}

pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

fn key_set(names: &[&str]) -> JwkSet {
    JwkSet {
        keys: names.iter().map(|name| public_key(name)).collect(),
    }
}

fn public_key(name: &str) -> Jwk {
    let mut public = Jwk::from_encoding_key(&key(name), Algorithm::ES256).expect("a public key");
    public.common.key_id = Some(name.to_owned());
    public
}

/// A P-256 key made from a name: nothing worth keeping secret, the same in every run.
fn key(name: &str) -> EncodingKey {
    const BEFORE_THE_SCALAR: [u8; 35] = [
        0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
        0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04,
        0x20,
    ];
    let mut scalar = [1_u8; 32];
    for (place, letter) in scalar.iter_mut().zip(name.bytes()) {
        *place = letter;
    }
    EncodingKey::from_ec_der(&[&BEFORE_THE_SCALAR[..], &scalar[..]].concat())
}
