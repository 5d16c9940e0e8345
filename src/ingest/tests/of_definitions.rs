//! Natural ids of records that belong to definitions: those of two are never one record, and those of one are
//! the same however it is named.

use std::collections::BTreeSet;

use super::*;

const TEA: &str = "com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e";
const WALK: &str = "com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5f";
/// Known by their source and time, unlike the others.
const MEASURES: [&str; 3] = ["BooleanAnnotation", "NumericAnnotation", "ScaleAnnotation"];
const EVENTS: [&str; 2] = ["MomentAnnotation", "PeopleAnnotation"];

/// How a record may name a definition, and how its row names it: as it is `<sent>`, or in the `<one>`
/// spelling of rows.
const FORMS: [[&str; 2]; 7] = [
    [r#""source_id":"<sent>""#, r#""sources":null,"source_id":"<one>""#],
    [
        r#""source":"app","source_id":"<sent>""#,
        r#""sources":["app"],"source_id":"<one>""#,
    ],
    [
        r#""sources":["app"],"source_id":"<sent>""#,
        r#""sources":["app"],"source_id":"<one>""#,
    ],
    [
        r#""sources":["app","<sent>"]"#,
        r#""sources":["app","<sent>"],"source_id":"<one>""#,
    ],
    [
        r#""sources":["<sent>"]"#,
        r#""sources":["<sent>"],"source_id":"<one>""#,
    ],
    [
        r#""sources":["<sent>","app"]"#,
        r#""sources":["<sent>","app"],"source_id":"<one>""#,
    ],
    [
        r#""sources":["<sent>"],"source_id":"app""#,
        r#""sources":["<sent>","app"],"source_id":"<one>""#,
    ],
];

fn line(name: &str, named: &str) -> String {
    let what = match name {
        "BooleanAnnotation" => r#""value":true"#,
        "NumericAnnotation" | "ScaleAnnotation" => r#""value":3"#,
        "PeopleAnnotation" => r#""people":["A"]"#,
        _ => r#""note":"a""#,
    };
    format!(r#"{{"recorded_at":"2024-05-01T10:00:00Z",{what},{named}}}"#)
}

/// The ids of records that are sent to a base, or to the type of a definition.
fn ids_at(definition: Option<&str>, name: &str, named: &[String]) -> Vec<String> {
    let leave = Leave {
        natural_ids: true,
        coercion: None,
    };
    let context = DecodeContext {
        definition: definition.map(Arc::from),
        leave,
        ..context()
    };
    let mut decoder = RecordDecoder::new(COMPILED.get(&data_type(name)).unwrap(), context).unwrap();
    for (index, named) in named.iter().enumerate() {
        let line = line(name, named);
        decoder
            .push(index, line.as_bytes())
            .unwrap_or_else(|faults| panic!("{line}: {faults:?}"));
    }
    let rows = decoder.take().unwrap();
    (0..named.len()).map(|row| cell(&rows, "id", row)).collect()
}

fn ids(name: &str, named: &[String]) -> Vec<String> {
    ids_at(None, name, named)
}

#[test]
fn records_of_two_definitions_are_two_however_they_name_them() {
    for name in MEASURES.into_iter().chain(EVENTS) {
        let of = |source: &str| {
            let named = FORMS.map(|[sent, _]| sent.replace("<sent>", source));
            ids(name, &named).into_iter().collect::<BTreeSet<String>>()
        };
        assert!(of(TEA).is_disjoint(&of(WALK)), "{name}");
        for [form, _] in &FORMS[..3] {
            let named = ["device.a", "device.b"].map(|source| form.replace("<sent>", source));
            let ids = ids(name, &named);
            assert_ne!(ids[0], ids[1], "{name}: {form}");
        }
    }
}

#[test]
fn a_definition_is_the_same_in_any_spelling_and_as_it_was_read() {
    let (prefix, id) = TEA.split_at("com.almanac.annotation.".len());
    let spellings = [
        TEA.to_owned(),
        format!("{prefix}{}", id.to_uppercase()),
        format!("{prefix}{}", id.replace('-', "")),
    ];
    for name in MEASURES.into_iter().chain(EVENTS) {
        for [sent, read] in FORMS {
            let shown = r#""source_name":"Tea","metadata":{"name":"Tea"},"tags":null,"extras":null"#;
            let named = |spelt: &String| {
                let sent = sent.replace("<sent>", spelt);
                let read = read.replace("<sent>", spelt).replace("<one>", TEA);
                // A line that comes again may go the fast way.
                [sent.clone(), sent, format!("{read},{shown}")]
            };
            let named: Vec<String> = spellings.iter().flat_map(named).collect();
            let ids = ids(name, &named);
            let distinct: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(distinct.len(), 1, "{name}: {sent}: {ids:?}");
        }
    }
}

#[test]
fn a_record_without_other_sources_is_the_same_at_the_type_of_its_definition() {
    let read = format!(r#""sources":null,"source_id":"{TEA}","source_name":"Tea""#);
    let alone = format!(r#""sources":["{TEA}"]"#);
    let nothing = r#""tags":null"#.to_owned();
    for name in MEASURES.into_iter().chain(EVENTS) {
        let mut found = ids(name, &[read.clone(), alone.clone()]);
        let at_its_type = [read.clone(), alone.clone(), nothing.clone()];
        found.extend(ids_at(Some(TEA), name, &at_its_type));
        assert!(found.iter().all(|id| *id == found[0]), "{name}: {found:?}");
    }
}

#[test]
fn these_ids_of_annotations_are_stored_and_never_change() {
    let named = [
        r#""sources":null"#.to_owned(),
        r#""sources":["app"]"#.to_owned(),
        format!(r#""sources":["{TEA}"]"#),
    ];
    let expected = [
        "59670d3ec0af5e1c801d9f8dba9bf780",
        "d1f3fd5f588a5f06bebed02dbb9d806a",
        "5859926d7e8d52cf9b87436a446b4ae6",
    ];
    assert_eq!(ids("NumericAnnotation", &named), expected);
    let named = [
        format!(r#""sources":["{TEA}"]"#),
        format!(r#""sources":["app","{TEA}"]"#),
    ];
    let expected = [
        "6913a0adeb205d5b84b47e15f6437fb8",
        "09c5387a61f35e40a443b4fcca2b7559",
    ];
    assert_eq!(ids("MomentAnnotation", &named), expected);
}
