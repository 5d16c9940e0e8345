//! The rules of what is accepted and stored, one by one.

use super::*;
use crate::ingest::tombstone::{TOMBSTONE_TYPE, decode_tombstone};
use crate::model::ids::PersonId;
use crate::model::registry::{Base, Definition};
use serde_json::json;

#[test]
fn rule_8_1_the_caller_may_choose_the_id_in_any_spelling() {
    let id = "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e";
    for name in ["id", "uuid"] {
        let line = format!(
            r#"{{"{name}":"{}","start_date":"2024-05-01T10:00:00Z","value":1}}"#,
            id.to_uppercase()
        );
        let found = rows("HeartRate", &[&line]);
        assert_eq!(cell(&found, "id", 0), id.replace('-', ""));
        assert_eq!(found.given, [true]);
    }
}

#[test]
fn rule_8_1_an_id_is_made_where_none_was_chosen() {
    let found = rows(
        "HeartRate",
        &[
            r#"{"start_time":"2024-05-01T10:00:00Z","value":1}"#,
            r#"{"id":null,"start_time":"2024-05-01T10:00:00Z","value":1}"#,
        ],
    );
    assert_eq!(found.given, [false, false]);
    assert_ne!(cell(&found, "id", 0), cell(&found, "id", 1));
}

#[test]
fn rule_8_3_tombstones_are_accepted_in_both_spellings() {
    let compiled = COMPILED.get(&data_type(TOMBSTONE_TYPE)).unwrap();
    let decode = |json: &str| decode_tombstone(&compiled, &context(), 3, json.as_bytes());
    let id = "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e";
    for (deleted_id, deleted_type) in [
        ("deleted_id", "deleted_type"),
        ("record_id", "data_type"),
        ("deleted_id", "data_type"),
    ] {
        let tombstone = decode(
            &json!({deleted_id: id.to_uppercase(), deleted_type: "HeartRate", "reason": "twice"}).to_string(),
        )
        .unwrap();
        assert_eq!(
            (
                tombstone.record.to_string(),
                tombstone.data_type.as_str(),
                tombstone.place
            ),
            (id.to_owned(), "HeartRate", RecordPosition::Line(3))
        );
    }
    let refusal = |json: &str| {
        let faults = decode(json).expect_err(json);
        faults
            .iter()
            .map(|fault| (place(fault), fault.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        refusal(r#"{"deleted_type":"HeartRate"}"#),
        [("body.3.deleted_id".to_owned(), "missing")]
    );
    assert_eq!(
        refusal(r#"{"record_id":"x","deleted_type":"HeartRate"}"#),
        [("body.3.record_id".to_owned(), "format")]
    );
    assert_eq!(
        refusal(&json!({"deleted_id": id, "deleted_type": 1}).to_string()),
        [("body.3.deleted_type".to_owned(), "type")]
    );
}

#[test]
fn rule_8_4_what_answers_show_among_the_extras_is_taken_from_there_once() {
    let found = |fields: &str| {
        let line = format!(r#"{{"start_date":"2024-05-01T10:00:00Z","value":1,{fields}}}"#);
        let found = rows("HeartRate", &[&line]);
        (cell(&found, "tags", 0), cell(&found, "extras", 0))
    };
    let of = |tags: &str, extras: &str| (tags.to_owned(), extras.to_owned());
    let in_extras = r#""extras":{"tags":["a"],"n":1}"#;
    let taken = of("[a]", r#"{"n":1}"#);
    assert_eq!(found(in_extras), taken);
    assert_eq!(found(&format!(r#""tags":null,{in_extras}"#)), taken);
    assert_eq!(found(&format!(r#""tags":[ "a" ],{in_extras}"#)), taken);
    assert_eq!(found(r#""tags":["a"],"extras":{"tags":null,"n":1}"#), taken);
    // What is no list of texts is not what answers show there.
    let free = r#"{"tags":"free"}"#;
    assert_eq!(found(&format!(r#""extras":{free}"#)), of("", free));
}

#[test]
fn rule_8_4_undeclared_fields_of_built_in_types_are_kept_under_extras() {
    let line = concat!(
        r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"mood":{"a": [1.10, 1e2]},"#,
        r#""extras":{"b":"\u00e4"},"big":12345678901234567890123}"#,
    );
    assert_eq!(
        stored("HeartRate", line, "extras"),
        r#"{"mood":{"a":[1.10,1e2]},"b":"\u00e4","big":12345678901234567890123}"#
    );
    assert_eq!(
        stored(
            "HeartRate",
            r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"extras":{}}"#,
            "extras"
        ),
        ""
    );
}

#[test]
fn rule_8_4_undeclared_members_of_declared_objects_are_kept_too() {
    let line = concat!(
        r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"source_properties":{"name":"Watch","#,
        r#""colour":"red"}}"#,
    );
    let found = rows("HeartRate", &[line, line]);
    for row in 0..2 {
        assert_eq!(
            cell(&found, "extras", row),
            r#"{"source_properties":{"colour":"red"}}"#
        );
        assert!(cell(&found, "source_properties", row).contains("Watch"));
    }
}

#[test]
fn rule_8_4_own_types_have_typed_columns_and_keep_the_rest_as_given() {
    let schema = json!({
        "properties": {
            "beans": {"type": "string"}, "grams": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
        },
        "required": ["beans"],
    });
    let definition = Definition::read(
        Base::Event,
        &json!({"name": "Coffee", "description": "", "record_spec": {"schema": schema}}),
    )
    .unwrap();
    let own = Arc::new(
        DataType::from_definition(
            PersonId(Uuid::from_u128(1)),
            Uuid::from_u128(2),
            &data_type("Event"),
            &definition,
            1,
        )
        .unwrap(),
    );
    let mut decoder = decoder_of(&own);
    let line = concat!(
        r#"{"start_time":"2024-05-01 10:00:00","beans":"arabica","grams":18.0,"at":"2024-05-01","#,
        r#""mood":"good"}"#,
    );
    decoder.push(0, line.as_bytes()).unwrap();
    let found = decoder.take().unwrap();
    assert_eq!(
        ["beans", "grams", "at", "extras"].map(|column| cell(&found, column, 0)),
        ["arabica", "18", "2024-05-01T00:00:00Z", r#"{"mood":"good"}"#]
    );
    let faults = decoder
        .push(
            RecordPosition::Whole,
            br#"{"start_time":"2024-05-01","grams":1.5}"#,
        )
        .unwrap_err();
    let mut found: Vec<_> = faults.iter().map(|fault| (place(fault), fault.kind)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            ("body.beans".to_owned(), "missing"),
            ("body.grams".to_owned(), "type")
        ]
    );
}

const SHOUTED: &str = "A1824C5F-E2Fa-4B0D-9C1E-0123456789AB";
const CANONICAL: &str = "a1824c5f-e2fa-4b0d-9c1e-0123456789ab";

#[test]
fn rule_8_1_ids_of_other_records_are_kept_in_one_spelling_wherever_they_stand() {
    let simple = SHOUTED.replace('-', "");
    let line = format!(
        r#"{{"calendar_id":"{simple}","start_date":"2024-05-01","end_date":"2024-05-02","organizer":"{SHOUTED}",
            "participants":[{{"contact_id":"{SHOUTED}","name":"{SHOUTED}"}},"{SHOUTED}"],
            "recurrence_rules":[{{"calendar_id":"{SHOUTED}","recurrence_rule_id":"{simple}"}}],"notes":"{SHOUTED}"}}"#
    );
    // The second record is recognised by its text.
    let found = rows("CalendarEvent", &[&line, &line]);
    for row in 0..2 {
        assert_eq!(cell(&found, "calendar_id", row), CANONICAL);
        assert_eq!(cell(&found, "notes", row), SHOUTED, "a text is a text");
        for (column, canonical, sent) in [
            ("organizer", 1, 0),
            ("participants", 2, 1),
            ("recurrence_rules", 2, 0),
        ] {
            let text = cell(&found, column, row);
            let count = |id: &str| text.matches(id).count();
            assert_eq!(
                (count(CANONICAL), count(SHOUTED), count(&simple)),
                (canonical, sent, 0),
                "{column}: {text}"
            );
        }
    }
}

/// A person's own event whose records have this schema, as it may have been defined before there were rules
/// for new ones.
fn own_event(schema: serde_json::Value) -> Arc<DataType> {
    let blank = Definition::read(Base::Event, &json!({"name": "Own"})).unwrap();
    let definition = Definition {
        schema: Some(schema),
        ..blank
    };
    let (owner, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(3));
    let own = DataType::from_definition(owner, id, &data_type("Event"), &definition, 1).unwrap();
    Arc::new(own)
}

#[test]
fn rule_1_4_the_source_of_one_record_is_not_that_of_the_next_where_a_type_keeps_it_as_text() {
    let own = own_event(json!({"properties": {"source_properties": {"type": "object"}}}));
    let mut decoder = decoder_of(&own);
    for line in [
        r#"{"start_time":"2024-05-01","source_properties":{"name":"Ring","productType":"Ring3"}}"#,
        r#"{"start_time":"2024-05-01"}"#,
        r#"{"start_time":"2024-05-01","source_properties":null}"#,
    ] {
        decoder.push(0, line.as_bytes()).unwrap();
    }
    let found = decoder.take().unwrap();
    assert_eq!([0, 1, 2].map(|row| cell(&found, "source", row)), ["Ring", "", ""]);
}

#[test]
fn what_is_required_is_missed_however_a_record_is_written() {
    let own = own_event(json!({"properties": {"a": {"type": "number"}}, "required": ["source"]}));
    let mut decoder = decoder_of(&own);
    for line in [
        r#"{"start_time":"2024-05-01","a":1}"#,
        r#"{"start_time":"2024-05-01","\u0061":1}"#,
    ] {
        let faults = decoder.push(0, line.as_bytes()).unwrap_err();
        assert_eq!(
            faults.iter().map(place).collect::<Vec<_>>(),
            ["body.0.source"],
            "{line}"
        );
    }
}

#[test]
fn rule_8_1_ids_in_own_types_are_kept_in_one_spelling() {
    let id = json!({"type": "string", "format": "uuid"});
    let schema = json!({"properties": {
        "plain": id, "chosen": {"anyOf": [id, {"type": "null"}]}, "list": {"type": "array", "items": id},
        "nested": {
            "type": "object",
            "properties": {"deep": {"type": "object", "properties": {"id": id, "text": {"type": "string"}}}},
        },
        "text": {"type": "string"},
    }});
    let definition = Definition::read(
        Base::Event,
        &json!({"name": "Links", "record_spec": {"schema": schema}}),
    )
    .unwrap();
    let owner = PersonId(Uuid::from_u128(1));
    let own =
        DataType::from_definition(owner, Uuid::from_u128(3), &data_type("Event"), &definition, 1).unwrap();
    let own = Arc::new(own);
    for (name, expected) in [
        ("plain", true),
        ("chosen", true),
        ("list", true),
        ("nested.deep.id", true),
        ("nested.deep.text", false),
        ("nested", false),
        ("text", false),
        ("id", false),
        ("nothing", false),
    ] {
        assert_eq!(own.holds_uuids(name), expected, "{name}");
    }
    let line = json!({
        "start_time": "2024-05-01", "plain": SHOUTED, "chosen": SHOUTED, "list": [SHOUTED, CANONICAL],
        "nested": {"deep": {"id": SHOUTED, "text": SHOUTED}},
        "text": SHOUTED,
    });
    let mut decoder = decoder_of(&own);
    decoder.push(0, line.to_string().as_bytes()).unwrap();
    let found = decoder.take().unwrap();
    assert_eq!(
        ["plain", "chosen", "text"].map(|column| cell(&found, column, 0)),
        [CANONICAL, CANONICAL, SHOUTED]
    );
    assert_eq!(cell(&found, "list", 0), format!("[{CANONICAL}, {CANONICAL}]"));
    assert_eq!(
        cell(&found, "nested", 0),
        format!("{{deep: {{id: {CANONICAL}, text: {SHOUTED}}}}}")
    );
}

#[test]
fn rule_4_1_the_meridian_of_an_event_has_one_name() {
    let line = concat!(
        r#"{"calendar_id":"0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e","start_date":"2024-05-01","#,
        r#""end_date":"2024-05-02","geolocation":{"longitude":180,"latitude":1}}"#,
    );
    let found = stored("CalendarEvent", line, "geolocation");
    assert!(found.contains("longitude: -180.0"), "{found}");
}

#[test]
fn rule_0_a_week_of_an_event_begins_on_one_of_its_seven_days() {
    let line = |day: i64| {
        json!({
            "calendar_id": CANONICAL, "start_date": "2024-05-01", "end_date": "2024-05-02",
            "recurrence_rules": [{"recurrence_rule_id": CANONICAL, "first_day_of_the_week": day}],
        })
        .to_string()
    };
    for day in [0, 8, -1] {
        let found = refusals("CalendarEvent", &line(day));
        assert!(
            found
                .iter()
                .any(|(place, _)| place.contains("first_day_of_the_week")),
            "{found:?}"
        );
    }
    for day in 1..=7 {
        rows("CalendarEvent", &[&line(day)]);
    }
}

#[test]
fn rule_8_2_rows_that_came_without_a_time_are_known_as_such() {
    let found = rows(
        "MomentAnnotation",
        &[
            r#"{"recorded_at":"2024-05-01T10:00Z"}"#,
            r#"{"note":"x"}"#,
            r#"{"recorded_at":null}"#,
        ],
    );
    assert_eq!(found.undated, [1, 2]);
}

#[test]
fn rule_8_6_only_measurements_must_have_happened() {
    let line = |name: &str, at: &str| {
        format!(r#"{{"{name}":"{at}","value":1,"latitude_degrees":1,"longitude_degrees":1}}"#)
    };
    assert_eq!(
        stored(
            "HeartRate",
            &line("start_date", "2024-06-02T12:00:00Z"),
            "start_time"
        ),
        "2024-06-02T12:00:00Z"
    );
    refused(
        "HeartRate",
        &line("start_time", "2024-06-02T12:00:01Z"),
        "body.7.start_time",
        "future",
    );
    refused(
        "PlatformLocationUpdate",
        &line("timestamp", "2024-06-02T12:00:01Z"),
        "body.7.timestamp",
        "future",
    );
    assert_eq!(
        stored("Event", r#"{"start_time":"2034-06-02T12:00:01Z"}"#, "end_time"),
        "2034-06-02T12:00:01Z"
    );
}

#[test]
fn rule_0_2_the_years_that_stand_for_unknown_are_kept() {
    let line = concat!(
        r#"{"arrival_date":"0001-01-01T00:00:00Z","departure_date":"4001-01-01T00:00:00Z","#,
        r#""latitude_degrees":1,"longitude_degrees":2}"#,
    );
    let found = rows("PlatformLocationVisit", &[line]);
    assert_eq!(
        (
            cell(&found, "start_time", 0).as_str(),
            cell(&found, "end_time", 0).as_str()
        ),
        ("0001-01-01T00:00:00Z", "4001-01-01T00:00:00Z")
    );
}

#[test]
fn rule_0_2_null_stands_for_an_unknown_end_of_a_visit_and_of_nothing_else() {
    let visit = |times: &str| format!(r#"{{{times},"latitude_degrees":1,"longitude_degrees":2}}"#);
    let unknown = visit(r#""arrival_date":null,"departure_date":null"#);
    let elsewhere = visit(r#""arrival_date":null,"start_time":"2024-05-01T10:00:00Z","end_time":null"#);
    let found = rows("PlatformLocationVisit", &[&unknown, &elsewhere]);
    let ends = |row: usize| (cell(&found, "start_time", row), cell(&found, "end_time", row));
    let of = |start: &str, end: &str| (start.to_owned(), end.to_owned());
    assert_eq!(ends(0), of("0001-01-01T00:00:00Z", "4001-01-01T00:00:00Z"));
    assert_eq!(ends(1), of("2024-05-01T10:00:00Z", "4001-01-01T00:00:00Z"));
    let without = visit(r#""arrival_date":null"#);
    refused(
        "PlatformLocationVisit",
        &without,
        "body.7.departure_date",
        "missing",
    );
    refused(
        "HeartRate",
        r#"{"start_date":null,"value":1}"#,
        "body.7.start_date",
        "missing",
    );
}

#[test]
fn rule_1_4e_every_row_says_where_it_comes_from() {
    let plain = r#"{"start_date":"2024-05-01T10:00:00Z","value":1}"#;
    let typed = concat!(
        r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"extras":{"HKWasUserEntered":1},"#,
        r#""sources":["com.example.app"]}"#,
    );
    let phone = concat!(
        r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"source_properties":{"name":"Steps","#,
        r#""productType":"Phone9,1"},"imported_from":null}"#,
    );
    let imported = r#"{"start_date":"2024-05-01T10:00:00Z","value":1,"imported_from":"export.csv"}"#;
    let found = rows("HeartRate", &[SAMPLE, plain, typed, phone, imported, SAMPLE]);
    let marks: Vec<_> = (0..6)
        .map(|row| (cell(&found, "source", row), cell(&found, "source_class", row)))
        .collect();
    let expected = [
        ("com.example.health/Watch6,2", "3"),
        ("", "5"),
        ("com.example.app", "2"),
        ("Steps", "4"),
        ("", "6"),
        ("com.example.health/Watch6,2", "3"),
    ];
    assert_eq!(
        marks,
        expected.map(|(key, class)| (key.to_owned(), class.to_owned()))
    );
    let sources: Vec<_> = found
        .sources
        .iter()
        .map(|source| (source.key.as_str(), source.name.as_deref()))
        .collect();
    assert_eq!(
        sources,
        [
            ("com.example.health/Watch6,2", Some("Watch")),
            ("", None),
            ("com.example.app", None),
            ("Steps", Some("Steps"))
        ]
    );
}

#[test]
fn rule_5_8_an_annotation_belongs_to_the_definition_among_its_sources() {
    let definition = "com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60";
    let line = |sources: &str| format!(r#"{{"recorded_at":"2024-05-01T10:00:00Z","sources":[{sources}]}}"#);
    assert_eq!(
        stored(
            "MomentAnnotation",
            &line(&format!(r#""com.example.app","{definition}""#)),
            "source_id"
        ),
        definition
    );
    assert_eq!(
        stored(
            "MomentAnnotation",
            &line(r#""com.example.app","other""#),
            "source_id"
        ),
        "com.example.app"
    );
    assert_eq!(stored("MomentAnnotation", &line(""), "source_id"), "");
}

#[test]
fn rule_5_8_an_id_that_names_no_definition_is_one_more_source() {
    let definition = "com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60";
    let other = "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d61";
    let line = |rest: &str| {
        let rest = rest.replace("<own>", definition).replace("<other>", other);
        format!(r#"{{"start_time":"2024-05-01T10:00:00Z",{rest}}}"#)
    };
    for (named, belongs_to, sources) in [
        (
            r#""source_id":"app","sources":["<own>"]"#,
            "<own>",
            "[<own>, app]",
        ),
        (
            r#""source_id":"<other>","sources":["x","<own>"]"#,
            "<own>",
            "[x, <own>, <other>]",
        ),
        (
            r#""source_id":"app","sources":["app","<own>"]"#,
            "<own>",
            "[app, <own>]",
        ),
        (r#""source_id":"app","source":"<own>""#, "<own>", "[<own>, app]"),
        (r#""source_id":"","sources":["<own>"]"#, "<own>", "[<own>]"),
        (r#""source_id":"","sources":["app"]"#, "app", "[app]"),
        (r#""source_id":"""#, "", ""),
        (r#""source_id":"app","sources":["x"]"#, "app", "[x]"),
        (
            r#""source_id":"com.almanac.annotation.<other>","sources":["<own>"]"#,
            "com.almanac.annotation.<other>",
            "[<own>]",
        ),
    ] {
        // After a record from which the fast way knows the sources.
        let known = r#""sources":["<own>"]"#;
        let lines = [known, named, named].map(line);
        let found = rows("MomentAnnotation", &lines.each_ref().map(String::as_str));
        for row in 1..3 {
            let told = ["source_id", "sources"].map(|column| cell(&found, column, row));
            let expected =
                [belongs_to, sources].map(|text| text.replace("<own>", definition).replace("<other>", other));
            assert_eq!(told, expected, "{named}");
        }
    }
}

#[test]
fn rule_5_8_a_definition_is_stored_in_one_spelling_wherever_a_record_names_it() {
    let definition = "com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60";
    for spelt in [
        "com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D60",
        "com.almanac.annotation.0191f0c45b1e7c3a9d526f1a2b3c4d60",
        definition,
    ] {
        for named in [
            format!(r#""source_id":"{spelt}""#),
            format!(r#""sources":["{spelt}"]"#),
            format!(r#""sources":["com.example.app"],"source_id":"{spelt}""#),
            format!(r#""sources":["com.example.app"],"source_id":"{spelt}","source_name":"old","odd":1"#),
        ] {
            let line = format!(r#"{{"recorded_at":"2024-05-01T10:00:00Z",{named}}}"#);
            assert_eq!(
                stored("MomentAnnotation", &line, "source_id"),
                definition,
                "{line}"
            );
            assert_eq!(stored("MomentAnnotation", &line, "source_name"), "", "{line}");
        }
    }
    let other = r#"{"recorded_at":"2024-05-01T10:00:00Z","source_id":"com.example.APP"}"#;
    assert_eq!(stored("MomentAnnotation", other, "source_id"), "com.example.APP");
}

#[test]
fn rule_5_8_recorded_at_is_a_moment_or_a_span_or_now() {
    let span = |line: &str| {
        let found = rows("DurationAnnotation", &[line]);
        (cell(&found, "start_time", 0), cell(&found, "end_time", 0))
    };
    let expected = (
        "2024-05-01T10:00:00Z".to_owned(),
        "2024-05-01T11:00:00Z".to_owned(),
    );
    assert_eq!(
        span(r#"{"recorded_at":{"start_time":"2024-05-01T10:00Z","end_time":"2024-05-01T11:00Z"}}"#),
        expected
    );
    assert_eq!(
        span(r#"{"start_time":"2024-05-01T10:00Z","end_time":"2024-05-01T11:00Z"}"#),
        expected
    );
    assert_eq!(span(r#"{"recorded_at":"2024-05-01T10:00Z"}"#).1, expected.0);
    assert_eq!(span(r#"{"note":"x"}"#).0, "2024-06-01T12:00:00Z");
    assert_eq!(span(r#"{"recorded_at":null}"#).0, "2024-06-01T12:00:00Z");
    refused(
        "MomentAnnotation",
        r#"{"recorded_at":{"start_time":"2024-05-01T12:00Z","end_time":"2024-05-01T11:00Z"}}"#,
        "body.7.recorded_at.end_time",
        "end_before_start",
    );
    refused(
        "MomentAnnotation",
        r#"{"recorded_at":{"start_time":"2024-05-01T12:00Z"}}"#,
        "body.7.recorded_at.end_time",
        "missing",
    );
    refused(
        "MomentAnnotation",
        r#"{"recorded_at":"2024-05-01","start_time":"2024-05-02"}"#,
        "body.7.recorded_at",
        "duplicate",
    );
    assert_eq!(
        span(concat!(
            r#"{"recorded_at":"2024-05-01T10:00Z","start_time":"2024-05-01T10:00:00Z","#,
            r#""end_time":"2024-05-01T10:00Z"}"#,
        )),
        (expected.0.clone(), expected.0),
        "what is said twice and agrees is accepted"
    );
}

#[test]
fn every_example_of_every_type_is_accepted_and_what_is_stored_has_its_layout() {
    for data_type in REGISTRY.types() {
        let examples = data_type
            .schema
            .value()
            .get("examples")
            .and_then(|examples| examples.as_array())
            .cloned()
            .unwrap_or_default();
        assert!(!examples.is_empty() || !data_type.recordable, "{}", data_type.id);
        let mut decoder = decoder_of(data_type);
        for example in &examples {
            decoder
                .push(RecordPosition::Whole, example.to_string().as_bytes())
                .unwrap_or_else(|faults| panic!("{}: {faults:?}", data_type.id));
        }
        let found = decoder.take().unwrap();
        assert_eq!(
            found.rows.schema_ref(),
            &data_type.layout.storage,
            "{}",
            data_type.id
        );
        assert_eq!(found.rows.num_rows(), examples.len());
    }
}

#[test]
fn a_decoder_goes_on_after_rows_were_taken() {
    let mut decoder = decoder("HeartRate");
    let expected = table(&rows("HeartRate", &[SAMPLE]));
    for _ in 0..3 {
        decoder.push(0, SAMPLE.as_bytes()).unwrap();
        decoder.push(1, SAMPLE.as_bytes()).unwrap();
        let found = decoder.take().unwrap();
        assert_eq!(table(&found), [expected[0].clone(), expected[0].clone()]);
        assert_eq!(found.sources.len(), 1);
        assert!(decoder.is_empty());
    }
}

#[test]
fn a_record_alone_becomes_the_row_that_it_is_among_others() {
    let bare =
        r#"{"id":"0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5f","start_date":"2024-05-01T10:00:00Z","value":61}"#;
    for line in [SAMPLE, bare] {
        let (alone, among) = (rows("HeartRate", &[line]), rows("HeartRate", &[line, SAMPLE]));
        assert_eq!(alone.rows.schema(), among.rows.schema());
        assert_eq!(table(&alone)[0], table(&among)[0]);
    }
}
