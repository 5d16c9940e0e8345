//! A person's last word: `DELETE /user/v1alpha1/account`, and what `almanac check --erased` finds afterwards.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::files;
use crate::harness::{
    AUDIENCE, Almanac, Backends, ISSUER, IdentityProvider, Person, Setup, at, claims, heart_rate, id,
    instant, sign, until,
};
use crate::sharing::{group, join, share, share_of};

const ACCOUNT: &str = "/user/v1alpha1/account";

/// A confirmation for the person's erasure.
async fn confirmation(person: &Person) -> String {
    let answer = person.call(Method::DELETE, ACCOUNT).await.must_be(202).json();
    assert_eq!(answer["state"], "to_be_confirmed");
    assert!(
        answer["expires_at"].is_string() && answer["begun_at"].is_null(),
        "{answer}"
    );
    answer["confirmation"].as_str().unwrap().to_owned()
}

async fn confirmed(person: &Person, confirmation: &str) -> Value {
    let call = person.call(Method::DELETE, ACCOUNT).with("confirm", confirmation);
    call.await.must_be(202).json()
}

/// The person confirms at once.
pub(crate) async fn erase(person: &Person) {
    let given = confirmation(person).await;
    confirmed(person, &given).await;
}

/// What `check --erased` says, and its status.
fn checked(server: &Almanac, person: Uuid) -> (String, Option<i32>) {
    let output = server.run(&["check", "--erased", &person.to_string()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        text + &String::from_utf8_lossy(&output.stderr),
        output.status.code(),
    )
}

/// Waits until nothing is left.
async fn until_nothing_is_left(server: &Almanac, person: Uuid) -> String {
    until(async || {
        let (text, status) = checked(server, person);
        if status == Some(0) {
            return Ok(text);
        }
        Err(format!("{text}\n{}", server.log()))
    })
    .await
}

fn upkeeping() -> Setup {
    Setup::default()
        .with("ALMANAC_UPKEEP_INTERVAL", "50ms")
        .with("ALMANAC_FLUSH_AGE", "100ms")
        .with("ALMANAC_GRACE_PERIOD", "1s")
}

#[tokio::test]
async fn a_note_of_an_erasure_that_appears_in_the_store_is_heeded_while_the_service_runs() {
    let there = upkeeping().start();
    let person = there.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let given = confirmation(&person).await;
    confirmed(&person, &given).await;
    // As a database that was put back from before the erasure has them, under a service that goes on.
    let here = upkeeping().start();
    let person = here.person_called(person.id);
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let folder = "objects/erased";
    for mark in std::fs::read_dir(there.data_dir().join(folder)).unwrap() {
        let mark = mark.unwrap();
        let target = here.data_dir().join(folder).join(mark.file_name());
        std::fs::create_dir_all(&target).unwrap();
        for note in std::fs::read_dir(mark.path()).unwrap() {
            let note = note.unwrap();
            std::fs::copy(note.path(), target.join(note.file_name())).unwrap();
        }
    }
    here.until("nobody heeds the note", async || {
        person.get("/user/v1alpha1/info").await.status == 401
    })
    .await;
    until_nothing_is_left(&here, person.id).await;
}

#[tokio::test]
async fn an_erasure_that_the_store_cannot_note_has_begun_and_is_noted_later() {
    let server = upkeeping().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let given = confirmation(&person).await;
    // A file where the folder of notes would be: nothing can be put there.
    let notes = server.data_dir().join("objects/erased");
    std::fs::write(&notes, "").unwrap();
    let begun = confirmed(&person, &given).await;
    assert_eq!(begun["state"], "begun", "{begun}");
    assert!(begun["begun_at"].is_string(), "{begun}");
    person.get("/user/v1alpha1/info").await.problem(401);
    std::fs::remove_file(&notes).unwrap();
    until_nothing_is_left(&server, person.id).await;
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 1);
}

#[tokio::test]
async fn an_account_is_erased_in_two_steps_and_no_byte_is_left() {
    for backends in Backends::available() {
        let server = upkeeping().on(backends.clone()).start();
        let (person, friend) = (server.person(), server.person());
        let records: Vec<_> = (0..300).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
        person.records("HeartRate", &records).await;
        person.delete("HeartRate", id(7)).await;
        person.define("Event", &json!({"name": "Tea"})).await;
        person
            .post("/user/v1alpha1/tag", &json!({"name": "calm"}))
            .await
            .must_be(201);
        files::put(&person, "/lab", "a.txt", b"bytes").await;
        share(&person, &share_of(&["HeartRate"], &friend)).await;
        share(&friend, &share_of(&["HeartRate"], &person)).await;
        let club = group(
            &person,
            &json!({"title": "Club", "svc_data_types": ["HeartRate"], "is_public": true}),
        )
        .await;
        join(&friend, &club).await;
        let path = format!("/data/v0/{}/metric_samples", person.id);
        let reads = |who: &Person| {
            who.get(&path)
                .with("metric", "HeartRate")
                .with("start_time", &instant(0))
                .with("end_time", &instant(1_000))
        };
        reads(&friend).await.must_be(200);

        // Nothing happens before it is confirmed, and nothing but the confirmation confirms it.
        let word = confirmation(&person).await;
        let other = confirmation(&friend).await;
        for wrong in ["yes", &other, &word[..word.len() - 1]] {
            let refused = person
                .call(Method::DELETE, ACCOUNT)
                .with("confirm", wrong)
                .await
                .must_be(422);
            assert_eq!(refused.faults().len(), 1);
        }
        reads(&friend).await.must_be(200);
        let (text, status) = checked(&server, person.id);
        assert_eq!(status, Some(1), "{text}");
        assert!(
            text.contains("no erasure of") && text.contains("left: catalogue: table pieces"),
            "{text}"
        );

        // The confirmation outlives a restart.
        server.restart();
        let (person, friend) = (on(&server, &person), on(&server, &friend));
        let begun = confirmed(&person, &word).await;
        assert_eq!(begun["state"], "begun");
        assert!(
            begun["begun_at"].is_string() && begun["ends_at"].is_string(),
            "{begun}"
        );
        person.get("/user/v1alpha1/info").await.problem(401);
        person.ingest("HeartRate").await.problem(401);
        reads(&friend).await.problem(403);
        let archive = server.data_dir().join("archive.zip");
        let id = person.id.to_string();
        let exported = server.run(&["export", archive.to_str().unwrap(), "--user", &id]);
        assert_eq!(exported.status.code(), Some(1), "{exported:?}");
        let users = String::from_utf8_lossy(&server.run(&["users"]).stdout).into_owned();
        assert!(!users.contains(&id), "{users}");
        let text = until_nothing_is_left(&server, person.id).await;
        assert!(
            text.contains("is under way") && text.contains("nothing is left"),
            "{text}"
        );
        let everything = server.run(&["check"]);
        assert_eq!(
            everything.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&everything.stdout)
        );

        // Nobody gets back in before it is over, whoever makes the token.
        let token = server.run(&["token", "--user", &person.id.to_string()]);
        assert_eq!(token.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&token.stderr).contains("being erased"));

        // What was others' is theirs, without the person.
        let log = friend
            .get("/user/v1alpha1/access_log")
            .await
            .must_be(200)
            .text()
            .to_owned();
        assert!(!log.contains(&person.id.to_string()), "{log}");
        let shares = friend
            .get("/user/v1/datashare")
            .await
            .must_be(200)
            .text()
            .to_owned();
        assert!(
            !shares.contains(&person.id.to_string()) && shares.contains("a share"),
            "{shares}"
        );
    }
}

fn on(server: &Almanac, person: &Person) -> Person {
    Person::new(&server.url(), person.id, person.token().to_owned())
}

#[tokio::test]
async fn an_erasure_whose_server_is_killed_again_and_again_is_completed() {
    let server = upkeeping().start();
    let (person, friend) = (server.person(), server.person());
    for round in 0..20 {
        let records: Vec<_> = (0..50)
            .map(|n| heart_rate(id(round * 50 + n), &instant(n), 60))
            .collect();
        person.records("HeartRate", &records).await;
        share(&friend, &share_of(&["HeartRate"], &person)).await;
    }
    let word = confirmation(&person).await;
    confirmed(&person, &word).await;
    for delay in [0, 10, 20, 40, 60, 80] {
        tokio::time::sleep(Duration::from_millis(delay)).await;
        server.kill();
        server.launch();
    }
    until_nothing_is_left(&server, person.id).await;
    server.stop();
    let output = server.run(&["check"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_an_outside_provider_is_refused_on_every_node() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let provider = IdentityProvider::start(&["one"]).await;
    let node = || {
        upkeeping()
            .on(backends.clone())
            .with("ALMANAC_JWKS_URL", provider.url())
            .with("ALMANAC_ISSUER", ISSUER)
            .with("ALMANAC_AUDIENCE", AUDIENCE)
            .start()
    };
    let (first, second) = (node(), node());
    let person = Uuid::new_v4();
    let token = sign("one", &claims(person));
    let [here, there] = [&first, &second].map(|server| Person::new(&server.url(), person, token.clone()));
    here.records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_eq!(there.all_samples("HeartRate").await.len(), 1);
    // A confirmation of one node is good at the other.
    let word = confirmation(&here).await;
    confirmed(&there, &word).await;
    for who in [&here, &there] {
        who.get("/user/v1alpha1/info").await.problem(401);
        who.record("HeartRate", &heart_rate(id(2), &at("10:00"), 60))
            .await
            .problem(401);
    }
    let younger = here.showing(sign("one", &claims(person)));
    younger.get("/user/v1alpha1/info").await.problem(401);
    until_nothing_is_left(&first, person).await;
}
