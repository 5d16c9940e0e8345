//! The keys that an outside provider publishes: which are believed, for how long, and when they are fetched.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::auth::settings::{IdentitySettings, Provider, PublicAlgorithm};
use crate::auth::tokens::{Reader, Refusal, Verifier};
use crate::model::clock::ManualClock;

const NOW: i64 = 1_700_000_000;
const LIFETIME: i64 = 600;
const INTERVAL: i64 = 10;
const DAY: i64 = 24 * 60 * 60;

/// A key pair on P-256 made from its name.
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

fn published(name: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(&key(name), Algorithm::ES256).unwrap();
    jwk.common.key_id = Some(name.to_owned());
    serde_json::to_value(jwk).unwrap()
}

/// An RSA key whose private half nobody knows.
fn rsa(bits: usize) -> Value {
    json!({"kty": "RSA", "use": "sig", "kid": "rsa", "n": "w".repeat(bits.div_ceil(6)), "e": "AQAB"})
}

#[derive(Clone, Default)]
struct Publisher {
    keys: Arc<RwLock<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
    /// Every answer is held back while this is locked.
    hanging: Arc<Mutex<()>>,
}

impl Publisher {
    async fn start(keys: Vec<Value>) -> (Self, String) {
        let publisher = Self::default();
        publisher.publish(keys);
        let served = publisher.clone();
        let answer = move || {
            served.asked.fetch_add(1, Ordering::SeqCst);
            let broken = served.broken.load(Ordering::SeqCst);
            let status = if broken {
                StatusCode::BAD_GATEWAY
            } else {
                StatusCode::OK
            };
            let document = json!({"keys": *served.keys.read().unwrap()}).to_string();
            let hanging = Arc::clone(&served.hanging);
            async move {
                let _let_go = hanging.lock().await;
                (status, document)
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/keys", get(answer))).await });
        (publisher, url)
    }

    fn publish(&self, keys: Vec<Value>) {
        *self.keys.write().unwrap() = keys;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

struct Case {
    publisher: Publisher,
    clock: Arc<ManualClock>,
    verifier: Verifier,
}

impl Case {
    async fn start(keys: Vec<Value>) -> Self {
        Self::with(keys, PublicAlgorithm::ALL.to_vec()).await
    }

    async fn with(keys: Vec<Value>, algorithms: Vec<PublicAlgorithm>) -> Self {
        let (publisher, jwks_url) = Publisher::start(keys).await;
        let clock = Arc::new(ManualClock::at(at(0)));
        let provider = OutsideProvider {
            jwks_url,
            algorithms,
            lifetime: Duration::from_secs(LIFETIME as u64),
            minimum_interval: Duration::from_secs(INTERVAL as u64),
            stale: Duration::from_hours(24),
        };
        let settings = IdentitySettings {
            provider: Provider::Outside(provider.clone()),
            issuer: Some("https://identity.example/".to_owned()),
            audience: None,
            user_claim: "svc_userid".to_owned(),
            subject_as_person: true,
            longest: Duration::MAX,
            leeway: Duration::ZERO,
        };
        let jwks = Jwks::new(provider, clock.clone()).unwrap();
        let verifier = Verifier::outside(jwks, settings, clock.clone());
        Self {
            publisher,
            clock,
            verifier,
        }
    }

    async fn verify(&self, token: &str) -> Result<Reader, Refusal> {
        self.verifier
            .verify(Some(format!("Bearer {token}").as_bytes()))
            .await
    }
}

fn at(seconds: i64) -> Instant {
    Instant::from_micros((NOW + seconds) * 1_000_000)
}

fn claims() -> Value {
    json!({"iss": "https://identity.example/", "sub": Uuid::from_u128(1), "exp": NOW + 1_000_000})
}

fn signed(name: &str, kid: Option<&str>) -> String {
    let header = Header {
        kid: kid.map(str::to_owned),
        ..Header::new(Algorithm::ES256)
    };
    jsonwebtoken::encode(&header, &claims(), &key(name)).unwrap()
}

fn token(name: &str) -> String {
    signed(name, Some(name))
}

#[tokio::test]
async fn published_keys_are_believed_and_fetched_once() {
    let case = Case::start(vec![published("first")]).await;
    for _ in 0..5 {
        case.verify(&token("first")).await.unwrap();
    }
    assert!(
        case.verify(&signed("first", None)).await.is_ok(),
        "a token need not name its key"
    );
    assert_eq!(case.publisher.asked(), 1);
}

#[tokio::test]
async fn a_rotated_key_is_fetched_when_a_token_names_it() {
    let case = Case::start(vec![published("first")]).await;
    case.verify(&token("first")).await.unwrap();
    case.publisher.publish(vec![published("second")]);
    case.clock.set(at(INTERVAL));
    case.verify(&token("second")).await.unwrap();
    assert!(
        matches!(case.verify(&token("first")).await, Err(Refusal::UnknownKey)),
        "a remembered token goes with its key"
    );
}

#[tokio::test]
async fn unknown_keys_cannot_hammer_the_provider() {
    let case = Case::start(vec![published("first")]).await;
    for name in ["a", "b", "c", "d"] {
        assert!(
            matches!(case.verify(&token(name)).await, Err(Refusal::UnknownKey)),
            "{name}"
        );
    }
    assert_eq!(case.publisher.asked(), 1);
    case.clock.set(at(INTERVAL));
    assert!(case.verify(&token("e")).await.is_err());
    assert!(case.verify(&token("f")).await.is_err());
    assert_eq!(case.publisher.asked(), 2);
}

#[tokio::test]
async fn a_key_that_was_withdrawn_is_believed_no_longer_than_its_lifetime() {
    let case = Case::start(vec![published("first")]).await;
    case.verify(&token("first")).await.unwrap();
    case.publisher.publish(vec![published("second")]);
    case.clock.set(at(LIFETIME - 1));
    assert!(case.verify(&token("first")).await.is_ok());
    case.clock.set(at(LIFETIME));
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::UnknownKey)
    ));
}

#[tokio::test]
async fn while_the_provider_fails_the_last_keys_stay_in_use_for_a_day() {
    let case = Case::start(vec![published("first")]).await;
    case.verify(&token("first")).await.unwrap();
    case.publisher.broken.store(true, Ordering::SeqCst);
    case.clock.set(at(LIFETIME));
    assert!(case.verify(&token("first")).await.is_ok());
    case.clock.set(at(24 * 60 * 60));
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::Unavailable(_))
    ));
    case.publisher.broken.store(false, Ordering::SeqCst);
    case.clock.set(at(24 * 60 * 60 + INTERVAL));
    assert!(case.verify(&token("first")).await.is_ok());
}

#[tokio::test]
async fn keys_that_were_fetched_under_a_clock_ahead_are_renewed_when_it_was_put_right() {
    let case = Case::start(vec![published("first")]).await;
    case.clock.set(at(2 * DAY));
    case.verify(&token("first")).await.unwrap();
    case.publisher.publish(vec![published("second")]);
    case.clock.set(at(0));
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::UnknownKey)
    ));
    case.verify(&token("second")).await.unwrap();
    assert_eq!(case.publisher.asked(), 2, "the lifetime counts as usual again");
    case.publisher.publish(vec![published("third")]);
    case.clock.set(at(INTERVAL));
    case.verify(&token("third")).await.unwrap();
}

#[tokio::test]
async fn a_provider_that_failed_under_a_clock_ahead_is_asked_again_when_it_was_put_right() {
    let case = Case::start(vec![published("first")]).await;
    case.publisher.broken.store(true, Ordering::SeqCst);
    case.clock.set(at(2 * DAY));
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::Unavailable(_))
    ));
    case.publisher.broken.store(false, Ordering::SeqCst);
    case.clock.set(at(0));
    case.verify(&token("first")).await.unwrap();
}

#[tokio::test]
async fn keys_that_were_fetched_under_a_clock_ahead_outlast_a_failing_provider_no_longer_than_others() {
    let case = Case::start(vec![published("first")]).await;
    case.clock.set(at(2 * DAY));
    case.verify(&token("first")).await.unwrap();
    case.publisher.broken.store(true, Ordering::SeqCst);
    case.clock.set(at(0));
    case.verify(&token("first")).await.unwrap();
    case.clock.set(at(DAY - LIFETIME - 1));
    case.verify(&token("first")).await.unwrap();
    case.clock.set(at(DAY - LIFETIME));
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::Unavailable(_))
    ));
}

#[tokio::test]
async fn while_the_provider_hangs_good_tokens_are_not_kept_waiting_for_it() {
    let case = Case::start(vec![published("first")]).await;
    case.verify(&token("first")).await.unwrap();
    let hanging = Arc::clone(&case.publisher.hanging).lock_owned().await;
    case.clock.set(at(LIFETIME));
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        assert!(case.verify(&token("first")).await.is_ok());
    }
    assert!(begun.elapsed() < FETCH_LIMIT / 2, "{:?}", begun.elapsed());
    assert!(matches!(
        case.verify(&token("second")).await,
        Err(Refusal::UnknownKey)
    ));
    assert!(begun.elapsed() < FETCH_LIMIT, "{:?}", begun.elapsed());
    assert_eq!(
        case.publisher.asked(),
        2,
        "a fetch is not given up by those who stop waiting for it"
    );
    drop(hanging);
}

#[tokio::test]
async fn a_provider_that_never_answered_is_no_refusal() {
    let case = Case::start(vec![published("first")]).await;
    case.publisher.broken.store(true, Ordering::SeqCst);
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::Unavailable(_))
    ));
    assert!(
        matches!(case.verify("not.a.token").await, Err(Refusal::Malformed)),
        "no key could make this good"
    );
    assert_eq!(
        case.publisher.asked(),
        1,
        "the least interval holds for the first fetch too"
    );
}

#[tokio::test]
async fn a_forged_key_does_not_fit_the_name_it_takes() {
    let case = Case::start(vec![published("first")]).await;
    assert!(matches!(
        case.verify(&signed("forged", Some("first"))).await,
        Err(Refusal::Signature)
    ));
}

#[tokio::test]
async fn public_keys_are_no_secrets_to_sign_with() {
    let (elliptic, rsa) = (published("first"), rsa(2048));
    let case = Case::start(vec![elliptic.clone(), rsa.clone()]).await;
    for (kid, public) in [
        ("first", elliptic["x"].as_str().unwrap()),
        ("rsa", rsa["n"].as_str().unwrap()),
    ] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let header = Header {
                kid: Some(kid.to_owned()),
                ..Header::new(algorithm)
            };
            let forged =
                jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(public.as_bytes()))
                    .unwrap();
            assert!(
                matches!(case.verify(&forged).await, Err(Refusal::Algorithm)),
                "{kid} {algorithm:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_algorithm_off_the_list_is_refused_whatever_is_published() {
    let case = Case::with(vec![published("first"), rsa(2048)], vec![PublicAlgorithm::Rs256]).await;
    assert!(matches!(
        case.verify(&token("first")).await,
        Err(Refusal::Algorithm)
    ));
}

#[test]
fn keys_that_are_weak_or_for_something_else_are_left_out() {
    let usable = |key: Value| {
        verifying_keys(
            json!({"keys": [key]}).to_string().as_bytes(),
            &PublicAlgorithm::ALL,
        )
        .is_ok()
    };
    let with = |mut key: Value, name: &str, value: &str| {
        key[name] = json!(value);
        key
    };
    assert!(usable(published("first")));
    assert!(usable(rsa(2048)));
    assert!(usable(
        json!({"kty": "OKP", "crv": "Ed25519", "x": "pCuH8tLgvny2DJnre7Y6oI1HA3XMefNfsUwBbmUvQ2w"})
    ));
    assert!(!usable(rsa(1024)), "too short");
    assert!(!usable(with(published("first"), "use", "enc")), "for encryption");
    assert!(!usable(with(rsa(2048), "alg", "PS256")), "for another algorithm");
    assert!(
        !usable(json!({"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"})),
        "a secret"
    );
    assert!(!usable(json!({"kty": "unheard-of"})));
    assert!(!usable(json!("no key")));
}

#[test]
fn a_key_set_that_is_none_is_an_error() {
    for document in ["", "[]", "{}", r#"{"keys": 1}"#] {
        assert!(
            matches!(
                verifying_keys(document.as_bytes(), &PublicAlgorithm::ALL),
                Err(JwksError::Malformed)
            ),
            "{document}"
        );
    }
    assert!(matches!(
        verifying_keys(br#"{"keys": []}"#, &PublicAlgorithm::ALL),
        Err(JwksError::NoKeys)
    ));
}

#[test]
fn an_address_that_is_none_is_refused_at_the_start() {
    let provider = |url: &str| OutsideProvider {
        jwks_url: url.to_owned(),
        algorithms: PublicAlgorithm::ALL.to_vec(),
        lifetime: Duration::from_secs(1),
        minimum_interval: Duration::from_secs(1),
        stale: Duration::from_hours(24),
    };
    for url in [
        "",
        "keys.json",
        "ftp://identity.example/keys",
        "file:///etc/passwd",
    ] {
        assert!(
            Jwks::new(provider(url), Arc::new(ManualClock::at(at(0)))).is_err(),
            "{url}"
        );
    }
}
