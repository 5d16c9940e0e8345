//! Catalogues and listings in every form, and in the interface's own where none is asked for.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{METHODS, Person, Table, at, heart_rate, id, person};
use crate::sharing::{share, share_of};

/// Somebody with something in each listing.
async fn somebody() -> Person {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person.define("Event", &json!({"name": "Tea"})).await;
    person
        .post("/user/v1alpha1/tag", &json!({"name": "caffeine"}))
        .await;
    let annotation =
        json!({"annotation_type": "moment", "name": "Coffee", "description": "A cup", "tags": []});
    person.post("/user/v1alpha1/annotation", &annotation).await;
    person
}

fn listings(person: &Person) -> Vec<String> {
    vec![
        "/data/v0/metrics_catalog".to_owned(),
        format!("/data/v0/{}/sleep_stage_metadata", person.id),
        "/data/v1/catalog".to_owned(),
        "/data/v1alpha1/data_types".to_owned(),
        "/data/v1alpha1/data_sources".to_owned(),
        "/user/v1alpha1/annotation".to_owned(),
        "/user/v1alpha1/tag".to_owned(),
    ]
}

#[tokio::test]
async fn a_listing_has_the_same_rows_in_every_form() {
    let person = somebody().await;
    for path in listings(&person) {
        let plain = person.get(&path).await.must_be(200).rows();
        assert!(!plain.is_empty(), "{path}");
        for method in METHODS {
            let reply = person.get(&path).with("output", method).await.must_be(200);
            let table = Table::read(method, &reply.body);
            assert_eq!(table.rows.len(), plain.len(), "{path} as {method}");
            let first = plain[0].as_object().unwrap();
            for name in first.keys() {
                assert!(table.columns.contains(name), "{name} of {path} as {method}");
            }
            let known = reply.header("etag").expect("a tag").to_owned();
            let again = person.get(&path).with("output", method);
            again.header("if-none-match", &known).await.must_be(304);
        }
        let rows = person
            .get(&path)
            .with("output", "jstable")
            .await
            .must_be(200)
            .rows();
        for (plain, row) in plain.iter().zip(&rows) {
            for (name, value) in plain.as_object().unwrap() {
                assert!(is_alike(&row[name], value), "{name} of {path}: {row} is {plain}");
            }
        }
    }
}

/// A time has one moment and several spellings.
fn is_alike(one: &Value, other: &Value) -> bool {
    let moment = |value: &Value| {
        value
            .as_str()
            .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
    };
    one == other || (moment(one).is_some() && moment(one) == moment(other))
}

#[tokio::test]
async fn what_is_available_is_keyed_by_type_or_a_row_for_each() {
    let person = somebody().await;
    let ask = || {
        person
            .get("/data/v1alpha1/data_available")
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
    };
    let keyed = ask().await.must_be(200).json();
    assert_eq!(keyed[0]["HeartRate"]["count"], 1);
    let rows = ask().with("output", "jstable").await.must_be(200).rows();
    assert_eq!(
        rows,
        [json!({"data_type": "HeartRate", "start_time": at("10:00"), "end_time": at("10:00"), "count": 1})]
    );
    let reply = ask().with("output", "arrow").await.must_be(200);
    assert_eq!(Table::read("arrow", &reply.body).rows.len(), 1);
}

#[tokio::test]
async fn a_form_that_there_is_not_is_422_in_a_listing_too() {
    let person = person();
    for path in listings(&person) {
        let reply = person.call(Method::GET, &path).with("output", "xlsx").await;
        assert_eq!(reply.faults(), ["query.output"], "{path}");
    }
}

/// What stands for a parameter of a path, so that there is something behind it.
fn filled(path: &str, known: &HashMap<&str, String>) -> String {
    known.iter().fold(path.to_owned(), |path, (name, value)| {
        path.replace(&format!("{{{name}}}"), value)
    })
}

/// Answers that are no rows, and why each is none.
const DOCUMENTS: [(&str, &str); 12] = [
    (
        "/data/v1/catalog/{data_type}/{api_version}/schema",
        "a JSON Schema",
    ),
    ("/user/v1alpha1/schema/annotation", "a JSON Schema"),
    ("/user/v1alpha1/schema/measurement", "a JSON Schema"),
    ("/user/v1alpha1/preferences", "members that clients choose"),
    (
        "/user/v1/group/{group_id}/participants/{participant_id}/metadata",
        "members that the owner of the group chooses",
    ),
    (
        "/user/v1/group/.well-known/jwks.json",
        "keys, as their standard has them",
    ),
    ("/user/v1alpha1/export/{export_id}/content", "an archive"),
    ("/input/v1/file/{input_id}/download", "the bytes of a file"),
    ("/data/v1/frame/{ticket}/{answer}", "the bytes of a frame"),
    ("/health/live", "for what watches over the service"),
    ("/health/ready", "for what watches over the service"),
    ("/metrics", "for what watches over the service"),
];

/// Somebody of whom every route has something to tell, and what its path is to name.
async fn known() -> (Person, HashMap<&'static str, String>) {
    let person = somebody().await;
    let text = |reply: Value, member: &str| reply[member].as_str().expect("an id").to_owned();
    let own = person.get("/input/v1/data_type").await.must_be(200).rows();
    let own = own[0]["svc_data_type"].as_str().unwrap().to_owned();
    let tag = person
        .get("/user/v1alpha1/tag")
        .await
        .must_be(200)
        .rows()
        .swap_remove(0);
    let annotation = person
        .get("/user/v1alpha1/annotation")
        .await
        .must_be(200)
        .rows()
        .swap_remove(0);
    let reflection = json!({"name": "Evening", "schedule": {"cron": "0 20 * * *", "start_at": null,
        "end_at": null, "paused": false, "time_zone": "UTC"}});
    let reflection = person
        .post("/user/v1alpha1/reflection", &reflection)
        .await
        .must_be(201)
        .json();
    let other = crate::harness::person();
    let share = share(&person, &share_of(&["HeartRate"], &other)).await;
    let group = json!({"title": "Walkers", "svc_data_types": ["HeartRate"], "is_public": true});
    let group = text(
        person.post("/user/v1/group", &group).await.must_be(201).json()["group"].clone(),
        "group_id",
    );
    let member = text(
        other
            .call(Method::POST, &format!("/user/v1/group/{group}/membership"))
            .await
            .must_be(200)
            .json(),
        "participant_id",
    );
    let session = person
        .post("/user/v1alpha1/session", &json!({"name": "a dashboard"}))
        .await
        .must_be(201)
        .json();
    let export = person
        .call(Method::POST, "/user/v1alpha1/export")
        .await
        .must_be(202)
        .json();
    let question = json!({"question": "/data/v1/records?q=HeartRate"});
    let frame = person
        .post("/data/v1/frames", &question)
        .await
        .must_be(201)
        .json();
    let file = crate::files::put(&person, "/", "a", b"some bytes").await;
    let known = HashMap::from([
        ("svc_userid", person.id.to_string()),
        ("sharer_svc_userid", person.id.to_string()),
        ("data_type", "HeartRate".to_owned()),
        ("api_version", "v0".to_owned()),
        ("resolution", "day".to_owned()),
        ("base", own.split('/').next().unwrap().to_owned()),
        ("id", own.split('/').nth(1).unwrap().to_owned()),
        ("tag_id", text(tag.clone(), "id")),
        ("tag_name", text(tag, "name")),
        ("annotation_id", text(annotation, "id")),
        ("reflection_id", text(reflection, "id")),
        ("datashare_id", text(share, "datashare_id")),
        ("group_id", group),
        ("participant_id", member),
        ("session_id", text(session, "id")),
        ("export_id", text(export, "id")),
        ("input_id", text(file, "id")),
        ("frame_id", text(frame, "id")),
    ]);
    (person, known)
}

#[tokio::test]
async fn every_read_that_answers_rows_answers_them_in_every_form() {
    let (person, known) = known().await;
    let document = person.get("/openapi.json").await.must_be(200).json();
    let mut walked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let get = &methods["get"];
        // Older spellings are those of the same routes.
        let spelling = path
            .replace("/input/v1/file_upload", "/input/v1/file")
            .replace("/user/v1alpha1/group", "/user/v1/group");
        let is_document = DOCUMENTS.iter().any(|(known, _)| *known == spelling);
        // Another way to the same handlers.
        if get.is_null() || path == "/" || path.contains("/pool/{group_id}/") {
            continue;
        }
        let parameters = get["parameters"].as_array().cloned().unwrap_or_default();
        let named = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        assert_eq!(
            named("output"),
            !is_document,
            "{path} says that it takes output, or does not"
        );
        if is_document {
            continue;
        }
        assert!(named("columns"), "{path} has no columns");
        let ask = |output: &str| {
            let call = person.get(&filled(path, &known)).with("output", output);
            let required = parameters.iter().filter(|parameter| {
                parameter["in"] == "query" && parameter["required"] == true && parameter["name"] != "output"
            });
            let call = required.fold(call, |call, parameter| {
                let example = match &parameter["example"] {
                    Value::String(text) => text.clone(),
                    Value::Array(items) => items[0].as_str().expect("a text").to_owned(),
                    other => other.to_string(),
                };
                call.with(parameter["name"].as_str().unwrap(), &example)
            });
            call.with("strict", "true")
        };
        let mut columns: Option<Vec<String>> = None;
        for method in METHODS {
            let reply = ask(method).await;
            assert_eq!(reply.status, 200, "{path} as {method}: {reply}");
            let table = Table::read(method, &reply.body);
            if !table.columns.is_empty() {
                assert_eq!(
                    columns.get_or_insert_with(|| table.columns.clone()),
                    &table.columns,
                    "{path} as {method}"
                );
            }
        }
        let columns = columns.unwrap_or_else(|| panic!("{path} has no columns in any form"));
        let light = ask("jscolumns").with("columns", &columns[0]).await.must_be(200);
        assert_eq!(
            Table::read("jscolumns", &light.body).columns,
            columns[..1],
            "{path}"
        );
        let wrong = ask("csv").with("columns", "no such column").await;
        assert_eq!(wrong.faults(), ["query.columns"], "{path}");
        walked += 1;
    }
    assert!(walked > 50, "{walked}");
}

#[tokio::test]
async fn one_thing_is_a_table_of_one_row_and_says_the_same() {
    let (person, known) = known().await;
    for path in [
        "/user/v1alpha1/info",
        "/user/v1alpha1/totals",
        "/user/v1alpha1/tag/id/{tag_id}",
        "/user/v1alpha1/tag/name/{tag_name}",
        "/user/v1alpha1/annotation/{annotation_id}",
        "/user/v1alpha1/reflection/{reflection_id}",
        "/user/v1alpha1/session/{session_id}",
        "/user/v1alpha1/export/{export_id}",
        "/user/v1/datashare/{datashare_id}",
        "/user/v1/group/{group_id}",
        "/input/v1/data_type/{base}/{id}",
        "/input/v1/file/{input_id}",
        "/data/v1/catalog/{data_type}/{api_version}",
        "/data/v1/frames/{frame_id}",
        "/data/v1alpha1/event/{data_type}/summary",
    ] {
        let ask = || person.get(&filled(path, &known));
        let mut plain = ask().await.must_be(200).json();
        for inside in ["datashare", "group"] {
            if plain[inside].is_object() {
                plain = plain[inside].take();
            }
        }
        let rows = ask().with("output", "jstable").await.must_be(200).rows();
        assert_eq!(rows.len(), 1, "{path}");
        for (name, value) in plain.as_object().unwrap() {
            assert!(
                is_alike(&rows[0][name], value),
                "{name} of {path}: {} is {plain}",
                rows[0]
            );
        }
    }
    let insight = person.get("/data/v1alpha1/insight");
    let report = insight.await.must_be(200).json();
    let rows = person
        .get("/data/v1alpha1/insight")
        .with("output", "jstable")
        .await
        .must_be(200)
        .rows();
    let entries = |name: &str| report[name].as_array().unwrap().len();
    assert_eq!(rows.len(), entries("insights") + entries("skipped"), "{report}");
    assert!(rows.iter().all(|row| row["version"] == "v0"), "{rows:?}");
    let updates = || {
        person
            .get("/data/v1/updates")
            .with("start_time", "2020-01-01")
            .with("end_time", "2100-01-01")
    };
    let (plain, rows) = (
        updates().await.must_be(200).json(),
        updates().with("output", "jstable").await.must_be(200).rows(),
    );
    let counted = rows
        .iter()
        .find(|row| row["data_type"] == "HeartRate")
        .expect("a row of the type");
    assert_eq!(counted["count"], plain["data_types"]["HeartRate"]);
    assert!(rows.iter().any(|row| row["full_name"] == "/a"), "{rows:?}");
}
