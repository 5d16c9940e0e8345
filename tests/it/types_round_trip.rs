//! Every type of the catalogue: what can be recorded comes back, and what came back can be recorded again
//! without changing anything.

use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Person, person};

/// The read that shows a type's records.
fn class_of(entry: &Value) -> &'static str {
    if entry["class"] == json!("metric") {
        "metric"
    } else {
        "event"
    }
}

async fn recordable_types(person: &Person) -> Vec<Value> {
    let entries = person.get("/data/v1/catalog").await.must_be(200).rows();
    entries
        .into_iter()
        .filter(|entry| entry["recordable"] == json!(true) && entry["class"] != json!("tombstone"))
        .collect()
}

async fn examples(person: &Person, entry: &Value) -> Vec<Value> {
    let (id, version) = (
        entry["id"].as_str().unwrap(),
        entry["api_version"].as_str().unwrap(),
    );
    let schema = person
        .get(&format!("/data/v1/catalog/{id}/{version}/schema"))
        .await
        .must_be(200)
        .json();
    schema["examples"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn what_is_read_can_be_written_back_and_is_no_change() {
    let (owner, stranger) = (person(), person());
    let mut read = Vec::new();
    for entry in recordable_types(&owner).await {
        let id = entry["id"].as_str().unwrap().to_owned();
        let examples = examples(&owner, &entry).await;
        assert!(!examples.is_empty(), "{id} has no example");
        for example in &examples {
            owner.record(&id, example).await.upload();
        }
        let rows = owner.rows(class_of(&entry), &id).await;
        assert!(
            !rows.is_empty() && rows.len() <= examples.len(),
            "{id}: {} rows of {} examples",
            rows.len(),
            examples.len()
        );
        for example in &examples {
            assert!(
                rows.iter().any(|row| shows(row, example)),
                "{id}: {example} is not among {rows:?}"
            );
        }
        let foreign = stranger
            .read(class_of(&entry), &id)
            .with("svc_userid", &owner.id.to_string())
            .await;
        assert_eq!(foreign.status, 403, "{foreign}");
        read.push((entry, rows));
    }
    let counted = owner.all_updates().await;
    for (entry, rows) in &read {
        let id = entry["id"].as_str().unwrap();
        for row in rows {
            owner.record(id, row).await.upload();
        }
        owner.records(id, rows).await;
        assert_eq!(&owner.rows(class_of(entry), id).await, rows, "{id} changed");
    }
    assert_eq!(
        owner.all_updates().await,
        counted,
        "something was written although nothing changed"
    );
}

/// Whether a row shows what the example said: the members that it had and that are no times, ids or units.
fn shows(row: &Value, example: &Value) -> bool {
    let told = example
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| value.is_number() || value.is_boolean());
    told.into_iter()
        .all(|(name, value)| match (row[name].as_f64(), value.as_f64()) {
            (Some(shown), Some(given)) => {
                (shown - given).abs() <= 1e-9 * given.abs()
                    || row["extras"].to_string().contains(name)
                    || row["extras"].to_string().contains("unit")
            }
            _ => &row[name] == value || row["extras"][name] == *value,
        })
}

#[tokio::test]
async fn every_type_reads_back_in_csv_too() {
    let person = person();
    for entry in recordable_types(&person).await {
        let id = entry["id"].as_str().unwrap();
        let examples = examples(&person, &entry).await;
        person.records(id, &examples).await;
        let rows = person.rows(class_of(&entry), id).await;
        let csv = person
            .read(class_of(&entry), id)
            .with("format", "csv")
            .await
            .must_be(200);
        let frame = crate::harness::Frame::read("csv", &csv.body);
        assert_eq!(frame.rows.len(), rows.len(), "{id}");
        let columns: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
        assert_eq!(frame.columns.iter().collect::<Vec<_>>(), columns, "{id}");
    }
}

#[tokio::test]
async fn every_metric_reads_back_as_raw_samples() {
    let person = person();
    for entry in recordable_types(&person)
        .await
        .iter()
        .filter(|entry| entry["class"] == json!("metric") && entry["api_version"] == json!("v0"))
    {
        let id = entry["id"].as_str().unwrap();
        person.records(id, &examples(&person, entry).await).await;
        let samples = person.samples(id, ALL_TIME.0, ALL_TIME.1).await;
        assert!(!samples.is_empty(), "{id}");
        for sample in samples {
            assert_eq!(sample["unit"], entry["unit"], "{id}: {sample}");
            assert!(sample["value"].is_number(), "{id}: {sample}");
        }
    }
}
