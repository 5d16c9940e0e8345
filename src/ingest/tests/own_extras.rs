//! What is sent under `extras` to a person's own type, whose answers show it beside the other members.

use std::time::{Duration, Instant as Moment};

use serde_json::{Value, json};

use super::*;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, Definition};

/// The own type of `base` that `definition` makes.
fn own(base: Base, definition: &Value) -> Arc<DataType> {
    let definition = Definition::read(base, definition).unwrap();
    let (owner, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(7));
    Arc::new(DataType::from_definition(owner, id, &data_type(base.as_str()), &definition, 1).unwrap())
}

fn event(schema: &Value) -> Arc<DataType> {
    own(
        Base::Event,
        &json!({"name": "Own", "record_spec": {"schema": schema}}),
    )
}

pub(super) fn open() -> Arc<DataType> {
    event(&json!({"properties": {
        "lim": {"type": "number", "maximum": 10}, "n": {"type": "integer"},
        "o": {"type": "object", "properties": {"x": {"type": "number"}}}, "any": {},
    }}))
}

fn line(rest: &str) -> String {
    format!(r#"{{"id":"0191f000-0000-7000-8000-000000000001","start_time":"2024-05-01T10:00:00Z",{rest}}}"#)
}

/// The rows of two equal records, of which the second may go the fast way.
fn twice(own: &Arc<DataType>, rest: &str) -> Vec<Vec<String>> {
    let mut decoder = decoder_of(own);
    for index in 0..2 {
        decoder
            .push(index, line(rest).as_bytes())
            .unwrap_or_else(|faults| panic!("{rest}: {faults:?}"));
    }
    table(&decoder.take().unwrap())
}

fn faults(own: &Arc<DataType>, rest: &str) -> Vec<(String, &'static str)> {
    let faults = decoder_of(own).push(7, line(rest).as_bytes()).expect_err(rest);
    faults.iter().map(|fault| (place(fault), fault.kind)).collect()
}

#[test]
fn rule_8_4_what_is_sent_under_extras_is_stored_as_if_it_stood_beside_them() {
    for (among, beside) in [
        (
            r#""extras":{"lim":5,"free":1},"more":2"#,
            r#""lim":5,"free":1,"more":2"#,
        ),
        (r#""extras":{"free":1,"n":3}"#, r#""free":1,"n":3"#),
        (r#""\u0065xtras":{"n":3}"#, r#""n":3"#),
        (
            r#""extras":{"tags":["t"],"sources":["app"]}"#,
            r#""tags":["t"],"sources":["app"]"#,
        ),
        (r#""extras":{"source":"app"}"#, r#""source":"app""#),
        (r#""extras":{"extras":{"n":3},"free":1}"#, r#""n":3,"free":1"#),
        (r#""n":null,"extras":{"n":3}"#, r#""n":3"#),
        (r#""n":3,"extras":{"n":null}"#, r#""n":3"#),
        (r#""free":null,"extras":{"free":1}"#, r#""free":1"#),
        (r#""lim":5,"extras":{"lim":5.0}"#, r#""lim":5"#),
        (r#""o":{"x":1},"extras":{"o":{"y":2}}"#, r#""o":{"x":1,"y":2}"#),
        (
            r#""o":{"x":1},"extras":{"o":{"x":1.0,"y":2}}"#,
            r#""o":{"x":1,"y":2}"#,
        ),
        (r#""extras":{},"free":1"#, r#""free":1"#),
        (r#""extras":null,"free":1"#, r#""free":1"#),
    ] {
        assert_eq!(twice(&open(), among), twice(&open(), beside), "{among}");
    }
}

#[test]
fn rule_8_4_what_was_sent_before_its_field_was_declared_comes_back_as_it_is_read() {
    for (read, extras) in [
        (r#""n":null,"extras":{"n":"x"}"#, r#"{"n":"x"}"#),
        (r#""extras":{"n":1.5},"n":null,"free":1"#, r#"{"n":1.5,"free":1}"#),
        (
            r#""n":null,"o":null,"extras":{"o":{"x":"y","z":2}}"#,
            r#"{"o":{"x":"y","z":2}}"#,
        ),
        (r#""n":null,"extras":{"extras":{"n":[3]}}"#, r#"{"n":[3]}"#),
    ] {
        let mut decoder = decoder_of(&open());
        for index in 0..2 {
            let pushed = decoder.push(index, line(read).as_bytes());
            pushed.unwrap_or_else(|faults| panic!("{read}: {faults:?}"));
        }
        let found = decoder.take().unwrap();
        for row in 0..2 {
            assert_eq!(cell(&found, "extras", row), extras, "{read}");
            assert_eq!(cell(&found, "n", row), "", "{read}");
        }
    }
}

/// One name is written with an escape, so that the complete way is needed.
#[test]
fn each_of_many_members_is_looked_up_among_many_extras_without_going_through_all_of_them() {
    const MANY: usize = 20_000;
    let named = |letter: char, value: usize| {
        let members = (0..MANY).map(|number| format!("\"{letter}{number:06}\":{value}"));
        members.collect::<Vec<_>>().join(",")
    };
    let (beside, among) = (named('a', 0), named('b', 1));
    for rest in [
        format!(r#""\u0061zz":0,{beside},"extras":{{{among}}}"#),
        format!(r#""o":{{"\u0061zz":0,{beside}}},"extras":{{"o":{{{among}}}}}"#),
    ] {
        let mut decoder = decoder_of(&open());
        let begun = Moment::now();
        let pushed = decoder.push(0, line(&rest).as_bytes());
        let took = begun.elapsed();
        assert!(pushed.is_ok(), "{:?}", pushed.map_err(|faults| faults.len()));
        assert!(took < Duration::from_secs(5), "{took:?}");
        let extras = cell(&decoder.take().unwrap(), "extras", 0);
        for member in [r#""azz":0"#, r#""a000000":0"#, r#""a019999":0"#, r#""b019999":1"#] {
            assert!(extras.contains(member), "{member}");
        }
    }
}

#[test]
fn of_several_extras_of_one_field_each_is_held_against_what_stands_beside_them() {
    for (rest, at) in [
        (r#""n":3,"extras":{"n":3,"extras":{"n":4}}"#, "extras.n"),
        (r#""n":null,"extras":{"n":3,"extras":{"n":3}}"#, "extras.n"),
        (
            r#""free":1,"extras":{"free":null,"extras":{"free":1}}"#,
            "extras.free",
        ),
    ] {
        let found = faults(&open(), rest);
        assert!(
            found.contains(&(format!("body.7.{at}"), "duplicate")),
            "{rest}: {found:?}"
        );
    }
}

#[test]
fn a_source_fills_no_column_that_is_declared_as_something_else() {
    for declared in [
        json!({"type": "integer"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({}),
    ] {
        let own = event(&json!({"properties": {"source_id": declared}}));
        let mut decoder = decoder_of(&own);
        decoder.push(0, line(r#""sources":["app"]"#).as_bytes()).unwrap();
        let found = decoder.take().unwrap();
        assert_eq!(cell(&found, "source_id", 0), "", "{declared}");
    }
}

#[test]
fn rule_8_4_extras_let_nothing_past_the_schema_of_an_own_type() {
    let own = open();
    for (rest, at, kind) in [
        (r#""extras":{"lim":99}"#, "extras.lim", "maximum"),
        (r#""extras":{"n":"x"}"#, "extras.n", "type"),
        (r#""lim":null,"extras":{"lim":99}"#, "extras.lim", "maximum"),
        (r#""n":3,"extras":{"n":"x"}"#, "extras.n", "duplicate"),
        (r#""extras":{"tags":[1]}"#, "extras.tags.0", "type"),
        (r#""extras":{"extras":5}"#, "extras.extras", "type"),
        (r#""extras":{"uuid":"x"}"#, "extras.uuid", "duplicate"),
        (r#""lim":5,"extras":{"lim":6}"#, "extras.lim", "duplicate"),
        (r#""o":{"x":1},"extras":{"o":{"x":2}}"#, "extras.o", "duplicate"),
        (r#""free":1,"extras":{"free":1}"#, "extras.free", "duplicate"),
        (r#""any":{"x":1,"x":2}"#, "any.x", "duplicate"),
        (r#""o":{"z":1,"z":2}"#, "o.z", "duplicate"),
        (r#""free":{"z":1,"z":2}"#, "free.z", "duplicate"),
        (r#""extras":{"o":{"z":1,"z":1}}"#, "extras.o.z", "duplicate"),
        (
            r#""o":{"x":1},"extras":{"o":{"x":1,"x":2}}"#,
            "extras.o.x",
            "duplicate",
        ),
        (r#""extras":{"lim":1},"extras":{"lim":99}"#, "extras", "duplicate"),
        (r#""extras":{"lim":1},"extras":{"lim":1}"#, "extras", "duplicate"),
        (r#""extras":null,"extras":{"lim":1}"#, "extras", "duplicate"),
        (r#""n":null,"n":null,"extras":{"n":3}"#, "n", "duplicate"),
        (r#""extras":5"#, "extras", "type"),
        (
            r#""extras":{"extras":{"extras":{"extras":{"extras":{"n":3}}}}}"#,
            "extras.extras",
            "misplaced",
        ),
    ] {
        let found = faults(&own, rest);
        assert!(
            found.contains(&(format!("body.7.{at}"), kind)),
            "{rest}: {found:?}"
        );
    }
    let closed = event(&json!({
        "properties": {"must": {"type": "string"}}, "required": ["must"], "additionalProperties": false,
    }));
    assert_eq!(
        faults(&closed, r#""must":"a","extras":{"zzz":1}"#),
        [("body.7".to_owned(), "undeclared")]
    );
    assert_eq!(
        faults(&closed, r#""extras":{}"#),
        [("body.7.must".to_owned(), "missing")]
    );
    assert_eq!(
        twice(&closed, r#""extras":{"must":"a"}"#),
        twice(&closed, r#""must":"a""#)
    );
}

#[test]
fn rule_8_7_what_a_conversion_kept_comes_back_where_nothing_undeclared_may() {
    let weighed = own(
        Base::Metric,
        &json!({"name": "Tea", "record_spec": {"unit": "g", "schema": {"additionalProperties": false}}}),
    );
    let sent = twice(&weighed, r#""value":2,"unit":"kg""#);
    for read in [
        r#""value":2000,"unit":"g","original_value":2,"original_unit":"kg""#,
        r#""value":2000,"unit":"g","extras":{"original_value":2,"original_unit":"kg"}"#,
    ] {
        assert_eq!(twice(&weighed, read), sent, "{read}");
    }
    for other in [
        r#""original_value":"2""#,
        r#""original_unit":2"#,
        r#""original":2"#,
    ] {
        let found = faults(&weighed, &format!(r#""value":2,{other}"#));
        assert_eq!(found, [("body.7".to_owned(), "undeclared")], "{other}");
    }
}

#[test]
fn rule_8_2_a_record_of_a_base_may_repeat_the_columns_of_definitions_without_a_value() {
    for base in ["Event", "Metric"] {
        for (sent, read) in [
            (r#""hello":"w""#, r#""extras":{"hello":"w"},"n":null"#),
            (r#""n":5"#, r#""n":null,"extras":{"n":5}"#),
            (r#""extras":{"n":null}"#, r#""extras":{"n":null},"n":null"#),
            (r#""source":"app""#, r#""sources":["app"],"source":null"#),
            (r#""extras":{}"#, r#""n":null,"m":null"#),
        ] {
            let [sent, read] = [sent, read].map(|rest| line(&format!(r#""value":2,{rest}"#)));
            let mut decoder = decoder(base);
            for index in 0..2 {
                decoder.push(index, read.as_bytes()).unwrap();
                let place = RecordPosition::Line(index);
                decoder.push_completely(place, read.as_bytes()).unwrap();
                decoder.push(index, sent.as_bytes()).unwrap();
            }
            let found = table(&decoder.take().unwrap());
            assert!(
                found.iter().all(|row| *row == found[0]),
                "{base}: {read}: {found:?}"
            );
        }
    }
}

#[test]
fn extras_of_built_in_types_stay_what_they_are() {
    let extras = r#"{"value":50,"lim":1}"#;
    let line = format!(r#"{{"start_time":"2024-05-01T10:00:00Z","value":5,"extras":{extras}}}"#);
    let found = rows("Metric", &[&line, &line]);
    for row in 0..2 {
        assert_eq!(
            (cell(&found, "value", row), cell(&found, "extras", row)),
            ("5.0".to_owned(), extras.to_owned())
        );
    }
}
