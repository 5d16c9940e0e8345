//! Rows of others without a person: which texts of theirs are written anew, and how.
//!
//! Texts that records refer to stay: the key of a source, by which their rows name it, and what a definition
//! calls its properties and allows as their values. Knows columns and JSON; stores nothing.

use serde_json::Value as Json;
use uuid::Uuid;

use super::spellings::{StandIn, is_named_in};
use crate::catalog::database::Value;
use crate::catalog::rows::id;
use crate::catalog::tables::{ACCESS_LOG, DEFINITIONS, DOCUMENTS, PEOPLE, SOURCES, Table};
use crate::model::ids::PersonId;

/// What a text column holds.
#[derive(Clone, Copy, Debug)]
enum Form {
    Words,
    Json,
    /// JSON that describes a type.
    Definition,
}

/// The texts of others that may name somebody and are written anew then.
const REWRITTEN: [(&Table, &str, Form); 8] = [
    (&PEOPLE, "name", Form::Words),
    (&PEOPLE, "preferences", Form::Json),
    (&SOURCES, "name", Form::Words),
    (&DEFINITIONS, "body", Form::Definition),
    (&DOCUMENTS, "name", Form::Words),
    (&DOCUMENTS, "body", Form::Json),
    (&ACCESS_LOG, "body", Form::Json),
    (&ACCESS_LOG, "outcome", Form::Words),
];
/// The members of a definition, and of the schemas in it, that only describe.
const DESCRIBING: [&str; 7] = [
    "name",
    "description",
    "icon",
    "default_event_tags",
    "svc_source",
    "title",
    "$comment",
];
/// The member of a definition that has a label for each value.
const LABELS: &str = "value_map";
/// The members of bodies that list people by their ids: the receivers of a share, and who is invited.
const LISTS_OF_PEOPLE: [&str; 2] = ["allowed_svc_userids", "invited"];
/// The members of a schema that hold what records may hold.
const OF_VALUES: [&str; 4] = ["const", "default", "enum", "examples"];
/// The column with the version of a row.
const VERSION: &str = "version";
/// The column with the person who did something.
const ACTOR: &str = "actor";

/// Takes the person out of a row of somebody else, which has another version then. `turn`: 0, or how many
/// stand-ins were tried that are taken. Returns whether the row was changed.
pub(super) fn rewrite(table: &Table, row: &mut [Value], person: PersonId, turn: u32) -> bool {
    let stand_in = StandIn::of(person, turn);
    let mut is_changed = false;
    for ((column, _), value) in table.columns.iter().zip(row.iter_mut()) {
        let rewritten = match &*value {
            Value::Text(text) if is_named_in(text, person) => {
                form_of(table, column).map(|form| Value::Text(without(text, form, &stand_in)))
            }
            Value::Bytes(bytes) if *column == ACTOR && bytes.as_slice() == person.as_bytes() => {
                Some(id(Uuid::nil()))
            }
            _ => None,
        };
        if let Some(rewritten) = rewritten
            && rewritten != *value
        {
            *value = rewritten;
            is_changed = true;
        }
    }
    if is_changed {
        for ((column, _), value) in table.columns.iter().zip(row.iter_mut()) {
            if let (&VERSION, Value::Int(version)) = (column, value) {
                *version += 1;
            }
        }
    }
    is_changed
}

fn form_of(table: &Table, column: &str) -> Option<Form> {
    let found = REWRITTEN
        .iter()
        .find(|(of, name, _)| of.name == table.name && *name == column);
    found.map(|(_, _, form)| *form)
}

#[cfg(test)]
pub(super) fn is_rewritten(table: &Table) -> bool {
    REWRITTEN.iter().any(|(of, _, _)| of.name == table.name)
}

fn without(text: &str, form: Form, stand_in: &StandIn) -> String {
    match form {
        Form::Words => stand_in.put_into(text),
        Form::Json => json_without(text, stand_in),
        Form::Definition => definition_without(text, stand_in),
    }
}

/// JSON text without the person: lists of people are shorter by one, and everywhere else there is the other
/// id, alone as well as within a text. What is called like the person keeps one name wherever it stands: in
/// the key of a file, in its body, and in what is shared of it.
fn json_without(body: &str, stand_in: &StandIn) -> String {
    let among_others = serde_json::from_str::<Json>(body).map_or_else(
        |_| body.to_owned(),
        |mut value| {
            leave_lists_of_people(&mut value, stand_in);
            value.to_string()
        },
    );
    stand_in.put_into(&among_others)
}

fn leave_lists_of_people(body: &mut Json, stand_in: &StandIn) {
    for list in LISTS_OF_PEOPLE {
        if let Some(Json::Array(people)) = body.get_mut(list) {
            people.retain(|person| person.as_str().is_none_or(|id| !stand_in.replaces_all_of(id)));
        }
    }
}

/// The text of a definition with another id in place of the person's, but for what records refer to.
fn definition_without(body: &str, stand_in: &StandIn) -> String {
    let Ok(before) = serde_json::from_str::<Json>(body) else {
        return body.to_owned();
    };
    let mut definition = before.clone();
    describe(&mut definition, stand_in);
    if let Some(Json::Object(labels)) = definition.get_mut(LABELS) {
        for label in labels.values_mut() {
            put_into_texts(label, stand_in);
        }
    }
    if definition == before {
        body.to_owned()
    } else {
        definition.to_string()
    }
}

fn describe(value: &mut Json, stand_in: &StandIn) {
    match value {
        Json::Array(items) => {
            for item in items {
                describe(item, stand_in);
            }
        }
        Json::Object(members) => {
            for (name, member) in members {
                // A property may be called like that too; then this is its schema, an object.
                if DESCRIBING.contains(&name.as_str()) && !member.is_object() {
                    put_into_texts(member, stand_in);
                } else if !OF_VALUES.contains(&name.as_str()) || member.is_object() {
                    describe(member, stand_in);
                }
            }
        }
        _ => {}
    }
}

/// Replaces the id in a text, or in the texts of a list.
fn put_into_texts(value: &mut Json, stand_in: &StandIn) {
    match value {
        Json::String(text) => *text = stand_in.put_into(text),
        Json::Array(items) => {
            for item in items {
                put_into_texts(item, stand_in);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::rows::text;
    use crate::catalog::tables::{ALL, Kind};
    use crate::model::erasure::ErasureMark;

    /// Texts in rows with an owner that no other person writes, or that stay.
    const LEFT_ALONE: [&str; 7] = [
        "base",
        "data_type",
        "idempotency_key",
        "kind",
        "minutes",
        "path",
        "source_key",
    ];

    #[test]
    fn each_text_of_others_is_written_anew_or_known_to_stay() {
        for table in ALL.iter().filter(|table| table.has_owner()) {
            for (column, kind) in table.columns {
                let is_text = matches!(kind, Kind::Text | Kind::OptionalText);
                if is_text && form_of(table, column).is_none() {
                    assert!(LEFT_ALONE.contains(column), "{}.{column}", table.name);
                }
            }
        }
    }

    #[test]
    fn a_body_without_a_person_says_the_same_of_everybody_else() {
        let [gone, stays] = [0xa1, 0xa2].map(|number| PersonId(Uuid::from_u128(number)));
        let stand_in = StandIn::of(gone, 0);
        let (capitals, simple) = (gone.to_string().to_uppercase(), gone.0.simple());
        let body = format!(
            r#"{{"invited":["{gone}","{stays}","{capitals}"],"owner":"{simple}","title":"{stays}"}}"#
        );
        let other = ErasureMark::of(gone).stand_in(0);
        assert_eq!(
            json_without(&body, &stand_in),
            format!(
                r#"{{"invited":["{stays}"],"owner":"{}","title":"{stays}"}}"#,
                other.simple()
            )
        );
        let no_json = format!("{gone}: no JSON at all");
        assert_eq!(
            json_without(&no_json, &stand_in),
            format!("{other}: no JSON at all")
        );
    }

    #[test]
    fn the_id_becomes_the_same_stand_in_in_names_and_bodies_alone_or_within_a_text() {
        let gone = PersonId(Uuid::from_u128(0xa1));
        for turn in [0, 1] {
            let other = ErasureMark::of(gone).stand_in(turn);
            let body = |id: &str| {
                text(&format!(
                    r#"{{"name":"{id}","path":"/{id}","tags":["{id}","x"],"types":["file:/{id}/"]}}"#
                ))
            };
            let row = |id: &str, version| {
                vec![
                    text("file"),
                    super::id(Uuid::nil()),
                    super::id(Uuid::max()),
                    text(&format!("/{id}/{id}")),
                    body(id),
                    Value::Int(version),
                    Value::Int(5),
                    Value::Int(5),
                    Value::NullInt,
                ]
            };
            let spelt = [gone.to_string(), gone.to_string().to_uppercase()];
            let expected = [other.to_string(), other.to_string().to_uppercase()];
            for (gone_as, other_as) in spelt.iter().zip(&expected) {
                let mut rewritten = row(gone_as, 1);
                assert!(rewrite(&DOCUMENTS, &mut rewritten, gone, turn));
                assert_eq!(rewritten, row(other_as, 2));
                assert!(!rewrite(&DOCUMENTS, &mut rewritten, gone, turn));
            }
        }
    }

    #[test]
    fn a_definition_keeps_what_records_refer_to() {
        let gone = PersonId(Uuid::from_u128(0xa1));
        let (stand_in, other) = (StandIn::of(gone, 0), ErasureMark::of(gone).stand_in(0));
        let property = format!("x{}", gone.0.simple());
        let described = |id: &str| {
            let own = json!({"description": id, "enum": [gone.to_string()]});
            let properties = json!({"name": own, (property.as_str()): {"title": id}});
            let definition = json!({
                "name": format!("to {id}"),
                "default_event_tags": [id],
                "value_map": {"1": id},
                "schema": {"properties": properties, "required": [property]},
            });
            definition.to_string()
        };
        let body = described(&gone.to_string());
        let rewritten = definition_without(&body, &stand_in);
        let expected = described(&other.to_string());
        let parsed = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        assert_eq!(parsed(&rewritten), parsed(&expected));
        assert_eq!(definition_without(&rewritten, &stand_in), rewritten);
        let spaced = format!(r#"{{ "schema": {{ "required": ["{property}"] }} }}"#);
        assert_eq!(
            definition_without(&spaced, &stand_in),
            spaced,
            "not even its form"
        );
    }
}
