//! A live annotation is a data type; a deleted one is none.

use serde_json::{Value, json};

use super::{at, cancel_deletion, create, delete, duration, moment, numeric, people, scale, type_of, yes_no};
use crate::harness::{Person, id, person};

async fn own_entries(person: &Person) -> Vec<Value> {
    let entries = person.get("/data/v1/catalog").await.must_be(200).rows();
    let is_own = |entry: &Value| entry["id"].as_str().is_some_and(|id| id.contains('/'));
    entries.into_iter().filter(is_own).collect()
}

#[tokio::test]
async fn a_live_annotation_is_an_entry_of_the_catalogue() {
    let person = person();
    let mut expected = Vec::new();
    for (body, class) in [
        (moment("a"), "event"),
        (duration("b"), "event"),
        (people("c"), "event"),
        (yes_no("d"), "metric"),
        (numeric("e"), "metric"),
        (scale("f"), "metric"),
    ] {
        let annotation = create(&person, &body).await;
        expected.push((type_of(&annotation), annotation["name"].clone(), class));
    }
    let entries = own_entries(&person).await;
    for (entry, (data_type, name, class)) in entries.iter().zip(&expected) {
        assert_eq!((&entry["id"], &entry["name"]), (&json!(data_type), name));
        assert_eq!(
            (&entry["class"], &entry["record_spec"]["type"]),
            (&json!(class), &json!(class))
        );
        assert_eq!(entry["api_version"], json!("v1alpha1"));
        assert_eq!(entry["categories"], json!(["annotations", "user_configured"]));
        assert_eq!(entry["svc_userid"], json!(person.id));
        assert_eq!(
            (&entry["recordable"], &entry["queryable"]),
            (&json!(true), &json!(true))
        );
    }
    assert_eq!(entries.len(), expected.len());
    assert_eq!(
        (&entries[4]["unit"], &entries[4]["metric_kind"]),
        (&json!("cups"), &json!("discrete"))
    );
    assert_eq!(entries[4]["record_spec"]["unit"], json!("cups"));
    assert_eq!(entries[5]["record_spec"]["scale"], json!({"min": 1, "max": 5}));
    assert_eq!(
        entries[5]["record_spec"]["value_map"],
        json!({"1": "bad", "5": "good"})
    );
    assert_eq!(entries[3]["record_spec"]["scale"], Value::Null);
    let configured = person
        .get("/data/v1/catalog")
        .with("category", "user_configured")
        .await
        .must_be(200)
        .rows();
    assert_eq!(configured, entries);
    let listed = person.get("/data/v1alpha1/data_types").await.must_be(200).rows();
    for (data_type, ..) in &expected {
        assert!(
            listed.iter().any(|entry| entry["name"] == json!(data_type)),
            "{data_type}"
        );
        let found = person
            .get("/data/v1/catalog")
            .with("data_type", data_type)
            .await
            .must_be(200)
            .rows();
        assert_eq!(found.len(), 1, "{data_type}");
        for address in [data_type.clone(), data_type.replace('/', "%2F")] {
            let entry = person
                .get(&format!("/data/v1/catalog/{address}/v1alpha1"))
                .await
                .must_be(200)
                .json();
            assert_eq!(entry["id"], json!(data_type));
            let path = format!("/data/v1/catalog/{address}/v1alpha1/schema");
            let schema = person.get(&path).await.must_be(200).json();
            assert_eq!(schema["title"], entry["name"]);
            assert!(schema["properties"]["recorded_at"].is_object(), "{schema}");
        }
        person
            .get(&format!("/data/v1/catalog/{data_type}/v1"))
            .await
            .problem(404);
    }
}

#[tokio::test]
async fn a_deleted_annotation_is_no_entry_until_it_is_had_back() {
    let person = person();
    let annotation = create(&person, &moment("a")).await;
    let data_type = type_of(&annotation);
    delete(&person, &annotation).await;
    assert!(own_entries(&person).await.is_empty());
    let addresses = [
        format!("/data/v1/catalog?data_type={data_type}"),
        format!("/data/v1/catalog/{data_type}/v1alpha1"),
        format!("/data/v1/catalog/{data_type}/v1alpha1/schema"),
    ];
    for address in &addresses {
        person.get(address).await.problem(404);
    }
    cancel_deletion(&person, &annotation).await;
    for address in &addresses {
        person.get(address).await.must_be(200);
    }
    let mut renamed = annotation.clone();
    renamed["name"] = json!("b");
    person.put(&at(&annotation), &renamed).await.must_be(200);
    assert_eq!(own_entries(&person).await[0]["name"], json!("b"));
}

#[tokio::test]
async fn what_is_nobodys_annotation_or_somebody_elses_is_no_entry() {
    let (owner, stranger) = (person(), person());
    let annotation = create(&owner, &moment("a")).await;
    let of_another_base = type_of(&annotation).replace("Moment", "Duration");
    owner
        .get(&format!("/data/v1/catalog/{of_another_base}/v1alpha1"))
        .await
        .problem(404);
    owner
        .get(&format!("/data/v1/catalog/MomentAnnotation/{}/v1alpha1", id(1)))
        .await
        .problem(404);
    let path = format!("/data/v1/catalog/{}/v1alpha1", type_of(&annotation));
    stranger.get(&path).await.problem(404);
    stranger
        .get(&path)
        .with("svc_userid", &owner.id.to_string())
        .await
        .problem(403);
    assert!(own_entries(&stranger).await.is_empty());
}
