//! The store alone is enough: what `almanac check --repair` brings back.

use std::path::Path;

use serde_json::json;

use super::{lose_catalogue, on, said};
use crate::harness::{Backends, Setup, at, heart_rate, id, instant, steps};

#[tokio::test]
async fn a_lost_catalogue_costs_what_was_written_since_it_was_last_written_down() {
    for backends in Backends::available() {
        let server = super::flushing().on(backends.clone()).start();
        let person = server.person();
        let records: Vec<_> = (0..500).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
        person.records("HeartRate", &records).await;
        let own_type = person.define("Event", &json!({"name": "Tea"})).await;
        person
            .records(&own_type, &[json!({"id": id(1), "start_time": at("10:00")})])
            .await;
        person.delete("HeartRate", id(7)).await;
        person
            .records("HeartRate", &[heart_rate(id(8), &instant(8), 99)])
            .await;
        let before = person.all_samples("HeartRate").await;
        // Written down by a flush that began after all of it.
        let metric = "almanac_upkeep_manifests_total";
        let written = server.metrics().await.sum(&[metric]);
        server
            .until("no manifest is written", async || {
                let later = steps(uuid::Uuid::new_v4(), &at("10:00"), &at("10:05"), 1);
                person.records("StepCount", &[later]).await;
                server.metrics().await.sum(&[metric]) >= written + 2.0
            })
            .await;
        server.stop();
        // The catalogue is gone: another database, or none.
        let lost = match backends.setting("ALMANAC_OBJECT_STORE") {
            "" => {
                lose_catalogue(server.data_dir());
                backends
            }
            store => Backends::networked().unwrap().with("ALMANAC_OBJECT_STORE", store),
        };
        let repaired = Setup::default()
            .no_upkeep()
            .on(lost)
            .in_dir(server.data_dir())
            .prepare();
        let (text, status) = said(&repaired, &["check", "--repair"]);
        assert_eq!(status, Some(0), "{text}");
        assert!(
            text.contains(&format!("person {}: as of 20", person.id)),
            "{text}"
        );
        repaired.launch();
        let there = on(&repaired, &person);
        assert_eq!(there.all_samples("HeartRate").await, before);
        assert_eq!(there.rows("event", &own_type).await.len(), 1);
        assert!(
            there
                .get("/input/v1/data_type")
                .await
                .must_be(200)
                .text()
                .contains("Tea")
        );
        repaired.stop();
        let (text, status) = said(&repaired, &["check", "--repair"]);
        assert_eq!(status, Some(0), "a repair of what is whole does nothing: {text}");
        assert!(!text.contains("repair:"), "{text}");
    }
}

#[tokio::test]
async fn a_repair_on_a_new_machine_makes_a_directory_that_is_served() {
    let elsewhere = tempfile::tempdir().unwrap();
    let store = elsewhere.path().join("objects").display().to_string();
    let with_store = || Setup::default().with("ALMANAC_OBJECT_STORE", &store);
    with_store().start().stop();
    let anew = with_store().prepare();
    let (text, status) = said(&anew, &["check", "--repair"]);
    assert_eq!(status, Some(0), "{text}");
    anew.launch();
}

#[tokio::test]
async fn a_repair_that_is_killed_anywhere_is_continued_to_its_end() {
    let server = super::flushing().start();
    let mut people = Vec::new();
    for _ in 0..6 {
        let person = server.person();
        person
            .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
            .await;
        people.push(person);
    }
    let manifests =
        |person: &crate::harness::Person| server.data_dir().join(format!("objects/people/{}", person.id));
    server
        .until("somebody has no manifest", async || {
            people.iter().all(|person| manifests(person).exists())
        })
        .await;
    server.stop();
    lose_catalogue(server.data_dir());
    let repair = Setup::default().no_upkeep().in_dir(server.data_dir()).prepare();
    for delay in [10, 20, 30, 40, 60, 80, 120] {
        let mut child = repair
            .command(&["check", "--repair"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(delay)).await;
        drop(child.kill());
        child.wait().unwrap();
    }
    let (text, status) = said(&repair, &["check", "--repair"]);
    assert_eq!(status, Some(0), "{text}");
    repair.launch();
    for person in &people {
        assert_eq!(on(&repair, person).all_samples("HeartRate").await.len(), 1);
    }
}

/// Turns over one bit of the newest manifest in the folder of a person.
fn damage_newest(folder: &Path) {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let manifests = entries.filter(|path| path.to_string_lossy().ends_with(".json.zst"));
    let newest = manifests.max().unwrap();
    let mut content = std::fs::read(&newest).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&newest, content).unwrap();
}

#[tokio::test]
async fn a_damaged_manifest_is_replaced_beside_the_catalogue_and_told_where_that_is_lost() {
    let server = super::flushing().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    server
        .until("no manifest is written", async || {
            server.metrics().await.sum(&["almanac_upkeep_manifests_total"]) >= 1.0
        })
        .await;
    server.until_objects(1).await;
    server.stop();
    let folder = server.data_dir().join(format!("objects/people/{}", person.id));
    let at_rest = Setup::default().no_upkeep().in_dir(server.data_dir()).prepare();
    damage_newest(&folder);
    let (text, status) = said(&at_rest, &["check"]);
    assert!(
        status == Some(1) && text.contains("differs from what was written") && text.contains("--repair"),
        "{text}"
    );
    let (text, status) = said(&at_rest, &["check", "--repair"]);
    assert!(
        status == Some(0) && text.contains(&format!("repair: person {}: manifest", person.id)),
        "{text}"
    );
    let (text, status) = said(&at_rest, &["check"]);
    assert_eq!(status, Some(0), "{text}");
    // The new one is enough; without it, what it said is lost.
    lose_catalogue(server.data_dir());
    let (text, status) = said(&at_rest, &["check", "--repair"]);
    assert!(status == Some(0) && !text.contains("wrong:"), "{text}");
    lose_catalogue(server.data_dir());
    damage_newest(&folder);
    let (text, status) = said(&at_rest, &["check", "--repair"]);
    assert!(
        status == Some(1) && text.contains("wrong: left out: manifest"),
        "{text}"
    );
    at_rest.launch();
    assert_eq!(on(&at_rest, &person).all_samples("HeartRate").await.len(), 1);
}
