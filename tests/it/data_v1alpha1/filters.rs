//! Rule 5.4: `filter`, the golden case F01 and its surroundings.

use serde_json::json;

use crate::harness::{Person, at, id, person, texts};

async fn golden_rows() -> Person {
    let person = person();
    let rows = [
        json!({
            "id": id(1), "source_id": "com.x.annotation.a", "sources": ["com.x.annotation.a"], "value": 3,
            "note": "tea: green", "tags": ["t1"],
        }),
        json!({
            "id": id(2), "source_id": "com.x.annotation.b", "sources": ["com.x.annotation.b"], "value": 5,
            "note": null, "tags": ["t1", "t2"],
        }),
        json!({
            "id": id(3), "source_id": "o'brien", "sources": ["o'brien"], "value": 4, "note": "50% off",
            "tags": [],
        }),
    ];
    for (n, mut row) in rows.into_iter().enumerate() {
        row["recorded_at"] = json!(crate::harness::instant(n as u32));
        person.record("NumericAnnotation", &row).await.upload();
    }
    person
}

async fn found(person: &Person, filters: &[&str]) -> Vec<String> {
    let call = filters
        .iter()
        .fold(person.read("metric", "NumericAnnotation"), |call, filter| {
            call.with("filter", filter)
        });
    texts(&call.await.must_be(200).rows(), "id")
}

#[tokio::test]
async fn filters_that_ask_one_field_for_equality_are_alternatives_and_all_others_hold() {
    let person = golden_rows().await;
    for (filters, expected) in [
        (&["source_id:com.x.annotation.a"][..], &[1][..]),
        (
            &["source_id:com.x.annotation.a", "source_id:com.x.annotation.b"],
            &[1, 2],
        ),
        (&["value>=4"], &[2, 3]),
        (&["value>=4", "tags:t2"], &[2]),
        (&["note:tea: green"], &[1]),
        (&["note:null"], &[2]),
        (&["note!=null"], &[1, 3]),
        (&["source_id:o'brien"], &[3]),
        (&["note~50%"], &[3]),
        (&["source_id:' OR 1=1 --"], &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(found(&person, filters).await, expected, "{filters:?}");
    }
}

#[tokio::test]
async fn a_filter_without_a_known_field_or_a_value_that_fits_is_refused() {
    let person = golden_rows().await;
    for bad in ["nosuch:1", "value:abc", "value", "", ":x"] {
        let faults = person
            .read("metric", "NumericAnnotation")
            .with("filter", bad)
            .await
            .faults();
        assert!(faults[0].starts_with("query.filter"), "{bad}: {faults:?}");
    }
}

#[tokio::test]
async fn every_operator_compares_in_the_fields_type() {
    let person = golden_rows().await;
    for (filter, count) in [
        ("value=3", 1),
        ("value=3.0", 1),
        ("value!=3", 2),
        ("value<4", 1),
        ("value<=4", 2),
        ("value>4", 1),
        ("note~TEA", 1),
        ("note~_", 0),
        ("note~%", 1),
        ("note:\"tea: green\"", 1),
        ("note:\"null\"", 0),
        ("tags:t1", 2),
        ("tags!=t2", 2),
        ("sources:o'brien", 1),
    ] {
        assert_eq!(found(&person, &[filter]).await.len(), count, "{filter}");
    }
}

#[tokio::test]
async fn more_than_20_filters_or_very_long_ones_are_422() {
    let person = golden_rows().await;
    let many = (0..21).fold(person.read("metric", "NumericAnnotation"), |call, n| {
        call.with("filter", &format!("value>={n}"))
    });
    many.await.faults();
    person
        .read("metric", "NumericAnnotation")
        .with("filter", &format!("note:{}", "x".repeat(2000)))
        .await
        .faults();
}

#[tokio::test]
async fn fields_of_own_types_filter_too() {
    let person = person();
    let schema = json!({
        "properties": {
            "kind": {"type": "string"}, "cups": {"type": "integer"},
            "when": {"type": "string", "format": "date-time"}, "hot": {"type": "boolean"},
        },
    });
    let own = person
        .define(
            "Event",
            &json!({"name": "Tea", "record_spec": {"schema": schema}}),
        )
        .await;
    for (n, (kind, cups, hot)) in [("oolong", 1, true), ("green", 2, false), ("black", 10, true)]
        .into_iter()
        .enumerate()
    {
        let n = n as u32;
        let cup = json!({
            "id": id(n), "start_time": crate::harness::instant(n), "kind": kind, "cups": cups, "hot": hot,
            "when": at("10:00"),
        });
        person.record(&own, &cup).await.upload();
    }
    for (filter, expected) in [
        ("kind:green", &[1][..]),
        ("cups>=2", &[1, 2]),
        ("hot:true", &[0, 2]),
        ("when>2024-05-01T09:00:00Z", &[0, 1, 2]),
    ] {
        let rows = person
            .read("event", &own)
            .with("filter", filter)
            .await
            .must_be(200)
            .rows();
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(texts(&rows, "id"), expected, "{filter}");
    }
    person
        .read("event", &own)
        .with("filter", "cups:many")
        .await
        .faults();
}

#[tokio::test]
async fn a_field_that_no_type_of_a_base_has_is_told_with_the_base_and_all_fields() {
    let person = person();
    for (name, field) in [("One", "aa"), ("Other", "bb")] {
        let schema = json!({"properties": {field: {"type": "string"}}});
        let own = json!({"name": name, "record_spec": {"schema": schema}});
        person.define("Event", &own).await;
    }
    let filtered = person.read("event", "Event").with("filter", "cc:1").await;
    let grouped = person.read("event", "Event/agg/day").with("group", "cc").await;
    for (reply, place) in [(filtered, "query.filter"), (grouped, "query.group")] {
        assert_eq!(reply.faults(), [place], "{reply}");
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.starts_with("`cc` is not a field of Event;"), "{message}");
        for known in ["start_time", "aa", "bb", "extras"] {
            assert!(message.contains(known), "{known}: {message}");
        }
        assert_eq!(message.matches("start_time").count(), 1, "{message}");
    }
}

/// A zero stays as it was sent, and is found whatever its sign.
#[tokio::test]
async fn zeros_are_equal_whatever_their_sign() {
    let person = person();
    let number = json!({"type": "number"});
    let schema = json!({"properties": {"real": number, "list": {"type": "array", "items": number}}});
    let own = person
        .define(
            "Event",
            &json!({"name": "Zeros", "record_spec": {"schema": schema}}),
        )
        .await;
    for (n, number) in (0..).zip([0.0, -0.0, 1.0]) {
        let row = json!({
            "id": id(n), "start_time": crate::harness::instant(n), "real": number, "list": [7.0, number],
        });
        person.record(&own, &row).await.upload();
    }
    for (filters, expected) in [
        (&["list:0"][..], &[0, 1][..]),
        (&["list:-0.0"], &[0, 1]),
        (&["list!=0"], &[2]),
        (&["list!=-0"], &[2]),
        (&["list:1", "list:0.0"], &[0, 1, 2]),
        (&["real:0"], &[0, 1]),
        (&["real:0", "real:5", "real:6", "real:7"], &[0, 1]),
        (&["real!=-0.0"], &[2]),
    ] {
        let call = filters.iter().fold(person.read("event", &own), |call, filter| {
            call.with("filter", filter)
        });
        let rows = call.await.must_be(200).rows();
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(texts(&rows, "id"), expected, "{filters:?}");
    }
    for (label, expected) in [("list=\"0\"", &[0, 1][..]), ("list!=\"-0\"", &[2])] {
        let selector = format!("{{__name__=\"{own}\", {label}}}[100y]");
        let call = person.get("/data/v1/records").with("q", &selector);
        let rows = call.with("output", "jstable").await.must_be(200).rows();
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(texts(&rows, "id"), expected, "{selector}");
    }
    let sent = person.read("event", &own).await.must_be(200).rows();
    assert!(sent[1]["real"].as_f64().is_some_and(f64::is_sign_negative));
}

/// Whole numbers of which floats represent only some.
const WHOLE: [i64; 5] = [
    i64::MAX,
    i64::MAX - 1,
    9_007_199_254_740_993,
    9_007_199_254_740_992,
    i64::MIN,
];

#[tokio::test]
async fn rule_5_4_whole_numbers_are_compared_exactly() {
    let person = person();
    let whole = json!({"type": "integer"});
    let schema = json!({"properties": {"n": whole, "all": {"type": "array", "items": whole}}});
    let own = person
        .define(
            "Event",
            &json!({"name": "Large", "record_spec": {"schema": schema}}),
        )
        .await;
    let mut records: Vec<_> = (0..)
        .zip(WHOLE)
        .map(|(n, number)| {
            json!({"id": id(n), "start_time": crate::harness::instant(n), "n": number, "all": [7, number]})
        })
        .collect();
    records.push(json!({"id": id(5), "start_time": crate::harness::instant(5)}));
    person.records(&own, &records).await;
    for (filter, expected) in [
        ("n=9223372036854775807", &[0][..]),
        ("n=9223372036854775808", &[]),
        ("n!=9223372036854775808", &[0, 1, 2, 3, 4]),
        ("n<9223372036854775808", &[0, 1, 2, 3, 4]),
        ("n>=9223372036854775808", &[]),
        ("n=-9223372036854775808", &[4]),
        ("n=-9223372036854775809", &[]),
        ("n>-9223372036854775809", &[0, 1, 2, 3, 4]),
        ("n<=-9223372036854775809", &[]),
        ("n=9007199254740992.5", &[]),
        ("n!=9007199254740992.5", &[0, 1, 2, 3, 4]),
        ("n>9007199254740992.5", &[0, 1, 2]),
        ("n>=9007199254740992.5", &[0, 1, 2]),
        ("n<9007199254740992.5", &[3, 4]),
        ("n<=9007199254740992.5", &[3, 4]),
        ("n=9.007199254740993e15", &[2]),
        ("n=9007199254740992.0", &[3]),
        ("all=9.007199254740993e15", &[2]),
        ("all=9223372036854775808", &[]),
        ("all!=9223372036854775808", &[0, 1, 2, 3, 4, 5]),
        ("all=7.0", &[0, 1, 2, 3, 4]),
    ] {
        let rows = person
            .read("event", &own)
            .with("filter", filter)
            .await
            .must_be(200)
            .rows();
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(texts(&rows, "id"), expected, "{filter}");
    }
    let end = 1_714_521_600 + 24 * 3600;
    for (label, expected) in [
        ("n=\"9223372036854775808\"", &[][..]),
        ("n=\"9.223372036854775807e18\"", &[0]),
        ("n!=\"9223372036854775808\"", &[0, 1, 2, 3, 4, 5]),
        ("n!=\"9007199254740993\"", &[0, 1, 3, 4, 5]),
    ] {
        let reply = person
            .get("/data/v1/records")
            .with("q", &format!("{{__name__=\"{own}\",{label}}}[2d] @ {end}"))
            .await
            .must_be(200);
        let rows: Vec<serde_json::Value> = reply
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let expected: Vec<String> = expected.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(texts(&rows, "id"), expected, "{label}");
    }
}
