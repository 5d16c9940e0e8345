//! Every type of the catalogue: what can be recorded comes back, and what came back can be recorded again
//! without changing anything.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::harness::{ALL_TIME, Person, at, id, person};

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

#[tokio::test]
async fn rule_8_2_a_record_of_a_base_is_no_change_with_the_columns_of_a_definition() {
    let person = person();
    for (base, class) in [("Event", "event"), ("Metric", "metric")] {
        let definition = json!({
            "name": format!("Own {base}"),
            "record_spec": {"schema": {"properties": {"n": {"type": "number"}}}},
        });
        person.define(base, &definition).await;
        let sent = [
            json!({"id": id(1), "start_time": at("10:00"), "value": 2, "hello": "w"}),
            json!({"id": id(2), "start_time": at("10:01"), "value": 2, "n": 5}),
        ];
        person.records(base, &sent).await;
        let rows = person.rows(class, base).await;
        assert_eq!(rows.len(), sent.len());
        for row in &rows {
            assert_eq!(row.get("n"), Some(&Value::Null), "{row}");
            assert_eq!(person.record(base, row).await.counts(), [0, 0, 1, 0], "{row}");
        }
        assert_eq!(person.rows(class, base).await, rows);
    }
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
        let table = crate::harness::Table::read("csv", &csv.body);
        assert_eq!(table.rows.len(), rows.len(), "{id}");
        let columns: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
        assert_eq!(table.columns.iter().collect::<Vec<_>>(), columns, "{id}");
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

/// What a record may bring besides what its example shows.
#[derive(Clone, Debug)]
struct Baggage {
    tags: Option<Vec<String>>,
    sources: Option<Vec<String>>,
    version: Value,
    extras: Map<String, Value>,
}

fn baggage() -> impl Strategy<Value = Baggage> {
    let texts = || prop::option::of(prop::collection::vec("[a-z\"\\\\ é]{0,6}", 0..3));
    let version = prop_oneof![
        prop::collection::vec(0..30_u32, 1..4).prop_map(|numbers| json!(numbers)),
        "[0-9]{1,2}\\.[0-9]{1,2}".prop_map(Value::from),
        Just(json!("Version 17.5 (Build 21F90)")),
        Just(json!("beta")),
        Just(Value::Null),
    ];
    let value = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,5}".prop_map(Value::from),
        Just(json!({"deep": [1.5, null]})),
    ];
    let extras = prop::collection::btree_map("mood|weather|tags_of_mine", value, 0..3);
    (texts(), texts(), version, extras).prop_map(|(tags, sources, version, extras)| Baggage {
        tags,
        sources,
        version,
        extras: extras.into_iter().collect(),
    })
}

impl Baggage {
    fn packed(&self, schema: &Value, example: &Value) -> Value {
        let mut record = example.clone();
        let declared = |name: &str| !schema["properties"][name].is_null();
        for (name, texts) in [("tags", &self.tags), ("sources", &self.sources)] {
            if declared(name) {
                record[name] = json!(texts);
            }
        }
        if record["source_properties"].is_object() {
            record["source_properties"]["operatingSystemVersion"] = self.version.clone();
        }
        if declared("extras") {
            record["extras"] = Value::Object(self.extras.clone());
        }
        record
    }
}

/// The member that holds the id of a record.
fn id_of(schema: &Value) -> String {
    let properties = schema["properties"].as_object().unwrap();
    let found = properties.iter().find(|(_, property)| property["x-role"] == "id");
    found.map_or("id", |(name, _)| name).to_owned()
}

/// Whatever a record of a built-in type brings along: its row, sent under a new id, reads as the row does.
#[test]
fn what_is_read_and_sent_under_a_new_id_reads_the_same() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config::with_cases(4));
    let checked = runner.run(&baggage(), |baggage| {
        runtime.block_on(sent_again(&baggage));
        Ok(())
    });
    checked.unwrap();
}

async fn sent_again(baggage: &Baggage) {
    let person = person();
    for entry in recordable_types(&person).await {
        let (name, version) = (
            entry["id"].as_str().unwrap(),
            entry["api_version"].as_str().unwrap(),
        );
        let path = format!("/data/v1/catalog/{name}/{version}/schema");
        let schema = person.get(&path).await.must_be(200).json();
        let id = id_of(&schema);
        let records: Vec<Value> = schema["examples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|example| baggage.packed(&schema, example))
            .collect();
        person.records(name, &records).await;
        let rows = person.rows(class_of(&entry), name).await;
        let again: Vec<Value> = rows
            .iter()
            .map(|row| {
                let mut row = row.clone();
                row[&id] = json!(Uuid::now_v7());
                row
            })
            .collect();
        person.records(name, &again).await;
        let read = person.rows(class_of(&entry), name).await;
        assert_eq!(read.len(), 2 * rows.len(), "{name}");
        for sent in &again {
            let found = read.iter().find(|row| row[&id] == sent[&id]);
            assert_eq!(found, Some(sent), "{name}");
        }
    }
}

#[tokio::test]
async fn a_version_is_read_as_its_numbers_however_it_was_sent() {
    let person = person();
    let sample = |n: u32, version: Value| {
        json!({"uuid": id(n), "start_date": at("10:00"), "value": 60,
            "source_properties": {"name": "Watch", "operatingSystemVersion": version}})
    };
    let cases = [
        (json!([17, 2, 0]), json!([17, 2, 0])),
        (json!("17.2"), json!([17, 2])),
        (json!("Version 17.5.1 (Build 21F90)"), json!([17, 5, 1])),
        (json!("beta"), Value::Null),
        (Value::Null, Value::Null),
    ];
    let records: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(n, (sent, _))| sample(n as u32, sent.clone()))
        .collect();
    person.records("HeartRate", &records).await;
    let rows = person.all_samples("HeartRate").await;
    for (row, (sent, read)) in rows.iter().zip(&cases) {
        assert_eq!(
            &row["source_properties"]["operatingSystemVersion"], read,
            "{sent}"
        );
    }
    let found = person
        .read("metric", "HeartRate")
        .with("filter", "source_properties.operatingSystemVersion:2")
        .await
        .must_be(200)
        .rows();
    assert_eq!(found.len(), 2, "what is read is what is compared");
    let path = "/data/v1/catalog/HeartRate/v0/schema";
    let schema = person.get(path).await.must_be(200).json();
    let published = jsonschema::draft202012::new(&schema).expect("a schema");
    for record in &records {
        assert!(published.is_valid(record), "{record}");
    }
    for (version, place) in [
        (json!([17, -1]), "body.source_properties.operatingSystemVersion.1"),
        (json!(["17"]), "body.source_properties.operatingSystemVersion.0"),
        (json!([]), "body.source_properties.operatingSystemVersion"),
        (
            json!(vec![1; 17]),
            "body.source_properties.operatingSystemVersion",
        ),
        (
            json!([u64::MAX]),
            "body.source_properties.operatingSystemVersion.0",
        ),
        (json!(17.2), "body.source_properties.operatingSystemVersion"),
    ] {
        let refused = person.record("HeartRate", &sample(9, version.clone())).await;
        assert_eq!(refused.faults(), [place], "{version}");
        assert!(!published.is_valid(&sample(9, version.clone())), "{version}");
    }
}

#[tokio::test]
async fn tags_and_sources_of_samples_are_read_among_the_extras_and_taken_from_there() {
    let person = person();
    let sample = json!({
        "uuid": id(1), "start_date": at("10:00"), "value": 60,
        "tags": ["calm"], "sources": ["com.example"], "extras": {"context": "sitting"},
    });
    person.record("HeartRate", &sample).await.upload();
    let rows = person.all_samples("HeartRate").await;
    let extras = json!({"context": "sitting", "tags": ["calm"], "sources": ["com.example"]});
    assert_eq!(rows[0]["extras"], extras);
    let mut again = rows[0].clone();
    again["uuid"] = json!(id(2));
    person.record("HeartRate", &again).await.upload();
    let tagged = person
        .read("metric", "HeartRate")
        .with("filter", "tags:calm")
        .await
        .must_be(200)
        .rows();
    assert_eq!(tagged.len(), 2, "they are tags again, and not extras");
    assert_eq!(tagged[1]["extras"], extras);
}

#[tokio::test]
async fn severities_of_another_list_become_those_of_the_catalogue() {
    let person = person();
    let sample = |n: u32, code: f64| {
        json!({
            "uuid": id(n), "start_date": at("10:00"), "value": code, "unit": "HKCategoryValueSeverity",
        })
    };
    let records: Vec<Value> = (0..5).map(|code| sample(code, f64::from(code))).collect();
    person.records("SymptomHeadache", &records).await;
    let rows = person.all_samples("SymptomHeadache").await;
    let read: Vec<(f64, bool)> = rows
        .iter()
        .map(|row| {
            (
                row["value"].as_f64().unwrap(),
                row["extras"]["not_present"] == json!(true),
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            (0.0, false),
            (0.0, true),
            (1.0, false),
            (2.0, false),
            (3.0, false)
        ]
    );
    assert_eq!(rows[1]["unit"], "severity");
    for code in [5.0, 1.5, -1.0] {
        let refused = person.record("SymptomHeadache", &sample(9, code)).await;
        assert_eq!(refused.faults(), ["body.value"], "{code}");
    }
}

#[tokio::test]
async fn ketones_are_told_by_mass_and_by_amount() {
    let person = person();
    let sample = json!({"start_date": at("10:00"), "value": 10.4105, "unit": "mg/dL"});
    person.record("BloodKetones", &sample).await.upload();
    let rows = person.all_samples("BloodKetones").await;
    assert!(
        (rows[0]["value"].as_f64().unwrap() - 1.0).abs() < 1e-9,
        "{}",
        rows[0]
    );
}
