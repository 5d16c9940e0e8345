//! The forms of answers: columns, types, emptiness, and what they depend on.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};

use super::golden::A_NIGHT_AND_A_NAP;
use super::{DEEP, FIRST_OF_MAY, IN_BED, LIGHT, REM, ask, ask_as, hypnogram, rows, samples, slept};
use crate::harness::{METHODS, Person, Reply, Table, id, person};

pub(super) const CYCLE_COLUMNS: [&str; 13] = [
    "number",
    "start_time",
    "end_time",
    "total_time_ms",
    "total_time_asleep_ms",
    "latency_ms",
    "in_bed_start_time",
    "in_bed_end_time",
    "total_time_in_bed_ms",
    "in_bed_to_first_stage_ms",
    "sleep_stage_intervals",
    "sleep_stage_totals",
    "in_bed_intervals",
];
const STAGE_COLUMNS: [&str; 5] = ["cycle", "start_time", "end_time", "sleep_stage", "duration_ms"];
const TOTAL_COLUMNS: [&str; 6] = [
    "period_start_time",
    "value",
    "sum_ms",
    "min_start_time",
    "max_end_time",
    "cycles",
];

const ROUTES: [(&str, &[&str]); 4] = [
    ("sleep_stages", &STAGE_COLUMNS),
    ("sleep_cycles", &CYCLE_COLUMNS),
    ("sleep_cycles_extended", &CYCLE_COLUMNS),
    ("sleep_agg", &TOTAL_COLUMNS),
];

async fn asked(person: &Person, route: &str, method: &str) -> Reply {
    ask_as(person, route, method)
        .with("start_time", FIRST_OF_MAY.0)
        .with("end_time", FIRST_OF_MAY.1)
        .await
        .must_be(200)
}

#[tokio::test]
async fn no_sleep_is_an_empty_answer_with_all_columns_in_every_method() {
    let person = person();
    for (route, columns) in ROUTES {
        for method in METHODS {
            let reply = asked(&person, route, method).await;
            let table = Table::read(method, &reply.body);
            assert!(table.rows.is_empty(), "{route} {method}");
            match method {
                "ndjson" => assert!(reply.body.is_empty(), "{reply}"),
                "jstable" => assert_eq!(reply.json(), json!([])),
                _ => assert_eq!(table.columns, columns, "{route} {method}"),
            }
        }
    }
}

/// Text of CSV as the value that JSON shows; moments without their zone's sign.
fn plain(cell: &Value) -> Value {
    match cell {
        Value::String(text) if text.is_empty() => Value::Null,
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Array(_) | Value::Number(_))) => plain(&value),
            _ => json!(text.trim_end_matches('Z')),
        },
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), plain(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[tokio::test]
async fn all_eight_output_methods_carry_the_same_rows() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    for (route, columns) in ROUTES {
        let expected: Vec<Value> = asked(&person, route, "jstable")
            .await
            .rows()
            .iter()
            .map(plain)
            .collect();
        assert!(!expected.is_empty());
        for method in METHODS {
            let table = Table::read(method, &asked(&person, route, method).await.body);
            assert_eq!(table.columns, columns, "{route} {method}");
            let found: Vec<Value> = table.rows.iter().map(plain).collect();
            assert_eq!(found, expected, "{route} {method}");
        }
    }
}

#[tokio::test]
async fn frames_carry_real_types() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for method in ["arrow", "arrowraw", "parquet"] {
        let cycles = Table::read(method, &asked(&person, "sleep_cycles", method).await.body);
        assert_eq!(cycles.data_type("number"), DataType::Int64, "{method}");
        assert_eq!(cycles.data_type("start_time"), moment, "{method}");
        assert_eq!(cycles.data_type("latency_ms"), DataType::Int64, "{method}");
        let DataType::List(item) = cycles.data_type("sleep_stage_intervals") else {
            panic!("{method}: {}", cycles.data_type("sleep_stage_intervals"));
        };
        let DataType::Struct(fields) = item.data_type() else {
            panic!("{method}: {item}")
        };
        let names: Vec<&String> = fields.iter().map(|field| field.name()).collect();
        assert_eq!(
            names,
            ["start_time", "end_time", "duration_ms", "sleep_stage"],
            "{method}"
        );
        assert_eq!(fields[0].data_type(), &moment, "{method}");

        let reply = ask(&person, "sleep_agg")
            .with("output", method)
            .with("tz", "Asia/Kathmandu")
            .with("agg_functions", "avg")
            .await
            .must_be(200);
        let totals = Table::read(method, &reply.body);
        let local = DataType::Timestamp(TimeUnit::Microsecond, Some("Asia/Kathmandu".into()));
        assert_eq!(totals.data_type("period_start_time"), local, "{method}");
        assert_eq!(totals.data_type("avg_ms"), DataType::Float64, "{method}");
    }
}

#[tokio::test]
async fn the_order_in_which_samples_arrive_makes_no_difference() {
    let spans = [
        (IN_BED, "01 00:00", "01 08:00"),
        (LIGHT, "01 01:00", "01 04:00"),
        (DEEP, "01 01:00", "01 04:00"),
        (REM, "01 02:00", "01 02:30"),
        (LIGHT, "01 02:00", "01 02:30"),
    ];
    let mut found = Vec::new();
    for turn in 0..spans.len() {
        let person = person();
        let mut all = samples(&spans);
        all.rotate_left(turn);
        for sample in all {
            person.records("SleepStage", &[sample]).await;
        }
        found.push(ask(&person, "sleep_stages").await.must_be(200).rows());
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
}

#[tokio::test]
async fn an_answer_is_known_again_until_something_is_recorded() {
    let person = person();
    slept(&person, A_NIGHT_AND_A_NAP).await;
    let first = ask(&person, "sleep_cycles").await.must_be(200);
    let tag = first.header("etag").expect("an entity tag").to_owned();
    ask(&person, "sleep_cycles")
        .header("if-none-match", &tag)
        .await
        .must_be(304);
    let other = ask(&person, "sleep_cycles")
        .with("cycle_gap", "1h")
        .header("if-none-match", &tag)
        .await;
    other.must_be(200);
    person
        .records(
            "SleepStage",
            &[json!({
                "uuid": id(99), "start_date": "2024-05-01T20:00:00Z", "end_date": "2024-05-01T20:10:00Z",
                "value": 3,
            })],
        )
        .await;
    let next = ask(&person, "sleep_cycles")
        .header("if-none-match", &tag)
        .await
        .must_be(200);
    assert_eq!(next.rows().len(), 3);
}

#[tokio::test]
async fn rows_of_samples_name_the_source_that_data_sources_lists() {
    let person = person();
    let from = |number: u32, stage: i64, start: &str, end: &str, name: &str| {
        json!({
            "uuid": id(number), "start_date": super::may(start), "end_date": super::may(end), "value": stage,
            "source_properties": {"name": name, "sourceBundleIdentifier": format!("com.example.{name}")},
        })
    };
    person
        .records(
            "SleepStage",
            &[
                from(1, LIGHT, "01 01:00", "01 02:00", "watch"),
                from(2, LIGHT, "01 02:00", "01 03:00", "phone"),
                from(3, LIGHT, "01 02:00", "01 04:00", "watch"),
            ],
        )
        .await;
    let sources = person.sources().await;
    let named = |name: &str| {
        let key = format!("com.example.{name}");
        let source = sources.iter().find(|source| source["vendor_id"] == json!(key));
        source.unwrap_or_else(|| panic!("{key} in {sources:?}"))["id"].clone()
    };
    let rows_of = |found: &[Value]| -> Vec<(Value, String)> {
        found
            .iter()
            .map(|row| {
                (
                    row["source_id"].clone(),
                    row["start_time"].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    let resolved = ask(&person, "sleep_stages")
        .with("merge_contiguous", "false")
        .await
        .must_be(200)
        .rows();
    let expected = [
        (named("watch"), super::may("01 01:00")),
        (named("phone"), super::may("01 02:00")),
        (named("watch"), super::may("01 03:00")),
    ];
    assert_eq!(rows_of(&resolved), expected);
    assert_eq!(
        resolved[0].as_object().unwrap().keys().next_back().unwrap(),
        "source_id"
    );

    let apart = ask(&person, "sleep_stages")
        .with("merge_contiguous", "false")
        .with("merge_overlapping", "false")
        .await
        .must_be(200)
        .rows();
    assert_eq!(apart.len(), 3);
    let joined = ask(&person, "sleep_stages")
        .with("merge_overlapping", "False")
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        hypnogram(&joined),
        rows(&[
            (0, (LIGHT, "01 01:00", "01 04:00")),
            (0, (LIGHT, "01 02:00", "01 03:00"))
        ])
    );
    assert!(joined[0].get("source_id").is_none(), "{}", joined[0]);
}
