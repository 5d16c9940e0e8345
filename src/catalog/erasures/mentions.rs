//! How rows name a person: the condition that finds such rows, and a text without the person's name.
//!
//! Knows columns and JSON; knows nothing of what a row is for.

use serde_json::Value as Json;
use uuid::Uuid;

use crate::catalog::database::Value;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{Kind, Table};
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;

/// A condition that both databases understand: whether a text column contains parameter `number` literally.
pub(super) fn says(column: &str, number: usize) -> String {
    format!("replace({column}, ${number}, '') <> {column}")
}

/// The condition under which a row mentions a person anywhere, and its values.
pub(super) fn mentioning(table: &Table, person: PersonId) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut numbered = |value: Value| {
        values.push(value);
        values.len()
    };
    for (column, kind) in table.columns {
        match kind {
            Kind::Int | Kind::OptionalInt => {}
            Kind::Bytes => conditions.push(format!("{column} = ${}", numbered(id(person.0)))),
            Kind::Text | Kind::OptionalText => {
                for written in [person.to_string(), person.0.simple().to_string()] {
                    let number = numbered(text(&written));
                    conditions.push(says(&format!("lower({column})"), number));
                }
            }
        }
    }
    (conditions.join(" OR "), values)
}

/// JSON text without the person: it is dropped from lists, becomes the nil id elsewhere, and another id where
/// it is a part of something, such as a folder.
pub(super) fn without(body: &str, person: PersonId) -> String {
    let name = person.to_string();
    let stripped = serde_json::from_str::<Json>(body).map_or_else(
        |_| body.to_owned(),
        |mut value| {
            strip(&mut value, &name);
            value.to_string()
        },
    );
    renamed(&stripped, person)
}

/// A text with another id in place of the person's. Folders named after different people stay different, and
/// what was shared of one of them does not become the other.
pub(super) fn renamed(text: &str, person: PersonId) -> String {
    let stand_in = ErasureMark::of(person).stand_in();
    text.replace(&person.to_string(), &stand_in.to_string())
}

fn strip(value: &mut Json, name: &str) {
    match value {
        Json::String(text) if text == name => *text = Uuid::nil().to_string(),
        Json::Array(items) => {
            items.retain(|item| item.as_str() != Some(name));
            for item in items {
                strip(item, name);
            }
        }
        Json::Object(members) => {
            for member in members.values_mut() {
                strip(member, name);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_a_person_says_the_same_of_everybody_else() {
        let [gone, stays] = [1, 2].map(|number| PersonId(Uuid::from_u128(number)));
        let body = format!(r#"{{"invited":["{gone}","{stays}"],"owner":"{gone}","title":"{stays}"}}"#);
        let nobody = Uuid::nil();
        assert_eq!(
            without(&body, gone),
            format!(r#"{{"invited":["{stays}"],"owner":"{nobody}","title":"{stays}"}}"#)
        );
        assert_eq!(without("no JSON at all", gone), "no JSON at all");
    }

    #[test]
    fn what_was_named_after_different_people_stays_different() {
        let [one, other] = [1, 2].map(|number| PersonId(Uuid::from_u128(number)));
        let [first, second] = [one, other].map(|gone| ErasureMark::of(gone).stand_in());
        assert_ne!(first, second);
        let body = format!(r#"{{"path":"/{one}/","types":["file:/{one}/","file:/{other}/"]}}"#);
        let left = without(&without(&body, one), other);
        assert_eq!(
            left,
            format!(r#"{{"path":"/{first}/","types":["file:/{first}/","file:/{second}/"]}}"#)
        );
        assert_eq!(
            renamed(&format!("/{one}/plan of {one}"), one),
            format!("/{first}/plan of {first}")
        );
        assert!(!left.contains(&Uuid::nil().to_string()));
    }
}
