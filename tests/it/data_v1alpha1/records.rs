//! `event/{data_type}` and `metric/{data_type}`: ranges, orders, formats, and the ids of own types.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Person, Table, at, id, number, person, steps, texts};

async fn three_moments() -> Person {
    let person = person();
    let moment = |n: u32, time: &str| {
        json!({
            "id": id(n), "recorded_at": at(time), "note": format!("note {n}"), "tags": ["t"],
            "sources": ["com.example"],
        })
    };
    person
        .records(
            "MomentAnnotation",
            &[moment(3, "12:00"), moment(1, "10:00"), moment(2, "11:00")],
        )
        .await;
    person
}

#[tokio::test]
async fn rule_5_2_rows_come_by_start_and_desc_turns_them() {
    let person = three_moments().await;
    let ids = |rows: &[Value]| texts(rows, "id");
    let ascending = person.rows("event", "MomentAnnotation").await;
    assert_eq!(ids(&ascending), [1, 2, 3].map(|n| id(n).to_string()));
    assert_eq!(
        person
            .read("event", "MomentAnnotation")
            .with("sort", "asc")
            .await
            .must_be(200)
            .rows(),
        ascending
    );
    let descending = person
        .read("event", "MomentAnnotation")
        .with("sort", "desc")
        .await
        .must_be(200)
        .rows();
    assert_eq!(ids(&descending), [3, 2, 1].map(|n| id(n).to_string()));
    person
        .read("event", "MomentAnnotation")
        .with("sort", "sideways")
        .await
        .faults();
}

#[tokio::test]
async fn rule_5_1_records_are_selected_by_intersection() {
    let person = three_moments().await;
    let between = |start: &str, end: &str| {
        person
            .get("/data/v1alpha1/event/MomentAnnotation")
            .with("start_time", &at(start))
            .with("end_time", &at(end))
    };
    assert_eq!(between("10:00", "12:00").await.must_be(200).rows().len(), 2);
    assert_eq!(between("10:01", "10:59").await.must_be(200).rows().len(), 0);
    assert_eq!(between("11:00", "11:00").await.must_be(200).rows().len(), 0);
    between("12:00", "11:00").await.faults();
    let intervals = person;
    intervals
        .records("StepCount", &[steps(id(1), &at("13:30"), &at("14:30"), 1)])
        .await;
    let reply = intervals
        .get("/data/v1alpha1/metric/StepCount")
        .with("start_time", &at("14:00"))
        .with("end_time", &at("15:00"))
        .await;
    assert_eq!(reply.must_be(200).rows().len(), 1);
}

#[tokio::test]
async fn rule_5_8_annotations_have_the_published_shape() {
    let person = three_moments().await;
    let row = &person.rows("event", "MomentAnnotation").await[0];
    for name in [
        "id",
        "recorded_at",
        "source_name",
        "source_id",
        "sources",
        "note",
        "tags",
        "metadata",
    ] {
        assert!(row.get(name).is_some(), "no {name} in {row}");
    }
    person
        .record(
            "NumericAnnotation",
            &json!({"recorded_at": at("10:00"), "value": 5, "unit": "mg"}),
        )
        .await
        .upload();
    let row = &person.rows("metric", "NumericAnnotation").await[0];
    assert_eq!((number(row, "value"), &row["unit"]), (5.0, &json!("mg")));
}

#[tokio::test]
async fn rule_5_8_events_and_metrics_have_the_published_shape() {
    let person = person();
    let event = person
        .define(
            "Event",
            &json!({"name": "Tea", "record_spec": {"schema": {"properties": {"cups": {"type": "integer"}}}}}),
        )
        .await;
    person
        .record(
            &event,
            &json!({
                "id": id(1), "start_time": at("10:00"), "end_time": at("10:10"), "tags": ["hot"],
                "sources": ["com.example"], "cups": 2,
            }),
        )
        .await
        .upload();
    let row = &person.rows("event", &event).await[0];
    assert_eq!(
        (&row["id"], &row["tags"], &row["sources"], &row["cups"]),
        (&json!(id(1)), &json!(["hot"]), &json!(["com.example"]), &json!(2))
    );
    assert!(
        row["start_time"]
            .as_str()
            .unwrap()
            .starts_with("2024-05-01T10:00:00"),
        "{row}"
    );
    assert!(
        row["end_time"]
            .as_str()
            .unwrap()
            .starts_with("2024-05-01T10:10:00"),
        "{row}"
    );
    let metric = person
        .define(
            "Metric",
            &json!({"name": "Focus", "record_spec": {"unit": "points", "aggregation": "discrete"}}),
        )
        .await;
    person
        .record(
            &metric,
            &json!({"id": id(1), "start_time": at("10:00"), "value": 7.5}),
        )
        .await
        .upload();
    let row = &person.rows("metric", &metric).await[0];
    assert_eq!((number(row, "value"), &row["unit"]), (7.5, &json!("points")));
}

#[tokio::test]
async fn rule_5_5_the_base_alone_returns_all_its_definitions_and_each_definition_its_own() {
    let person = person();
    let (tea, coffee) = (
        person.define("Event", &json!({"name": "Tea"})).await,
        person.define("Event", &json!({"name": "Coffee"})).await,
    );
    let cup = |n: u32| json!({"id": id(n), "start_time": at("10:00")});
    person.records(&tea, &[cup(1), cup(2)]).await;
    person.records(&coffee, &[cup(3)]).await;
    person.records("Event", &[cup(4)]).await;
    assert_eq!(person.rows("event", &tea).await.len(), 2);
    assert_eq!(person.rows("event", &coffee).await.len(), 1);
    assert_eq!(person.rows("event", &tea.replace('/', "%2F")).await.len(), 2);
    assert_eq!(
        person
            .rows("event", &tea.to_uppercase().replace("EVENT", "Event"))
            .await
            .len(),
        2
    );
    let all = person.rows("event", "Event").await;
    assert_eq!(texts(&all, "id"), [1, 2, 3, 4].map(|n| id(n).to_string()));
}

#[tokio::test]
async fn an_annotations_definition_is_read_by_its_id() {
    let person = person();
    let definition = Uuid::new_v4();
    let named = json!({
        "id": id(1), "recorded_at": at("10:00"), "sources": [format!("com.almanac.annotation.{definition}")],
    });
    person
        .records(
            "MomentAnnotation",
            &[named, json!({"id": id(2), "recorded_at": at("10:01")})],
        )
        .await;
    let rows = person
        .rows("event", &format!("MomentAnnotation/{definition}"))
        .await;
    assert_eq!(texts(&rows, "id"), [id(1).to_string()]);
    assert_eq!(
        rows[0]["source_id"],
        json!(format!("com.almanac.annotation.{definition}"))
    );
    assert_eq!(person.rows("event", "MomentAnnotation").await.len(), 2);
}

#[tokio::test]
async fn unknown_types_are_404() {
    let person = person();
    for path in [
        "event/NoSuchType",
        "metric/NoSuchType",
        "event/Event/not-a-uuid",
        "event/Event/0191f000-0000-7000-8000-000000000001",
    ] {
        let reply = person
            .get(&format!("/data/v1alpha1/{path}"))
            .with("start_time", &at("10:00"))
            .with("end_time", &at("11:00"))
            .await;
        reply.problem(404);
    }
}

#[tokio::test]
async fn rule_5_6_csv_has_a_header_and_json_is_the_default() {
    let person = three_moments().await;
    let json_reply = person
        .read("event", "MomentAnnotation")
        .with("format", "json")
        .await
        .must_be(200);
    assert_eq!(json_reply.rows(), person.rows("event", "MomentAnnotation").await);
    let csv = person
        .read("event", "MomentAnnotation")
        .with("format", "csv")
        .await
        .must_be(200);
    assert!(
        csv.header("content-type")
            .unwrap_or_default()
            .starts_with("text/csv"),
        "{csv}"
    );
    assert!(!csv.text().contains('\r'), "lines end in a line feed alone");
    let table = Table::read("csv", &csv.body);
    assert_eq!(table.rows.len(), 3);
    assert_eq!(texts(&table.rows, "id"), [1, 2, 3].map(|n| id(n).to_string()));
    assert_eq!(
        texts(&table.rows, "tags"),
        ["[\"t\"]"; 3],
        "nested values are JSON"
    );
    let empty = person
        .get("/data/v1alpha1/event/MomentAnnotation")
        .with("format", "csv")
        .with("start_time", &at("20:00"))
        .with("end_time", &at("21:00"))
        .await;
    assert_eq!(empty.must_be(200).text().lines().count(), 1, "the header always");
}

#[tokio::test]
async fn an_unknown_format_is_422_and_names_those_that_exist() {
    let reply = person()
        .read("event", "MomentAnnotation")
        .with("format", "xml")
        .await;
    assert!(
        reply.faults().iter().any(|place| place == "query.format"),
        "{reply}"
    );
    assert!(
        reply
            .text()
            .contains(r#"unknown format \"xml\"; use one of json, csv"#),
        "{reply}"
    );
}

#[tokio::test]
async fn the_deprecated_latest_and_summary_still_answer() {
    let person = three_moments().await;
    let latest = person.read("event", "MomentAnnotation/latest").await.must_be(200);
    assert!(latest.text().contains("note 3"), "{latest}");
    person
        .read("event", "MomentAnnotation/summary")
        .await
        .must_be(200)
        .json();
}

#[tokio::test]
async fn raw_metrics_are_read_under_their_class_too() {
    let person = person();
    person.two_heart_rates().await;
    let rows = person.rows("metric", "HeartRate").await;
    assert_eq!(
        rows.iter().map(|row| number(row, "value")).collect::<Vec<_>>(),
        [60.0, 61.0]
    );
}
