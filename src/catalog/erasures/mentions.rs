//! How rows name a person: the conditions that find such rows, and what of it stays.
//!
//! Knows columns; knows nothing of what a row is for.

use super::rewriting::rewrite;
use super::spellings::{is_named_in, spellings_of};
use crate::catalog::database::Value;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{DEFINITIONS, Kind, SOURCES, Table};
use crate::model::ids::PersonId;

/// The columns with the id of somebody. All other ids are those of things: others may have given one of
/// theirs, such as a record, the id that the person has.
const OF_PEOPLE: [&str; 3] = ["person", "actor", "target"];
/// Texts of others to which their records refer, all of them or in parts: there the id stays.
const REFERRED_TO: [(&Table, &str); 2] = [(&SOURCES, "source_key"), (&DEFINITIONS, "body")];

/// A part of a statement, in which parameters begin with `$1`, and its values.
pub(super) type Clause = (String, Vec<Value>);

/// The condition under which a row mentions a person anywhere.
pub(super) fn mentioning(table: &Table, person: PersonId) -> Clause {
    condition(table, person, |_, _| true)
}

/// The condition under which a row of somebody else mentions a person where that can be changed.
pub(super) fn naming(table: &Table, person: PersonId) -> Clause {
    let (condition, mut values) = condition(table, person, |column, kind| match kind {
        Kind::Bytes => column != "person" && OF_PEOPLE.contains(&column),
        _ => (table.name, column) != (SOURCES.name, "source_key"),
    });
    values.push(id(person.0));
    (format!("person <> ${} AND ({condition})", values.len()), values)
}

/// The condition under which a row mentions a person where that may stay; `None` if it nowhere does.
pub(super) fn referring(table: &Table, person: PersonId) -> Option<Clause> {
    let found = condition(table, person, |column, kind| may_stay(table, column, kind));
    Some(found).filter(|(_, values)| !values.is_empty())
}

/// Whether a row that mentions a person does so only where that stays.
pub(super) fn only_stays(table: &Table, row: &[Value], person: PersonId) -> bool {
    let goes = |((column, kind), value): (&(&str, Kind), &Value)| {
        let is_named = match value {
            Value::Text(text) => is_named_in(text, person),
            Value::Bytes(bytes) => bytes.as_slice() == person.as_bytes(),
            Value::Int(_) | Value::NullInt | Value::NullText => false,
        };
        is_named && !may_stay(table, column, *kind)
    };
    !table.columns.iter().zip(row).any(goes) && !rewrite(table, &mut row.to_vec(), person, 0)
}

/// The rest of a `select` of the next `limit` rows, in the order of their keys, that fit a condition.
pub(super) fn page_after(
    table: &Table,
    (condition, mut values): Clause,
    after: &[Value],
    limit: i64,
) -> Clause {
    let key = table.key_columns();
    let mut rest = format!("WHERE ({condition})");
    if !after.is_empty() {
        let marks: Vec<String> = (1..=after.len())
            .map(|number| format!("${}", values.len() + number))
            .collect();
        rest = format!("{rest} AND ({key}) > ({})", marks.join(", "));
        values.extend_from_slice(after);
    }
    values.push(Value::Int(limit));
    (format!("{rest} ORDER BY {key} LIMIT ${}", values.len()), values)
}

fn may_stay(table: &Table, column: &str, kind: Kind) -> bool {
    match kind {
        Kind::Bytes => !OF_PEOPLE.contains(&column),
        _ => REFERRED_TO
            .iter()
            .any(|(of, name)| of.name == table.name && *name == column),
    }
}

/// The condition under which one of the columns that `is_meant` mentions a person.
fn condition(table: &Table, person: PersonId, is_meant: impl Fn(&str, Kind) -> bool) -> Clause {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut numbered = |value: Value| {
        values.push(value);
        values.len()
    };
    for (column, kind) in table
        .columns
        .iter()
        .filter(|(column, kind)| is_meant(column, *kind))
    {
        match kind {
            Kind::Int | Kind::OptionalInt => {}
            Kind::Bytes => conditions.push(format!("{column} = ${}", numbered(id(person.0)))),
            Kind::Text | Kind::OptionalText => {
                for written in spellings_of(person) {
                    let number = numbered(text(&written));
                    conditions.push(says(&format!("lower({column})"), number));
                }
            }
        }
    }
    (conditions.join(" OR "), values)
}

/// A condition that both databases understand: whether a text contains parameter `number` literally.
fn says(column: &str, number: usize) -> String {
    format!("replace({column}, ${number}, '') <> {column}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;
    use crate::catalog::tables::ALL;

    #[test]
    fn it_is_known_of_each_id_whether_it_is_that_of_somebody() {
        let ids = ALL.iter().flat_map(|table| table.columns);
        let ids = ids.filter(|(column, kind)| *kind == Kind::Bytes && !OF_PEOPLE.contains(column));
        let of_things: BTreeSet<&str> = ids.map(|(column, _)| *column).collect();
        let expected = [
            "definition",
            "document",
            "entry",
            "fingerprint",
            "mark",
            "piece",
            "record",
            "source",
            "upload",
        ];
        assert_eq!(of_things, BTreeSet::from(expected));
    }

    #[test]
    fn the_key_of_a_source_stays_and_its_name_does_not() {
        let [gone, owner] = [0xa1, 0xa2].map(|number| PersonId(Uuid::from_u128(number)));
        let source = |owner: PersonId, key: &str, name: &str| {
            let source = id(Uuid::max());
            vec![id(owner.0), text(key), source, text(name), Value::Int(5)]
        };
        let key = format!("com.example.{}", gone.to_string().to_uppercase());
        assert!(only_stays(&SOURCES, &source(owner, &key, "watch"), gone));
        assert!(!only_stays(&SOURCES, &source(owner, &key, &key), gone));
        assert!(!only_stays(&SOURCES, &source(gone, &key, "watch"), gone));
    }
}
