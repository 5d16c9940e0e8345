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

/// The numbers in `ids` as the ids of records.
fn ids(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|n| id(*n).to_string()).collect()
}

const VERSION: &str = "source_properties.operatingSystemVersion";

#[tokio::test]
async fn rule_5_4_a_version_is_found_by_the_numbers_that_are_shown() {
    let person = person();
    let versions = [
        json!([17, 5]),
        json!("Version 17.5 (Build 21F90)"),
        json!("beta"),
        json!(null),
        json!([16, 17]),
    ];
    let samples: Vec<_> = (0..)
        .zip(versions)
        .map(|(n, version)| {
            json!({"uuid": id(n), "start_date": crate::harness::instant(n), "value": 60,
                "source_properties": {"name": "Watch", "operatingSystemVersion": version}})
        })
        .collect();
    person.records("HeartRate", &samples).await;
    let filtered = |conditions: &[&str]| {
        let heart_rates = person.read("metric", "HeartRate");
        conditions.iter().fold(heart_rates, |call, condition| {
            call.with("filter", &format!("{VERSION}{condition}"))
        })
    };
    for (conditions, expected) in [
        (&[":17"][..], &[0, 1, 4][..]),
        (&["=17.0"], &[0, 1, 4]),
        (&[":5"], &[0, 1]),
        (&[":17.5"], &[]),
        (&["!=17"], &[2, 3]),
        (&["!=5"], &[2, 3, 4]),
        (&[":null"], &[2, 3]),
        (&["!=null"], &[0, 1, 4]),
        (&[":16", ":5"], &[0, 1, 4]),
        (&[":16", ":5", "!=16"], &[0, 1]),
    ] {
        let rows = filtered(conditions).await.must_be(200).rows();
        assert_eq!(texts(&rows, "uuid"), ids(expected), "{conditions:?}");
    }
    for wrong in [":\"Version 17.5 (Build 21F90)\"", ":[17,5]", ">9", "~17"] {
        assert_eq!(filtered(&[wrong]).await.faults(), ["query.filter"], "{wrong}");
    }
    for (label, expected) in [
        ("=\"17\"", &[0, 1, 4][..]),
        ("!=\"17\"", &[2, 3]),
        ("=\"\"", &[2, 3]),
    ] {
        let selector = format!("{{__name__=\"HeartRate\",\"{VERSION}\"{label}}}[100y]");
        let call = person.get("/data/v1/records").with("q", &selector);
        let rows = call.with("output", "jstable").await.must_be(200).rows();
        assert_eq!(texts(&rows, "uuid"), ids(expected), "{selector}");
    }
    let sql = "SELECT count(*) AS n FROM heart_rate \
               WHERE array_has(source_properties['operatingSystemVersion'], 17)";
    let counted = person.post("/data/v1/sql", &json!({"query": sql})).await;
    assert_eq!(counted.must_be(200).rows()[0]["n"], 3);
    let grouped = person
        .read("metric", "HeartRate/agg/day")
        .with("function", "avg")
        .with("group", VERSION);
    assert_eq!(grouped.await.faults(), ["query.group"]);
}

#[tokio::test]
async fn rule_5_4_in_a_list_of_several_kinds_what_is_no_structure_is_found() {
    let person = person();
    let lists = [
        json!(["Ada", {"name": "Ben"}]),
        json!(["Ada's mother"]),
        json!([]),
        json!(null),
        json!([{"name": "Ada"}]),
    ];
    for (n, people) in (0..).zip(lists) {
        let record = json!({"id": id(n), "recorded_at": crate::harness::instant(n), "people": people});
        person.record("PeopleAnnotation", &record).await.upload();
    }
    let filtered = |filters: &[&str]| {
        let met = person.read("event", "PeopleAnnotation");
        filters
            .iter()
            .fold(met, |call, filter| call.with("filter", filter))
    };
    for (filters, expected) in [
        (&["people:Ada"][..], &[0][..]),
        (&["people:\"Ada\""], &[0]),
        (&["people:Ben"], &[]),
        (&["people:Ada", "people:Ada's mother"], &[0, 1]),
        (&["people!=Ada"], &[1, 2, 3, 4]),
        (&["people:null"], &[3]),
        (&["people!=null"], &[0, 1, 2, 4]),
    ] {
        let rows = filtered(filters).await.must_be(200).rows();
        assert_eq!(texts(&rows, "id"), ids(expected), "{filters:?}");
    }
    for wrong in ["people>Ada", "people~Ada"] {
        assert_eq!(filtered(&[wrong]).await.faults(), ["query.filter"], "{wrong}");
    }
    for (label, expected) in [
        ("people=\"Ada\"", &[0][..]),
        ("people=~\"Ada.*\"", &[0, 1]),
        ("people!=\"Ada\"", &[1, 2, 3, 4]),
        ("people=\"\"", &[2, 3]),
        ("people!=\"\"", &[0, 1, 4]),
    ] {
        let selector = format!("PeopleAnnotation{{{label}}}[100y]");
        let call = person.get("/data/v1/records").with("q", &selector);
        let rows = call.with("output", "jstable").await.must_be(200).rows();
        assert_eq!(texts(&rows, "id"), ids(expected), "{selector}");
    }
    let grouped = person
        .read("event", "PeopleAnnotation/agg/day")
        .with("group", "people");
    assert_eq!(grouped.await.faults(), ["query.group"]);
}

/// They are kept as JSON text where a schema leaves their members open, and are structures all the same.
#[tokio::test]
async fn a_list_of_structures_is_compared_with_nothing_but_null_however_it_is_kept() {
    let person = person();
    let objects = json!({"type": "array", "items": {"type": "object"}});
    let schema = json!({"properties": {"steps": objects, "within": {"type": "object", "properties": {
        "steps": objects, "mixed": {"type": "array"},
    }}}});
    let own = person
        .define(
            "Event",
            &json!({"name": "Recipe", "record_spec": {"schema": schema}}),
        )
        .await;
    let record = json!({
        "id": id(0), "start_time": crate::harness::instant(0), "steps": [{"n": 1}],
        "within": {"steps": [{"n": 2}], "mixed": ["a", 2, true, {"n": 3}]},
    });
    person.record(&own, &record).await.upload();
    let filtered = |filter: &str| person.read("event", &own).with("filter", filter);
    for wrong in ["steps:x", "steps!=x", "within.steps:x", "within.mixed~a"] {
        assert_eq!(filtered(wrong).await.faults(), ["query.filter"], "{wrong}");
    }
    for (filter, found) in [
        ("steps:null", 0),
        ("steps!=null", 1),
        ("within.steps!=null", 1),
        ("within.mixed:a", 1),
        ("within.mixed:2", 1),
        ("within.mixed:true", 1),
        ("within.mixed:n", 0),
    ] {
        assert_eq!(
            filtered(filter).await.must_be(200).rows().len(),
            found,
            "{filter}"
        );
    }
}
