//! Records that come wrapped in the older form become records like any other.

use serde_json::json;

use super::*;
use crate::ingest::body::BodyForm;
use crate::ingest::legacy::{LegacyRecord, unwrap_batch, unwrap_one};
use crate::model::ids::PersonId;
use crate::model::registry::{Base, Definition};
use std::ops::ControlFlow;

/// All records of a body, or all faults.
pub(super) fn batch(body: &[u8]) -> Result<Vec<LegacyRecord>, Vec<Fault>> {
    let (mut records, mut faults) = (Vec::new(), Vec::new());
    unwrap_batch(BodyForm::Lines, body, |record| {
        match record {
            Ok(record) => records.push(record),
            Err(found) => faults.extend(found),
        }
        ControlFlow::Continue(())
    })?;
    if faults.is_empty() {
        Ok(records)
    } else {
        Err(faults)
    }
}

/// The record inside, as today's form has it.
fn unwrapped(wrapped: &serde_json::Value) -> serde_json::Value {
    let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
    let unwrapped = record.for_type(&data_type(&record.data_type)).unwrap();
    serde_json::from_slice(&unwrapped.json).unwrap()
}

/// Of what is given inside and outside, the places and kinds of the faults.
fn refused(data: &serde_json::Value, metadata: &serde_json::Value) -> Vec<(String, &'static str)> {
    let wrapped = json!({"data": data.to_string(), "metadata": metadata});
    let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
    let faults = record.for_type(&data_type(&record.data_type)).unwrap_err();
    faults.iter().map(|fault| (place(fault), fault.kind)).collect()
}

#[test]
fn what_the_wrapper_says_goes_where_the_type_has_it() {
    let metadata = json!({
        "data_type": "HeartRate", "content_type": "application/json",
        "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e",
        "recorded_at": {"start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:01:00Z"},
        "source": ["com.example.app"], "tags": ["x"],
    });
    let found = unwrapped(&json!({"data": "72", "metadata": metadata, "specversion": 1}));
    let expected = json!({
        "value": 72, "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e", "start_date": "2024-05-01T10:00:00Z",
        "end_date": "2024-05-01T10:01:00Z",
        "sources": ["com.example.app"], "tags": ["x"],
    });
    assert_eq!(found, expected);
    assert_eq!(
        stored("HeartRate", &found.to_string(), "source"),
        "com.example.app"
    );
}

#[test]
fn what_is_said_inside_and_outside_is_the_same_or_adds_up() {
    let data = json!({"id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e", "recorded_at": "2024-05-01T10:00:00Z",
        "note": "x", "tags": ["own"], "sources": ["a"]});
    let metadata = json!({"data_type": "MomentAnnotation", "id": "0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E",
        "recorded_at": "2024-05-01T12:00:00+02:00", "source": ["b", "a"], "tags": ["other", "own"]});
    let mut expected = data.clone();
    expected["tags"] = json!(["own", "other"]);
    expected["sources"] = json!(["a", "b"]);
    assert_eq!(
        unwrapped(&json!({"data": data.to_string(), "metadata": metadata})),
        expected
    );
    let id = "0191f0c4-5b1e-7c3a-9d52-000000000000";
    let twice = |place: &str| (format!("body.metadata.{place}"), "duplicate");
    assert_eq!(
        refused(
            &data,
            &json!({"data_type": "MomentAnnotation", "id": id, "recorded_at": "2020-01-01"})
        ),
        [twice("id"), twice("recorded_at")]
    );
}

/// Looking for each text among all that came before it would take hours here.
#[test]
fn any_number_of_tags_and_sources_adds_up() {
    const COUNT: usize = 200_000;
    let texts = |prefix: &str| -> Vec<String> { (0..COUNT).map(|n| format!("{prefix}{n}")).collect() };
    let data = json!({"tags": texts("own"), "sources": texts("app")});
    let metadata = json!({"data_type": "MomentAnnotation", "tags": texts("other"),
        "source": ["app1", "app1"], "sources": texts("watch")});
    let found = unwrapped(&json!({"data": data.to_string(), "metadata": metadata}));
    assert!(found["tags"] == json!([texts("own"), texts("other")].concat()));
    assert!(found["sources"] == json!([texts("app"), texts("watch")].concat()));
}

#[test]
fn what_is_undeclared_is_kept_from_each_place_and_must_be_the_same() {
    let unwrap = |data: &str, metadata: &str, beside: &str| {
        let metadata = format!(r#"{{"data_type":"HeartRate"{metadata}}}"#);
        let data = serde_json::Value::from(data);
        let wrapped = format!(r#"{{"data":{data},"metadata":{metadata}{beside}}}"#);
        let record = unwrap_one(wrapped.as_bytes()).unwrap();
        record.for_type(&data_type("HeartRate"))
    };
    for (data, metadata, beside, expected) in [
        (
            r#"{"x":1}"#,
            r#","y":[2]"#,
            r#","z":{"a": 3}"#,
            r#"{"x":1,"z":{"a":3},"y":[2]}"#,
        ),
        (
            r#"{"x":{"a":1,"b":2}}"#,
            r#","x":{"b":2, "a":1}"#,
            "",
            r#"{"x":{"a":1,"b":2}}"#,
        ),
        (r#"{"x":1}"#, r#","x":null"#, r#","x":null"#, r#"{"x":1}"#),
        (r#"{"x":null}"#, r#","x":1,"y":null"#, "", r#"{"x":1,"y":null}"#),
        ("1", "", r#","value":1"#, r#"{"value":1}"#),
        (
            "1",
            r#","source":["a"],"sources":["b","a"]"#,
            "",
            r#"{"value":1,"sources":["a","b"]}"#,
        ),
        (
            r#"{"start_date":"2024-05-01T10:00:00Z"}"#,
            r#","recorded_at":{"start_time":"2024-05-01T10:00:00Z","end_time":"2024-05-01T11:00:00Z","x":1}"#,
            "",
            concat!(
                r#"{"start_date":"2024-05-01T10:00:00Z","end_date":"2024-05-01T11:00:00Z","#,
                r#""recorded_at":{"x":1}}"#,
            ),
        ),
    ] {
        let unwrapped = unwrap(data, metadata, beside).unwrap();
        assert_eq!(String::from_utf8(unwrapped.json).unwrap(), expected);
    }
    for (data, metadata, beside, places) in [
        (r#"{"x":1}"#, r#","x":2"#, "", &["body.metadata.x"][..]),
        (r#"{"x":1}"#, "", r#","x":2"#, &["body.x"][..]),
        ("{}", r#","x":2"#, r#","x":1"#, &["body.metadata.x"][..]),
        (
            r#"{"x":1}"#,
            r#","x":2"#,
            r#","x":3"#,
            &["body.x", "body.metadata.x"][..],
        ),
        ("1", r#","value":2"#, "", &["body.metadata.value"][..]),
        (
            "1",
            r#","id":"0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e""#,
            r#","id":"0191f0c4-5b1e-7c3a-9d52-000000000000""#,
            &["body.id"][..],
        ),
        ("1", r#","tags":["a"]"#, r#","tags":["b"]"#, &["body.tags"][..]),
        (
            r#"{"extras":{"a":1}}"#,
            r#","extras":{"b":1}"#,
            "",
            &["body.metadata.extras"][..],
        ),
    ] {
        let faults = unwrap(data, metadata, beside).expect_err(data);
        let found: Vec<String> = faults.iter().map(place).collect();
        assert_eq!(found, places, "{data} {metadata} {beside}");
        assert!(faults.iter().all(|fault| fault.kind == "duplicate"));
    }
}

#[test]
fn the_rest_of_a_time_goes_with_it() {
    let span =
        json!({"start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T11:00:00Z", "zone": "UTC"});
    let metadata = json!({"data_type": "DurationAnnotation", "recorded_at": span});
    for data in [json!({"note": "x"}), json!({"note": "x", "recorded_at": span})] {
        let found = unwrapped(&json!({"data": data.to_string(), "metadata": metadata}));
        assert_eq!(found, json!({"note": "x", "recorded_at": span}));
    }
    let elsewhere = json!({"start_time": "2024-05-01T12:00:00+02:00", "end_time": "2024-05-01T11:00:00+00:00",
        "zone": "UTC"});
    let data = json!({"recorded_at": elsewhere});
    let found = unwrapped(&json!({"data": data.to_string(), "metadata": metadata}));
    assert_eq!(found, data, "the same moments, written in another way");
    let bare = json!({"start_time": span["start_time"], "end_time": span["end_time"]});
    let other = json!({"start_time": span["start_time"], "end_time": "2024-05-01T12:00:00Z", "zone": "UTC"});
    for (own, place) in [
        (bare, "body.metadata.recorded_at"),
        (span["end_time"].clone(), "body.metadata.recorded_at.start_time"),
        (other, "body.metadata.recorded_at.end_time"),
    ] {
        let found = refused(&json!({"recorded_at": own}), &metadata);
        assert_eq!(found.first(), Some(&(place.to_owned(), "duplicate")), "{own}");
    }
}

#[test]
fn an_id_is_the_same_in_any_case_and_under_any_of_its_names() {
    const ID: &str = "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e";
    const OTHER: &str = "0191f0c4-5b1e-7c3a-9d52-000000000000";
    let upper = ID.to_uppercase();
    let unwrap = |data: &str, metadata: &str, beside: &str| {
        let data = serde_json::Value::from(data);
        let text = format!(r#"{{"data":{data},"metadata":{{"data_type":"HeartRate"{metadata}}}{beside}}}"#);
        let text = text
            .replace("<id>", ID)
            .replace("<upper>", &upper)
            .replace("<other>", OTHER);
        let record = unwrap_one(text.as_bytes()).unwrap();
        record.for_type(&data_type("HeartRate"))
    };
    let sent = |text: &str| text.replace("<id>", ID).replace("<upper>", &upper);
    for (data, metadata, beside) in [
        (r#"{"uuid":"<id>"}"#, r#","uuid":"<upper>""#, ""),
        (r#"{"uuid":"<id>"}"#, "", r#","uuid":"<upper>""#),
        (r#"{"id":"<id>"}"#, "", r#","id":"<upper>""#),
        (r#"{"id":"<id>"}"#, r#","uuid":"<upper>""#, r#","uuid":"<id>""#),
        (r#"{"uuid":"<upper>"}"#, r#","id":"<id>""#, r#","id":"<id>""#),
        (r#"{"id":"<id>"}"#, r#","uuid":null"#, r#","id":null"#),
    ] {
        let unwrapped = unwrap(&sent(data), metadata, beside).unwrap();
        let expected = sent(data);
        assert_eq!(
            String::from_utf8(unwrapped.json).unwrap(),
            expected,
            "{metadata} {beside}"
        );
    }
    let first = unwrap("{}", r#","uuid":"<upper>""#, r#","id":"<id>""#).unwrap();
    assert_eq!(String::from_utf8(first.json).unwrap(), sent(r#"{"id":"<id>"}"#));
    for (data, metadata, beside, place_of_fault) in [
        (
            r#"{"uuid":"<id>"}"#,
            r#","uuid":"<other>""#,
            "",
            "body.metadata.uuid",
        ),
        (r#"{"id":"<id>"}"#, "", r#","uuid":"<other>""#, "body.uuid"),
        ("{}", r#","id":"<other>""#, r#","id":"<id>""#, "body.id"),
        (r#"{"id":"<id>"}"#, "", r#","id":"none""#, "body.id"),
    ] {
        let faults = unwrap(&sent(data), metadata, beside).expect_err(beside);
        let found: Vec<String> = faults.iter().map(place).collect();
        assert_eq!(found, [place_of_fault], "{data} {metadata} {beside}");
    }
}

#[test]
fn an_own_column_called_uuid_is_no_id() {
    let schema = json!({"properties": {"uuid": {"type": "string"}}});
    let body = json!({"name": "Coffee", "description": "", "record_spec": {"schema": schema}});
    let definition = Definition::read(Base::Event, &body).unwrap();
    let (owner, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(2));
    let own = DataType::from_definition(owner, id, &data_type("Event"), &definition, 1).unwrap();
    let data = json!({"uuid": Uuid::from_u128(3), "start_time": "2024-05-01T10:00:00Z"});
    let wrapped = json!({"data": data.to_string(), "metadata": {"data_type": "Coffee", "id": id}});
    let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
    let found: serde_json::Value = serde_json::from_slice(&record.for_type(&own).unwrap().json).unwrap();
    assert_eq!((&found["id"], &found["uuid"]), (&json!(id), &data["uuid"]));
}

#[test]
fn times_inside_and_outside_are_compared_one_by_one() {
    let [ten, eleven] = ["2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z"];
    let span = json!({"start_time": ten, "end_time": eleven});
    for (data_type, data, time, expected) in [
        ("HeartRate", json!({"start_date": ten}), json!(ten), &[][..]),
        (
            "HeartRate",
            json!({"start_date": ten, "end_date": ten}),
            json!(ten),
            &[][..],
        ),
        (
            "HeartRate",
            json!({"start_date": ten}),
            json!(eleven),
            &["recorded_at"][..],
        ),
        (
            "HeartRate",
            json!({"start_date": ten, "end_date": eleven}),
            span.clone(),
            &[][..],
        ),
        (
            "HeartRate",
            json!({"start_date": eleven, "end_date": ten}),
            span.clone(),
            &["recorded_at.start_time", "recorded_at.end_time"][..],
        ),
        (
            "DurationAnnotation",
            json!({"recorded_at": span}),
            span.clone(),
            &[][..],
        ),
        (
            "DurationAnnotation",
            json!({"recorded_at": span}),
            json!(ten),
            &[][..],
        ),
        (
            "DurationAnnotation",
            json!({"recorded_at": ten}),
            span.clone(),
            &["recorded_at.end_time"][..],
        ),
        (
            "DurationAnnotation",
            json!({"start_time": ten, "end_time": ten}),
            span.clone(),
            &["recorded_at.end_time"][..],
        ),
        (
            "PlatformLocationUpdate",
            json!({"timestamp": ten}),
            json!(eleven),
            &["recorded_at"][..],
        ),
    ] {
        let metadata = json!({"data_type": data_type, "recorded_at": time});
        let wrapped = json!({"data": data.to_string(), "metadata": metadata});
        let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
        let faults = record
            .for_type(&self::data_type(data_type))
            .err()
            .unwrap_or_default();
        let places: Vec<String> = faults.iter().map(place).collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|name| format!("body.metadata.{name}"))
            .collect();
        assert_eq!(places, expected, "{data_type}: {data} and {time}");
    }
    let filled = json!({"data": json!({"start_date": ten}).to_string(),
        "metadata": {"data_type": "HeartRate", "recorded_at": span}});
    assert_eq!(unwrapped(&filled), json!({"start_date": ten, "end_date": eleven}));
}

#[test]
fn faults_of_a_record_have_the_place_where_its_part_was_sent() {
    let metadata = json!({"data_type": "HeartRate", "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e",
        "recorded_at": {"start_time": "2024-05-01", "end_time": "2024-05-02"}, "source": ["a"], "x": 1});
    let placed = |data: &str, way: &[&str]| {
        let wrapped = json!({"data": data, "metadata": metadata, "y": 2});
        let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
        let unwrapped = record.for_type(&data_type("HeartRate")).unwrap();
        let way = ["body"].iter().chain(way).copied();
        let faults = unwrapped.placed(vec![Fault::new(way, "type", "wrong")]);
        place(&faults[0])
    };
    for (way, expected) in [
        (&["value"][..], "body.data.value"),
        (&["extras", "z"][..], "body.data.extras.z"),
        (&["id"][..], "body.metadata.id"),
        (&["start_date"][..], "body.metadata.recorded_at.start_time"),
        (&["end_date"][..], "body.metadata.recorded_at.end_time"),
        (&["sources", "0"][..], "body.metadata.source.0"),
        (&["x"][..], "body.metadata.x"),
        (&["y"][..], "body.y"),
        (&[][..], "body"),
    ] {
        assert_eq!(placed(r#"{"value": 1}"#, way), expected);
    }
    assert_eq!(placed("1", &["value"][..]), "body.data");
    assert_eq!(placed("1", &["unit"][..]), "body.data.unit");
}

#[test]
fn a_text_of_a_united_list_has_the_place_where_it_was_sent() {
    let long = "x".repeat(2049);
    for (data, metadata, expected) in [
        (
            json!({"sources": ["a"]}),
            json!({"sources": [long]}),
            "body.metadata.sources.0",
        ),
        (
            json!({}),
            json!({"source": ["a"], "sources": [long]}),
            "body.metadata.sources.0",
        ),
        (
            json!({"sources": ["a", "b"]}),
            json!({"source": ["b", "c"], "sources": ["c", "a", long]}),
            "body.metadata.sources.2",
        ),
        (
            json!({"sources": ["a", "b"]}),
            json!({"source": ["b", long], "sources": ["c"]}),
            "body.metadata.source.1",
        ),
        (
            json!({}),
            json!({"source": ["a", long], "sources": ["b"]}),
            "body.metadata.source.1",
        ),
        (
            json!({"sources": ["a", long]}),
            json!({"source": ["b"]}),
            "body.data.sources.1",
        ),
        (
            json!({"tags": ["a"]}),
            json!({"tags": ["a", "b\0"]}),
            "body.metadata.tags.1",
        ),
        (
            json!({"tags": ["a\0"]}),
            json!({"tags": ["b"]}),
            "body.data.tags.0",
        ),
        (json!({}), json!({"tags": ["a", "b\0"]}), "body.metadata.tags.1"),
    ] {
        let mut metadata = metadata;
        metadata["data_type"] = json!("MomentAnnotation");
        let wrapped = json!({"data": data.to_string(), "metadata": metadata});
        let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
        let unwrapped = record.for_type(&data_type("MomentAnnotation")).unwrap();
        let faults = decoder("MomentAnnotation").push(RecordPosition::Whole, &unwrapped.json);
        let faults = unwrapped.placed(faults.unwrap_err());
        let places: Vec<String> = faults.iter().map(place).collect();
        assert_eq!(places, [expected]);
    }
}

#[test]
fn a_moment_takes_the_time_of_its_wrapper() {
    let metadata = json!({"data_type": "PlatformLocationUpdate", "recorded_at": "2024-05-01T10:00:00Z"});
    let found = unwrapped(&json!({"data": "{\"latitude_degrees\": 1.50}", "metadata": metadata}));
    assert_eq!(
        found,
        json!({"latitude_degrees": 1.5, "timestamp": "2024-05-01T10:00:00Z"})
    );
}

#[test]
fn a_value_alone_needs_a_type_that_has_one() {
    let one = |data: &str, data_type: &DataType| {
        let wrapped = json!({"data": data, "metadata": {"data_type": data_type.name}});
        let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
        record.for_type(data_type)
    };
    for name in ["MomentAnnotation", "PeopleAnnotation", "Event", "CalendarEvent"] {
        for data in [r#" [{"note":"1"},{"note":"2"}]"#, "[]", "null", r#""x""#, "5"] {
            let faults = one(data, &data_type(name)).unwrap_err();
            let found: Vec<_> = faults.iter().map(|fault| (place(fault), fault.kind)).collect();
            assert_eq!(found, [("body.data".to_owned(), "type")], "{name} {data}");
            assert_eq!(
                faults[0].message.contains("found an array"),
                data.contains('['),
                "{name} {data}"
            );
        }
    }
    let schema = json!({"properties": {"value": {"type": "array", "items": {"type": "number"}}}});
    let body = json!({"name": "Laps", "record_spec": {"schema": schema}});
    let definition = Definition::read(Base::Event, &body).unwrap();
    let (owner, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(2));
    let own = DataType::from_definition(owner, id, &data_type("Event"), &definition, 1).unwrap();
    let found = one("[1,2]", &own).unwrap().json;
    assert_eq!(String::from_utf8(found).unwrap(), r#"{"value":[1,2]}"#);
}

#[test]
fn plain_text_is_a_note() {
    let metadata = json!({"data_type": "MomentAnnotation", "content_type": "text/plain"});
    assert_eq!(
        unwrapped(&json!({"data": "walked", "metadata": metadata})),
        json!({"note": "walked"})
    );
}

#[test]
fn a_batch_is_an_array_or_lines() {
    let wrapped = json!({"data": "{\"note\":\"x\"}", "metadata": {"data_type": "MomentAnnotation"}});
    for (body, places) in [
        (json!([wrapped, wrapped]).to_string(), [0, 1]),
        (format!("{wrapped}\n\n{wrapped}\n"), [0, 2]),
    ] {
        let found = batch(body.as_bytes()).unwrap();
        assert_eq!(
            found.iter().map(|record| record.place).collect::<Vec<_>>(),
            places.map(RecordPosition::Line)
        );
    }
    assert_eq!(
        batch(serde_json::to_string_pretty(&wrapped).unwrap().as_bytes())
            .unwrap()
            .len(),
        1
    );
    assert!(batch(b"[").is_err());
}

#[test]
fn what_is_no_array_is_told_with_its_place() {
    let first = r#"{"data":"1","metadata":{"data_type":"X"}}"#;
    let number = format!(" [{first},\n{{\"data\":\"1\",\"metadata\":{{\"x\":.5}}}}]");
    let at = number.find(".5").unwrap();
    let number_told = format!("malformed JSON at byte {at}: ");
    let cut = format!("[{first}");
    let cut_told = format!("breaks off at byte {}, within the array", cut.len());
    let followed = format!("[{first}] x");
    let followed_told = format!("the array ends before byte {}", followed.len() - 1);
    for (body, expected, told) in [
        (number, "body.1", number_told.as_str()),
        (format!("[{first} {first}]"), "body.1", "malformed JSON at byte "),
        (
            format!("[{first},{first},{{\"x\":NaN}}]"),
            "body.2",
            "NaN is not JSON",
        ),
        (cut, "body", cut_told.as_str()),
        (followed, "body", followed_told.as_str()),
    ] {
        let faults = batch(body.as_bytes()).unwrap_err();
        let [fault] = faults.as_slice() else {
            panic!("{body}: {faults:?}")
        };
        assert_eq!((place(fault).as_str(), fault.kind), (expected, "json"), "{body}");
        assert!(fault.message.contains(told), "{body}: {}", fault.message);
    }
}

#[test]
fn faults_of_a_wrapper_carry_their_place() {
    let places = |body: &str| {
        let faults = batch(body.as_bytes()).expect_err(body);
        faults
            .iter()
            .map(|fault| (place(fault), fault.kind))
            .collect::<Vec<_>>()
    };
    let named = |place: &str, kind| (place.to_owned(), kind);
    assert_eq!(
        places("[{}]"),
        [
            named("body.0.metadata", "missing"),
            named("body.0.data", "missing")
        ]
    );
    assert_eq!(
        places(r#"[{"data":{},"metadata":{"data_type":"X"}}]"#),
        [named("body.0.data", "type")]
    );
    assert_eq!(
        places(r#"[{"data":"{\"value\": nope}","metadata":{"data_type":"X"}}]"#),
        [named("body.0.data.value", "json")]
    );
    assert_eq!(
        places(r#"[{"data":"1","metadata":{}}]"#),
        [named("body.0.metadata.data_type", "missing")]
    );
    assert_eq!(
        places(r#"[{"data":"1","metadata":{"data_type":"X","recorded_at":"soon","tags":[1]}}]"#),
        [
            named("body.0.metadata.recorded_at", "format"),
            named("body.0.metadata.tags", "type")
        ]
    );
    assert_eq!(
        places(r#"[{"data":"1","metadata":{"data_type":"X","id":"zz"}}]"#),
        [named("body.0.metadata.id", "format")]
    );
    assert_eq!(
        places(concat!(
            r#"[{"data":"1","data":"2","metadata":{"data_type":"X","id":null,"id":null,"tags":["a"],"#,
            r#""tags":["b"],"y":1,"y":1,"recorded_at":{"start_time":"2024-05-01","#,
            r#""start_time":"2024-05-02","end_time":"2024-05-03"}},"x":1,"\u0078":2}]"#,
        )),
        [
            named("body.0.data", "duplicate"),
            named("body.0.x", "duplicate"),
            named("body.0.metadata.id", "duplicate"),
            named("body.0.metadata.tags", "duplicate"),
            named("body.0.metadata.y", "duplicate"),
            named("body.0.metadata.recorded_at.start_time", "duplicate"),
        ]
    );
    for version in ["1", "1.0", "-1", "null"] {
        let body = format!(r#"[{{"data":"1","metadata":{{"data_type":"X"}},"specversion":{version}}}]"#);
        assert_eq!(
            batch(body.as_bytes()).map(|found| found.len()),
            Ok(1),
            "{version}"
        );
    }
    for version in [r#""abc""#, r#""1""#, "1.5", "true", "[1]", r#"{"a":1}"#, "1e30"] {
        assert_eq!(
            places(&format!(
                r#"[{{"data":"1","metadata":{{}},"specversion":{version}}}]"#
            )),
            [
                named("body.0.specversion", "type"),
                named("body.0.metadata.data_type", "missing")
            ]
        );
    }
    let faults = unwrap_one(b"[]").unwrap_err();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].message.starts_with("found an array"), "{faults:?}");
    assert_eq!(
        places("{\"data\":\"1\",\"metadata\":{\"data_type\":\"X\"}}\nnope"),
        [named("body.1", "json")]
    );
}
