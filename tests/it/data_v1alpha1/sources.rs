//! `data_available` and `data_sources`.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{ALL_TIME, at, heart_rate, id, person, steps};

#[tokio::test]
async fn data_available_names_the_types_that_have_data_in_the_range() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
        .records(
            "StepCount",
            &[steps(id(1), "2023-01-01T10:00:00Z", "2023-01-01T10:05:00Z", 5)],
        )
        .await;
    let within = |start: &str, end: &str| {
        person
            .get("/data/v1alpha1/data_available")
            .with("start_time", start)
            .with("end_time", end)
    };
    let day = within("2024-05-01", "2024-05-02").await.must_be(200);
    assert!(
        day.text().contains("HeartRate") && !day.text().contains("StepCount"),
        "{day}"
    );
    assert!(day.json().is_array(), "{day}");
    let all = within(ALL_TIME.0, ALL_TIME.1).await.must_be(200);
    assert!(
        all.text().contains("HeartRate") && all.text().contains("StepCount"),
        "{all}"
    );
    let none = within("2020-01-01", "2020-01-02").await.must_be(200);
    assert!(!none.text().contains("HeartRate"), "{none}");
    within("2024-05-02", "2024-05-01").await.faults();
    person.get("/data/v1alpha1/data_available").await.faults();
}

#[tokio::test]
async fn a_deleted_record_is_not_available() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person.delete("HeartRate", id(1)).await;
    let reply = person
        .get("/data/v1alpha1/data_available")
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1)
        .await
        .must_be(200);
    assert!(!reply.text().contains("HeartRate"), "{reply}");
}

#[tokio::test]
async fn rule_1_4e_sources_have_stable_ids_and_belong_to_one_person() {
    let (person_, other) = (person(), person());
    let from = |n: u32, bundle: &str, product: &str| {
        let mut record = heart_rate(id(n), &at("10:00"), 60);
        record["source_properties"] = json!({
            "name": format!("Name of {bundle}"), "productType": product, "sourceBundleIdentifier": bundle,
        });
        record
    };
    assert!(person_.sources().await.is_empty());
    person_
        .records(
            "HeartRate",
            &[
                from(1, "com.example.health", "Watch6,1"),
                from(2, "com.example.health", "iPhone14,2"),
                from(3, "com.example.health", "Watch6,1"),
            ],
        )
        .await;
    let sources = person_.sources().await;
    assert_eq!(sources.len(), 2, "{sources:?}");
    for source in &sources {
        Uuid::parse_str(source["id"].as_str().unwrap()).unwrap();
        assert!(source["vendor_id"].is_string(), "{source}");
        for name in ["metadata", "name", "parent_id"] {
            assert!(source.get(name).is_some(), "no {name} in {source}");
        }
    }
    person_
        .records("StepCount", &[from(9, "com.example.health", "Watch6,1")])
        .await;
    let again: Vec<Value> = person_.sources().await;
    assert_eq!(again, sources, "the same sources, with the same ids");
    assert!(other.sources().await.is_empty());
}
