//! Tokens: who a valid one names, and why others are refused.

use std::time::Duration;

use jsonwebtoken::EncodingKey;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::auth::mint::{TokenOrder, mint};
use crate::auth::reach::Reach;
use crate::auth::settings::{OutsideProvider, Provider};
use crate::model::clock::ManualClock;

const NOW: i64 = 1_700_000_000;
const PERSON: PersonId = PersonId(Uuid::from_u128(0x0191_f000_0000_7000_8000_0000_0000_0001));

fn at(seconds: i64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

fn settings() -> IdentitySettings {
    IdentitySettings {
        provider: Provider::Embedded,
        issuer: Some("almanac".to_owned()),
        audience: Some("almanac".to_owned()),
        user_claim: "svc_userid".to_owned(),
        subject_as_person: false,
        longest: Duration::MAX,
        leeway: Duration::from_secs(30),
    }
}

struct Case {
    key: SigningKey,
    clock: Arc<ManualClock>,
    verifier: Verifier,
}

fn case() -> Case {
    let key = SigningKey::for_tests(&[7; 48]);
    let clock = Arc::new(ManualClock::at(at(NOW)));
    let verifier = Verifier::embedded(&key, settings(), clock.clone());
    Case { key, clock, verifier }
}

fn claims() -> Value {
    json!({"iss": "almanac", "aud": "almanac", "sub": PERSON, "svc_userid": PERSON, "exp": NOW + 600})
}

impl Case {
    fn signed(&self, claims: &Value) -> String {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &self.key.encoding()).unwrap()
    }

    /// The outcome for the usual claims with `name` set to `value`, or removed if that is null.
    async fn with(&self, name: &str, value: Value) -> Result<Reader, Refusal> {
        let mut claims = claims();
        let members = claims.as_object_mut().unwrap();
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.to_owned(), value);
        }
        self.bearer(&self.signed(&claims)).await
    }

    async fn bearer(&self, token: &str) -> Result<Reader, Refusal> {
        self.verifier
            .verify(Some(format!("Bearer {token}").as_bytes()))
            .await
    }
}

/// A token with any header, and an empty signature.
fn unsigned(header: &Value) -> String {
    format!(
        "{}.{}.",
        base64(header.to_string().as_bytes()),
        base64(claims().to_string().as_bytes())
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .zip([16, 8, 0])
            .fold(0_u32, |bits, (byte, place)| bits | u32::from(*byte) << place);
        text.extend(
            (0..=group.len()).map(|place| char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63])),
        );
    }
    text
}

#[tokio::test]
async fn a_minted_token_is_accepted_until_it_expires() {
    let case = case();
    let order = TokenOrder {
        person: PERSON,
        name: Some("Ada".to_owned()),
        lifetime: Duration::from_mins(1),
        reach: Reach::default(),
    };
    let token = mint(&case.key, &settings(), &order, None, at(NOW)).unwrap();
    let reader = case.bearer(&token).await.unwrap();
    assert_eq!((reader.person(), reader.name()), (PERSON, Some("Ada")));
    case.clock.set(at(NOW + 59));
    assert!(case.bearer(&token).await.is_ok());
    case.clock.set(at(NOW + 60));
    assert!(
        matches!(case.bearer(&token).await, Err(Refusal::Expired)),
        "a remembered token expires too, and on time"
    );
}

#[tokio::test]
async fn a_token_of_a_node_whose_clock_is_ahead_is_accepted_at_once() {
    let hour = IdentitySettings {
        longest: Duration::from_hours(1),
        ..settings()
    };
    let key = SigningKey::for_tests(&[7; 48]);
    let verifier = Verifier::embedded(&key, hour.clone(), Arc::new(ManualClock::at(at(NOW))));
    let order = TokenOrder {
        person: PERSON,
        name: None,
        lifetime: hour.longest,
        reach: Reach::default(),
    };
    for (ahead, accepted) in [(0, true), (30, true), (31, false)] {
        let token = mint(&key, &hour, &order, None, at(NOW + ahead)).unwrap();
        let outcome = verifier.verify(Some(format!("Bearer {token}").as_bytes())).await;
        assert_eq!(outcome.is_ok(), accepted, "{ahead} s");
        assert!(
            accepted || matches!(outcome, Err(Refusal::LongLived)),
            "{ahead} s"
        );
    }
}

#[test]
fn a_token_of_a_provider_whose_clock_is_behind_is_accepted_for_longer() {
    let settings = IdentitySettings {
        provider: Provider::Outside(OutsideProvider {
            jwks_url: String::new(),
            algorithms: Vec::new(),
            lifetime: Duration::ZERO,
            minimum_interval: Duration::ZERO,
            stale: Duration::ZERO,
        }),
        ..settings()
    };
    let claims = claims();
    let outcome = |seconds| claims::identity(claims.as_object().unwrap(), &settings, at(NOW + seconds));
    assert_eq!(outcome(629).unwrap().expires, at(NOW + 630));
    assert!(matches!(outcome(630), Err(Refusal::Expired)));
}

#[tokio::test]
async fn no_token_or_another_scheme_is_missing() {
    let case = case();
    assert!(matches!(case.verifier.verify(None).await, Err(Refusal::Missing)));
    assert!(matches!(
        case.verifier.verify(Some(b"Basic dXNlcjpwYXNz")).await,
        Err(Refusal::Missing)
    ));
}

#[tokio::test]
async fn the_scheme_may_be_in_any_case() {
    let case = case();
    let token = case.signed(&claims());
    assert!(
        case.verifier
            .verify(Some(format!("bEARER  {token}").as_bytes()))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn garbage_is_malformed() {
    let case = case();
    let whole = case.signed(&claims());
    let (head, _) = whole.rsplit_once('.').unwrap();
    for token in [
        "",
        "x",
        "a.b",
        "a.b.c",
        "....",
        head,
        &format!("{whole} {whole}"),
        &format!("{whole}\u{e9}"),
    ] {
        assert!(
            matches!(case.bearer(token).await, Err(Refusal::Malformed)),
            "{token}"
        );
    }
    assert!(matches!(
        case.verifier.verify(Some(b"Bearer")).await,
        Err(Refusal::Malformed)
    ));
    assert!(matches!(
        case.bearer(&"y".repeat(20_000)).await,
        Err(Refusal::TooLong)
    ));
}

#[tokio::test]
async fn a_changed_token_does_not_fit_its_signature() {
    let case = case();
    let token = case.signed(&claims());
    let (head, signature) = token.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    let tampered = format!("{head}.{other}{}", &signature[1..]);
    assert!(matches!(case.bearer(&tampered).await, Err(Refusal::Signature)));
    assert!(case.bearer(&token).await.is_ok());
    assert!(
        matches!(case.bearer(&tampered).await, Err(Refusal::Signature)),
        "a remembered token lends nothing to one like it"
    );
}

#[tokio::test]
async fn another_key_does_not_fit() {
    let foreign = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims(),
        &EncodingKey::from_secret(&[8; 48]),
    )
    .unwrap();
    assert!(matches!(case().bearer(&foreign).await, Err(Refusal::Signature)));
}

#[tokio::test]
async fn only_one_algorithm_is_allowed_with_the_own_key() {
    let case = case();
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let token = jsonwebtoken::encode(&Header::new(algorithm), &claims(), &case.key.encoding()).unwrap();
        assert!(
            matches!(case.bearer(&token).await, Err(Refusal::Algorithm)),
            "{algorithm:?}"
        );
    }
}

#[tokio::test]
async fn the_algorithm_none_is_not_allowed() {
    let case = case();
    for name in ["none", "None", "NONE", "nOnE"] {
        let token = unsigned(&json!({"alg": name, "typ": "JWT"}));
        assert!(
            matches!(case.bearer(&token).await, Err(Refusal::Algorithm)),
            "{name}"
        );
    }
    assert!(case.bearer(&unsigned(&json!({"typ": "JWT"}))).await.is_err());
}

#[tokio::test]
async fn an_extension_that_must_be_understood_is_refused() {
    let case = case();
    let header = Header {
        crit: Some(vec!["exp".to_owned()]),
        ..Header::new(Algorithm::HS256)
    };
    let token = jsonwebtoken::encode(&header, &claims(), &case.key.encoding()).unwrap();
    assert!(matches!(
        case.bearer(&token).await,
        Err(Refusal::CriticalExtension)
    ));
}

#[tokio::test]
async fn a_token_needs_an_expiry_that_is_a_number() {
    let case = case();
    for value in [Value::Null, json!("soon")] {
        assert!(
            matches!(case.with("exp", value.clone()).await, Err(Refusal::NoExpiry)),
            "{value}"
        );
    }
    assert!(matches!(
        case.with("exp", json!([NOW + 600])).await,
        Err(Refusal::Malformed)
    ));
    assert!(
        case.with("exp", json!(NOW as f64 + 0.5)).await.is_ok(),
        "fractions are allowed"
    );
    assert!(matches!(
        case.with("exp", json!(NOW)).await,
        Err(Refusal::Expired)
    ));
    assert!(case.with("exp", json!(NOW + 1)).await.is_ok());
    assert!(matches!(
        case.with("exp", json!(-1e300)).await,
        Err(Refusal::Expired)
    ));
    assert!(case.with("exp", json!(1e300)).await.is_ok());
}

#[tokio::test]
async fn a_token_is_not_valid_before_its_time() {
    let case = case();
    assert!(matches!(
        case.with("nbf", json!(NOW + 31)).await,
        Err(Refusal::NotYet)
    ));
    assert!(
        case.with("nbf", json!(NOW + 30)).await.is_ok(),
        "inside the leeway"
    );
    assert!(matches!(
        case.with("nbf", json!("now")).await,
        Err(Refusal::Malformed)
    ));
}

#[tokio::test]
async fn issuer_and_audience_must_be_ours() {
    let case = case();
    for value in [Value::Null, json!("elsewhere"), json!(["almanac"])] {
        assert!(
            matches!(case.with("iss", value.clone()).await, Err(Refusal::Issuer)),
            "{value}"
        );
    }
    for value in [Value::Null, json!("elsewhere"), json!([]), json!(["elsewhere"])] {
        assert!(
            matches!(case.with("aud", value.clone()).await, Err(Refusal::Audience)),
            "{value}"
        );
    }
    assert!(case.with("aud", json!(["elsewhere", "almanac"])).await.is_ok());
}

#[tokio::test]
async fn the_person_is_the_claim_else_the_subject() {
    let case = case();
    let other = PersonId(Uuid::from_u128(5));
    assert_eq!(
        case.with("svc_userid", json!(other)).await.unwrap().person(),
        other
    );
    assert_eq!(
        case.with("svc_userid", Value::Null).await.unwrap().person(),
        PERSON
    );
    for nobody in [json!("somebody"), json!(Uuid::nil())] {
        assert!(
            matches!(
                case.with("svc_userid", nobody.clone()).await,
                Err(Refusal::NoPerson)
            ),
            "a claim that is there decides: {nobody}"
        );
    }
    let mut nobody = claims();
    nobody.as_object_mut().unwrap().remove("svc_userid");
    nobody["sub"] = json!("auth0|12345");
    assert!(matches!(
        case.bearer(&case.signed(&nobody)).await,
        Err(Refusal::NoPerson)
    ));
}
