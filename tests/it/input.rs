//! `/input/v1/data_type`: a person's own types, from their making to their archive.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{ALL_TIME, Person, Table, at, id, person};

fn tea() -> Value {
    json!({
        "name": "Tea", "description": "A cup of tea",
        "record_spec": {
            "schema": {
                "properties": {
                    "kind": {"type": "string"}, "cups": {"type": "integer"}, "grams": {"type": "number"},
                },
                "required": ["kind"],
            },
        },
    })
}

async fn entry(person: &Person, own: &str) -> Value {
    let entries = person
        .get("/data/v1/catalog")
        .with("data_type", own)
        .await
        .must_be(200)
        .rows();
    assert_eq!(entries.len(), 1);
    entries[0].clone()
}

fn path(own: &str) -> String {
    format!("/input/v1/data_type/{own}")
}

#[tokio::test]
async fn what_clients_keep_with_a_type_is_told_again() {
    let person = person();
    let mut body = tea();
    body["default_event_tags"] = json!(["hot"]);
    body["svc_source"] = json!(["com.example.kettle"]);
    let own = person.define("Event", &body).await;
    let told = person.get(&path(&own)).await.must_be(200).json();
    assert_eq!(told["default_event_tags"], json!(["hot"]));
    assert_eq!(told["svc_source"], json!(["com.example.kettle"]));
    let change = json!({"default_event_tags": null});
    let changed = person.put(&path(&own), &change).await.must_be(200).json();
    assert_eq!(changed["default_event_tags"], Value::Null);
    assert_eq!(changed["svc_source"], json!(["com.example.kettle"]));
    let wrong = json!({"svc_source": [1]});
    assert_eq!(
        person.put(&path(&own), &wrong).await.faults(),
        ["body.svc_source"]
    );
}

#[tokio::test]
async fn a_type_is_called_by_its_id_whatever_its_maker_calls_it() {
    let person = person();
    let mut body = tea();
    for wrong in [json!(5), json!(true), json!(["Tea"]), json!({"a": 1})] {
        body["svc_data_type"] = wrong;
        let refused = person.post("/input/v1/data_type/Event", &body).await;
        assert_eq!(refused.faults(), ["body.svc_data_type"]);
    }
    for said in [json!("Tea"), Value::Null] {
        body["svc_data_type"] = said;
        let own = person.define("Event", &body).await;
        let told = person.get(&path(&own)).await.must_be(200).json();
        assert_eq!(told["svc_data_type"], json!(own));
        let wrong = json!({"svc_data_type": 5});
        assert_eq!(
            person.put(&path(&own), &wrong).await.faults(),
            ["body.svc_data_type"]
        );
        let read = json!({"svc_data_type": told["svc_data_type"]});
        person.put(&path(&own), &read).await.must_be(200);
        body["name"] = json!("Coffee");
    }
}

#[tokio::test]
async fn changes_at_the_same_time_all_succeed_and_one_of_them_stays() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    let before = person.get(&path(&own)).await.must_be(200).json();
    let racing = (0..20).map(|number| {
        let (person, path) = (&person, path(&own));
        async move {
            let change = json!({"description": number.to_string()});
            person.put(&path, &change).await.must_be(200)
        }
    });
    futures::future::join_all(racing).await;
    let after = person.get(&path(&own)).await.must_be(200).json();
    let stays = &after["description"];
    assert!(
        (0..20).any(|number| *stays == json!(number.to_string())),
        "{stays}"
    );
    for other in ["name", "created_at", "svc_data_type"] {
        assert_eq!(after[other], before[other], "{other}");
    }
}

#[tokio::test]
async fn a_new_type_is_in_the_catalogue_at_once() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    assert!(own.starts_with("Event/"), "{own}");
    Uuid::parse_str(own.strip_prefix("Event/").unwrap()).unwrap();
    let entry = entry(&person, &own).await;
    assert_eq!(
        (&entry["name"], &entry["description"], &entry["class"]),
        (&json!("Tea"), &json!("A cup of tea"), &json!("event"))
    );
    assert_eq!(
        (
            &entry["svc_userid"],
            &entry["recordable"],
            &entry["record_spec"]["type"]
        ),
        (&json!(person.id), &json!(true), &json!("event"))
    );
    let schema = person
        .get(&format!("/data/v1/catalog/{own}/v1/schema"))
        .await
        .must_be(200)
        .json();
    assert!(
        schema["properties"]["cups"]["type"]
            .to_string()
            .contains("integer"),
        "{schema}"
    );
    person
        .get(&format!("/data/v1/catalog/{}/v1/schema", own.replace('/', "%2F")))
        .await
        .must_be(200);
}

#[tokio::test]
async fn a_metric_keeps_its_unit_aggregation_scale_and_values() {
    let person = person();
    let definition = json!({
        "name": "Focus",
        "record_spec": {
            "unit": "points", "aggregation": "discrete", "scale": {"min": 1, "max": 5, "step": 1},
            "value_map": {"1": "low", "5": "high"},
        },
    });
    let own = person.define("Metric", &definition).await;
    let entry = entry(&person, &own).await;
    let spec = &entry["record_spec"];
    assert_eq!(
        (&spec["type"], &spec["unit"], &spec["aggregation"]),
        (&json!("metric"), &json!("points"), &json!("discrete"))
    );
    assert_eq!(
        (
            &spec["scale"]["min"],
            &spec["scale"]["max"],
            &spec["value_map"]["5"]
        ),
        (&json!(1), &json!(5), &json!("high"))
    );
    assert_eq!(
        (&entry["unit"], &entry["metric_kind"]),
        (&json!("points"), &json!("discrete"))
    );
}

#[tokio::test]
async fn unit_aggregation_scale_and_value_map_on_an_event_are_422() {
    let person = person();
    for (name, value) in [
        ("unit", json!("mg")),
        ("aggregation", json!("discrete")),
        ("scale", json!({"min": 1, "max": 2})),
        ("value_map", json!({"1": "a"})),
    ] {
        let reply = person
            .post(
                "/input/v1/data_type/Event",
                &json!({"name": "x", "record_spec": {name: value}}),
            )
            .await;
        assert!(reply.faults()[0].ends_with(name), "{reply}");
    }
}

#[tokio::test]
async fn bad_definitions_are_422() {
    let person = person();
    for definition in [
        json!({}),
        json!({"name": 5}),
        json!({"name": ""}),
        json!({"name": "x", "record_spec": "event"}),
        json!({"name": "x", "record_spec": {"schema": "not json"}}),
        json!({"name": "x", "record_spec": {"schema": {"properties": {"a": {"type": "no such type"}}}}}),
        json!({"name": "x", "record_spec": {"schema": {"properties": []}}}),
        json!({"name": "x", "record_spec": {"schema": {"properties": {"start_time": {"type": "integer"}}}}}),
    ] {
        let reply = person.post("/input/v1/data_type/Event", &definition).await;
        assert_eq!(reply.status, 422, "{definition}: {reply}");
    }
    let reply = person
        .post(
            "/input/v1/data_type/Metric",
            &json!({"name": "x", "record_spec": {"aggregation": "sideways"}}),
        )
        .await;
    reply.faults();
    let reply = person
        .post("/input/v1/data_type/HeartRate", &json!({"name": "x"}))
        .await;
    assert!(matches!(reply.status, 404 | 422), "{reply}");
}

#[tokio::test]
async fn the_schema_may_come_as_json_text() {
    let person = person();
    let own = person
        .define(
            "Event",
            &json!({
                "name": "Tea",
                "record_spec": {"schema": "{\"properties\": {\"cups\": {\"type\": \"integer\"}}}"},
            }),
        )
        .await;
    person
        .record(&own, &json!({"start_time": at("10:00"), "cups": "two"}))
        .await
        .faults();
    person
        .record(&own, &json!({"start_time": at("10:00"), "cups": 2}))
        .await
        .upload();
}

#[tokio::test]
async fn records_are_held_to_the_schema() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    let faults = person
        .record(&own, &json!({"start_time": at("10:00"), "cups": 2}))
        .await
        .faults();
    assert!(faults[0].contains("kind"), "{faults:?}");
    let faults = person
        .record(
            &own,
            &json!({"start_time": at("10:00"), "kind": "green", "cups": 2.5}),
        )
        .await
        .faults();
    assert!(faults[0].contains("cups"), "{faults:?}");
    let faults = person.record(&own, &json!({"kind": "green"})).await.faults();
    assert!(faults[0].contains("start_time"), "{faults:?}");
    person
        .record(
            &own,
            &json!({"start_time": at("10:00"), "kind": "green", "cups": 2}),
        )
        .await
        .upload();
}

#[tokio::test]
async fn declared_fields_become_typed_columns() {
    let person = person();
    let schema = json!({"properties": {
        "text": {"type": "string"}, "whole": {"type": "integer"}, "real": {"type": "number"},
        "flag": {"type": "boolean"}, "moment": {"type": "string", "format": "date-time"},
        "list": {"type": "array", "items": {"type": "number"}},
        "nested": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    }});
    let own = person
        .define(
            "Metric",
            &json!({
                "name": "Everything",
                "record_spec": {"unit": "x", "aggregation": "discrete", "schema": schema},
            }),
        )
        .await;
    let record = json!({
        "id": id(1), "start_time": at("10:00"), "value": 1.5, "text": "a", "whole": 7, "real": 0.5,
        "flag": true, "moment": at("11:00"), "list": [1.5, 2.5], "nested": {"a": 1, "b": "c"},
        "undeclared": {"deep": [true]},
    });
    person.record(&own, &record).await.upload();
    let row = &person.rows("metric", &own).await[0];
    for name in ["text", "whole", "real", "flag", "list", "nested", "undeclared"] {
        assert_eq!(row[name], record[name], "{name}");
    }
    let reply = person
        .metric_samples(&own, ALL_TIME.0, ALL_TIME.1)
        .with("output", "arrow")
        .await
        .must_be(200);
    let table = Table::read("arrow", &reply.body);
    assert_eq!(table.data_type("text"), DataType::Utf8);
    assert_eq!(table.data_type("whole"), DataType::Int64);
    assert_eq!(table.data_type("real"), DataType::Float64);
    assert_eq!(table.data_type("flag"), DataType::Boolean);
    assert_eq!(
        table.data_type("moment"),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    );
    assert!(
        matches!(table.data_type("list"), DataType::List(item) if item.data_type() == &DataType::Float64)
    );
    assert!(matches!(table.data_type("nested"), DataType::Struct(fields) if fields.len() == 2));
}

#[tokio::test]
async fn a_schema_grows_without_touching_what_is_stored() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "kind": "green", "cups": 1, "steeps": 3}),
        )
        .await
        .upload();
    let mut grown = tea();
    grown["record_spec"]["schema"]["properties"]["hot"] = json!({"type": "boolean"});
    grown["record_spec"]["schema"]["properties"]["steeps"] = json!({"type": "integer"});
    let reply = person.put(&path(&own), &grown).await;
    assert_eq!(reply.status, 200, "{reply}");
    person
        .record(
            &own,
            &json!({"id": id(2), "start_time": at("11:00"), "kind": "black", "hot": true, "steeps": 4}),
        )
        .await
        .upload();
    let rows = person.rows("event", &own).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["cups"]),
        (&json!("green"), &json!(1)),
        "{}",
        rows[0]
    );
    assert!(
        rows[0]["steeps"] == json!(3) || rows[0]["extras"]["steeps"] == json!(3),
        "what was not declared then is lost: {}",
        rows[0]
    );
    assert_eq!(
        (&rows[1]["kind"], &rows[1]["hot"], &rows[1]["steeps"]),
        (&json!("black"), &json!(true), &json!(4)),
        "{}",
        rows[1]
    );
    assert_eq!(
        person
            .read("event", &own)
            .with("filter", "hot:true")
            .await
            .must_be(200)
            .rows()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_declared_property_stays_whether_or_not_records_have_it() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    let (mut other_kind, mut without) = (tea(), tea());
    other_kind["record_spec"]["schema"]["properties"]["kind"] = json!({"type": "number"});
    let properties = without["record_spec"]["schema"]["properties"].as_object_mut();
    properties.unwrap().remove("kind");
    without["record_spec"]["schema"]["required"] = json!([]);
    for changed in [other_kind, without] {
        let reply = person.put(&path(&own), &changed).await;
        assert_eq!(reply.faults(), ["body.record_spec.schema.properties.kind"]);
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.contains("once it is declared"), "{message}");
        assert!(!message.contains("stored"), "nothing is stored: {message}");
    }
}

#[tokio::test]
async fn rule_8_4_what_was_sent_before_its_field_was_declared_is_in_its_column() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    let early = json!({
        "id": id(1), "start_time": at("10:00"), "kind": "green", "mood": "happy", "steeps": 3,
        "n": "not a number", "left": [1], "water": {"litres": 1.5, "hot": true},
        "pot": "A1824C5F-E2FA-4B0D-9C1E-0123456789AB",
    });
    person.record(&own, &early).await.upload();
    let mut grown = tea();
    for (name, schema) in [
        ("mood", json!({"type": "string"})),
        ("steeps", json!({"type": "integer"})),
        ("n", json!({"type": "integer"})),
        (
            "water",
            json!({"type": "object", "properties": {"litres": {"type": "number"}}}),
        ),
        ("pot", json!({"type": "string", "format": "uuid"})),
        ("any", json!({})),
    ] {
        grown["record_spec"]["schema"]["properties"][name] = schema;
    }
    person.put(&path(&own), &grown).await.must_be(200);
    let late = json!({"id": id(2), "start_time": at("11:00"), "kind": "black", "mood": "calm", "steeps": 4});
    person.record(&own, &late).await.upload();
    let found = async |filter: &str| {
        let reply = person
            .read("event", &own)
            .with("filter", filter)
            .await
            .must_be(200);
        reply
            .rows()
            .iter()
            .map(|row| row["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("mood:happy").await, [json!(id(1))]);
    assert_eq!(found("steeps>=3").await, [json!(id(1)), json!(id(2))]);
    assert_eq!(found("water.litres:1.5").await, [json!(id(1))]);
    assert_eq!(found("mood!=null").await.len(), 2);
    assert!(found("n!=null").await.is_empty());
    let row = person.rows("event", &own).await[0].clone();
    for name in ["mood", "steeps", "left", "water"] {
        assert_eq!(row[name], early[name], "{name}: {row}");
    }
    assert_eq!(row["pot"], json!("a1824c5f-e2fa-4b0d-9c1e-0123456789ab"));
    assert_eq!(
        (&row["n"], &row["extras"]),
        (&json!(null), &json!({"n": "not a number"}))
    );
    let csv = person
        .read("event", &own)
        .with("format", "csv")
        .await
        .must_be(200);
    let mut reader = csv::Reader::from_reader(csv.text().as_bytes());
    let names = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let field = |row: usize, name: &str| {
        rows[row]
            .get(names.iter().position(|known| known == name).unwrap())
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        ["mood", "steeps", "n"].map(|name| field(0, name)),
        ["happy", "3", ""]
    );
    assert_eq!(["mood", "steeps"].map(|name| field(1, name)), ["calm", "4"]);
    for counts in [[0, 1, 0, 0], [0, 0, 1, 0]] {
        assert_eq!(person.record(&own, &row).await.counts(), counts);
        assert_eq!(person.rows("event", &own).await[0], row);
    }
}

#[tokio::test]
async fn rule_8_4_what_does_not_fit_a_field_declared_later_is_alike_in_all_forms() {
    let person = person();
    let text = json!({"type": "string"});
    let with =
        |properties: Value| json!({"name": "Late", "record_spec": {"schema": {"properties": properties}}});
    let own = person.define("Event", &with(json!({"t": text}))).await;
    let sent = json!({"id": id(1), "start_time": at("10:00"), "t": "x", "late": 1.5, "free": true});
    person.record(&own, &sent).await.upload();
    let grown = with(json!({"t": text, "late": text}));
    person.put(&path(&own), &grown).await.must_be(200);
    let told = async |output: &str| {
        let reply = person.read("event", &own).with("output", output).await;
        reply.must_be(200).text().to_owned()
    };
    let table: Value = serde_json::from_str(&told("jstable").await).unwrap();
    let line: Value = serde_json::from_str(told("ndjson").await.trim()).unwrap();
    let columns: Value = serde_json::from_str(&told("jscolumns").await).unwrap();
    assert_eq!(
        (&columns["late"][0], &columns["extras"][0]["late"]),
        (&json!(null), &json!(1.5))
    );
    for row in [&table[0], &line] {
        assert_eq!(
            (&row["late"], &row["extras"], &row["free"]),
            (&json!(null), &json!({"late": 1.5}), &json!(true))
        );
        assert_eq!(person.record(&own, row).await.counts(), [0, 0, 1, 0], "{row}");
    }
}

#[tokio::test]
async fn a_property_cannot_change_what_it_holds() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "kind": "green", "cups": 1}),
        )
        .await
        .upload();
    let mut changed = tea();
    changed["record_spec"]["schema"]["properties"]["cups"] = json!({"type": "string"});
    let reply = person.put(&path(&own), &changed).await;
    assert!(matches!(reply.status, 409 | 422), "{reply}");
    assert_eq!(person.rows("event", &own).await[0]["cups"], json!(1));
}

#[tokio::test]
async fn archived_types_leave_the_catalogue_and_come_back() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "kind": "green"}),
        )
        .await
        .upload();
    let listed = async || {
        person
            .get("/data/v1/catalog")
            .await
            .must_be(200)
            .rows()
            .iter()
            .any(|entry| entry["id"] == json!(own))
    };
    assert!(listed().await);
    person
        .put(&path(&own), &json!({"deprecated": true}))
        .await
        .must_be(200);
    assert!(!listed().await, "an archived type is listed");
    let asked_for = || person.get("/data/v1/catalog").with("data_type", &own);
    asked_for().await.problem(404);
    let described = person.get(&format!("/data/v1/catalog/{own}/v1")).await;
    assert_eq!(described.must_be(200).json()["deprecated"], json!(true));
    person
        .put(&path(&own), &json!({"deprecated": false}))
        .await
        .must_be(200);
    assert!(listed().await, "a restored type is not listed");
    asked_for().await.must_be(200);
    assert_eq!(person.rows("event", &own).await.len(), 1, "its records are there");
    assert_eq!(
        entry(&person, &own).await["name"],
        json!("Tea"),
        "what was not sent is as it was"
    );
}

#[tokio::test]
async fn a_changed_name_shows_in_the_catalogue() {
    let person = person();
    let own = person.define("Event", &tea()).await;
    person
        .put(&path(&own), &json!({"name": "Infusion"}))
        .await
        .must_be(200);
    let entry = entry(&person, &own).await;
    assert_eq!(
        (&entry["name"], &entry["description"]),
        (&json!("Infusion"), &json!("A cup of tea"))
    );
}

#[tokio::test]
async fn nobody_else_sees_changes_or_fills_an_own_type() {
    let (owner, other) = (person(), person());
    let own = owner.define("Event", &tea()).await;
    for reply in [
        other.put(&path(&own), &json!({"name": "Mine"})).await,
        other
            .record(&own, &json!({"start_time": at("10:00"), "kind": "green"}))
            .await,
        other.read("event", &own).await,
        other.get(&format!("/data/v1/catalog/{own}/v1")).await,
    ] {
        assert!(matches!(reply.status, 403 | 404), "{reply}");
    }
    assert_eq!(entry(&owner, &own).await["name"], json!("Tea"));
    owner
        .put(&path(&format!("Event/{}", Uuid::new_v4())), &json!({"name": "x"}))
        .await
        .problem(404);
}

#[tokio::test]
async fn own_types_survive_a_restart() {
    let server = crate::harness::Almanac::start();
    let person = server.person();
    let own = person.define("Event", &tea()).await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "kind": "green"}),
        )
        .await
        .upload();
    server.kill();
    server.launch();
    assert_eq!(person.rows("event", &own).await[0]["kind"], json!("green"));
    assert_eq!(entry(&person, &own).await["name"], json!("Tea"));
}

#[tokio::test]
async fn rule_8_4_members_of_an_object_that_nobody_declared_are_read_and_written_back() {
    let person = person();
    let nested = json!({"type": "object", "properties": {
        "x": {"type": "integer"}, "z": {"type": "string"},
        "inner": {"type": "object", "properties": {"a": {"type": "number"}}},
    }});
    let own = person
        .define(
            "Event",
            &json!({"name": "Nested", "record_spec": {"schema": {"properties": {"o": nested}}}}),
        )
        .await;
    let object = json!({"x": 1, "y": {"deep": [1, {"er": null}]}, "inner": {"a": 0.5, "b": "kept"}});
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "o": object, "loose": 1}),
        )
        .await
        .upload();
    let shown =
        json!({"x": 1, "z": null, "y": {"deep": [1, {"er": null}]}, "inner": {"a": 0.5, "b": "kept"}});
    let row = person.rows("event", &own).await[0].clone();
    assert_eq!((&row["o"], &row["loose"]), (&shown, &json!(1)));
    let counted = person.updates(&own).await;
    person.record(&own, &row).await.upload();
    assert_eq!(
        person.updates(&own).await,
        counted,
        "a row written back as it was read is a change"
    );
    assert_eq!(person.rows("event", &own).await[0], row);
}

#[tokio::test]
async fn an_events_own_members_may_be_called_value_and_unit() {
    let person = person();
    let schema = json!({
        "properties": {"value": {"type": "string"}, "unit": {"type": "integer"}}, "required": ["value"],
    });
    let own = person
        .define(
            "Event",
            &json!({"name": "Bet", "record_spec": {"schema": schema}}),
        )
        .await;
    let record = json!({"id": id(1), "start_time": at("10:00"), "value": "red", "unit": 3});
    person.record(&own, &record).await.upload();
    for data_type in [own.as_str(), "Event"] {
        let row = &person.rows("event", data_type).await[0];
        assert_eq!(
            (&row["value"], &row["unit"]),
            (&json!("red"), &json!(3)),
            "{data_type}"
        );
    }
    let found = person
        .read("event", &own)
        .with("filter", "value:red")
        .await
        .must_be(200)
        .rows();
    assert_eq!(found.len(), 1);
    person
        .record(&own, &json!({"start_time": at("10:00"), "value": 1}))
        .await
        .faults();
}

#[tokio::test]
async fn a_metric_may_say_again_what_its_value_is() {
    let person = person();
    let schema = json!({
        "properties": {
            "value": {"type": "number", "maximum": 10}, "unit": {"type": "string"},
            "note": {"type": "string"},
        },
    });
    let own = person
        .define(
            "Metric",
            &json!({"name": "Mood", "record_spec": {"unit": "points", "schema": schema}}),
        )
        .await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "value": 7.5, "note": "a"}),
        )
        .await
        .upload();
    let row = person.rows("metric", &own).await[0].clone();
    assert_eq!(
        (&row["value"], &row["unit"], &row["note"]),
        (&json!(7.5), &json!("points"), &json!("a"))
    );
    person.record(&own, &row).await.upload();
    assert_eq!(person.updates(&own).await, 1);
    let faults = person
        .record(&own, &json!({"start_time": at("10:00"), "value": 11}))
        .await
        .faults();
    assert!(faults[0].contains("value"), "{faults:?}");
    let refused =
        json!({"name": "x", "record_spec": {"schema": {"properties": {"value": {"type": "string"}}}}});
    person.post("/input/v1/data_type/Metric", &refused).await.faults();
}
