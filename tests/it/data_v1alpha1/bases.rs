//! `event/Event` and `metric/Metric`: all of a person's own types together, whatever their fields hold (rule
//! 5.5).

use serde_json::{Value, json};

use crate::harness::{Call, Person, at, id, person};

/// A type with the properties, and records of it, one an hour from that hour on.
async fn kept(person: &Person, base: &str, properties: Value, hour: u32, records: &[Value]) -> String {
    let definition =
        json!({"name": "Own", "description": "x", "record_spec": {"schema": {"properties": properties}}});
    let own = person.define(base, &definition).await;
    let rows = (hour..).zip(records).map(|(hour, record)| {
        let mut row = record.clone();
        row["id"] = json!(id(hour));
        row["start_time"] = json!(at(&format!("{hour:02}:00")));
        row
    });
    person.records(&own, &rows.collect::<Vec<_>>()).await;
    own
}

fn values(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

/// Types whose property `v` holds something else in each, with one record each.
async fn every_kind(person: &Person) -> Vec<Value> {
    let moment = "2024-05-01T10:00:00Z";
    let kinds = [
        (json!({"type": "string"}), json!("q \"1\"")),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}),
            json!({"a": 1, "b": "x"}),
        ),
        (
            json!({"type": "object", "properties": {"c": {"type": "boolean"}}}),
            json!({"c": true}),
        ),
        (json!({"type": "object"}), json!({"z": [1, 2.5]})),
        (json!({}), json!("any")),
        (json!({"type": "integer"}), json!(9_007_199_254_740_993_i64)),
        (json!({"type": "number"}), json!(1.5)),
        (json!({"type": "boolean"}), json!(true)),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", "b, c"]),
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!([1, 2]),
        ),
        (
            json!({"type": "array", "items": {"type": "object"}}),
            json!([{"x": 1}]),
        ),
        (json!({"type": "string", "format": "date-time"}), json!(moment)),
        (json!({"type": "string", "format": "uuid"}), json!(id(77))),
    ];
    for (hour, (schema, value)) in (0..).zip(&kinds) {
        kept(
            person,
            "Event",
            json!({"v": schema}),
            hour,
            &[json!({"v": value})],
        )
        .await;
    }
    kinds.into_iter().map(|(_, value)| value).collect()
}

#[tokio::test]
async fn rule_5_5_a_base_shows_every_value_as_its_own_type_does() {
    let person = person();
    let mut expected = every_kind(&person).await;
    kept(
        &person,
        "Event",
        json!({"other": {"type": "string"}}),
        20,
        &[json!({"other": "x"}), json!({"other": null})],
    )
    .await;
    expected.extend([Value::Null, Value::Null]);
    let rows = person.rows("event", "Event").await;
    assert_eq!(values(&rows, "v"), expected);
    assert_eq!(rows[13]["other"], json!("x"));
    let lines = person
        .get("/data/v1/records")
        .with("q", "Event[100y]")
        .await
        .must_be(200);
    let lines: Vec<Value> = lines
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values(&lines, "v"), expected);
    let latest = person
        .get("/data/v1/records")
        .with("q", "Event")
        .await
        .must_be(200);
    assert_eq!(latest.text().lines().count(), 1, "{latest}");
    for output in ["arrow", "parquet", "quotecsv"] {
        person
            .get("/data/v1/records")
            .with("q", "Event[100y]")
            .with("output", output)
            .await
            .must_be(200);
    }
    let csv = person
        .read("event", "Event")
        .with("format", "csv")
        .await
        .must_be(200);
    let mut reader = csv::Reader::from_reader(csv.body.as_ref());
    let place = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "v")
        .unwrap();
    let cells = reader
        .records()
        .map(|row| match row.unwrap().get(place).unwrap() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap(),
        });
    assert_eq!(cells.collect::<Vec<_>>(), expected, "nested values are JSON");
}

#[tokio::test]
async fn rule_5_5_types_without_records_add_columns_and_no_work() {
    let person = person();
    let text = json!({"type": "string"});
    for n in 0..12 {
        let properties = json!({(format!("empty{n}")): text});
        let spec = json!({"schema": {"properties": properties}});
        person
            .define("Event", &json!({"name": "Empty", "record_spec": spec}))
            .await;
    }
    kept(&person, "Event", json!({"a": text}), 1, &[json!({"a": "x"})]).await;
    kept(&person, "Event", json!({"b": text}), 2, &[json!({"b": "y"})]).await;
    let rows = person.rows("event", "Event").await;
    assert_eq!(values(&rows, "a"), [json!("x"), Value::Null]);
    assert_eq!(values(&rows, "b"), [Value::Null, json!("y")]);
    let table = person
        .read("event", "Event")
        .with("format", "csv")
        .await
        .must_be(200);
    let header = table.text().lines().next().unwrap_or_default();
    for column in ["empty0", "empty11", "a", "b"] {
        assert!(
            header.split(',').any(|name| name == column),
            "{column} in {header}"
        );
    }
    let page = person
        .read("event", "Event")
        .with("limit", "1")
        .await
        .must_be(200);
    assert_eq!(values(&page.rows(), "a"), [json!("x")]);
    let read_in = async |call: Call| {
        let plan = call.header("accept", "text/plain").with("explain", "plan");
        plan.await.must_be(200).text().matches("PartitionExec").count()
    };
    assert_eq!(read_in(person.read("event", "Event")).await, 2);
    assert_eq!(read_in(days(&person)).await, 2);
    let nothing = person
        .get("/data/v1alpha1/event/Event")
        .with("start_time", "2024-04-01")
        .with("end_time", "2024-04-02");
    assert_eq!(read_in(nothing).await, 0);
}

#[tokio::test]
async fn rule_5_5_a_base_of_metrics_too() {
    let person = person();
    for (hour, (kind, note)) in (1..).zip([
        ("integer", json!(7)),
        ("number", json!(1.5)),
        ("object", json!({"a": 1})),
    ]) {
        let definition = json!({
            "name": "Own", "description": "x",
            "record_spec": {
                "unit": "u", "aggregation": "discrete", "schema": {"properties": {"k": {"type": kind}}},
            },
        });
        let own = person.define("Metric", &definition).await;
        let row =
            json!({"id": id(hour), "start_time": at(&format!("{hour:02}:00")), "value": hour, "k": note});
        person.records(&own, &[row]).await;
    }
    let rows = person.rows("metric", "Metric").await;
    assert_eq!(values(&rows, "k"), [json!(7), json!(1.5), json!({"a": 1})]);
    assert_eq!(
        values(&rows, "value"),
        [json!(1.0), json!(2.0), json!(3.0)],
        "what all hold alike stays a number"
    );
}

fn days(person: &Person) -> Call {
    person
        .get("/data/v1alpha1/event/Event/agg/day")
        .with("start_time", "2024-05-01")
        .with("end_time", "2024-05-02")
}

#[tokio::test]
async fn rule_5_4_a_base_is_grouped_by_values_of_several_kinds() {
    let person = person();
    let number = |n: Value| json!({"v": n});
    kept(
        &person,
        "Event",
        json!({"v": {"type": "integer"}}),
        0,
        &[number(json!(1)), number(json!(2))],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"v": {"type": "number"}}),
        3,
        &[number(json!(1.0)), number(json!(1.5))],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"v": {"type": "string"}}),
        6,
        &[number(json!("1")), number(json!(null))],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"v": {"type": "boolean"}}),
        9,
        &[number(json!(true))],
    )
    .await;
    let rows = days(&person).with("group", "v").await.must_be(200).rows();
    let found: Vec<(Value, i64)> = rows
        .iter()
        .map(|row| (row["v"].clone(), row["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            (json!("1"), 1),
            (json!(1), 2),
            (json!(1.5), 1),
            (json!(2), 1),
            (json!(true), 1),
            (Value::Null, 1),
        ],
        "equal numbers are one group"
    );
    // Whichever types the conditions leave, the field is there.
    kept(
        &person,
        "Event",
        json!({"w": {"type": "string"}}),
        12,
        &[json!({"w": "x"})],
    )
    .await;
    let rows = days(&person)
        .with("group", "v")
        .with("filter", "w:x")
        .await
        .must_be(200)
        .rows();
    assert_eq!((&rows[0]["v"], &rows[0]["count"]), (&Value::Null, &json!(1)));
    let none = days(&person)
        .with("group", "v")
        .with("filter", "w:x")
        .with("filter", "v:1")
        .await
        .must_be(200);
    assert_eq!(none.text(), "[]");
    kept(
        &person,
        "Event",
        json!({"v": {"type": "object"}}),
        13,
        &[json!({"v": {"a": 1}})],
    )
    .await;
    assert_eq!(days(&person).with("group", "v").await.faults(), ["query.group"]);
}

#[tokio::test]
async fn rule_5_4_a_value_that_fits_some_types_of_a_base_selects_nothing_of_the_others() {
    let person = person();
    kept(
        &person,
        "Event",
        json!({"k": {"type": "string"}, "common": {"type": "string"}}),
        0,
        &[json!({"k": "x", "common": "c"}), json!({"k": "7"})],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"n": {"type": "integer"}, "k": {"type": "integer"}, "common": {"type": "string"}}),
        5,
        &[
            json!({"k": 7, "common": "c"}),
            json!({"k": 8}),
            json!({"k": null}),
        ],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"common": {"type": "string"}}),
        10,
        &[json!({"common": "c"})],
    )
    .await;
    let found = async |filters: &[&str]| {
        let call = filters
            .iter()
            .fold(person.read("event", "Event"), |call, filter| {
                call.with("filter", filter)
            });
        let hour = |row: &Value| {
            row["start_time"].as_str().unwrap()[11..13]
                .parse::<u32>()
                .unwrap()
        };
        call.await
            .must_be(200)
            .rows()
            .iter()
            .map(hour)
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&["k:x"]).await, [0]);
    assert_eq!(found(&["k:7"]).await, [1, 5]);
    assert_eq!(found(&["k:x", "k:7"]).await, [0, 1, 5]);
    assert_eq!(found(&["k:x", "common:c"]).await, [0]);
    assert_eq!(found(&["k~X"]).await, [0], "an integer has no part that is text");
    assert_eq!(
        found(&["k!=x"]).await,
        [1, 5, 6],
        "whatever an integer is, it is not x"
    );
    assert_eq!(found(&["k:x", "n:1"]).await, Vec::<u32>::new());
    for unfit in [&["n:x"][..], &["k:x", "n:x"], &["nosuch:1"]] {
        let call = unfit.iter().fold(person.read("event", "Event"), |call, filter| {
            call.with("filter", filter)
        });
        assert_eq!(call.await.faults(), ["query.filter"], "{unfit:?}");
    }
    let counted = days(&person).with("filter", "k:x").await.must_be(200).rows();
    assert_eq!(counted[0]["count"], json!(1));
    let selected = person
        .get("/data/v1/records")
        .with("q", "Event{k=\"x\"}[100y]")
        .await
        .must_be(200);
    assert_eq!(selected.text().lines().count(), 1, "{selected}");
    let summary = person
        .read("event", "Event/summary")
        .with("filter", "k:x")
        .await
        .must_be(200);
    assert_eq!(summary.json()["count"], json!(1));
}

#[tokio::test]
async fn rule_5_6_a_base_has_the_same_columns_whatever_is_asked_of_it() {
    let person = person();
    kept(
        &person,
        "Event",
        json!({"common": {"type": "string"}}),
        0,
        &[json!({"common": "a"})],
    )
    .await;
    kept(
        &person,
        "Event",
        json!({"k": {"type": "string"}, "common": {"type": "string"}}),
        1,
        &[json!({"common": "b", "k": "x"})],
    )
    .await;
    let header = async |filter: Option<&str>| {
        let call = person.read("event", "Event").with("format", "csv");
        let call = filter
            .into_iter()
            .fold(call, |call, filter| call.with("filter", filter));
        call.await.must_be(200).text().lines().next().unwrap().to_owned()
    };
    let all = header(None).await;
    for filter in ["k:x", "common:a", "k:nothing"] {
        assert_eq!(header(Some(filter)).await, all, "{filter}");
    }
}
