//! The fast way of decoding and the complete one agree, whatever is sent.

use proptest::prelude::*;

use super::own_extras::open;
use super::*;
use crate::ingest::fast;
use crate::ingest::memo::Memo;
use crate::ingest::origins::Origins;

/// Values that fit, values that nearly fit, and values that have no business there.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            r#""2024-05-01T10:00:00Z""#, r#""2024-05-01T10:00:05.123456789+02:00""#, r#""2024-05-01 10:00""#,
            r#""2023-05-01""#, r#""2025-05-01""#, r#""2024-02-30""#,
            r#""0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e""#, r#""0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E""#,
            r#""0191f0c45b1e7c3a9d526f1a2b3c4d5e""#, r#""urn:uuid:0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e""#,
            r#""bpm""#, r#""count/min""#, r#""kg""#, r#""lb""#, r#""%""#, r#""kJ""#, r#""""#,
            r#""a\u0062pm""#, r#""ü\n""#, "\"\u{1}\"", "\"\t\"",
            "null", "true", "false", "0", "-0", "-0.0", "1", "3.0", "1e2", "72.5", "-1", "1e400", "NaN", "01",
            "1.", ".5", "+1", "9007199254740993", "9223372036854775808",
            "0.1e-400", "91", "90", "-90.0", "[]", "{}", "[1]", r#"["a","b"]"#,
            r#"["com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60"]"#, r#"["a", 1]"#,
            r#"{"name":"Watch","productType":"Watch6,2"}"#,
            r#"{"name":"Watch","productType":"Watch6,2","other":1}"#, r#"{ "name" : "Phone" }"#,
            r#"{"name":null}"#, r#"{"name":1}"#,
            r#"{"sourceBundleIdentifier":"com.example.health"}"#, r#"{"was_user_entered":true}"#,
            r#"{"start_time":"2024-05-01","end_time":"2024-05-02"}"#, r#"{"name":"}"}"#, r#"{"name":"\""}"#,
        ]).prop_map(str::to_owned),
        1 => any::<f64>().prop_map(|value| value.to_string()),
        1 => (-1000_i32..1000, 0_u32..1000).prop_map(|(whole, part)| format!("{whole}.{part}")),
        1 => any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => prop::sample::select(vec![
            "id", "uuid", "start_date", "end_date", "start_time", "end_time", "timestamp", "recorded_at",
            "value", "unit", "count", "sources", "tags", "note", "source_properties",
            "device_properties", "has_undetermined_duration", "latitude_degrees", "longitude_degrees",
            "floor", "extras", "source_id", "source_name", "metadata",
        ]).prop_map(str::to_owned),
        1 => "[a-z]{1,3}",
        1 => Just("val\\u0075e".to_owned()),
    ]
}

/// A field that makes sense, so that many records are valid.
fn sensible_field() -> impl Strategy<Value = (String, String)> {
    let choose = |name: &'static str, values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(move |value| (name.to_owned(), value.to_owned()))
    };
    prop_oneof![
        choose(
            "unit",
            &[r#""bpm""#, r#""count/min""#, r#""kg""#, r#""lb""#, "null"]
        ),
        choose("count", &["1", "0", "null", "5.0"]),
        choose("id", &[r#""0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e""#, "null"]),
        choose(
            "sources",
            &[
                r#"["a"]"#,
                r#"["a","b"]"#,
                r#"["com.almanac.annotation.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60"]"#,
                "null",
                "[]"
            ]
        ),
        choose(
            "source_id",
            &[
                r#""a""#,
                r#""""#,
                r#""com.almanac.annotation.0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D60""#,
                "null"
            ]
        ),
        choose("tags", &[r#"["x"]"#, "null"]),
        choose(
            "source_properties",
            &[
                r#"{"name":"Watch","productType":"Watch6,2"}"#,
                r#"{"name":"Phone","productType":"Phone1"}"#,
                "null",
                "{}"
            ]
        ),
        choose(
            "device_properties",
            &[
                r#"{"name":"Watch","hardwareVersion":"Watch6,2"}"#,
                r#"{"name":"Watch","imported_from":"x","other": [1, 2]}"#,
                r#"{"strap":{"length":3}}"#,
                "null"
            ]
        ),
        choose(
            "extras",
            &[
                r#"{"motion":1}"#,
                r#"{ "HKWasUserEntered" : true, "zone":"Europe\/Berlin" }"#,
                r#"{"HKWasUserEntered":0,"nested":{"a":[1.10,null,{"b":"\u00fc\n"}]}}"#,
                r#"{"imported_from":"export","motion":2}"#,
                r#"{"sources":["hidden"],"original_value":5}"#,
                r#"{"sources":["a"],"tags":"free"}"#,
                r#"{"tags":["x"],"motion":1,"tags":["y"]}"#,
                r#"{"motion":"\u0000"}"#,
                r#"{"motion":[{"a":1,"b":2,"a":3}]}"#,
                "{}",
                "null"
            ]
        ),
        choose(
            "motion",
            &[
                "1",
                "null",
                r#"{"a":{"b":[[[[[1]]]]]}}"#,
                r#""\ud83d\ude00""#,
                r#"{"a":1,"\u0061":2}"#,
                r#"{"a":{"b":1,"b":1}}"#
            ]
        ),
        choose("imported_from", &[r#""export""#, "null"]),
        choose("HKWasUserEntered", &["1", "true", "false", "[1e400]"]),
        choose("source", &[r#""My App""#, "5"]),
        choose("device", &[r#"{"name": "x", "n": [ ]}"#]),
        choose(
            "end_date",
            &[r#""2024-05-01T10:00:00Z""#, r#""2024-05-01T11:00:00Z""#, "null"]
        ),
        choose("has_undetermined_duration", &["true", "false", "null"]),
        choose(
            "note",
            &[r#""x""#, r#""y ü""#, r#""a\u00e4\n\"""#, r#""\ud83d""#, "null"]
        ),
    ]
}

fn line_of(fields: &[(String, String)], blank: &str) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{blank}{value}"))
        .collect();
    format!("{{{}}}", fields.join(&format!(",{blank}")))
}

/// A type, and a body whose lines mostly have what its records must have.
fn any_body() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    let types: Vec<(&str, &[(&str, &str)])> = vec![
        ("HeartRate", &[("start_date", MORNING), ("value", "72.5")]),
        ("Weight", &[("start_time", MORNING), ("value", "80")]),
        ("StepCount", &[("start_date", MORNING), ("value", "0")]),
        (
            "PlatformLocationUpdate",
            &[
                ("timestamp", MORNING),
                ("latitude_degrees", "52.5"),
                ("longitude_degrees", "-13.25"),
            ],
        ),
        ("Metric", &[("start_time", MORNING), ("value", "1e2")]),
        ("Event", &[("start_time", MORNING)]),
        ("NumericAnnotation", &[("recorded_at", MORNING), ("value", "3")]),
        ("MomentAnnotation", &[("start_time", MORNING)]),
    ];
    prop::sample::select(types)
        .prop_flat_map(|(name, required)| (Just(name), prop::collection::vec(any_line(required), 1..40)))
}

const MORNING: &str = r#""2024-05-01T10:00:00Z""#;

fn any_line(required: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = String> {
    let required: Vec<(String, String)> = required
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let required = prop_oneof![9 => Just(required), 1 => Just(Vec::new())];
    let extra = prop_oneof![12 => sensible_field(), 1 => (any_name(), any_value())];
    let fields = (required, prop::collection::vec(extra, 0..5)).prop_map(|(required, extra)| {
        let mut fields: Vec<(String, String)> = required;
        for (name, value) in extra {
            // Now and then a field comes twice; as a rule it does not.
            if value.len() % 7 == 0 || fields.iter().all(|(given, _)| *given != name) {
                fields.push((name, value));
            }
        }
        fields
    });
    (
        fields.prop_shuffle_some(),
        prop_oneof![5 => Just(""), 1 => Just(" ")],
        0..60_usize,
    )
        .prop_map(|(fields, blank, damage)| {
            let mut line = line_of(&fields, blank);
            if damage < 2 && line.is_char_boundary(line.len() / 2) {
                line.truncate(line.len() / 2);
            } else if damage == 2 {
                line.push('x');
            }
            line
        })
}

trait ShuffleSome: Strategy<Value = Vec<(String, String)>> + Sized {
    /// Mostly in order, because programs write fields in one order; sometimes turned round.
    fn prop_shuffle_some(self) -> impl Strategy<Value = Vec<(String, String)>> {
        (self, 0..4_u8).prop_map(|(mut fields, turn)| {
            if turn == 0 {
                fields.reverse();
            }
            fields
        })
    }
}

impl<S: Strategy<Value = Vec<(String, String)>>> ShuffleSome for S {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The fast way and the complete way give equal rows, or refuse equally, whatever came before.
    #[test]
    fn both_ways_agree((name, lines) in any_body()) {
        let [found, expected] = agree([decoder(name), decoder(name)], &lines)?;
        prop_assert_eq!(found.given, expected.given);
    }
}

/// Decodes `lines` the fast way with the first decoder and the complete way with the other, and compares.
fn agree(
    [mut fast, mut complete]: [RecordDecoder; 2],
    lines: &[String],
) -> Result<[DecodedRows; 2], TestCaseError> {
    for (index, line) in lines.iter().enumerate() {
        let found = fast.push(index, line.as_bytes());
        let expected = complete.push_completely(RecordPosition::Line(index), line.as_bytes());
        prop_assert_eq!(found, expected, "{}", line);
    }
    let (found, expected) = (fast.take().unwrap(), complete.take().unwrap());
    prop_assert_eq!(table(&found), table(&expected), "{:#?}", lines);
    prop_assert_eq!(&found.sources, &expected.sources);
    Ok([found, expected])
}

#[test]
fn an_end_that_rows_do_not_show_is_forgotten_both_ways() {
    let name = "MomentAnnotation";
    let line = r#"{"start_time":"2024-05-01T10:00:00Z","end_time":"2025-05-01T10:00:00Z"}"#;
    let [found, _] = agree([decoder(name), decoder(name)], &[line.to_owned()]).unwrap();
    assert_eq!(table(&found)[0][1..3], ["2024-05-01T10:00:00Z"; 2]);
}

/// A member of a record of an own type, which may stand beside the others or under `extras`.
fn own_member() -> impl Strategy<Value = (String, String)> {
    let of = |name: &'static str, values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(move |value| (name.to_owned(), value.to_owned()))
    };
    prop_oneof![
        of("lim", &["5", "5.0", "99", "null"]),
        of("n", &["3", "3.0", "\"x\"", "null"]),
        of(
            "o",
            &[
                r#"{"x":1}"#,
                r#"{"y":2}"#,
                r#"{"x":1,"y":2}"#,
                r#"{"x":1,"y":2,"y":3}"#,
                "{}",
                "null"
            ]
        ),
        of("tags", &[r#"["t"]"#, "null"]),
        of("sources", &[r#"["app"]"#, "null"]),
        of("source", &[r#""app""#, "5"]),
        of("free", &["1", "null", r#"{"a":[1.50]}"#]),
        of("more", &["2", r#""two""#]),
        of("extras", &[r#"{"free":1}"#, r#"{"lim":5}"#, "5", "null"]),
    ]
}

/// Bodies for an own type, whose members stand before the extras, in them, or after them.
fn own_body() -> impl Strategy<Value = Vec<String>> {
    let members = || prop::collection::vec(own_member(), 0..3);
    let line = (members(), members(), members()).prop_map(|(before, among, after)| {
        let start = ("start_time".to_owned(), MORNING.to_owned());
        let extras = ("extras".to_owned(), line_of(&among, ""));
        let fields: Vec<_> = std::iter::once(start)
            .chain(before)
            .chain(std::iter::once(extras))
            .chain(after)
            .collect();
        line_of(&fields, "")
    });
    prop::collection::vec(line, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Also where the members of extras count as members beside them.
    #[test]
    fn both_ways_agree_on_own_types(lines in own_body()) {
        let own = open();
        agree([decoder_of(&own), decoder_of(&own)], &lines)?;
    }
}

#[test]
fn records_as_programs_write_them_take_the_fast_way() {
    let spaced = SAMPLE.replace("\":", "\": ").replace(",\"", ", \"");
    let marked = with_extras(r#""HKWasUserEntered":true,"place":{"floor":[1,2]},"text":"\u00fc\/""#);
    for line in [
        SAMPLE,
        spaced.as_str(),
        marked.as_str(),
        marked.replace("\"extras\":{", "").replace("}}", "}").as_str(),
        r#"{"start_date":"2024-05-01T10:00:00Z","value":80.5,"unit":"kg"}"#,
    ] {
        let name = if line.contains("kg") {
            "Weight"
        } else {
            "HeartRate"
        };
        let mut decoder = decoder(name);
        decoder.push(0, line.as_bytes()).unwrap();
        assert!(decoder.takes_the_fast_way(line.as_bytes()), "{line}");
    }
    let compiled = COMPILED.get(&data_type("HeartRate")).unwrap();
    let mut memo = Memo::new(compiled.plan.columns.len());
    assert!(
        fast::decode(
            &compiled,
            &context(),
            &mut memo,
            &mut Origins::default(),
            SAMPLE.as_bytes()
        )
        .is_none(),
        "nothing was learnt yet"
    );
}

/// The sample with these members among its extras.
fn with_extras(members: &str) -> String {
    let sample = SAMPLE.strip_suffix('}').unwrap_or(SAMPLE);
    format!("{sample},\"extras\":{{{members}}}}}")
}
