//! Who is asking: every token that is refused is refused before anything else is looked at, and nobody reads
//! what is another's.

use axum::http::Method;
use base64::encode as base64url;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{
    ALL_TIME, AUDIENCE, Almanac, Call, ISSUER, IdentityProvider, Person, Setup, at, claims, heart_rate, id,
    now, person, shared, sign, until,
};

/// A catalogue read: allowed to everybody who is somebody.
async fn status(reader: &Person) -> u16 {
    reader.get("/data/v0/metrics_catalog").await.status
}

#[tokio::test]
async fn no_token_is_401_with_the_scheme_and_a_problem() {
    let reply = shared().nobody().get("/data/v0/metrics_catalog").await;
    assert!(
        reply
            .header("www-authenticate")
            .is_some_and(|value| value.starts_with("Bearer")),
        "{reply}"
    );
    reply.problem(401);
}

#[tokio::test]
async fn malformed_tokens_are_401() {
    let person = person();
    let whole = person.token().to_owned();
    let (head, signature) = whole.rsplit_once('.').unwrap();
    let unsigned = format!(
        "{}.{}.",
        base64url(br#"{"alg":"none","typ":"JWT"}"#),
        head.split_once('.').unwrap().1
    );
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let tampered = format!("{head}.{other}{}", &signature[1..]);
    for token in [
        "",
        "x",
        "a.b.c",
        "null",
        &whole[..whole.len() / 2],
        head,
        &unsigned,
        &tampered,
        &format!("{whole}.x"),
        &"y".repeat(20_000),
    ] {
        assert!(
            matches!(status(&person.showing(token)).await, 401 | 431),
            "{token}"
        );
    }
}

#[tokio::test]
async fn other_schemes_are_401() {
    let person = person();
    let nobody = shared().nobody();
    for value in [
        "Basic dXNlcjpwYXNz".to_owned(),
        format!("Token {}", person.token()),
        person.token().to_owned(),
        "Bearer".to_owned(),
    ] {
        let reply = nobody
            .get("/data/v0/metrics_catalog")
            .header("authorization", &value)
            .await;
        assert_eq!(reply.status, 401, "{value}: {reply}");
    }
}

#[tokio::test]
async fn the_scheme_may_be_written_in_any_case() {
    let person = person();
    let reply = shared()
        .nobody()
        .get("/data/v0/metrics_catalog")
        .header("authorization", &format!("bearer {}", person.token()))
        .await;
    reply.must_be(200);
}

#[tokio::test]
async fn a_refused_token_is_refused_before_anything_else() {
    let stranger = shared().nobody().showing("not.a.token");
    let endless = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for call in [
        stranger.get("/data/v1alpha1/event/NoSuchType"),
        stranger.get("/data/v0/not-a-uuid/metric_samples"),
        stranger.get("/data/v1/updates").with("start_time", "rubbish"),
        stranger.record("NoSuchType", &json!({})),
        stranger
            .ingest("HeartRate")
            .header("content-type", "image/png")
            .body("not json"),
        stranger
            .ingest("HeartRate")
            .header("content-type", "application/json")
            .body(endless),
        stranger
            .ingest("HeartRate")
            .header("content-type", "application/json")
            .body(vec![b' '; 70 << 20]),
    ] {
        // A server that refuses a large body may close the connection before the client has sent all of it.
        match call.attempt().await {
            Ok(reply) => assert_eq!(reply.status, 401, "{reply}"),
            Err(error) => assert!(error.is_request(), "{error:?}"),
        }
    }
}

#[tokio::test]
async fn another_installations_token_is_401() {
    let other = Setup::default().prepare();
    let token = other.token(Uuid::new_v4());
    assert_eq!(status(&person().showing(token)).await, 401);
}

#[tokio::test]
async fn refusals_say_nothing_about_the_reason_and_tokens_are_never_logged() {
    let server = Almanac::start();
    let person = server.person();
    let mut tampered = person.token().to_owned();
    tampered.pop();
    let first = person
        .showing(tampered.clone())
        .get("/data/v0/metrics_catalog")
        .await
        .must_be(401);
    let second = person
        .showing("rubbish")
        .get("/data/v0/metrics_catalog")
        .await
        .must_be(401);
    assert_eq!(
        first.json()["detail"],
        second.json()["detail"],
        "the answer tells reasons apart"
    );
    person.samples("HeartRate", &at("10:00"), &at("11:00")).await;
    server.stop();
    let log = server.log();
    for secret in [person.token(), &tampered] {
        assert!(!log.contains(secret), "a token is in the log");
        assert!(
            !log.contains(secret.rsplit_once('.').unwrap().1),
            "a signature is in the log"
        );
    }
}

#[tokio::test]
async fn health_needs_no_token() {
    let nobody = shared().nobody();
    nobody.get("/health/live").await.must_be(200);
    nobody.get("/health/ready").await.must_be(200);
}

#[tokio::test]
async fn another_persons_data_is_403_whether_the_person_exists_or_not() {
    let (owner, reader) = (person(), person());
    owner
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let mut answers: Vec<Value> = Vec::new();
    for owner in [owner.id, Uuid::new_v4()] {
        let path = format!("/data/v0/{owner}/metric_samples");
        let samples = reader
            .get(&path)
            .with("metric", "HeartRate")
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .await;
        answers.push(samples.problem(403)["detail"].clone());
        let owner = owner.to_string();
        for call in [
            reader.read("metric", "HeartRate"),
            reader.read("event", "Event"),
            reader.read("event", "Event/0191f000-0000-7000-8000-000000000001"),
            reader
                .get("/data/v1alpha1/data_available")
                .with("start_time", ALL_TIME.0)
                .with("end_time", ALL_TIME.1),
            reader
                .get("/data/v1/updates")
                .with("start_time", ALL_TIME.0)
                .with("end_time", ALL_TIME.1),
        ] {
            let reply = call.with("svc_userid", &owner).await;
            assert_eq!(reply.status, 403, "{reply}");
        }
    }
    assert_eq!(answers[0], answers[1], "the answer tells whether a person exists");
}

#[tokio::test]
async fn naming_oneself_is_allowed() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let reply = person
        .read("metric", "HeartRate")
        .with("svc_userid", &person.id.to_string().to_uppercase())
        .await
        .must_be(200);
    assert_eq!(reply.rows().len(), 1);
}

#[tokio::test]
async fn a_persons_id_that_is_no_uuid_is_422_or_404() {
    let person = person();
    let reply = person
        .get("/data/v0/somebody/metric_samples")
        .with("metric", "HeartRate")
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1)
        .await;
    assert!(matches!(reply.status, 404 | 422), "{reply}");
    person
        .read("metric", "HeartRate")
        .with("svc_userid", "somebody")
        .await
        .faults();
}

/// A server that believes `provider` alone.
fn trusting(provider: &IdentityProvider) -> Setup {
    Setup::default()
        .with("ALMANAC_JWKS_URL", provider.url())
        .with("ALMANAC_ISSUER", ISSUER)
        .with("ALMANAC_AUDIENCE", AUDIENCE)
        .with("ALMANAC_JWKS_INTERVAL", "200ms")
}

fn outsider(server: &Almanac, id: Uuid, token: String) -> Person {
    Person::new(&server.url(), id, token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outside_providers_tokens_are_believed() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider).start();
    let id_ = Uuid::new_v4();
    let person = outsider(&server, id_, sign("first", &claims(id_)));
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
    for _ in 0..20 {
        assert_eq!(status(&person).await, 200);
    }
    assert!(provider.fetches() <= 3, "the keys are fetched for every request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_that_do_not_fit_are_401() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider).start();
    let id_ = Uuid::new_v4();
    let altered = |name: &str, value: Value| {
        let mut claims = claims(id_);
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value;
        }
        outsider(&server, id_, sign("first", &claims))
    };
    assert_eq!(status(&altered("iat", json!(now() - 10))).await, 200);
    assert_eq!(
        status(&altered("aud", json!([AUDIENCE, "another"]))).await,
        200,
        "one of several audiences"
    );
    for (name, value) in [
        ("exp", json!(now() - 3600)),
        ("exp", Value::Null),
        ("exp", json!("soon")),
        ("nbf", json!(now() + 3600)),
        ("iss", json!("https://elsewhere.example/")),
        ("iss", Value::Null),
        ("aud", json!("another")),
        ("aud", Value::Null),
    ] {
        assert_eq!(
            status(&altered(name, value.clone())).await,
            401,
            "{name}: {value}"
        );
    }
    let mut nameless = claims(id_);
    nameless["svc_userid"] = json!("somebody");
    nameless["sub"] = json!("auth0|12345");
    assert_eq!(
        status(&outsider(&server, id_, sign("first", &nameless))).await,
        401,
        "no person in the token"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_person_is_the_configured_claim_else_the_subject_where_that_is_said() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider)
        .with("ALMANAC_USER_CLAIM", "https://almanac.example/user")
        .with("ALMANAC_SUBJECT_AS_PERSON", "true")
        .start();
    let (claimed, subject) = (Uuid::new_v4(), Uuid::new_v4());
    let base = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "sub": subject});
    let mut with_claim = base.clone();
    with_claim["https://almanac.example/user"] = json!(claimed);
    let by_claim = outsider(&server, claimed, sign("first", &with_claim));
    by_claim
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_eq!(by_claim.all_samples("HeartRate").await.len(), 1);
    let by_subject = outsider(&server, subject, sign("first", &base));
    assert!(by_subject.all_samples("HeartRate").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_nobody_published_is_401_and_its_own_tokens_too() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider).start();
    let id_ = Uuid::new_v4();
    assert_eq!(
        status(&outsider(&server, id_, sign("forged", &claims(id_)))).await,
        401
    );
    let embedded = Setup::default().prepare();
    assert_eq!(
        status(&outsider(&server, id_, embedded.token(id_))).await,
        401,
        "an embedded token where an outside provider is trusted"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_public_key_is_no_secret_to_sign_with() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider).start();
    let id_ = Uuid::new_v4();
    let keys: Value = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(provider.url())
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let public = keys["keys"][0]["x"].as_str().unwrap().to_owned();
    let header = jsonwebtoken::Header {
        kid: Some("first".to_owned()),
        ..jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256)
    };
    let forged = jsonwebtoken::encode(
        &header,
        &claims(id_),
        &jsonwebtoken::EncodingKey::from_secret(public.as_bytes()),
    )
    .unwrap();
    assert_eq!(status(&outsider(&server, id_, forged)).await, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_is_found_without_a_restart() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = trusting(&provider).start();
    let id_ = Uuid::new_v4();
    assert_eq!(
        status(&outsider(&server, id_, sign("first", &claims(id_)))).await,
        200
    );
    provider.rotate(&["first", "second"]);
    let rotated = outsider(&server, id_, sign("second", &claims(id_)));
    // The provider is not asked more often than a least interval allows, so the new key may take a moment.
    until(async || match status(&rotated).await {
        200 => Ok(()),
        other => Err(format!("the new key is never looked up: {other}")),
    })
    .await;
}

/// Base64 for urls, for the one test that forges a header.
mod base64 {
    pub(super) fn encode(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits = group.iter().enumerate().fold(0_u32, |bits, (place, byte)| {
                bits | u32::from(*byte) << (16 - 8 * place)
            });
            text.extend(
                (0..=group.len()).map(|place| LETTERS[(bits >> (18 - 6 * place) & 63) as usize] as char),
            );
        }
        text
    }
}

/// Clients of one person with tokens that reach less far.
fn narrow(server: &Almanac, person: Uuid, arguments: &[&str]) -> Person {
    let person_text = person.to_string();
    let all: Vec<&str> = ["token", "--user", &person_text]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let made = server.run(&all);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    Person::new(&server.url(), person, token)
}

/// A frame answers whoever has its address, so a token must not learn the address of what it may not ask.
async fn frames_of_a_wider_token_are_closed(person: &Person, typed: &Person) {
    let made_by = async |maker: &Person, metric: &str| {
        let of = format!("/data/v0/{}/metric_samples?metric={metric}", person.id);
        let question = format!("{of}&start_time={}&end_time={}", ALL_TIME.0, ALL_TIME.1);
        maker
            .post("/data/v1/frames", &json!({"question": question}))
            .await
    };
    let path = |frame: &Value| format!("/data/v1/frames/{}", frame["id"].as_str().unwrap());
    let wide = path(&made_by(person, "StepCount").await.must_be(201).json());
    typed.get(&wide).await.problem(403);
    typed.call(Method::DELETE, &wide).await.problem(403);
    typed.get("/data/v1/frames").await.problem(403);
    made_by(typed, "StepCount").await.problem(403);
    let sources = json!({"question": "/data/v1alpha1/data_sources", "format": "csv"});
    typed.post("/data/v1/frames", &sources).await.problem(403);
    let narrow = path(&made_by(typed, "HeartRate").await.must_be(201).json());
    typed.get(&narrow).await.must_be(200);
    typed.call(Method::DELETE, &narrow).await.must_be(204);
    person.get(&wide).await.must_be(200);
}

/// In the older form the body says which types are meant, and of which they are deleted.
async fn wrapped_records_are_judged_by_the_types_they_name(typed: &Person, person: &Person) {
    let wrapped = |data_type: &str, record: &Value| {
        let metadata = json!({"data_type": data_type, "source": [], "tags": []});
        json!({"data": record.to_string(), "metadata": metadata})
    };
    let heart = wrapped("HeartRate", &heart_rate(id(11), &at("11:00"), 61));
    let steps = json!({"id": id(12), "start_date": at("11:00"), "end_date": at("11:01"), "value": 9});
    let steps = wrapped("StepCount", &steps);
    let deletion = |data_type: &str, record: Uuid| json!({"deleted_id": record, "deleted_type": data_type});
    let tombstone = |data_type: &str, record: Uuid| wrapped("DeletedRecord", &deletion(data_type, record));
    let alias = |data_type: &str, record: Uuid| wrapped("Tombstone", &deletion(data_type, record));
    let before = person.all_samples("StepCount").await.len();
    let (one, batch) = ("/ingest/v1/record", "/ingest/v1/record/batch");
    for (path, body, expected) in [
        (one, heart.clone(), 201),
        (one, steps.clone(), 403),
        (one, tombstone("StepCount", id(2)), 403),
        (batch, json!([heart, steps]), 403),
        (batch, json!([heart, tombstone("StepCount", id(2))]), 403),
        (batch, json!([heart, tombstone("HeartRate", id(99))]), 201),
        (one, alias("StepCount", id(2)), 403),
        (one, alias("HeartRate", id(99)), 201),
        (batch, json!([heart, alias("StepCount", id(2))]), 403),
        (batch, json!([heart, alias("HeartRate", id(99))]), 201),
    ] {
        let answer = typed.post(path, &body).await;
        assert_eq!(answer.status, expected, "{path} {body}: {answer}");
    }
    assert_eq!(person.all_samples("StepCount").await.len(), before);
}

#[tokio::test]
async fn a_token_may_reach_less_far_than_its_person() {
    let server = Almanac::start();
    let person = server.person();
    let record = heart_rate(id(1), &at("10:00"), 60);
    let steps = json!({"id": id(2), "start_date": at("10:00"), "end_date": at("10:01"), "value": 9});
    let tombstone = |data_type: &str| json!({"deleted_id": id(2), "deleted_type": data_type});
    person.record("HeartRate", &record).await.upload();
    person.record("StepCount", &steps).await.upload();
    let everything = |call: Call| call.with("start_time", ALL_TIME.0).with("end_time", ALL_TIME.1);

    let reads = narrow(&server, person.id, &["--scope", "read"]);
    assert_eq!(reads.all_samples("HeartRate").await.len(), 1);
    reads.get("/user/v1alpha1/info").await.must_be(200);
    reads.record("HeartRate", &record).await.problem(403);
    reads
        .call(Method::DELETE, "/user/v1alpha1/account")
        .await
        .problem(403);

    let writes = narrow(&server, person.id, &["--scope", "write"]);
    writes.record("HeartRate", &record).await.upload();
    writes.get("/data/v0/metrics_catalog").await.problem(403);
    let schema = json!({"properties": {"cups": {"type": "integer"}}});
    let definition = json!({"name": "Tea", "description": "A cup", "record_spec": {"schema": schema}});
    let own = format!(
        "/input/v1/data_type/{}",
        writes.define("Event", &definition).await
    );
    person.put(&own, &json!({})).await.must_be(200);
    writes.put(&own, &json!({})).await.problem(403);
    let restore = format!("/input/v1/file/{}/restore", id(3));
    writes.call(Method::POST, &restore).await.problem(403);
    writes
        .post("/user/v1alpha1/api_session", &json!({"name": "wider"}))
        .await
        .problem(403);

    let typed = narrow(&server, person.id, &["--types", "HeartRate,Weight"]);
    assert_eq!(typed.all_samples("HeartRate").await.len(), 1);
    typed.record("HeartRate", &record).await.upload();
    typed.record("StepCount", &steps).await.problem(403);
    for name in ["DeletedRecord", "Tombstone"] {
        typed.record(name, &tombstone("StepCount")).await.problem(403);
        typed.record(name, &tombstone("HeartRate")).await.upload();
    }
    wrapped_records_are_judged_by_the_types_they_name(&typed, &person).await;
    for (data_type, expected) in [("HeartRate", 200), ("StepCount", 403)] {
        for end in ["", "/schema"] {
            let entry = typed.get(&format!("/data/v1/catalog/{data_type}/v0{end}")).await;
            assert_eq!(entry.status, expected, "{data_type}{end}: {entry}");
        }
    }
    everything(
        typed
            .get(&format!("/data/v0/{}/metric_samples", person.id))
            .with("metric", "StepCount"),
    )
    .await
    .problem(403);
    for path in [
        "/data/v1alpha1/data_available",
        "/data/v1/updates",
        "/data/v1alpha1/data_sources",
        "/data/v1alpha1/data_types",
    ] {
        let refusal = everything(typed.get(path)).await;
        assert!(
            refusal
                .text()
                .contains("this token is for records of some types only"),
            "{path}: {refusal}"
        );
        refusal.problem(403);
    }
    typed.get("/user/v1alpha1/info").await.problem(403);
    frames_of_a_wider_token_are_closed(&person, &typed).await;
    typed.get("/input/v1/file").await.problem(403);
    assert_eq!(person.all_samples("StepCount").await.len(), 1);

    let unknown = server.run(&["token", "--user", &person.id.to_string(), "--types", "HartRate"]);
    assert_eq!(unknown.status.code(), Some(2));
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        told.contains("there is no type HartRate; did you mean HeartRate?"),
        "{told}"
    );
}
