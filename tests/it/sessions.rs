//! `/user/v1alpha1/session`: what stands behind tokens can be seen, named and ended, and what was ended is
//! refused by every node from the next request on.

use std::fs;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{
    AUDIENCE, Almanac, Backends, ISSUER, IdentityProvider, Person, Setup, claims, now, person, shared, sign,
};

const PATH: &str = "/user/v1alpha1/session";

async fn status(reader: &Person) -> u16 {
    reader.get("/data/v0/metrics_catalog").await.status
}

async fn names(person: &Person) -> Vec<String> {
    crate::harness::texts(&person.get(PATH).await.must_be(200).rows(), "name")
}

/// A new session, and its person with its token.
async fn opened(person: &Person, name: &str) -> (Value, Person) {
    let session = person
        .post(PATH, &json!({"name": name}))
        .await
        .must_be(201)
        .json();
    let token = session["token"].as_str().expect("a token").to_owned();
    let holder = person.showing(token);
    (session, holder)
}

fn path(session: &Value) -> String {
    format!("{PATH}/{}", session["id"].as_str().expect("an id"))
}

async fn revoke(person: &Person, session: &Value) -> Value {
    person
        .call(Method::DELETE, &path(session))
        .await
        .must_be(200)
        .json()
}

#[tokio::test]
async fn what_the_command_line_makes_is_a_session() {
    let person = person();
    let sessions = person.get(PATH).await.must_be(200).rows();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let session = &sessions[0];
    assert_eq!(session["name"], "almanac token");
    assert_eq!(session["svc_userid"], json!(person.id));
    assert_eq!(session["is_current"], json!(true));
    assert_eq!(session["deleted_at"], Value::Null);
    assert_eq!(session["policy_id"], Value::Null);
    let made = shared().run(&[
        "token",
        "--user",
        &person.id.to_string(),
        "--name",
        "Grün 📱",
        "--days",
        "2",
    ]);
    assert!(made.status.success());
    assert_eq!(names(&person).await, ["almanac token", "Grün 📱"]);
}

#[tokio::test]
async fn a_session_is_opened_named_and_ended() {
    let person = person();
    let (session, holder) = opened(&person, "reader").await;
    assert_eq!(status(&holder).await, 200);
    assert_eq!(
        holder.get(&path(&session)).await.must_be(200).json()["is_current"],
        json!(true)
    );
    let listed = person.get(PATH).await.must_be(200).rows();
    assert!(
        listed.iter().all(|session| session.get("token").is_none()),
        "{listed:?}"
    );

    let renamed = person.put(&path(&session), &json!({"name": "e-reader"})).await;
    assert_eq!(renamed.must_be(200).json()["name"], "e-reader");
    assert_eq!(names(&person).await, ["almanac token", "e-reader"]);

    let ended = revoke(&person, &session).await;
    assert!(ended["deleted_at"].is_string(), "{ended}");
    let refused = holder.get("/data/v0/metrics_catalog").await;
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    refused.problem(401);
    assert_eq!(names(&person).await, ["almanac token"]);
    let seen = person.get(&path(&session)).await.must_be(200).json();
    assert_eq!(seen["deleted_at"], ended["deleted_at"]);
    assert_eq!(
        revoke(&person, &session).await,
        seen,
        "ending it again changes nothing"
    );
    person
        .put(&path(&session), &json!({"name": "again"}))
        .await
        .problem(409);
    assert_eq!(status(&person).await, 200, "other sessions go on");
}

#[tokio::test]
async fn a_session_can_end_itself() {
    let person = person();
    let (session, holder) = opened(&person, "guest").await;
    revoke(&holder, &session).await;
    assert_eq!(status(&holder).await, 401);
}

#[tokio::test]
async fn a_revoked_session_is_refused_by_every_node_with_the_next_request() {
    for backends in Backends::available() {
        let here = Setup::default().on(backends.clone()).start();
        // Nodes that sign tokens themselves have this key, too.
        let there = Setup::default().on(backends).in_dir(here.data_dir()).start();
        let person = here.person();
        for _ in 0..5 {
            let (session, holder) = opened(&person, "short-lived").await;
            let elsewhere = Person::new(&there.url(), person.id, holder.token().to_owned());
            assert_eq!((status(&holder).await, status(&elsewhere).await), (200, 200));
            revoke(&person, &session).await;
            assert_eq!((status(&elsewhere).await, status(&holder).await), (401, 401));
        }
        here.restart();
        assert_eq!(status(&person).await, 200, "sessions outlive the process");
    }
}

#[tokio::test]
async fn somebody_elses_session_is_as_unknown_as_none() {
    let (owner, stranger) = (person(), person());
    let (session, holder) = opened(&owner, "mine").await;
    let none = json!({"id": Uuid::new_v4()});
    for wanted in [&session, &none] {
        let path = path(wanted);
        let answers = [
            stranger.get(&path).await.problem(404),
            stranger.put(&path, &json!({"name": "yours"})).await.problem(404),
            stranger.call(Method::DELETE, &path).await.problem(404),
        ];
        for answer in answers {
            let told = answer["detail"].as_str().unwrap().to_owned();
            assert_eq!(
                told,
                format!("you have no session {}", wanted["id"].as_str().unwrap())
            );
        }
    }
    assert_eq!(status(&holder).await, 200);
}

#[tokio::test]
async fn a_name_is_a_short_text() {
    let person = person();
    for (body, place) in [
        (json!({}), "body.name"),
        (json!({"name": ""}), "body.name"),
        (json!({"name": "x".repeat(257)}), "body.name"),
        (json!({"name": "a\u{0}b"}), "body.name"),
        (json!({"name": 5}), "body.name"),
        (json!({"name": "x", "days": 0}), "body.days"),
        (json!({"name": "x", "days": 36_501}), "body.days"),
        (json!({"name": "x", "days": "many"}), "body.days"),
        (json!({"name": "x", "nosuch": 1}), "body.nosuch"),
        (json!([]), "body"),
    ] {
        assert_eq!(person.post(PATH, &body).await.faults(), [place], "{body}");
    }
    person
        .post(PATH, &json!({"name": "x".repeat(1 << 20)}))
        .await
        .problem(413);
    person.get(&format!("{PATH}/first")).await.must_be(422);
    assert_eq!(names(&person).await, ["almanac token"]);
}

#[tokio::test]
async fn nobody_opens_more_sessions_than_the_limit_and_who_tries_hears_of_it() {
    let server = Setup::default().with("ALMANAC_LIMIT_SESSIONS", "3").start();
    let person = server.person();
    let (session, _) = opened(&person, "second").await;
    opened(&person, "third").await;
    let refused = person.post(PATH, &json!({"name": "fourth"})).await;
    assert!(refused.text().contains("ALMANAC_LIMIT_SESSIONS"), "{refused}");
    assert_eq!(refused.faults(), ["body"]);
    let ended = server.run(&["token", "--user", &person.id.to_string()]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains('3'));
    let limits = person.get("/user/v1alpha1/info").await.must_be(200).json()["limits"].clone();
    assert_eq!(limits["sessions"], json!({"limit": 3, "used": 3}));

    revoke(&person, &session).await;
    opened(&person, "fourth").await;
    assert_eq!(names(&person).await, ["almanac token", "third", "fourth"]);
    server.person();
}

/// A token as they were made before there were sessions, if it says nothing else.
fn made_with_the_key_of(server: &Almanac, person: Uuid, more: &Value) -> String {
    let text = fs::read_to_string(server.data_dir().join("signing.key")).unwrap();
    let digits = text.trim().as_bytes();
    let key: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let mut claims = json!({
        "iss": "almanac", "aud": "almanac", "sub": person, "svc_userid": person,
        "iat": now(), "exp": now() + 600, "jti": Uuid::new_v4(),
    });
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let key = EncodingKey::from_secret(&key);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap()
}

#[tokio::test]
async fn a_token_that_names_no_session_has_none_and_one_that_names_an_unknown_one_is_refused() {
    let server = shared();
    let (owner, other) = (server.person(), server.person());
    let session = owner.get(PATH).await.rows()[0]["id"].clone();
    let status_of = async |holder: &Person, more: Value| {
        status(&holder.showing(made_with_the_key_of(server, holder.id, &more))).await
    };
    assert_eq!(
        status_of(&owner, json!({})).await,
        200,
        "made before there were sessions"
    );
    assert_eq!(status_of(&owner, json!({"sid": session})).await, 200);
    assert_eq!(status_of(&owner, json!({"sid": Uuid::new_v4()})).await, 401);
    assert_eq!(status_of(&owner, json!({"sid": "first"})).await, 401);
    assert_eq!(status_of(&owner, json!({"sid": null})).await, 401);
    assert_eq!(
        status_of(&other, json!({"sid": session})).await,
        401,
        "of somebody else"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outside_provider_has_its_own_sessions_and_makes_its_own_tokens() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = Setup::default()
        .with("ALMANAC_JWKS_URL", provider.url())
        .with("ALMANAC_ISSUER", ISSUER)
        .with("ALMANAC_AUDIENCE", AUDIENCE)
        .start();
    let id = Uuid::new_v4();
    let mut said = claims(id);
    said["sid"] = json!(Uuid::new_v4());
    let reader = Person::new(&server.url(), id, sign("first", &said));
    assert_eq!(status(&reader).await, 200);
    assert_eq!(names(&reader).await, Vec::<String>::new());
    reader.post(PATH, &json!({"name": "mine"})).await.problem(501);
    let info = reader.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(info["userid"], json!(id), "known from the first time on");
}
