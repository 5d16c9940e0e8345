//! Puts sources where the type of a record has them: the definition to whose address it was sent, what it
//! names as `source_id` beside a definition, and the name that its writer gives itself as `source` or
//! `source_name`.
//!
//! Works on the text, so that later steps see nothing unusual. Knows JSON and plans.

use std::borrow::Cow;

use serde_json::Value;
use uuid::Uuid;

use super::bounds::LONGEST_SOURCE;
use super::field_plan::FieldPlan;
use super::given_once::is_any_given_twice;
use super::json::{self, Field};
use crate::model::nul::has_nul;

const SOURCES: &str = "sources";
const SOURCE_ID: &str = "source_id";
const SOURCE_PROPERTIES: &str = "source_properties";
/// The members in which a writer may name itself; the first takes precedence.
const NAMES: [&str; 2] = ["source", "source_name"];
/// How both names begin as members.
const BEGINNING: &str = "\"source";
/// The members that say where a record comes from, whether or not its type has them.
const OF_SOURCES: [&str; 6] = [
    "source",
    "source_name",
    SOURCES,
    SOURCE_ID,
    SOURCE_PROPERTIES,
    "device_properties",
];

/// Whether a member of this name says where a record comes from.
pub(super) fn is_of_sources(member: &str) -> bool {
    OF_SOURCES.contains(&member)
}

/// The record with its definition `source` before all others that it names. What else it names as `source_id`
/// comes after its sources. A record that cannot be read stays as it is: the decoder reports better what is
/// wrong with it.
///
/// `definition_of` returns the definition that a source names, if it names one.
pub(super) fn with_source<'a>(
    record: &'a [u8],
    source: &str,
    definition_of: impl Fn(&str) -> Option<Uuid>,
) -> Cow<'a, [u8]> {
    led_by(record, source, definition_of).map_or(Cow::Borrowed(record), Cow::Owned)
}

fn led_by(record: &[u8], source: &str, definition_of: impl Fn(&str) -> Option<Uuid>) -> Option<Vec<u8>> {
    let fields = json::fields(record).ok()?;
    let (mut sources, said) = sources_and_id(&fields)?;
    let own = definition_of(source);
    let is_own = |other: &String| other == source || (own.is_some() && definition_of(other) == own);
    let says_another = said.as_ref().is_some_and(|said| said != source);
    let mut named = sources
        .iter()
        .filter(|other| definition_of(other).is_some() || is_own(other));
    let is_first = named.next().is_some_and(&is_own);
    if is_first && !says_another {
        return None;
    }
    if !is_first {
        let at = sources.iter().position(&is_own);
        let first = at.map_or_else(|| source.to_owned(), |at| sources.remove(at));
        sources.insert(0, first);
    }
    // Whatever gives another id says where the record comes from, and is kept as that.
    if let Some(said) = said
        && !said.is_empty()
        && !is_own(&said)
        && !sources.contains(&said)
    {
        sources.push(said);
    }
    let is_replaced = |field: &Field<'_>| field.name == SOURCES || (says_another && field.name == SOURCE_ID);
    let others = fields.iter().filter(|field| !is_replaced(field));
    let others = others.map(|field| (field.name.as_ref(), field.raw));
    let sources = Value::from(sources).to_string();
    Some(json::object(others.chain([(SOURCES, sources.as_str())])))
}

/// The record without a `source_id` that would hide the definition among its `sources`: one that names no
/// definition itself. It says where the record comes from, and is kept as the last of them. An empty one says
/// nothing, whatever the sources are.
pub(super) fn with_one_definition(
    record: &[u8],
    definition_of: impl Fn(&str) -> Option<Uuid>,
) -> Cow<'_, [u8]> {
    let text = std::str::from_utf8(record).unwrap_or_default();
    let may_have_id = text.contains("\"source_id\"") || text.contains("\\u");
    let without = may_have_id.then(|| without_other_id(record, definition_of));
    without.flatten().map_or(Cow::Borrowed(record), Cow::Owned)
}

fn without_other_id(record: &[u8], definition_of: impl Fn(&str) -> Option<Uuid>) -> Option<Vec<u8>> {
    let fields = json::fields(record).ok()?;
    let (mut sources, said) = sources_and_id(&fields)?;
    let said = said.filter(|said| definition_of(said).is_none())?;
    if !said.is_empty() && !sources.iter().any(|named| definition_of(named).is_some()) {
        return None;
    }
    let is_kept = !said.is_empty() && !sources.contains(&said);
    let others = fields
        .iter()
        .filter(|field| field.name != SOURCE_ID && !(is_kept && field.name == SOURCES))
        .map(|field| (field.name.as_ref(), field.raw));
    let sources = is_kept.then(|| {
        sources.push(said);
        Value::from(sources).to_string()
    });
    let sources = sources.as_deref().map(|sources| (SOURCES, sources));
    Some(json::object(others.chain(sources)))
}

/// What a record names as its `sources` and its `source_id`. `None` if the decoder refuses them, which it
/// does at the place where they stand: that would be another one after a change.
fn sources_and_id(fields: &[Field<'_>]) -> Option<(Vec<String>, Option<String>)> {
    if is_any_given_twice(fields) {
        return None;
    }
    let sources: Option<Vec<String>> = serde_json::from_str(said_as(fields, SOURCES)).ok()?;
    let sources = sources.unwrap_or_default();
    let said: Option<String> = serde_json::from_str(said_as(fields, SOURCE_ID)).ok()?;
    let is_refused = sources.iter().chain(&said).any(|named| is_refused(named));
    (!is_refused).then_some((sources, said))
}

/// The text of the field of that name, null if there is none.
fn said_as<'a>(fields: &[Field<'a>], name: &str) -> &'a str {
    let said = fields.iter().find(|field| field.name == name);
    said.map_or("null", |field| field.raw)
}

/// Whether the decoder refuses what names a source.
fn is_refused(named: &str) -> bool {
    named.len() > LONGEST_SOURCE || has_nul(named)
}

/// The name that the writer of a record gives itself.
struct WritersName<'f> {
    /// The member that has it.
    member: &'static str,
    name: Cow<'f, str>,
    raw: &'f str,
    /// The member in which the type has it.
    place: &'static str,
}

/// What becomes of the name that the writer of a record gives itself.
pub(super) enum WritersNameOutcome {
    /// There is none that counts, or the decoder refuses it at the place where it was sent.
    AsItIs,
    /// It is in this member, and longer than that of a source may be.
    TooLong(&'static str),
    /// The record with the name where the type has it: in `source_properties`, or among `sources`.
    Renamed(Vec<u8>),
}

/// Looks for the name of a record's writer. None counts if the type has a field of that name, or the record
/// gives another source.
pub(super) fn named(record: &[u8], plan: &FieldPlan) -> WritersNameOutcome {
    let Some(fields) = fields_with_a_name(record) else {
        return WritersNameOutcome::AsItIs;
    };
    let Some(named) = writers_name(&fields, plan) else {
        return WritersNameOutcome::AsItIs;
    };
    if named.name.len() > LONGEST_SOURCE {
        return WritersNameOutcome::TooLong(named.member);
    }
    let renamed = (!is_refused(&named.name)).then(|| renamed(&fields, named));
    renamed
        .flatten()
        .map_or(WritersNameOutcome::AsItIs, WritersNameOutcome::Renamed)
}

fn renamed(fields: &[Field<'_>], named: WritersName<'_>) -> Option<Vec<u8>> {
    let WritersName { name, raw, place, .. } = named;
    let value = if place == SOURCE_PROPERTIES {
        json::object([("name", raw)])
    } else {
        let mut sources: Vec<Value> = if is_given(fields, SOURCES) {
            serde_json::from_str(only(fields, SOURCES)?.raw).ok()?
        } else {
            Vec::new()
        };
        if !sources.iter().any(|source| *source == *name) {
            sources.push(Value::from(name));
        }
        Value::Array(sources).to_string().into_bytes()
    };
    let says_so = |field: &&Field<'_>| NAMES.contains(&field.name.as_ref()) && field.raw == raw;
    let others = fields
        .iter()
        .filter(|field| !says_so(field) && field.name != place);
    let others = others.map(|field| (field.name.as_ref(), field.raw));
    let value = String::from_utf8(value).ok()?;
    Some(json::object(others.chain([(place, value.as_str())])))
}

/// The fields of a record in which some writer may give itself a name. Most records need not be read for it,
/// and one that gives a field twice is refused as it is.
fn fields_with_a_name(record: &[u8]) -> Option<Vec<Field<'_>>> {
    let text = std::str::from_utf8(record).ok()?;
    let is_mentioned = |(at, _): (usize, &str)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        NAMES
            .iter()
            .any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('"')))
    };
    // A name with escapes cannot be recognised without parsing.
    if !text.match_indices(BEGINNING).any(is_mentioned) && !text.contains("\\u") {
        return None;
    }
    json::fields(record)
        .ok()
        .filter(|fields| !is_any_given_twice(fields))
}

/// The name by which the source of a record is known, if its writer gives itself one.
fn writers_name<'f>(fields: &'f [Field<'_>], plan: &FieldPlan) -> Option<WritersName<'f>> {
    let [properties, _, sources] = plan.source_columns;
    let place = if properties.is_some() {
        if is_given(fields, SOURCE_PROPERTIES) || is_given(fields, SOURCES) {
            return None;
        }
        SOURCE_PROPERTIES
    } else {
        sources?;
        SOURCES
    };
    NAMES.into_iter().find_map(|member| {
        let given = only(fields, member).filter(|_| plan.field(member).is_none())?;
        let name = json::text(given.raw).filter(|name| !name.is_empty())?;
        Some(WritersName {
            member,
            name,
            raw: given.raw,
            place,
        })
    })
}

fn is_given(fields: &[Field<'_>], name: &str) -> bool {
    fields
        .iter()
        .any(|field| field.name == name && field.raw != "null")
}

/// The field of that name, if there is exactly one.
fn only<'f, 'a>(fields: &'f [Field<'a>], name: &str) -> Option<&'f Field<'a>> {
    let mut named = fields.iter().filter(|field| field.name == name);
    named.next().filter(|_| named.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "d.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60";
    const OTHER: &str = "d.0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d61";

    /// The record for the definition `OWN`, with short words for the definitions.
    fn sent(record: &str) -> String {
        let definition_of = |source: &str| Uuid::try_parse(source.strip_prefix("d.")?).ok();
        let spelt = OWN.to_uppercase().replace('D', "d");
        let written = record
            .replace("<own>", OWN)
            .replace("<other>", OTHER)
            .replace("<spelt>", &spelt);
        let sent = with_source(written.as_bytes(), OWN, definition_of);
        let text = String::from_utf8(sent.into_owned()).unwrap();
        text.replace(OWN, "<own>")
            .replace(OTHER, "<other>")
            .replace(&spelt, "<spelt>")
    }

    #[test]
    fn a_record_names_its_definition_once_and_before_others() {
        for (record, expected) in [
            ("{}", r#"{"sources":["<own>"]}"#),
            (r#"{"note":"a\"b" }"#, r#"{"note":"a\"b","sources":["<own>"]}"#),
            (
                r#"{"sources":null,"value":1.50}"#,
                r#"{"value":1.50,"sources":["<own>"]}"#,
            ),
            (r#"{"sources":["app"]}"#, r#"{"sources":["<own>","app"]}"#),
            (
                r#"{"sources": ["app", "<own>"]}"#,
                r#"{"sources": ["app", "<own>"]}"#,
            ),
            (
                r#"{"sources": ["<spelt>", "<other>"]}"#,
                r#"{"sources": ["<spelt>", "<other>"]}"#,
            ),
            (r#"{"sources":["<other>"]}"#, r#"{"sources":["<own>","<other>"]}"#),
            (
                r#"{"sources":["<other>","app","<own>"]}"#,
                r#"{"sources":["<own>","<other>","app"]}"#,
            ),
        ] {
            assert_eq!(sent(record), expected, "{record}");
        }
    }

    #[test]
    fn an_id_of_another_source_comes_after_the_definition() {
        for (record, expected) in [
            (
                r#"{"source_id":"<own>","sources":["<own>"]}"#,
                r#"{"source_id":"<own>","sources":["<own>"]}"#,
            ),
            (
                r#"{"source_id":null,"sources":["<own>"]}"#,
                r#"{"source_id":null,"sources":["<own>"]}"#,
            ),
            (
                r#"{"source_id":"<own>"}"#,
                r#"{"source_id":"<own>","sources":["<own>"]}"#,
            ),
            (r#"{"source_id":"<spelt>"}"#, r#"{"sources":["<own>"]}"#),
            (
                r#"{"source_id":"<other>","value":1}"#,
                r#"{"value":1,"sources":["<own>","<other>"]}"#,
            ),
            (
                r#"{"source_id":"<other>","sources":["<other>"]}"#,
                r#"{"sources":["<own>","<other>"]}"#,
            ),
            (
                r#"{"source_id":"app","sources":["x","<own>"]}"#,
                r#"{"sources":["x","<own>","app"]}"#,
            ),
            (
                r#"{"source_id":"","sources":["x"]}"#,
                r#"{"sources":["<own>","x"]}"#,
            ),
        ] {
            assert_eq!(sent(record), expected, "{record}");
        }
    }

    #[test]
    fn an_id_that_names_no_definition_hides_none() {
        let definition_of = |source: &str| Uuid::try_parse(source.strip_prefix("d.")?).ok();
        for (record, expected) in [
            (
                r#"{"source_id":"app","sources":["<own>"],"value":1.50}"#,
                r#"{"value":1.50,"sources":["<own>","app"]}"#,
            ),
            (
                r#"{"source\u005fid":"app","sources":["x","<own>"]}"#,
                r#"{"sources":["x","<own>","app"]}"#,
            ),
            (
                r#"{"source_id":"app","sources":["app","<own>"]}"#,
                r#"{"sources":["app","<own>"]}"#,
            ),
            (
                r#"{"source_id":"","sources":[ "<own>" ]}"#,
                r#"{"sources":[ "<own>" ]}"#,
            ),
            (r#"{"value":1,"source_id":""}"#, r#"{"value":1}"#),
            (r#"{"source_id":"","sources":["app"]}"#, r#"{"sources":["app"]}"#),
        ] {
            let record = record.replace("<own>", OWN);
            let found = with_one_definition(record.as_bytes(), definition_of);
            let expected = expected.replace("<own>", OWN);
            assert_eq!(String::from_utf8(found.into_owned()).unwrap(), expected);
        }
        for record in [
            r#"{"sources":["<own>"]}"#,
            r#"{"source_id":null,"sources":["<own>"]}"#,
            r#"{"source_id":"app","sources":["x"]}"#,
            r#"{"source_id":"app"}"#,
            r#"{"source_id":"<other>","sources":["<own>"]}"#,
            r#"{"source_id":5,"sources":["<own>"]}"#,
            r#"{"source_id":"a\u0000","sources":["<own>"]}"#,
            r#"{"source_id":"a","source_id":"b","sources":["<own>"]}"#,
            r#"{"source_id":"a","sources":["<own>",5]}"#,
            r#"{"source_id":"a","sources":["<own>"]"#,
        ] {
            let record = record.replace("<own>", OWN).replace("<other>", OTHER);
            let found = with_one_definition(record.as_bytes(), definition_of);
            assert!(matches!(found, Cow::Borrowed(_)), "{record}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_decoder() {
        let long = "x".repeat(LONGEST_SOURCE + 1);
        for record in [
            "",
            "[]",
            "{",
            r#"{"sources":5}"#,
            r#"{"sources":[5]}"#,
            r#"{"source_id":5}"#,
            r#"{"source_id":"a\u0000"}"#,
            r#"{"sources":["app","a\u0000"]}"#,
            format!(r#"{{"source_id":"{long}"}}"#).as_str(),
            format!(r#"{{"sources":["app","{long}"],"source_id":"<other>"}}"#).as_str(),
            r#"{"sources":[],"sources":["x"]}"#,
            r#"{"sources":["<other>"],"sources":["<other>"]}"#,
            r#"{"sources":["x"],"value":1,"value":1}"#,
            r#"{"source_id":"a","source_id":"b"}"#,
        ] {
            assert_eq!(sent(record), record);
        }
    }
}
