//! How rows name a person: the condition that finds such rows, and a text without the person's name.
//!
//! Knows columns and JSON; knows nothing of what a row is for.

use serde_json::Value as Json;
use uuid::Uuid;

use crate::catalog::database::Value;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{Kind, Table};
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

/// JSON text without the person: it is dropped from lists, and becomes the nil id elsewhere.
pub(super) fn without(body: &str, person: PersonId) -> String {
    let name = person.to_string();
    let stripped = serde_json::from_str::<Json>(body).map_or_else(
        |_| body.to_owned(),
        |mut value| {
            strip(&mut value, &name);
            value.to_string()
        },
    );
    stripped.replace(&name, &Uuid::nil().to_string())
}

fn strip(value: &mut Json, name: &str) {
    match value {
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
}
