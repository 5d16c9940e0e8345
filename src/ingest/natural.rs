//! Derives ids for records that come without one, where the sender asks for it: from what identifies a
//! record, so that the same record has the same id however often it is sent.
//!
//! A sample of a metric is identified by its type, source, start and end; another value for these is a
//! correction. Log entries, stages, codes and everything that is not a metric may occur several times at one
//! moment, so they are identified by their whole content. Pure; knows plans and JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use super::compile::CompiledType;
use super::field_plan::{FieldPlan, Role};
use super::json;
use crate::model::floats::EXACT_BELOW;
use crate::model::ids::RecordId;
use crate::model::registry::{DataType, DefaultAggregate, MergePolicy};
use crate::model::time::Instant;

/// Never to be changed: stored records have ids made with it.
const NAMESPACE: Uuid = Uuid::from_u128(0x6a1f_7d0e_93c4_5b2a_8e57_20d9_b41c_f306);

/// What identifies a record besides its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceAndTime<'k> {
    pub source: &'k str,
    pub start: Instant,
    pub end: Instant,
}

/// The id of the valid record `json`.
pub(super) fn natural_id(compiled: &CompiledType, known: SourceAndTime<'_>, json: &[u8]) -> RecordId {
    let mut identity = Vec::with_capacity(128);
    for text in [compiled.data_type.id.as_str(), known.source] {
        append(&mut identity, text.as_bytes());
    }
    for moment in [known.start, known.end] {
        identity.extend_from_slice(&moment.micros().to_le_bytes());
    }
    if !is_known_by_its_time(&compiled.data_type) {
        append_content(&mut identity, &compiled.plan, json);
    }
    RecordId(Uuid::new_v5(&NAMESPACE, &identity))
}

/// Whether one source has at most one record of the type at a time.
fn is_known_by_its_time(data_type: &DataType) -> bool {
    data_type.metric.as_ref().is_some_and(|metric| {
        let is_measured = matches!(metric.merge, MergePolicy::BestSource | MergePolicy::All);
        is_measured && metric.default_aggregate != DefaultAggregate::Last
    })
}

/// Appends bytes after their length, so that two texts cannot be split differently.
fn append(identity: &mut Vec<u8>, bytes: &[u8]) {
    identity.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    identity.extend_from_slice(bytes);
}

/// Appends all content of a record except its id and time, in one spelling.
fn append_content(identity: &mut Vec<u8>, plan: &FieldPlan, json: &[u8]) {
    let mut said: BTreeMap<String, Value> = BTreeMap::new();
    for field in json::fields(json).unwrap_or_default() {
        let known = plan.field(&field.name).and_then(|field| plan.fields.get(field));
        let says_more =
            known.is_none_or(|known| matches!(known.role, Role::Column(_) | Role::Unit | Role::Extras));
        if let Ok(value) = serde_json::from_str::<Value>(field.raw)
            && says_more
            && !value.is_null()
        {
            let name = known.map_or_else(|| field.name.into_owned(), |known| known.name.clone());
            said.insert(name, value);
        }
    }
    for (name, value) in said {
        append(identity, name.as_bytes());
        append_value(identity, &value);
    }
}

fn append_value(identity: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => identity.push(b'n'),
        Value::Bool(value) => identity.push(if *value { b't' } else { b'f' }),
        Value::Number(number) => {
            // However an exact whole number is written.
            let exact = number
                .as_f64()
                .filter(|value| value.fract() == 0.0 && value.abs() < EXACT_BELOW);
            let text = exact.map_or_else(|| number.to_string(), |value| format!("{value:.0}"));
            identity.push(b'0');
            append(identity, text.as_bytes());
        }
        Value::String(text) => {
            identity.push(b'"');
            append(identity, text.as_bytes());
        }
        Value::Array(elements) => {
            identity.push(b'[');
            for element in elements {
                append_value(identity, element);
            }
            identity.push(b']');
        }
        Value::Object(members) => {
            identity.push(b'{');
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            for (name, value) in sorted {
                append(identity, name.as_bytes());
                append_value(identity, value);
            }
            identity.push(b'}');
        }
    }
}
