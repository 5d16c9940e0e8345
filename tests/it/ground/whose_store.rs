//! Whose store is it? Whoever finds catalogue and store apart stops, and says what to do.

use super::{lose_catalogue, on, said};
use crate::harness::{Almanac, Backends, Setup, heart_rate, id, instant};

/// So many that they are an object when they are acknowledged.
const ROWS: u32 = 5_000;

fn records(value: u32) -> Vec<serde_json::Value> {
    (0..ROWS).map(|n| heart_rate(id(n), &instant(n), value)).collect()
}

/// That the server does not start, and why.
#[track_caller]
fn refuses(server: &Almanac, words: &[&str]) {
    let before = server.log().len();
    assert!(server.try_launch().is_err(), "it is served: {}", server.log());
    let log = server.log()[before..].to_owned();
    for word in words {
        assert!(log.contains(word), "{word} is not said: {log}");
    }
}

#[tokio::test]
async fn a_lost_catalogue_makes_garbage_of_nothing() {
    let server = super::flushing().start();
    let person = server.person();
    person.records("HeartRate", &records(1)).await;
    let objects = server.until_objects(1).await;
    server.stop();
    lose_catalogue(server.data_dir());
    let person_id = person.id.to_string();
    let copy = server.data_dir().join("copy").display().to_string();
    // The operator is not sent to make another catalogue, to which every object would be garbage.
    let sends_to_repair = |command: &[&str]| {
        let (text, status) = said(&server, command);
        assert!(
            status == Some(1) && text.contains("`almanac check --repair`") && !text.contains("almanac init"),
            "{command:?}: {text}"
        );
    };
    let needing_one = [
        &["users"][..],
        &["status"],
        &["token", "--user", &person_id],
        &["backup", &copy],
    ];
    for command in needing_one {
        sends_to_repair(command);
    }
    sends_to_repair(&["check"]);
    refuses(&server, &["check --repair", "ALMANAC_ADOPT_STORE"]);
    // What is left of that is no installation yet, so that nothing is put into it by mistake.
    for command in needing_one {
        sends_to_repair(command);
    }
    refuses(&server, &["ALMANAC_ADOPT_STORE"]);
    let (text, status) = said(&server, &["check"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(objects.iter().all(|path| path.exists()));
    let (text, status) = said(&server, &["check", "--repair"]);
    assert_eq!(status, Some(0), "{text}");
    server.launch();
    assert_eq!(
        on(&server, &person).all_samples("HeartRate").await.len(),
        ROWS as usize
    );
}

#[tokio::test]
async fn a_refused_start_spoils_no_catalogue_that_is_put_back() {
    let server = super::flushing().start();
    let person = server.person();
    person.records("HeartRate", &records(1)).await;
    server.until_objects(1).await;
    server.stop();
    let file = server.data_dir().join("catalogue.db");
    let away = server.data_dir().join("away.db");
    std::fs::rename(&file, &away).unwrap();
    refuses(&server, &["check --repair", "ALMANAC_ADOPT_STORE"]);
    let (text, status) = said(&server, &["init"]);
    assert_eq!(status, Some(1), "{text}");
    for beside in ["", "-wal", "-shm"] {
        let left = server.data_dir().join(format!("catalogue.db{beside}"));
        assert!(!left.exists(), "{} is left", left.display());
    }
    std::fs::rename(&away, &file).unwrap();
    server.launch();
    assert_eq!(person.all_samples("HeartRate").await.len(), ROWS as usize);
}

#[tokio::test]
async fn an_operator_who_knows_may_begin_anew_over_a_store_with_data() {
    let server = super::flushing().start();
    let person = server.person();
    person.records("HeartRate", &records(1)).await;
    let objects = server.until_objects(1).await;
    server.stop();
    lose_catalogue(server.data_dir());
    let anew = super::flushing()
        .in_dir(server.data_dir())
        .with("ALMANAC_ADOPT_STORE", "true")
        .start();
    assert_eq!(on(&anew, &person).all_samples("HeartRate").await.len(), 0);
    anew.stop();
    // Once is enough.
    server.launch();
    assert!(objects.iter().all(|path| path.exists()));
}

#[tokio::test]
async fn two_installations_do_not_share_a_store() {
    for backends in Backends::available() {
        let one = super::flushing().on(backends.clone()).start();
        one.person().records("HeartRate", &records(1)).await;
        one.stop();
        let Some(other) = Backends::available()
            .into_iter()
            .find(|other| other.settings().len() == backends.settings().len())
        else {
            continue;
        };
        // Another catalogue, the same objects.
        let store = match backends.setting("ALMANAC_OBJECT_STORE") {
            "" => one.data_dir().join("objects").display().to_string(),
            store => store.to_owned(),
        };
        let stranger = Setup::default()
            .on(other.with("ALMANAC_OBJECT_STORE", &store))
            .prepare();
        refuses(&stranger, &["store", "ALMANAC_DATABASE_URL"]);
        // The same catalogue, other objects.
        let elsewhere = match backends.setting("ALMANAC_OBJECT_STORE") {
            "" => one.data_dir().join("elsewhere").display().to_string(),
            store => format!("{store}-elsewhere"),
        };
        let lost = Setup::default()
            .on(backends.with("ALMANAC_OBJECT_STORE", &elsewhere))
            .in_dir(one.data_dir())
            .prepare();
        refuses(&lost, &["store.json", "ALMANAC_OBJECT_STORE"]);
        one.launch();
    }
}

#[tokio::test]
async fn an_installation_from_before_there_were_identities_is_adopted() {
    let server = super::flushing().start();
    let person = server.person();
    person.records("HeartRate", &records(1)).await;
    server.until_objects(1).await;
    server.stop();
    let identity = server.data_dir().join("objects/store.json");
    std::fs::remove_file(&identity).unwrap();
    refuses(&server, &["store.json"]);
    super::tamper(&server, "DELETE FROM meta WHERE name = 'store:identity'").await;
    server.launch();
    assert!(identity.exists());
    assert_eq!(person.all_samples("HeartRate").await.len(), ROWS as usize);
}

#[tokio::test]
async fn a_damaged_identity_is_written_anew_by_a_repair() {
    let server = super::flushing().start();
    let person = server.person();
    person.records("HeartRate", &records(1)).await;
    server.until_objects(1).await;
    server.stop();
    let identity = server.data_dir().join("objects/store.json");
    let whole = std::fs::read(&identity).unwrap();
    std::fs::write(&identity, "").unwrap();
    let ways_out = ["store.json", "check --repair", "ALMANAC_ADOPT_STORE"];
    refuses(&server, &ways_out);
    let (text, status) = said(&server, &["check"]);
    assert!(
        status == Some(1) && ways_out.iter().all(|way| text.contains(way)),
        "{text}"
    );
    let (text, status) = said(&server, &["check", "--repair"]);
    assert!(
        status == Some(0) && text.contains("repair: store.json was written anew"),
        "{text}"
    );
    assert_eq!(std::fs::read(&identity).unwrap(), whole);
    server.launch();
    assert_eq!(person.all_samples("HeartRate").await.len(), ROWS as usize);
}
