//! A tag names what is held, not a number that may come again.

use serde_json::json;

use super::on;
use crate::harness::{ALL_TIME, Setup, at, heart_rate, id};

#[tokio::test]
async fn after_a_restore_the_same_numbers_are_other_tags() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let home = tempfile::TempDir::new().unwrap();
    let copy = home.path().join("copy");
    assert!(server.run(&["backup", copy.to_str().unwrap()]).status.success());
    person
        .records("HeartRate", &[heart_rate(id(2), &at("11:00"), 70)])
        .await;
    let read = |person: &crate::harness::Person| person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1);
    let tag = read(&person)
        .await
        .must_be(200)
        .header("etag")
        .unwrap()
        .to_owned();
    read(&person).header("if-none-match", &tag).await.must_be(304);

    let restored = Setup::default().no_upkeep().in_dir(&copy).start();
    let there = on(&restored, &person);
    there
        .records("HeartRate", &[heart_rate(id(3), &at("12:00"), 80)])
        .await;
    let reply = read(&there).header("if-none-match", &tag).await.must_be(200);
    assert_ne!(reply.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn a_definition_that_changes_changes_the_tags_of_its_answers() {
    let person = crate::harness::person();
    let schema = |fields: &serde_json::Value| {
        json!({
            "name": "Tea", "record_spec": {"schema": {"properties": fields}},
        })
    };
    let own_type = person
        .define("Event", &schema(&json!({"kind": {"type": "string"}})))
        .await;
    let record = json!({"id": id(1), "start_time": at("10:00"), "kind": "green"});
    person.records(&own_type, &[record]).await;
    let tag = person
        .read("event", &own_type)
        .await
        .must_be(200)
        .header("etag")
        .unwrap()
        .to_owned();
    let fields = json!({"kind": {"type": "string"}, "cups": {"type": "integer"}});
    let changed = person
        .put(&format!("/input/v1/data_type/{own_type}"), &schema(&fields))
        .await;
    assert!((200..300).contains(&changed.status), "{changed}");
    let reply = person
        .read("event", &own_type)
        .header("if-none-match", &tag)
        .await
        .must_be(200);
    assert_ne!(reply.header("etag"), Some(tag.as_str()));
}
