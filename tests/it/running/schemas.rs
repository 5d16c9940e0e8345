//! What is sent and answered, against the schemas that OpenAPI gives for it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Person, Reply, at, heart_rate, id, person, shared};

async fn document() -> Value {
    shared().nobody().get("/openapi.json").await.must_be(200).json()
}

/// Checks that the body is as the document says for this operation and status.
#[track_caller]
fn must_fit(document: &Value, operation: &str, reply: &Reply) {
    let (method, path) = operation.split_once(' ').unwrap();
    let content = &document["paths"][path][method]["responses"][reply.status.to_string()]["content"];
    let media_type = reply.header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    let schema = &content[media_type]["schema"];
    assert!(
        schema.is_object(),
        "no {media_type} among the answers of {operation}: {content}"
    );
    let faults = faults(document, schema, &reply.json());
    assert!(faults.is_empty(), "{operation}: {faults:#?}\n{reply}");
}

fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let whole = json!({"components": document["components"], "allOf": [schema]});
    let validator = jsonschema::draft202012::new(&whole).expect("a schema");
    let faults = validator.iter_errors(value);
    faults
        .map(|fault| format!("{} {fault}", fault.instance_path()))
        .collect()
}

async fn somebody() -> Person {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
}

#[tokio::test]
async fn answers_are_as_they_are_documented() {
    let (document, person) = (document().await, somebody().await);
    for path in [
        "/data/v0/metrics_catalog",
        "/data/v1/catalog",
        "/data/v1alpha1/data_types",
        "/data/v1alpha1/data_sources",
        "/user/v1alpha1/preferences",
        "/input/v1/data_type",
        "/health/live",
        "/health/ready",
    ] {
        must_fit(
            &document,
            &format!("get {path}"),
            &person.get(path).await.must_be(200),
        );
    }
    for path in ["/data/v1/updates", "/data/v1alpha1/data_available"] {
        let call = person
            .get(path)
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1);
        must_fit(&document, &format!("get {path}"), &call.await.must_be(200));
    }
    for name in ["sleep_stage_metadata", "maps_location_updates/bounds"] {
        let reply = person
            .get(&format!("/data/v0/{}/{name}", person.id))
            .await
            .must_be(200);
        must_fit(&document, &format!("get /data/v0/{{svc_userid}}/{name}"), &reply);
    }
    for output in ["jstable", "jscolumns"] {
        let call = person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1);
        let reply = call.with("output", output).await.must_be(200);
        must_fit(&document, "get /data/v0/{svc_userid}/metric_samples", &reply);
    }
    for (path, real) in [
        (
            "/data/v1alpha1/event/{data_type}",
            "/data/v1alpha1/event/HeartRate",
        ),
        (
            "/data/v1alpha1/event/{data_type}/latest",
            "/data/v1alpha1/event/HeartRate/latest",
        ),
        (
            "/data/v1alpha1/event/{data_type}/summary",
            "/data/v1alpha1/event/HeartRate/summary",
        ),
        (
            "/data/v1alpha1/event/{data_type}/agg/{resolution}",
            "/data/v1alpha1/event/HeartRate/agg/day",
        ),
    ] {
        let call = person
            .get(real)
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1);
        must_fit(&document, &format!("get {path}"), &call.await.must_be(200));
    }
    let entry = "/data/v1/catalog/{data_type}/{api_version}";
    let reply = person.get("/data/v1/catalog/HeartRate/v0").await.must_be(200);
    must_fit(&document, &format!("get {entry}"), &reply);
    let reply = person
        .get("/data/v1/catalog/HeartRate/v0/schema")
        .await
        .must_be(200);
    must_fit(&document, &format!("get {entry}/schema"), &reply);
}

/// What is sent always, null or not, a client need not look for.
#[tokio::test]
async fn members_that_are_always_sent_are_required() {
    let document = document().await;
    let schemas = &document["components"]["schemas"];
    for (name, left_out) in [
        ("FileInput", &[][..]),
        ("FileChange", &[]),
        ("ServiceStatus", &[]),
        ("Datashare", &[]),
        ("Dataset", &[]),
        ("GroupEntry", &["invited_svc_userids"]),
        ("ExportStatus", &[]),
        ("AccountErasure", &[]),
        ("AccessEntry", &[]),
        ("AccessPage", &[]),
    ] {
        let described = schemas[name]["properties"].as_object().unwrap().keys();
        let sent: BTreeSet<&str> = described
            .map(String::as_str)
            .filter(|member| !left_out.contains(member))
            .collect();
        let required = schemas[name]["required"].as_array().unwrap().iter();
        let required: BTreeSet<&str> = required.map(|member| member.as_str().unwrap()).collect();
        assert_eq!(required, sent, "{name}");
    }
}

#[tokio::test]
async fn files_answer_any_refusal_in_the_form_of_a_problem() {
    let document = document().await;
    for group in ["/input/v1/file", "/input/v1/file_upload"] {
        for (method, end) in [("delete", ""), ("get", "/download")] {
            let operation = &document["paths"][format!("{group}/{{input_id}}{end}")][method];
            let content = &operation["responses"]["default"]["content"];
            let schema = &content["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{method} {group}{end}");
        }
    }
}

/// The example of a type's records.
fn example(name: &str) -> Value {
    let schema = match name {
        "Calendar" => include_str!("../../../schemas/records/Calendar.json"),
        "CalendarEvent" => include_str!("../../../schemas/records/CalendarEvent.json"),
        _ => include_str!("../../../schemas/records/PlatformWorkout.json"),
    };
    let schema: Value = serde_json::from_str(schema).unwrap();
    schema["examples"][0].clone()
}

#[tokio::test]
async fn workouts_calendars_and_events_have_the_members_that_are_documented() {
    let (document, person) = (document().await, person());
    let (start, end) = (at("10:00"), at("11:00"));
    let least = [
        (
            "PlatformWorkout",
            "platform_workouts",
            "Workout",
            json!({"start_date": start, "end_date": end}),
        ),
        (
            "Calendar",
            "calendars",
            "Calendar",
            json!({"calendar_identifier": "B", "calendar_name": "Home"}),
        ),
        (
            "CalendarEvent",
            "calendar_events",
            "CalendarEvent",
            json!({"calendar_id": id(1), "start_date": start, "end_date": end}),
        ),
    ];
    for (data_type, path, component, least) in least {
        person.records(data_type, &[example(data_type), least]).await;
        let ask = || {
            let call = person.get(&format!("/data/v0/{}/{path}", person.id));
            if data_type == "Calendar" {
                return call;
            }
            call.with("start_time", ALL_TIME.0).with("end_time", ALL_TIME.1)
        };
        let operation = format!("get /data/v0/{{svc_userid}}/{path}");
        let reply = ask().await.must_be(200);
        must_fit(&document, &operation, &reply);
        let rows = reply.rows();
        assert_eq!(rows.len(), 2, "{reply}");
        let described = json!({"$ref": format!("#/components/schemas/{component}")});
        for row in &rows {
            let faults = faults(&document, &described, row);
            assert!(faults.is_empty(), "{faults:#?}\n{row}");
        }
        let members = document["components"]["schemas"][component]["properties"].as_object();
        let members: BTreeSet<&String> = members.unwrap().keys().collect();
        let shown: BTreeSet<&String> = rows[0].as_object().unwrap().keys().collect();
        assert_eq!(shown, members, "{component}");
        let column = shown.first().unwrap();
        let chosen = ask().with("columns", column).await.must_be(200);
        must_fit(&document, &operation, &chosen);
    }
}

#[tokio::test]
async fn a_reflection_and_a_session_always_have_all_of_their_members() {
    let (document, person) = (document().await, person());
    let schedule =
        json!({"cron": "0 8 * * *", "start_at": null, "end_at": null, "paused": false, "time_zone": "UTC"});
    let path = "/user/v1alpha1/reflection";
    let made = person
        .post(path, &json!({"name": "Mood", "schedule": schedule}))
        .await;
    must_fit(&document, &format!("post {path}"), &made.must_be(201));
    let sessions = person.get("/user/v1alpha1/session").await.must_be(200);
    must_fit(&document, "get /user/v1alpha1/session", &sessions);
    let schemas = &document["components"]["schemas"];
    for component in ["Reflection", "ApiSession"] {
        let schema = &schemas[component];
        let members: BTreeSet<&str> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| &**name)
            .collect();
        let required = schema["required"].as_array().unwrap().iter();
        let required: BTreeSet<&str> = required.map(|name| name.as_str().unwrap()).collect();
        assert_eq!(required, members, "{component}");
    }
    assert_eq!(
        schemas["ReflectionContent"]["required"],
        json!(["name", "schedule"])
    );
    assert!(schemas["NewDataType"]["properties"]["svc_data_type"].is_object());
}

#[tokio::test]
async fn refusals_are_as_they_are_documented() {
    let (document, person) = (document().await, somebody().await);
    let path = "get /data/v0/{svc_userid}/metric_samples";
    let wrong = person
        .metric_samples("HeartRate", "never", "later")
        .await
        .must_be(422);
    must_fit(&document, path, &wrong);
    let described = &document["components"]["schemas"]["ValidationFault"];
    assert!(described["properties"]["value"].is_object(), "{described}");
    assert_eq!(described["required"], json!(["loc", "msg", "type"]));
    let unknown = person
        .metric_samples("NoSuchMetric", ALL_TIME.0, ALL_TIME.1)
        .await
        .must_be(404);
    must_fit(&document, path, &unknown);
    let nobody = shared().nobody();
    must_fit(
        &document,
        path,
        &nobody.metric_samples("HeartRate", "a", "b").await.must_be(401),
    );
}

#[tokio::test]
async fn a_body_made_after_its_schema_is_taken() {
    let (document, person) = (document().await, somebody().await);
    let body = |operation: &str| {
        let (method, path) = operation.split_once(' ').unwrap();
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"].clone()
    };
    let must_be_taken = |operation: &str, sent: &Value, reply: Reply| {
        assert_eq!(faults(&document, &body(operation), sent), [""; 0], "{operation}");
        assert!((200..300).contains(&reply.status), "{reply}");
        must_fit(&document, operation, &reply);
    };

    let defined = json!({
        "name": "Cups of tea", "description": null, "icon": "cup", "deprecated": false,
        "record_spec": {
            "type": "metric", "unit": "cup", "aggregation": "cumulative", "scale": null,
            "value_map": {"1": "one"}, "schema": {"properties": {"sort": {"type": "string"}}},
        },
    });
    let path = "/input/v1/data_type/{base}";
    let created = person.post("/input/v1/data_type/Metric", &defined).await;
    let address = created.json()["svc_data_type"].as_str().unwrap().to_owned();
    must_be_taken(&format!("post {path}"), &defined, created);
    let mut as_text = defined.clone();
    as_text["record_spec"]["schema"] = json!(defined["record_spec"]["schema"].to_string());
    let created = person.post("/input/v1/data_type/Metric", &as_text).await;
    must_be_taken(&format!("post {path}"), &as_text, created);
    let change = json!({"description": "Black ones", "deprecated": true});
    let changed = person
        .put(&format!("/input/v1/data_type/{address}"), &change)
        .await;
    must_be_taken(&format!("put {path}/{{id}}"), &change, changed);

    for (batch, wrapped) in [
        (
            false,
            json!({
                "data": "{\"value\": 61}",
                "metadata": {
                    "data_type": "HeartRate", "source": ["a"], "recorded_at": "2024-06-01T10:30:00Z",
                },
            }),
        ),
        (
            true,
            json!([{
                "data": "{\"value\": 62}", "specversion": 1,
                "metadata": {
                    "data_type": "HeartRate", "content_type": "application/json", "id": id(7), "tags": [],
                    "recorded_at": {"start_time": at("11:00"), "end_time": at("11:01")},
                },
            }]),
        ),
    ] {
        let path = if batch {
            "/ingest/v1/record/batch"
        } else {
            "/ingest/v1/record"
        };
        let reply = person.post(path, &wrapped).await;
        must_be_taken(&format!("post {path}"), &wrapped, reply);
    }
    let record = heart_rate(id(9), &at("12:00"), 63);
    let reply = person.record("HeartRate", &record).await;
    must_be_taken("post /ingest/v1/record/{data_type}", &record, reply);
}

#[tokio::test]
async fn null_changes_of_a_type_what_its_schema_says() {
    let person = person();
    let whole = json!({
        "name": "Cups", "description": "of tea", "icon": "cup", "default_event_tags": ["warm"],
        "svc_source": ["me"], "deprecated": false, "record_spec": {"unit": "cup"},
    });
    let address = format!("/input/v1/data_type/{}", person.define("Metric", &whole).await);
    let before = person.get(&address).await.must_be(200).json();
    let nulls: serde_json::Map<String, Value> = whole
        .as_object()
        .unwrap()
        .keys()
        .map(|name| (name.clone(), Value::Null))
        .collect();
    let after = person.put(&address, &nulls.into()).await.must_be(200).json();
    for removed in ["icon", "default_event_tags", "svc_source"] {
        assert!(!before[removed].is_null(), "{removed}");
        assert!(after[removed].is_null(), "{removed}");
    }
    for kept in ["name", "description", "deprecated", "record_spec"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let described = &document().await["components"]["schemas"]["DataTypeChange"]["description"];
    let words: Vec<&str> = described.as_str().unwrap().split_whitespace().collect();
    let described = words.join(" ");
    assert!(
        described.contains("Null removes `icon`, `default_event_tags` and `svc_source`"),
        "{described}"
    );
}

#[tokio::test]
async fn the_preferences_that_are_documented_are_those_that_there_are() {
    let (document, person) = (document().await, person());
    let schema = &document["components"]["schemas"]["PreferencesDocument"];
    let documented: BTreeSet<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let path = "/user/v1alpha1/preferences";
    let refused = person
        .post(path, &json!({"colour": "red"}))
        .await
        .must_be(422)
        .json();
    let message = refused["detail"][0]["msg"].as_str().unwrap();
    let known: BTreeSet<&str> = message.rsplit_once("there are ").unwrap().1.split(", ").collect();
    assert_eq!(documented, known);
    let preferred = json!({
        "timezone": "Europe/Berlin", "calendars": null, "location_resolution": {"maps": 10},
        "periods_of_day": {"morning": "06:00:00"},
    });
    assert_eq!(faults(&document, schema, &preferred), [""; 0]);
    let reply = person.post(path, &preferred).await.must_be(200);
    must_fit(&document, &format!("post {path}"), &reply);
    for units in [
        json!("catalogue"),
        json!("metric"),
        json!("us"),
        Value::Null,
        json!("Metric"),
        json!("imperial"),
        json!(1),
    ] {
        let preferred = json!({"units": units});
        let reply = person.post(path, &preferred).await;
        let is_documented = faults(&document, schema, &preferred).is_empty();
        assert_eq!(is_documented, reply.status == 200, "{preferred}: {reply}");
    }
}

#[tokio::test]
async fn an_annotation_is_replaced_by_one_of_a_known_type_or_of_none() {
    let (document, person) = (document().await, person());
    let path = "/user/v1alpha1/annotation";
    let annotation = json!({"annotation_type": "moment", "name": "Tea", "description": "", "tags": []});
    let made = person.post(path, &annotation).await.must_be(201).json();
    let address = format!("{path}/{}", made["id"].as_str().unwrap());
    let operation = &document["paths"]["/user/v1alpha1/annotation/{annotation_id}"]["put"];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    for (kind, is_taken) in [
        (Some(json!("moment")), true),
        (None, true),
        (Some(json!("bogus")), false),
        (Some(Value::Null), false),
    ] {
        let mut body = json!({"name": "Green tea", "description": "", "tags": []});
        if let Some(kind) = kind {
            body["annotation_type"] = kind;
        }
        assert_eq!(faults(&document, schema, &body).is_empty(), is_taken, "{body}");
        let reply = person.put(&address, &body).await;
        assert_eq!(reply.status == 200, is_taken, "{body}: {reply}");
    }
}

#[tokio::test]
async fn an_annotation_is_made_of_a_known_type_or_of_the_one_that_is_measured() {
    let (document, person) = (document().await, person());
    let path = "/user/v1alpha1/annotation";
    let schema = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let yes_no = json!({"measurement_type": "boolean", "boolean": {"value": null}});
    for (kind, measured, is_taken) in [
        (Some("boolean"), yes_no.clone(), true),
        (None, yes_no.clone(), true),
        (Some("duration"), yes_no, false),
        (None, Value::Null, false),
        (None, json!({"measurement_type": "length", "length": {}}), false),
    ] {
        let mut body = json!({"name": "Tea", "description": "", "tags": [], "measurement_spec": measured});
        if let Some(kind) = kind {
            body["annotation_type"] = json!(kind);
        }
        assert_eq!(faults(&document, schema, &body).is_empty(), is_taken, "{body}");
        let reply = person.post(path, &body).await;
        assert_eq!(reply.status == 201, is_taken, "{body}: {reply}");
        if is_taken {
            assert_eq!(reply.json()["annotation_type"], "boolean");
        }
    }
}

#[tokio::test]
async fn the_path_of_a_file_begins_with_a_slash() {
    let (document, person) = (document().await, person());
    let path = "/input/v1/file";
    let operation = &document["paths"][path]["post"];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    for (folder, is_taken) in [
        ("/", true),
        ("/a/", true),
        ("a/", false),
        (" /a", false),
        ("", false),
    ] {
        let body = json!({"content_length": 3, "content_type": "text/plain", "name": "a", "path": folder});
        assert_eq!(faults(&document, schema, &body).is_empty(), is_taken, "{body}");
        let status = person.post(path, &body).await.status;
        assert_eq!(status, if is_taken { 200 } else { 422 }, "{body}");
    }
}

/// What is declared about a body is what is done with it: what may be left out, be null, or be a whole number
/// with a fraction of zeros.
#[tokio::test]
async fn a_body_is_taken_exactly_where_its_schema_says_so() {
    let (document, person) = (document().await, somebody().await);
    let schema = |operation: &str| {
        let (method, path) = operation.split_once(' ').unwrap();
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"].clone()
    };
    let annotation = json!({"annotation_type": "moment", "name": "Tea", "description": "", "tags": []});
    let made = person
        .post("/user/v1alpha1/annotation", &annotation)
        .await
        .must_be(201)
        .json();
    let made = format!("/user/v1alpha1/annotation/{}", made["id"].as_str().unwrap());
    let friend = json!({"allowed_svc_userid": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60"});
    let share =
        json!({"datashare_name": "a share", "svc_data_types": ["HeartRate"], "permissions": [friend]});
    let shared = person
        .post("/user/v1/datashare", &share)
        .await
        .must_be(201)
        .json();
    let shared = format!(
        "/user/v1/datashare/{}",
        shared["datashare"]["datashare_id"].as_str().unwrap()
    );
    let own = person.define("Metric", &json!({"name": "Cups"})).await;
    let own = format!("/input/v1/data_type/{own}");
    let frame = json!({"format": null, "question":
        "/data/v1alpha1/metric/HeartRate?start_time=2024-06-01&end_time=2024-06-02"});
    let metadata =
        json!({"data_type": "HeartRate", "recorded_at": at("13:00"), "source": null, "tags": null});
    for (operation, address, body, is_taken) in [
        (
            "post /user/v1/datashare",
            "/user/v1/datashare",
            json!({"permissions": []}),
            false,
        ),
        (
            "post /user/v1/datashare",
            "/user/v1/datashare",
            json!({"datashare_name": null}),
            false,
        ),
        (
            "put /user/v1/datashare/{datashare_id}",
            &shared,
            json!({"permissions": []}),
            true,
        ),
        (
            "post /user/v1alpha1/annotation",
            "/user/v1alpha1/annotation",
            json!({"name": "Tea", "description": "", "tags": []}),
            false,
        ),
        (
            "put /user/v1alpha1/annotation/{annotation_id}",
            &made,
            json!({"name": "Tea", "description": "", "tags": [], "spec": {"default_note": "black"}}),
            true,
        ),
        (
            "put /user/v1alpha1/annotation/{annotation_id}",
            &made,
            annotation,
            true,
        ),
        (
            "post /input/v1/data_type/{base}",
            "/input/v1/data_type/Metric",
            json!({"name": "Steps", "record_spec": null}),
            true,
        ),
        (
            "post /input/v1/data_type/{base}",
            "/input/v1/data_type/Metric",
            json!({"name": "Mood", "record_spec": {"type": null, "scale": {"min": 1.0, "max": 5.0}}}),
            true,
        ),
        (
            "put /input/v1/data_type/{base}/{id}",
            &own,
            json!({"name": null, "record_spec": null}),
            true,
        ),
        ("post /data/v1/frames", "/data/v1/frames", frame, true),
        (
            "post /ingest/v1/record",
            "/ingest/v1/record",
            json!({"data": "{\"value\": 61}", "metadata": metadata}),
            true,
        ),
        (
            "post /input/v1/file",
            "/input/v1/file",
            json!({"content_length": 3.0, "content_type": "text/plain", "name": "a", "path": "/"}),
            true,
        ),
        (
            "post /user/v1alpha1/preferences",
            "/user/v1alpha1/preferences",
            json!({"location_resolution": {"maps": 3.0}}),
            true,
        ),
    ] {
        let declared = faults(&document, &schema(operation), &body);
        assert_eq!(declared.is_empty(), is_taken, "{operation} {body}: {declared:?}");
        let reply = if operation.starts_with("put") {
            person.put(address, &body).await
        } else {
            person.post(address, &body).await
        };
        assert_eq!(
            (200..300).contains(&reply.status),
            is_taken,
            "{operation} {body}: {reply}"
        );
        assert!(is_taken || reply.status == 422, "{operation} {body}: {reply}");
    }
}
