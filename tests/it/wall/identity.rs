//! Who you are is checked to the end.

use std::process::Stdio;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{AUDIENCE, Almanac, Ended, ISSUER, IdentityProvider, Person, Setup, now, sign, until};

async fn status(reader: &Person) -> u16 {
    reader.get("/data/v0/metrics_catalog").await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_issuer_and_audience_the_service_does_not_start() {
    let provider = IdentityProvider::start(&["first"]).await;
    for (name, value) in [("ALMANAC_ISSUER", ISSUER), ("ALMANAC_AUDIENCE", AUDIENCE)] {
        let server = Setup::default()
            .with("ALMANAC_JWKS_URL", provider.url())
            .with(name, value)
            .prepare();
        let ended = tokio::task::spawn_blocking(move || (server.try_launch(), server.log()));
        let (ended, log) = ended.await.unwrap();
        assert_eq!(ended.expect_err("it started").code(), Some(1), "{log}");
        let missing = if name == "ALMANAC_ISSUER" {
            "ALMANAC_AUDIENCE"
        } else {
            "ALMANAC_ISSUER"
        };
        assert!(log.contains(missing), "{log}");
    }
}

#[test]
fn whoever_is_on_the_way_cannot_read_or_sign() {
    for (name, value) in [
        (
            "ALMANAC_DATABASE_URL",
            "postgres://almanac:secret@192.0.2.1/almanac",
        ),
        ("ALMANAC_JWKS_URL", "http://192.0.2.1/keys"),
    ] {
        let server = Setup::default()
            .with("ALMANAC_ISSUER", ISSUER)
            .with("ALMANAC_AUDIENCE", AUDIENCE)
            .with(name, value)
            .prepare();
        let ended = server.try_launch().expect_err("it started");
        let log = server.log();
        assert_eq!(ended.code(), Some(1), "{log}");
        assert!(
            log.contains("TLS") && log.contains("ALMANAC_ALLOW_PLAINTEXT") && !log.contains("secret"),
            "{log}"
        );
    }
    // Nor does any other command say to a database what others could read.
    let server = Setup::default()
        .with(
            "ALMANAC_DATABASE_URL",
            "postgres://almanac:secret@192.0.2.1/almanac",
        )
        .prepare();
    let person = Uuid::new_v4().to_string();
    for arguments in [
        &["init"][..],
        &["users"],
        &["status"],
        &["token", "--user", &person],
        &["check"],
        &["backup", "elsewhere"],
        &["import", "archive.zip"],
        &["key", "list"],
        &["key", "rewrap"],
    ] {
        let output = server.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(
            told.contains("ALMANAC_ALLOW_PLAINTEXT") && !told.contains("secret"),
            "{arguments:?}: {told}"
        );
    }
}

/// What the address of a database leaves open, its client takes from variables of its own.
#[test]
fn a_database_that_only_the_clients_own_variables_name_needs_tls_too() {
    let address = "postgres:///almanac?user=almanac&password=secret";
    let server = Setup::default().with("ALMANAC_DATABASE_URL", address).prepare();
    for name in ["PGHOST", "PGHOSTADDR"] {
        let mut command = server.command(&["status"]);
        command.env_remove("PGSSLMODE").env(name, "192.0.2.1");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains("ALMANAC_ALLOW_PLAINTEXT"), "{name}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subject_is_a_person_only_where_the_operator_says_so() {
    let provider = IdentityProvider::start(&["first"]).await;
    let subject = Uuid::new_v4();
    let token = sign(
        "first",
        &json!({"iss": ISSUER, "aud": AUDIENCE, "exp": now() + 600, "sub": subject}),
    );
    for (said, expected) in [("false", 401), ("true", 200)] {
        let server = Setup::default()
            .with("ALMANAC_JWKS_URL", provider.url())
            .with("ALMANAC_ISSUER", ISSUER)
            .with("ALMANAC_AUDIENCE", AUDIENCE)
            .with("ALMANAC_SUBJECT_AS_PERSON", said)
            .start();
        let person = Person::new(&server.url(), subject, token.clone());
        assert_eq!(
            status(&person).await,
            expected,
            "ALMANAC_SUBJECT_AS_PERSON={said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_good_for_no_longer_than_the_operator_allows() {
    let provider = IdentityProvider::start(&["first"]).await;
    let server = Setup::default()
        .with("ALMANAC_JWKS_URL", provider.url())
        .with("ALMANAC_ISSUER", ISSUER)
        .with("ALMANAC_AUDIENCE", AUDIENCE)
        .with("ALMANAC_TOKEN_LIFETIME_LIMIT", "1d")
        .start();
    let id = Uuid::new_v4();
    for (lifetime, expected) in [(3600, 200), (7 * 24 * 3600, 401)] {
        let claims = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": now() + lifetime, "svc_userid": id});
        let person = Person::new(&server.url(), id, sign("first", &claims));
        assert_eq!(status(&person).await, expected, "{lifetime} s");
    }

    let own = Setup::default()
        .with("ALMANAC_TOKEN_LIFETIME_LIMIT", "30d")
        .start();
    let refused = own.run(&["token", "--user", &id.to_string(), "--days", "31"]);
    assert_eq!(refused.status.code(), Some(2));
    let token = own.run(&["token", "--user", &id.to_string(), "--days", "30"]);
    let person = Person::new(
        &own.url(),
        id,
        String::from_utf8(token.stdout).unwrap().trim().to_owned(),
    );
    let longer = json!({"name": "longer", "days": 31});
    assert_eq!(
        person.post("/user/v1alpha1/session", &longer).await.faults(),
        ["body.days"]
    );
    // Whoever names no lifetime gets as long a one as there is.
    let usual = own.run(&["token", "--user", &id.to_string()]);
    let usual = String::from_utf8(usual.stdout).unwrap().trim().to_owned();
    assert_eq!(status(&Person::new(&own.url(), id, usual)).await, 200);
    let opened = person
        .post("/user/v1alpha1/session", &json!({"name": "usual"}))
        .await;
    let opened = opened.must_be(201).json();
    let token = opened["token"].as_str().expect("a token").to_owned();
    assert_eq!(status(&person.showing(token)).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_nobody_asks_a_lifetime_for_keep_to_the_shortest_limit() {
    let server = Setup::default()
        .with("ALMANAC_TOKEN_LIFETIME_LIMIT", "10m")
        .prepare();
    let told = tempfile::NamedTempFile::new().unwrap();
    let child = server
        .command(&["serve", "--demo"])
        .stdin(Stdio::null())
        .stdout(told.reopen().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _process = Ended(child);
    let (id, token) = until(async || {
        let invitation = std::fs::read_to_string(told.path()).unwrap();
        let after = |mark: &str| {
            let rest = invitation.split_once(mark)?.1;
            rest.split_once(char::is_whitespace)
                .map(|(word, _)| word.to_owned())
        };
        let told = after("The sample person is ").zip(after("TOKEN="));
        told.ok_or_else(|| format!("no token: {invitation}"))
    })
    .await;
    let sample = Person::new(&server.url(), id.parse().unwrap(), token);
    server
        .until("the server was not there in time", async || {
            sample.get("/health/live").attempt().await.is_ok()
        })
        .await;
    assert_eq!(status(&sample).await, 200);
    let asked = server.run(&["query", "SELECT 1 AS one", "--user", &id, "--output", "csv"]);
    assert_eq!(String::from_utf8(asked.stdout).unwrap().trim(), "one\n1");
}

fn key(server: &Almanac, arguments: &[&str]) -> String {
    let output = server.run(&[&["key"], arguments].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "almanac key {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_and_retired_while_the_service_runs() {
    let server = Almanac::start();
    let before = server.person();
    let first = key(&server, &["list"])
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    let second = key(&server, &["rotate"]);
    assert_ne!(first, second);
    let after = server.person();
    server
        .until("the new key is never believed", async || {
            status(&after).await == 200
        })
        .await;
    assert_eq!(status(&before).await, 200, "the key before still checks");
    let opened = before
        .post("/user/v1alpha1/session", &json!({"name": "opened"}))
        .await
        .must_be(201);
    let token: Value = opened.json()["token"].clone();
    let opened = before.showing(token.as_str().unwrap());

    key(&server, &["retire", &first]);
    server
        .until("the retired key is believed for ever", async || {
            status(&before).await == 401
        })
        .await;
    assert_eq!((status(&after).await, status(&opened).await), (200, 200));
    let refused = server.run(&["key", "retire", &second]);
    assert_eq!(refused.status.code(), Some(1), "the key that signs stays");
}
