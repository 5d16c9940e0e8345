//! `/data/v1`: the catalogue of all types, and what changed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Person, at, heart_rate, id, person, texts};

async fn catalog(person: &Person) -> Vec<Value> {
    person.get("/data/v1/catalog").await.must_be(200).rows()
}

#[tokio::test]
async fn every_entry_has_the_published_fields() {
    let person = person();
    for entry in catalog(&person).await {
        for name in ["column_name", "description", "svc_userid", "id", "name"] {
            assert!(entry[name].is_string(), "{name} of {entry}");
        }
        assert!(entry["categories"].is_array(), "{entry}");
        assert!(
            matches!(
                entry["class"].as_str(),
                Some("metric" | "event" | "location" | "entry" | "tombstone")
            ),
            "{entry}"
        );
        assert!(
            matches!(entry["api_version"].as_str(), Some("v0" | "v1alpha1" | "v1")),
            "{entry}"
        );
        assert!(
            matches!(
                entry["metric_kind"].as_str(),
                Some("cumulative" | "discrete") | None
            ),
            "{entry}"
        );
        assert!(entry["unit"].is_string() || entry["unit"].is_null(), "{entry}");
        assert_eq!(entry["svc_userid"], json!(person.id), "{entry}");
        for name in ["queryable", "recordable", "deprecated"] {
            assert!(
                entry[name].is_boolean() || entry[name].is_null(),
                "{name} of {entry}"
            );
        }
    }
}

#[tokio::test]
async fn class_and_record_spec_agree() {
    for entry in catalog(&person()).await {
        let (class, spec) = (
            entry["class"].as_str().unwrap(),
            entry["record_spec"]["type"].as_str().unwrap_or_default(),
        );
        if class == "entry" {
            // The interface names no variant of the specification for entries.
            assert!(matches!(spec, "entry" | "event"), "{entry}");
        } else {
            assert_eq!(class, spec, "{entry}");
        }
        if class == "metric" {
            assert!(
                matches!(
                    entry["record_spec"]["aggregation"].as_str(),
                    Some("cumulative" | "discrete")
                ),
                "{entry}"
            );
        }
    }
}

#[tokio::test]
async fn rule_6_3_metrics_catalog_and_the_v0_metrics_of_the_catalogue_are_the_same() {
    let person = person();
    let metrics: BTreeSet<String> = texts(
        &person.get("/data/v0/metrics_catalog").await.must_be(200).rows(),
        "name",
    )
    .into_iter()
    .collect();
    let entries = catalog(&person).await;
    let entries: Vec<Value> = entries
        .into_iter()
        .filter(|entry| entry["class"] == json!("metric") && entry["api_version"] == json!("v0"))
        .collect();
    let ids: BTreeSet<String> = texts(&entries, "id").into_iter().collect();
    assert_eq!(ids, metrics);
    let columns: BTreeSet<String> = texts(&entries, "column_name").into_iter().collect();
    assert_eq!(columns.len(), entries.len(), "two metrics share a value column");
}

#[tokio::test]
async fn the_types_beside_the_metrics_are_there() {
    let entries = catalog(&person()).await;
    let ids: BTreeSet<String> = texts(&entries, "id").into_iter().collect();
    for id in [
        "MomentAnnotation",
        "DurationAnnotation",
        "BooleanAnnotation",
        "NumericAnnotation",
        "ScaleAnnotation",
        "PeopleAnnotation",
        "Event",
        "Metric",
        "DeletedRecord",
        "PlatformWorkout",
        "PlatformLocationUpdate",
        "PlatformLocationVisit",
        "MapsLocationUpdate",
        "CalendarEvent",
        "Calendar",
        "Note",
        "StateOfMind",
        "MedicationDose",
        "ClinicalDocument",
        "FileInput",
    ] {
        assert!(ids.contains(id), "{id} is missing");
    }
    assert_eq!(ids.len(), entries.len(), "an id is listed twice");
}

#[tokio::test]
async fn what_is_not_queryable_has_no_records_to_read_and_everything_else_has() {
    let person = person();
    let mut unreadable = Vec::new();
    for entry in catalog(&person).await {
        let id = entry["id"].as_str().unwrap();
        let kind = if entry["class"] == json!("metric") {
            "metric"
        } else {
            "event"
        };
        let is_queryable = entry["queryable"] == json!(true);
        let status = if is_queryable { 200 } else { 404 };
        person
            .get(&format!("/data/v1alpha1/{kind}/{id}"))
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
            .await
            .must_be(status);
        if !is_queryable {
            unreadable.push(id.to_owned());
        }
    }
    unreadable.sort();
    assert_eq!(unreadable, ["DeletedRecord", "FileInput"]);
    for id in unreadable {
        person
            .get(&format!("/data/v1alpha1/event/{id}/agg/day"))
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
            .await
            .must_be(404);
        person.get("/data/v1/records").with("q", &id).await.must_be(404);
        person
            .metric_samples(&id, "2024-05-01", "2024-05-02")
            .await
            .must_be(404);
    }
    for table in ["deleted_record", "file_input"] {
        let query = json!({"query": format!("SELECT * FROM {table}"), "output": "jstable"});
        person.post("/data/v1/sql", &query).await.faults();
    }
}

#[tokio::test]
async fn data_type_selects_one_and_a_name_of_nothing_is_404() {
    let person = person();
    let one = person
        .get("/data/v1/catalog")
        .with("data_type", "HeartRate")
        .await
        .must_be(200)
        .rows();
    assert_eq!(texts(&one, "id"), ["HeartRate"]);
    for (listed, ids) in [
        ("HeartRate,HeartRate", &["HeartRate"][..]),
        (
            "AppleWatchMoveTime,HeartRate,WatchMoveTime",
            &["WatchMoveTime", "HeartRate"],
        ),
    ] {
        let call = person.get("/data/v1/catalog").with("data_type", listed);
        assert_eq!(texts(&call.await.must_be(200).rows(), "id"), ids, "{listed}");
        let names = listed.split(',');
        let call = names.fold(person.get("/data/v1/catalog"), |call, name| {
            call.with("data_type", name)
        });
        assert_eq!(texts(&call.await.must_be(200).rows(), "id"), ids, "{listed}");
    }
    person
        .get("/data/v1/catalog")
        .with("data_type", "NoSuchType")
        .await
        .problem(404);
    let unknown = format!("Event/{}", Uuid::new_v4());
    person
        .get("/data/v1/catalog")
        .with("data_type", &unknown)
        .await
        .problem(404);
}

#[tokio::test]
async fn category_selects_the_types_of_that_category_alone() {
    let person = person();
    let all = catalog(&person).await;
    for category in [
        "annotations",
        "location",
        "mindfulness",
        "base_type",
        "healthkit",
        "sleep",
    ] {
        let some = person
            .get("/data/v1/catalog")
            .with("category", category)
            .await
            .must_be(200)
            .rows();
        let expected: Vec<&Value> = all
            .iter()
            .filter(|entry| entry["categories"].as_array().unwrap().contains(&json!(category)))
            .collect();
        assert!(!expected.is_empty(), "no type is of the category {category}");
        assert_eq!(some.iter().collect::<Vec<_>>(), expected, "{category}");
    }
    let unknown = person
        .get("/data/v1/catalog")
        .with("category", "sleep,dreams")
        .with("svc_userid", "nobody")
        .await;
    assert_eq!(unknown.faults(), ["query.category", "query.svc_userid"]);
    assert!(unknown.text().contains("user_configured, shared_type, base_type"));
}

#[tokio::test]
async fn one_type_is_read_by_its_id_and_version() {
    let person = person();
    for entry in catalog(&person).await {
        let (id, version) = (
            entry["id"].as_str().unwrap(),
            entry["api_version"].as_str().unwrap(),
        );
        let one = person
            .get(&format!("/data/v1/catalog/{id}/{version}"))
            .await
            .must_be(200)
            .json();
        for name in ["id", "api_version", "class", "name", "categories"] {
            assert_eq!(one[name], entry[name], "{id}");
        }
    }
    person.get("/data/v1/catalog/NoSuchType/v0").await.problem(404);
    let reply = person.get("/data/v1/catalog/HeartRate/v9").await;
    assert!(matches!(reply.status, 404 | 422), "{reply}");
}

#[tokio::test]
async fn rule_6_3_every_schema_is_valid_and_accepts_its_own_examples() {
    let person = person();
    for entry in catalog(&person).await {
        let (id, version) = (
            entry["id"].as_str().unwrap(),
            entry["api_version"].as_str().unwrap(),
        );
        let schema = person
            .get(&format!("/data/v1/catalog/{id}/{version}/schema"))
            .await
            .must_be(200)
            .json();
        assert_eq!(
            schema["$schema"],
            json!("https://json-schema.org/draft/2020-12/schema"),
            "{id}"
        );
        assert!(jsonschema::meta::is_valid(&schema), "the schema of {id} is none");
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        for example in schema["examples"].as_array().unwrap_or(&Vec::new()) {
            let errors: Vec<String> = validator
                .iter_errors(example)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{id}: {errors:?} in {example}");
        }
        if entry["recordable"] == json!(true) {
            assert!(
                schema["examples"]
                    .as_array()
                    .is_some_and(|examples| !examples.is_empty()),
                "{id} has no example"
            );
        }
    }
}

#[tokio::test]
async fn data_types_lists_what_the_catalogue_lists() {
    let person = person();
    let listed = person.get("/data/v1alpha1/data_types").await.must_be(200).rows();
    for entry in &listed {
        assert!(
            entry["category"].is_array() && entry["description"].is_string() && entry["name"].is_string(),
            "{entry}"
        );
        assert!(entry["class"].is_string() || entry["class"].is_null(), "{entry}");
    }
    assert!(texts(&listed, "name").contains(&"HeartRate".to_owned()));
}

#[tokio::test]
async fn updates_count_by_type_and_list_files() {
    let person = person();
    let before = person
        .get("/data/v1/updates")
        .with("start_time", "2020-01-01")
        .with("end_time", "2999-01-01")
        .await
        .must_be(200)
        .json();
    assert_eq!(
        (&before["data_types"], &before["file_changes"]),
        (&json!({}), &json!([]))
    );
    person.two_heart_rates().await;
    person
        .record("MomentAnnotation", &json!({"recorded_at": at("10:00")}))
        .await
        .upload();
    assert_eq!(
        person.all_updates().await,
        json!({"HeartRate": 2, "MomentAnnotation": 1})
    );
}

/// A moment by its seconds since 1970.
fn utc(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap();
    chrono::DateTime::from_timestamp(seconds, 0).unwrap().to_rfc3339()
}

#[tokio::test]
async fn rule_8_5_updates_range_over_the_time_of_acceptance() {
    let person = person();
    let before = crate::harness::now();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let of_the_sample = person
        .get("/data/v1/updates")
        .with("start_time", "2024-05-01")
        .with("end_time", "2024-05-02")
        .await
        .must_be(200)
        .json();
    assert_eq!(of_the_sample["data_types"], json!({}));
    let of_the_acceptance = person
        .get("/data/v1/updates")
        .with("start_time", &utc(before))
        .with("end_time", &utc(crate::harness::now() + 1))
        .await
        .must_be(200)
        .json();
    assert_eq!(of_the_acceptance["data_types"], json!({"HeartRate": 1}));
    let inverted = person
        .get("/data/v1/updates")
        .with("start_time", "2024-05-02")
        .with("end_time", "2024-05-01")
        .await;
    inverted.faults();
    person.get("/data/v1/updates").await.faults();
}

#[tokio::test]
async fn rule_8_5_updates_up_to_now_have_what_was_just_accepted() {
    let person = person();
    let before = crate::harness::now();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let reply = person
        .get("/data/v1/updates")
        .with("start_time", &utc(before))
        .with("end_time", &utc(crate::harness::now() + 1))
        .await
        .must_be(200);
    assert_eq!(reply.json()["data_types"], json!({"HeartRate": 1}));
}

#[tokio::test]
async fn rule_0_2_updates_of_an_empty_range_are_none_wherever_in_a_minute_it_lies() {
    let person = person();
    let before = crate::harness::now();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let after = crate::harness::now();
    for minute in [before / 60 * 60, after / 60 * 60] {
        for second in [0, 1, 30, 59] {
            let moment = utc(minute + second);
            let reply = person
                .get("/data/v1/updates")
                .with("start_time", &moment)
                .with("end_time", &moment)
                .await
                .must_be(200);
            assert_eq!(
                reply.json(),
                json!({"data_types": {}, "file_changes": []}),
                "{moment}"
            );
        }
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_with_its_place() {
    let person = person();
    for (path, place) in [
        ("/data/v0/%ff/metric_samples?metric=HeartRate", "path.svc_userid"),
        ("/data/v0/%ff/sleep_cycles", "path.svc_userid"),
        ("/data/v1/catalog/%ff/v0", "path.data_type"),
        ("/data/v1/catalog/HeartRate/%ff/schema", "path.api_version"),
        ("/data/v1alpha1/event/%ff", "path.data_type"),
        ("/data/v1alpha1/metric/HeartRate/agg/%ff", "path.resolution"),
        ("/input/v1/data_type/Event/%ff", "path.id"),
    ] {
        assert_eq!(person.get(path).await.faults(), [place], "{path}");
    }
    assert_eq!(
        person.record("%ff", &json!({})).await.faults(),
        ["path.data_type"]
    );
    assert_eq!(
        person.post("/input/v1/data_type/%ff", &json!({})).await.faults(),
        ["path.base"]
    );
}

#[tokio::test]
async fn another_persons_own_types_are_not_in_the_catalogue() {
    let (one, other) = (person(), person());
    let own = one.define("Event", &json!({"name": "Secret"})).await;
    assert!(catalog(&one).await.iter().any(|entry| entry["id"] == json!(own)));
    assert!(
        !catalog(&other)
            .await
            .iter()
            .any(|entry| entry["id"] == json!(own))
    );
    let reply = other.get("/data/v1/catalog").with("data_type", &own).await;
    assert!(matches!(reply.status, 403 | 404), "{reply}");
    let reply = other
        .get("/data/v1/catalog")
        .with("svc_userid", &one.id.to_string())
        .await;
    assert_eq!(reply.status, 403, "{reply}");
}
