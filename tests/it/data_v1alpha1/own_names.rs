//! Names that a person gives to the fields of their own types (rule 5.4).

use serde_json::{Value, json};

use crate::harness::{Person, at, id, person, texts};

async fn metric(person: &Person, aggregation: &str, properties: Value, record: Value) -> String {
    let definition = json!({"name": "Own", "description": "x",
        "record_spec": {"unit": "u", "aggregation": aggregation, "schema": {"properties": properties}}});
    let own = person.define("Metric", &definition).await;
    let mut row = json!({"id": id(1), "start_time": at("10:00"), "end_time": at("10:30"), "value": 3});
    row.as_object_mut()
        .unwrap()
        .extend(record.as_object().unwrap().clone());
    person.records(&own, &[row]).await;
    own
}

#[tokio::test]
async fn rule_5_3_a_field_may_be_called_like_anything_that_is_computed() {
    let person = person();
    for name in [
        "measured value",
        "summed value",
        "cell_count",
        "cell_long",
        "cell count",
        "measured",
    ] {
        for (schema, value) in [
            ("number", json!(1000.0)),
            ("integer", json!(1000)),
            ("string", json!("x")),
            ("boolean", json!(true)),
        ] {
            for aggregation in ["discrete", "cumulative"] {
                let own = metric(
                    &person,
                    aggregation,
                    json!({name: {"type": schema}}),
                    json!({name: value}),
                )
                .await;
                let call = || {
                    person
                        .get(&format!("/data/v1alpha1/metric/{own}/agg/day"))
                        .with("start_time", "2024-05-01")
                        .with("end_time", "2024-05-02")
                        .with("function", "sum,avg,min,max")
                };
                let expected = json!({
                    "time": "2024-05-01T00:00:00Z", name: value, "sum": 3.0, "avg": 3.0, "min": 3.0,
                    "max": 3.0,
                });
                let rows = call().with("group", name).await.must_be(200).rows();
                assert_eq!(rows, [expected], "{name} {schema} {aggregation}");
                let filtered = call()
                    .with("filter", &format!("{name}!=null"))
                    .await
                    .must_be(200)
                    .rows();
                assert_eq!(filtered[0]["sum"], json!(3.0), "{name} {schema} {aggregation}");
            }
        }
    }
}

#[tokio::test]
async fn rule_5_4_every_name_that_a_definition_allows_can_be_asked_for() {
    let person = person();
    let properties = json!({
        "a": {"type": "object", "properties": {"b": {"type": "string"}, "c.d": {"type": "string"}}},
        "a.b": {"type": "string"},
        "My Field": {"type": "string"},
        "q\"x": {"type": "string"},
        "größe": {"type": "string"},
    });
    let definition =
        json!({"name": "Own", "description": "x", "record_spec": {"schema": {"properties": properties}}});
    let own = person.define("Event", &definition).await;
    let row = |n: u32, name: &str, value: Value| {
        json!({
            "id": id(n), "start_time": at(&format!("{n:02}:00")), name: value,
        })
    };
    let rows = [
        row(1, "a.b", json!("v")),
        row(2, "My Field", json!("v")),
        row(3, "q\"x", json!("v")),
        row(4, "größe", json!("v")),
        row(5, "a", json!({"b": "v", "c.d": "w"})),
    ];
    person.records(&own, &rows).await;
    for (filter, expected) in [
        ("a.b:v", 1),
        ("My Field:v", 2),
        ("q\"x=v", 3),
        ("größe~V", 4),
        ("a.c.d:w", 5),
    ] {
        let found = person
            .read("event", &own)
            .with("filter", filter)
            .await
            .must_be(200)
            .rows();
        assert_eq!(texts(&found, "id"), [id(expected).to_string()], "{filter}");
    }
    for name in ["a.b", "My Field", "q\"x", "größe", "a.c.d"] {
        let counted = person
            .get(&format!("/data/v1alpha1/event/{own}/agg/day"))
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
            .with("group", name)
            .await
            .must_be(200)
            .rows();
        let counts: Vec<(&Value, &Value)> = counted.iter().map(|row| (&row[name], &row["count"])).collect();
        let value = if name == "a.c.d" { json!("w") } else { json!("v") };
        assert_eq!(counts, [(&value, &json!(1)), (&Value::Null, &json!(4))], "{name}");
    }
    let selector = format!("{{__name__=\"{own}\", \"My Field\"=\"v\"}}[100y]");
    let selected = person
        .get("/data/v1/records")
        .with("q", &selector)
        .await
        .must_be(200);
    assert_eq!(selected.text().lines().count(), 1, "{selected}");
    for bad in ["a.b.c:v", "a.c:v", "my field:v", ".a:v", "a.:v", " :v"] {
        assert_eq!(
            person.read("event", &own).with("filter", bad).await.faults(),
            ["query.filter"],
            "{bad}"
        );
    }
}
