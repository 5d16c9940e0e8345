//! What is refused: where the mistake is, and what it is called.

use proptest::prelude::*;

use super::*;
use crate::ingest::legacy::unwrap_one;
use crate::ingest::tombstone::{TOMBSTONE_TYPE, decode_tombstone};

#[test]
fn malformed_json_is_refused_with_line_and_field() {
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01T10:00:00Z","value":72"#,
        "body.7.value",
        "json",
    );
    refused(
        "HeartRate",
        r#"{"start_date":2024-05-01,"value":72}"#,
        "body.7.start_date",
        "json",
    );
    refused("HeartRate", "", "body.7", "json");
    refused("HeartRate", "[]", "body.7", "json");
    refused("HeartRate", "[{}]", "body.7", "json");
    for rest in [" {}", ",", "\0", r#"{"value":72}"#] {
        let text = format!(r#"{{"start_date":"2024-05-01","value":72}}{rest}"#);
        refused("HeartRate", &text, "body.7", "json");
    }
}

#[test]
fn a_text_that_is_no_record_is_told_what_was_found_where_and_what_to_send() {
    let record = r#"{"start_date":"2024-05-01","value":72}"#;
    let two = format!("{record}\n{record}");
    let cut = &record[..30];
    for (place, text, told) in [
        (RecordPosition::Whole, "", "nothing was sent"),
        (
            RecordPosition::Whole,
            "[{}]",
            "found an array where one record was expected; send its elements one a line",
        ),
        (
            RecordPosition::Line(0),
            "[{}]",
            "send its elements one a line, without brackets and commas",
        ),
        (RecordPosition::Line(0), "[", "found an array"),
        (
            RecordPosition::Whole,
            two.as_str(),
            "before byte 39, where something else begins; several records are sent one a line",
        ),
        (
            RecordPosition::Line(0),
            "{} {}",
            "send each record on a line of its own",
        ),
        (
            RecordPosition::Whole,
            cut,
            "breaks off at byte 30, within the record; send all of it",
        ),
        (
            RecordPosition::Line(0),
            "{",
            "one over several lines is sent as application/json",
        ),
        (RecordPosition::Whole, "\"{}\"", "found a string"),
        (RecordPosition::Whole, "72", "found a number"),
        (
            RecordPosition::Whole,
            "start_date,value",
            "found something that is not an object",
        ),
    ] {
        let faults = decoder("HeartRate").push(place, text.as_bytes()).unwrap_err();
        assert!(faults[0].message.contains(told), "{text}: {}", faults[0].message);
        assert_eq!(faults[0].loc[..place.loc().len()], place.loc(), "{text}");
    }
}

#[test]
fn a_mistake_within_a_field_is_placed_by_its_byte_of_the_record() {
    let text = r#"{"start_date":"2024-05-01T10:00:00Z","value":60,"x":"\ud800"}"#;
    let faults = decoder("HeartRate")
        .push(RecordPosition::Whole, text.as_bytes())
        .unwrap_err();
    assert_eq!((place(&faults[0]).as_str(), faults[0].kind), ("body.x", "json"));
    let at = text.find(r"\ud800").unwrap() + 6;
    let told = format!("malformed JSON at byte {at}: ");
    assert!(faults[0].message.starts_with(&told), "{}", faults[0].message);
}

#[test]
fn a_body_that_is_one_object_has_no_line_in_its_place() {
    let faults = decoder("HeartRate")
        .push(
            RecordPosition::Whole,
            br#"{"start_date":"2024-05-01","value":"high"}"#,
        )
        .unwrap_err();
    assert_eq!(
        (place(&faults[0]).as_str(), faults[0].kind),
        ("body.value", "type")
    );
}

#[test]
fn wrong_type_is_refused() {
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":"high"}"#,
        "body.7.value",
        "type",
    );
    refused(
        "HeartRate",
        r#"{"start_date":1717200000,"value":1}"#,
        "body.7.start_date",
        "type",
    );
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":1,"source_properties":{"name":1}}"#,
        "body.7.source_properties.name",
        "type",
    );
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":1,"extras":[1]}"#,
        "body.7.extras",
        "type",
    );
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":1,"count":1.5}"#,
        "body.7.count",
        "type",
    );
    refused("MomentAnnotation", r#"{"tags":["a",1]}"#, "body.7.tags.1", "type");
}

#[test]
fn all_faults_of_a_record_are_told_at_once() {
    let mut found = refusals("HeartRate", r#"{"value":"high","count":-1}"#);
    found.sort();
    let expected = [
        ("body.7.count", "minimum"),
        ("body.7.start_date", "missing"),
        ("body.7.value", "type"),
    ];
    assert_eq!(found, expected.map(|(place, kind)| (place.to_owned(), kind)));
}

#[test]
fn missing_field_is_refused() {
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01"}"#,
        "body.7.value",
        "missing",
    );
    refused("HeartRate", r#"{"value":1}"#, "body.7.start_date", "missing");
    refused(
        "HeartRate",
        r#"{"value":1,"start_date":null}"#,
        "body.7.start_date",
        "missing",
    );
}

#[test]
fn bad_date_is_refused() {
    for date in [
        "2024-02-30",
        "2024-05-01T24:00:00Z",
        "2024-05-01T10:00:60Z",
        " 2024-05-01",
        "2024-05-01T10:00:00 UTC",
        "1717200000",
        "soon",
    ] {
        refused(
            "HeartRate",
            &format!(r#"{{"start_time":"{date}","value":1}}"#),
            "body.7.start_time",
            "format",
        );
    }
}

#[test]
fn end_before_start_is_refused() {
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01T10:00:00Z","end_time":"2024-05-01T09:59:59Z","value":1}"#,
        "body.7.end_time",
        "end_before_start",
    );
}

#[test]
fn value_out_of_the_schema_is_refused() {
    refused(
        "StepCount",
        r#"{"start_date":"2024-05-01","value":-1}"#,
        "body.7.value",
        "minimum",
    );
    refused(
        "PlatformLocationUpdate",
        r#"{"timestamp":"2024-05-01","latitude_degrees":91,"longitude_degrees":0}"#,
        "body.7.latitude_degrees",
        "maximum",
    );
}

#[test]
fn nan_is_refused_with_line_and_field() {
    for token in ["NaN", "Infinity", "-Infinity"] {
        let line = format!(r#"{{"start_date":"2024-05-01","value":{token}}}"#);
        refused("HeartRate", &line, "body.7.value", "json");
        let faults = decoder("HeartRate").push(7, line.as_bytes()).unwrap_err();
        assert!(faults[0].message.contains(token), "{}", faults[0].message);
    }
}

#[test]
fn a_number_beyond_every_float_is_refused() {
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":1e400}"#,
        "body.7.value",
        "too_large",
    );
    refused(
        "HeartRate",
        r#"{"start_date":"2024-05-01","value":1,"mood":[{"low":-1e999}]}"#,
        "body.7.mood.0.low",
        "too_large",
    );
    let line = r#"{"start_date":"2024-05-01","value":1e400}"#;
    let faults = decoder("HeartRate").push(7, line.as_bytes()).unwrap_err();
    assert!(
        faults[0].message.starts_with("beyond what a number can be"),
        "{}",
        faults[0].message
    );
}

#[test]
fn nesting_10_000_deep_is_refused() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        refused(
            "HeartRate",
            &format!(r#"{{"start_date":"2024-05-01","value":1,"mood":{deep}}}"#),
            "body.7.mood",
            "json",
        );
        refused(
            "HeartRate",
            &format!(r#"{{"start_date":"2024-05-01","value":{deep}}}"#),
            "body.7.value",
            "json",
        );
        refused(
            "HeartRate",
            &format!(r#"{{"start_date":"2024-05-01","value":1,"source_properties":{deep}}}"#),
            "body.7.source_properties",
            "json",
        );
        let faults = decoder("HeartRate")
            .push(7, format!(r#"{{"mood":{deep}}}"#).as_bytes())
            .unwrap_err();
        assert_eq!(faults[0].message, "nested deeper than 127 levels");
        assert!(decoder("HeartRate").push(7, deep.as_bytes()).is_err());
        assert!(
            decoder("HeartRate")
                .push(7, open.repeat(10_000).as_bytes())
                .is_err()
        );
        assert!(unwrap_one(deep.as_bytes()).is_err());
        assert!(wrapped::batch(deep.as_bytes()).is_err());
    }
}

#[test]
fn a_field_given_twice_is_refused() {
    let start = r#""start_date":"2024-05-01""#;
    refused(
        "HeartRate",
        &format!(r#"{{{start},"value":1,"value":2}}"#),
        "body.7.value",
        "duplicate",
    );
    refused(
        "HeartRate",
        &format!(r#"{{{start},"value":1,"start_time":"2024-05-02"}}"#),
        "body.7.start_time",
        "duplicate",
    );
    refused(
        "HeartRate",
        &format!(r#"{{{start},"value":1,"mood":1,"mood":2}}"#),
        "body.7.mood",
        "duplicate",
    );
    refused(
        "HeartRate",
        &format!(r#"{{{start},"value":1,"mood":1,"extras":{{"mood":2}}}}"#),
        "body.7.extras.mood",
        "duplicate",
    );
    for (fields, place) in [
        (
            r#""tags":["new"],"extras":{"tags":["old"]}"#,
            "body.7.extras.tags",
        ),
        (
            r#""extras":{"tags":["old"]},"tags":["new"]"#,
            "body.7.extras.tags",
        ),
        (
            r#""sources":["com.b"],"extras":{"sources":["com.a"]}"#,
            "body.7.extras.sources",
        ),
        (
            r#""sources":["com.b"],"extras":{"sources":"free text"}"#,
            "body.7.extras.sources",
        ),
        (
            r#""extras":{"tags":["old"],"tags":["new"]}"#,
            "body.7.extras.tags",
        ),
    ] {
        refused(
            "HeartRate",
            &format!(r#"{{{start},"value":1,{fields}}}"#),
            place,
            "duplicate",
        );
    }
    refused(
        "HeartRate",
        &format!(r#"{{{start},"value":1,"source_properties":{{"name":"a","name":"b"}}}}"#),
        "body.7.source_properties.name",
        "duplicate",
    );
    for (fields, place) in [
        (r#""q":{"a":1,"a":1}"#, "q.a"),
        (r#""q":{"a":1,"\u0061":2}"#, "q.a"),
        (r#""q":[{"b":[{"a":1},{"a":1,"c":{},"a":2}]}]"#, "q.0.b.1.a"),
        (r#""extras":{"q":{"a":1,"a":2}}"#, "extras.q.a"),
        (
            r#""source_properties":{"name":"a","zz":1,"zz":2}"#,
            "source_properties.zz",
        ),
    ] {
        // After a record from which the fast way knows the members.
        let mut decoder = decoder("HeartRate");
        let known = format!(r#"{{{start},"value":1,"q":{{"a":1}}}}"#);
        decoder.push(0, known.as_bytes()).unwrap();
        let line = format!(r#"{{{start},"value":1,{fields}}}"#);
        let faults = decoder.push(7, line.as_bytes()).expect_err(&line);
        let found: Vec<_> = faults
            .iter()
            .map(|fault| (super::place(fault), fault.kind))
            .collect();
        assert_eq!(found, [(format!("body.7.{place}"), "duplicate")], "{line}");
    }
    assert_eq!(
        stored(
            "HeartRate",
            &format!(r#"{{{start},"value":1,"start_time":"2024-05-01"}}"#),
            "value"
        ),
        "1.0",
        "the same again under another name says nothing new"
    );
}

#[test]
fn a_field_given_twice_is_refused_also_where_it_says_the_same() {
    let start = r#""start_date":"2024-05-01""#;
    for (fields, place) in [
        (r#""value":1"#, "value"),
        (r#""id":null,"id":null"#, "id"),
        (
            r#""uuid":"0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60","uuid":null"#,
            "uuid",
        ),
        (r#""tags":["a"],"tags":["a"]"#, "tags"),
        (r#""extras":{},"extras":{}"#, "extras"),
        (r#""extras":null,"extras":{"mood":1}"#, "extras"),
        (r#""source":"app","source":"app""#, "source"),
        (
            r#""source_properties":null,"source_properties":null,"source":"app""#,
            "source_properties",
        ),
        (
            r#""start_time":"2024-05-01","start_date":"2024-05-01""#,
            "start_date",
        ),
        (r#""mood":null,"mood":null"#, "mood"),
        (r#""mood":1,"m\u006fod":1"#, "mood"),
    ] {
        refused(
            "HeartRate",
            &format!(r#"{{{start},"value":1,{fields}}}"#),
            &format!("body.7.{place}"),
            "duplicate",
        );
    }
    refused(
        "Event",
        r#"{"start_time":"2024-05-01","mood":null,"mood":null}"#,
        "body.7.mood",
        "duplicate",
    );
}

#[test]
fn a_fault_does_not_grow_with_what_was_sent() {
    let long = "x".repeat(1 << 19);
    let told = |record: &str| {
        let faults = decoder("HeartRate").push(7, record.as_bytes()).unwrap_err();
        serde_json::to_string(&faults).unwrap()
    };
    let beginning = format!("{}…", "x".repeat(200));
    for members in [
        format!(r#""value":1,"unit":"{long}""#),
        format!(r#""value":1,"{long}":1,"{long}":2"#),
        format!(r#""value":1,"extras":{{"{long}":1,"{long}":2}}"#),
        format!(r#""value":1,"{long}":"a\u0000""#),
        format!(r#""value":1,"end_date":"{long}""#),
        format!(r#""value":"{long}""#),
        format!(r#""value":["{long}"]"#),
    ] {
        let told = told(&format!(r#"{{"start_date":"2024-05-01",{members}}}"#));
        assert!(told.len() < 1000, "{}", told.len());
        assert!(!told.contains("xx") || told.contains(&beginning), "{told}");
    }
    let unit = told(&format!(
        r#"{{"start_date":"2024-05-01","value":1,"unit":"{long}"}}"#
    ));
    assert!(unit.contains("or another unit of the same dimension"), "{unit}");
    let wrapped = format!(r#"{{"data":"1","metadata":{{"data_type":"X","{long}":1,"{long}":2}}}}"#);
    let wrapped = serde_json::to_string(&unwrap_one(wrapped.as_bytes()).unwrap_err()).unwrap();
    assert!(
        wrapped.contains(&beginning) && wrapped.len() < 1000,
        "{}",
        wrapped.len()
    );
}

#[test]
fn a_refused_record_leaves_nothing_behind() {
    let mut decoder = decoder("HeartRate");
    decoder.push(0, SAMPLE.as_bytes()).unwrap();
    for line in [
        r#"{"start_date":"2024-05-01","value":"x"}"#,
        "{",
        r#"{"start_date":"2024-05-01","value":1,"source_properties":{"name":"other"},"count":-1}"#,
    ] {
        decoder.push(1, line.as_bytes()).unwrap_err();
    }
    decoder.push(2, SAMPLE.as_bytes()).unwrap();
    let found = decoder.take().unwrap();
    assert_eq!(
        (found.rows.num_rows(), found.given.len(), found.sources.len()),
        (2, 2, 1)
    );
}

/// Arbitrary JSON whose objects like to name fields that types know.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|value| json!(value)),
        any::<String>().prop_map(Value::from),
        Just(json!("2024-05-01T10:00:00Z")),
        Just(json!("0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e")),
        Just(json!("HeartRate")),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "id",
            "uuid",
            "start_date",
            "end_date",
            "start_time",
            "end_time",
            "recorded_at",
            "timestamp",
            "value",
            "unit",
            "sources",
            "tags",
            "extras",
            "source_properties",
            "device_properties",
            "name",
            "data",
            "metadata",
            "data_type",
            "deleted_id",
            "deleted_type",
            "source_id",
            "geolocation",
            "participants",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..10)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn feed_everything(json: &[u8]) {
    for name in [
        "HeartRate",
        "Weight",
        "PlatformWorkout",
        "CalendarEvent",
        "BooleanAnnotation",
        "DurationAnnotation",
        "Event",
        "PlatformLocationVisit",
    ] {
        let mut decoder = decoder(name);
        for place in [RecordPosition::Whole, RecordPosition::Line(1)] {
            if let Err(faults) = decoder.push(place, json) {
                assert!(
                    faults
                        .iter()
                        .all(|fault| !fault.loc.is_empty() && !fault.message.is_empty())
                        && !faults.is_empty()
                );
            }
        }
        let waiting = decoder.len();
        assert_eq!(decoder.take().unwrap().rows.num_rows(), waiting);
    }
    let compiled = COMPILED.get(&data_type(TOMBSTONE_TYPE)).unwrap();
    let _ = decode_tombstone(&compiled, &context(), 0, json);
    if let Ok(record) = unwrap_one(json)
        && let Ok(unwrapped) = record.for_type(&data_type("HeartRate"))
    {
        assert!(unwrapped.json.starts_with(b"{"));
    }
    let _ = wrapped::batch(json);
}

proptest! {
    /// Any bytes are records or faults, never a crash.
    #[test]
    fn arbitrary_bytes_do_not_panic(
        json in prop::collection::vec(
            prop_oneof![
                Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['), Just(b'\\'),
                any::<u8>(),
            ],
            0..80,
        )
    ) {
        feed_everything(&json);
    }

    /// Any JSON is records or faults, never a crash.
    #[test]
    fn arbitrary_json_does_not_panic(json in any_json()) {
        feed_everything(json.to_string().as_bytes());
    }
}
