//! Documents whose parts are of the wrong JSON type: every part of every body, one at a time.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Person, id, person, shared};
use crate::sharing::{DATASHARE, GROUP, group, join};

/// A valid body for one operation.
struct Document {
    method: Method,
    /// As in the OpenAPI document.
    path: &'static str,
    /// The address of something that is there.
    address: String,
    body: Value,
    /// Parts that hold JSON of any kind.
    free: &'static [&'static str],
}

fn document(method: Method, path: &'static str, address: &str, body: Value) -> Document {
    Document {
        method,
        path,
        address: address.to_owned(),
        body,
        free: &[],
    }
}

/// What a POST with this body makes; its id.
async fn made(person: &Person, path: &str, body: &Value, member: &str) -> String {
    let made = person.post(path, body).await.must_be(201).json();
    made.pointer(member).unwrap().as_str().unwrap().to_owned()
}

/// An annotation of each type, and with each measurement.
fn annotations() -> Vec<Value> {
    let of = |kind: &str, measured: Value, scale: Value| {
        json!({
            "annotation_type": kind, "name": "Tea", "description": "a cup", "tags": ["warm"],
            "measurement_spec": measured, "spec": {"default_note": "black", "scale": scale},
        })
    };
    let number = |kind: &str, unit: Value| {
        json!({
            "measurement_type": kind, "metric_kind": "discrete", "unit": unit, "value_type": "real",
            kind: {"value": 1.5},
        })
    };
    let yes_or_no = json!({
        "measurement_type": "boolean", "metric_kind": "discrete", "value_type": "boolean",
        "boolean": {"value": true},
    });
    let time = json!({"measurement_type": "duration", "metric_kind": "cumulative", "value_type": "duration"});
    let steps = json!({
        "measurement_type": "scale", "metric_kind": "discrete", "value_type": "integer",
        "scale": {"value": 2, "min_allowed": 1, "max_allowed": 3.0},
    });
    let label = json!({"mapping_type": "string", "string": {"mapping": {"1": "weak"}}});
    let colour = json!({"mapping_type": "color", "color": {"mapping": {"1": "#ff0000"}}});
    let emoji = json!({
        "mapping_type": "emoji", "color": {"mapping": {"1": "#ff0000"}}, "string": {"mapping": {"1": "+"}},
    });
    let mut all = vec![
        of("boolean", yes_or_no, Value::Null),
        of("duration", time, Value::Null),
        of("moment", Value::Null, Value::Null),
        of("people", Value::Null, Value::Null),
    ];
    for mapping in [colour, emoji] {
        let display = json!({"label_mapping": label, "scale_mapping": mapping});
        all.push(of("scale", steps.clone(), display));
    }
    for (kind, unit) in [
        ("count", Value::Null),
        ("custom", json!("cups")),
        ("distance", json!("meter")),
        ("mass", json!("gram")),
        ("percent", Value::Null),
        ("period", json!("minute")),
        ("temperature", json!("celsius")),
        ("volume", json!("cup")),
    ] {
        all.push(of("numeric", number(kind, unit), Value::Null));
    }
    all
}

async fn of_sharing(person: &Person) -> Vec<Document> {
    let (post, put) = (Method::POST, Method::PUT);
    let mut all = Vec::new();
    let share = json!({
        "datashare_name": "a share", "svc_user_name": "me", "svc_data_types": ["HeartRate"],
        "share_all_data": false, "time_start": "2024-06-01T00:00:00Z", "time_end": "2024-07-01T00:00:00Z",
        "permissions": [{"allowed_svc_userid": shared().person().id}], "group_permissions": [],
    });
    let one = made(person, DATASHARE, &share, "/datashare/datashare_id").await;
    let title = json!({"title": "a group", "responsible_entity": "us", "description": "a trial",
        "is_public": true, "svc_data_types": ["HeartRate"], "invited_svc_userids": [person.id],
        "time_start": "2024-06-01T00:00:00Z", "time_end": "2024-07-01T00:00:00Z"});
    let circle = group(person, &title).await;
    let participant = join(person, &circle).await;
    let mut with_group = share;
    with_group["group_permissions"] = json!([{"allowed_group_id": circle}]);
    all.push(document(post.clone(), DATASHARE, DATASHARE, with_group.clone()));
    let path = "/user/v1/datashare/{datashare_id}";
    all.push(document(
        put.clone(),
        path,
        &format!("{DATASHARE}/{one}"),
        with_group,
    ));

    all.push(document(post.clone(), GROUP, GROUP, title));
    let change = json!({"description": "another", "header_image_url": "https://example.org/a.png",
        "preview_image_url": null, "view_description": "short", "invited_svc_userids": [person.id]});
    let at = format!("{GROUP}/{circle}");
    all.push(document(put.clone(), "/user/v1/group/{group_id}", &at, change));
    for method in [put.clone(), Method::PATCH] {
        let path = "/user/v1/group/{group_id}/participants/{participant_id}/metadata";
        let at = format!("{GROUP}/{circle}/participants/{participant}/metadata");
        all.push(Document {
            free: &["/arm"],
            ..document(method, path, &at, json!({"arm": "a"}))
        });
    }
    all
}

async fn of_a_person(person: &Person) -> Vec<Document> {
    let (post, put) = (Method::POST, Method::PUT);
    let mut all = Vec::new();
    let path = "/user/v1alpha1/annotation";
    for annotation in annotations() {
        let one = made(person, path, &annotation, "/id").await;
        all.push(document(post.clone(), path, path, annotation.clone()));
        let (path, at) = (
            "/user/v1alpha1/annotation/{annotation_id}",
            format!("{path}/{one}"),
        );
        all.push(document(put.clone(), path, &at, annotation));
    }

    let path = "/user/v1alpha1/reflection";
    let reflection = json!({
        "name": "How was it?", "annotations": ["a"], "description": "the day", "parent_template_id": "b",
        "data_types": [{"name": "HeartRate", "resource_id": "c"}],
        "schedule": {
            "cron": "0 22 * * *", "start_at": "2024-06-01T00:00:00Z", "end_at": null, "paused": false,
            "time_zone": "Europe/Berlin",
        },
    });
    let one = made(person, path, &reflection, "/id").await;
    all.push(document(post.clone(), path, path, reflection.clone()));
    let at = format!("{path}/{one}");
    all.push(document(
        put.clone(),
        "/user/v1alpha1/reflection/{reflection_id}",
        &at,
        reflection,
    ));

    let path = "/user/v1alpha1/session";
    let session = json!({"name": "a phone", "days": 3.0});
    let one = made(person, path, &session, "/id").await;
    all.push(document(post.clone(), path, path, session));
    let (path, at) = ("/user/v1alpha1/session/{session_id}", format!("{path}/{one}"));
    all.push(document(put.clone(), path, &at, json!({"name": "a watch"})));

    let path = "/user/v1alpha1/tag";
    all.push(document(post.clone(), path, path, json!({"name": "warm"})));

    let path = "/user/v1alpha1/preferences";
    let preferences = json!({
        "timezone": "Europe/Berlin", "units": "metric", "calendars": ["a"], "selected_metrics": ["HeartRate"],
        "selected_metrics_map": {"a": ["HeartRate"]}, "location_resolution": {"maps": 10.0},
        "pinned_metrics_count_map": {"a": 1}, "selected_calendar_vendor_ids": ["b"],
        "calendar_events_data_track_filter_map": {"a": ["b"]}, "source_order": {"HeartRate": [id(1)]},
        "periods_of_day": {"morning": "06:00:00"}, "insight_targets": {"sleep_hours": 8},
    });
    all.push(document(post.clone(), path, path, preferences));
    all
}

async fn of_data(person: &Person) -> Vec<Document> {
    let (post, put) = (Method::POST, Method::PUT);
    let mut all = Vec::new();
    let metric = json!({
        "name": "Cups", "description": "of tea", "icon": "cup", "default_event_tags": ["warm"],
        "svc_source": ["me"], "deprecated": false,
        "record_spec": {"type": "metric", "unit": "cup", "aggregation": "discrete",
            "scale": {"min": 1.0, "max": 5, "step": 1}, "value_map": {"1": "one"},
            "schema": {"properties": {"sort": {"type": "string"}}}},
    });
    let own = person.define("Metric", &metric).await;
    let free = &["/record_spec/schema/properties"];
    let (path, at) = ("/input/v1/data_type/{base}", "/input/v1/data_type/Metric");
    all.push(Document {
        free,
        ..document(post.clone(), path, at, metric.clone())
    });
    let (path, at) = (
        "/input/v1/data_type/{base}/{id}",
        format!("/input/v1/data_type/{own}"),
    );
    all.push(Document {
        free,
        ..document(put, path, &at, metric)
    });

    let path = "/input/v1/file";
    let file = json!({"content_length": 3.0, "content_type": "text/plain", "name": "a.txt", "path": "/",
        "source_id": "a", "source_name": "b"});
    all.push(document(post.clone(), path, path, file));
    let path = "/data/v1/sql";
    let query = json!({"query": "SELECT $1", "parameters": [1], "output": "csv"});
    all.push(Document {
        free: &["/parameters"],
        ..document(post.clone(), path, path, query)
    });
    let path = "/data/v1/frames";
    let question = "/data/v1alpha1/metric/HeartRate?start_time=2024-06-01&end_time=2024-06-02";
    all.push(document(
        post,
        path,
        path,
        json!({"question": question, "format": "csv"}),
    ));
    all
}

async fn documents(person: &Person) -> Vec<Document> {
    let mut all = of_sharing(person).await;
    all.extend(of_a_person(person).await);
    all.extend(of_data(person).await);
    all
}

/// The places of all parts of a document, itself included.
fn parts(value: &Value, place: &str, free: &[&str], found: &mut Vec<String>) {
    if free.contains(&place) {
        return;
    }
    found.push(place.to_owned());
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                parts(element, &format!("{place}/{index}"), free, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                parts(member, &format!("{place}/{name}"), free, found);
            }
        }
        _ => {}
    }
}

/// What serde would take for `value`, or what nobody should.
fn wrong(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(_) => vec![json!("yes"), json!(5), json!([true])],
        Value::Number(number) => vec![json!(number.to_string()), json!([number]), json!({"a": number})],
        Value::String(text) => vec![json!({text: null}), json!([text]), json!(5)],
        Value::Array(elements) => vec![json!("a"), json!({"0": elements.first()})],
        Value::Object(members) => {
            vec![
                Value::Array(members.values().cloned().collect()),
                json!([]),
                json!("a"),
                json!(5),
            ]
        }
    }
}

#[tokio::test]
async fn every_part_of_every_document_has_its_type() {
    let person = person();
    let names_of_rust = ["struct", "unit", "option", "f64", "u64", "i64", "element"];
    for Document {
        method,
        address,
        body,
        free,
        ..
    } in documents(&person).await
    {
        let send = |body: &Value| {
            let call = person.call(method.clone(), &address);
            call.header("content-type", "application/json")
                .body(body.to_string())
        };
        let taken = send(&body).await;
        assert!(
            (200..300).contains(&taken.status),
            "{method} {address} {body}: {taken}"
        );
        let mut places = Vec::new();
        parts(&body, "", free, &mut places);
        for place in places {
            for wrong in wrong(body.pointer(&place).unwrap()) {
                let mut sent = body.clone();
                *sent.pointer_mut(&place).unwrap() = wrong;
                let reply = send(&sent).await;
                assert_eq!(reply.status, 422, "{method} {address} {place} {sent}: {reply}");
                for fault in reply.json()["detail"].as_array().unwrap() {
                    let message = fault["msg"].as_str().unwrap();
                    let expected = message
                        .rsplit_once("expected ")
                        .map_or("", |(_, expected)| expected);
                    let named = names_of_rust
                        .into_iter()
                        .find(|name| expected.split([' ', ',', '`']).any(|word| word == *name));
                    assert_eq!(named, None, "{method} {address} {place}: {message}");
                }
            }
        }
    }
}

#[tokio::test]
async fn no_document_is_left_out_here() {
    let openapi = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let mut documented = BTreeSet::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let has_document = operation["requestBody"]["content"]["application/json"].is_object();
            let is_record = path.starts_with("/ingest/");
            if has_document && !is_record && operation["deprecated"] != json!(true) {
                documented.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let here: BTreeSet<String> = documents(&person())
        .await
        .iter()
        .map(|document| format!("{} {}", document.method, document.path))
        .collect();
    assert_eq!(here, documented);
}

#[tokio::test]
async fn what_has_to_be_null_and_what_can_be_chosen_is_said() {
    let person = person();
    let refused = async |body: Value| {
        let reply = person.post("/user/v1alpha1/annotation", &body).await.must_be(422);
        let fault = reply.json()["detail"][0].clone();
        (fault["loc"].clone(), fault["msg"].as_str().unwrap().to_owned())
    };
    let base = |kind: &str, measured: Value, spec: Value| {
        json!({"annotation_type": kind, "name": "Tea", "description": "", "tags": [],
            "measurement_spec": measured, "spec": spec})
    };
    let steps = json!({"measurement_type": "scale", "unit": "x",
        "scale": {"value": null, "min_allowed": 1, "max_allowed": 5}});
    let count = json!({"measurement_type": "count", "unit": "x", "count": {"value": 1}});
    let time = json!({"measurement_type": "duration", "unit": "s"});
    for (body, loc) in [
        (
            base("scale", steps, Value::Null),
            json!(["body", "measurement_spec", "unit"]),
        ),
        (
            base("numeric", count.clone(), Value::Null),
            json!(["body", "measurement_spec", "unit"]),
        ),
        (
            base("duration", time, Value::Null),
            json!(["body", "measurement_spec", "unit"]),
        ),
        (
            base("moment", count, Value::Null),
            json!(["body", "measurement_spec"]),
        ),
        (
            base("people", json!({}), Value::Null),
            json!(["body", "measurement_spec"]),
        ),
        (
            base("moment", Value::Null, json!({"scale": {}})),
            json!(["body", "spec", "scale"]),
        ),
    ] {
        let (found, message) = refused(body).await;
        assert_eq!(found, loc);
        assert!(
            message.ends_with("expected null, because this kind has none"),
            "{message}"
        );
    }
    for wrong in [Value::Null, json!(5), json!({"discrete": null})] {
        let count = json!({"measurement_type": "count", "metric_kind": wrong, "count": {"value": 1}});
        let (found, message) = refused(base("numeric", count, Value::Null)).await;
        assert_eq!(found, json!(["body", "measurement_spec", "metric_kind"]));
        assert!(
            message.ends_with("expected one of cumulative, discrete"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_number_that_is_too_large_is_named_with_its_place() {
    let person = person();
    let body = r#"{"name": "a phone", "days": 1e400}"#;
    let call = person.call(Method::POST, "/user/v1alpha1/session");
    let reply = call.header("content-type", "application/json").body(body).await;
    assert_eq!(reply.faults(), ["body.days"]);
    let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
    assert!(message.starts_with("beyond what a number can be"), "{message}");
}
