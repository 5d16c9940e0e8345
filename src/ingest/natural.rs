//! Derives ids for records that come without one, where the sender asks for it: from what identifies a
//! record, so that the same record has the same id however often it is sent.
//!
//! A sample of a metric is identified by its type, source, start and end, and by its `source_id` where its
//! type has one; another value for these is a correction. Log entries, stages, codes and everything that is
//! not a metric may occur several times at one moment, so they are identified by their whole content, spelt
//! as it is stored. Pure; knows plans and JSON.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType as ColumnType, Field};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::compile::CompiledType;
use super::declared::DeclaredMembers;
use super::extras::{NOT_PRESENT, ORIGINAL_UNIT, ORIGINAL_VALUE};
use super::field_plan::{FieldPlan, KnownField, Role, western};
use super::json;
use super::original::Original;
use crate::model::columns::EXTRAS;
use crate::model::floats::EXACT_BELOW;
use crate::model::ids::RecordId;
use crate::model::registry::{Canonical, DataType, MergePolicy, is_json_text, respelt};
use crate::model::time::{Instant, parse_instant};
use crate::model::units::Conversion;

/// Never to be changed: stored records have ids made with it.
const NAMESPACE: Uuid = Uuid::from_u128(0x6a1f_7d0e_93c4_5b2a_8e57_20d9_b41c_f306);

/// What identifies a record besides its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceAndTime<'k> {
    pub source: &'k str,
    /// The definition that its sources name, or their first one. Of a record without sources the definition
    /// to which it belongs.
    pub in_sources: Option<&'k str>,
    /// What is stored as its `source_id`, if its type has that.
    pub source_id: Option<&'k str>,
    /// Whether it belongs to a definition, which then says what its records repeat of it.
    pub is_defined: bool,
    pub start: Instant,
    pub end: Instant,
}

/// Returns the definition that a source names, in its one spelling.
type DefinitionIn<'d> = &'d dyn Fn(&str) -> Option<String>;

/// The id of the valid record `json`.
pub(super) fn natural_id(
    compiled: &CompiledType,
    known: SourceAndTime<'_>,
    json: &[u8],
    definition_in: DefinitionIn<'_>,
) -> RecordId {
    let mut identity = Vec::with_capacity(128);
    for text in [compiled.data_type.id.as_str(), known.source] {
        append(&mut identity, text.as_bytes());
    }
    for moment in [known.start, known.end] {
        identity.extend_from_slice(&moment.micros().to_le_bytes());
    }
    if !is_known_by_its_time(&compiled.data_type) {
        for (name, value) in content(compiled, known, json, definition_in) {
            append(&mut identity, name.as_bytes());
            append_value(&mut identity, &value);
        }
    } else if let Some(source_id) = known.source_id.filter(|id| *id != known.source) {
        append(&mut identity, source_id.as_bytes());
    }
    RecordId(Uuid::new_v5(&NAMESPACE, &identity))
}

/// Whether one source has at most one record of the type at a time.
fn is_known_by_its_time(data_type: &DataType) -> bool {
    data_type.metric.as_ref().is_some_and(|metric| {
        let is_measured = matches!(metric.merge, MergePolicy::BestSource | MergePolicy::All);
        is_measured && !metric.is_code()
    })
}

/// Appends bytes after their length, so that two texts cannot be split differently.
fn append(identity: &mut Vec<u8>, bytes: &[u8]) {
    identity.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    identity.extend_from_slice(bytes);
}

/// The content of a record except its id and time, by the names of its fields, spelt as it is stored: what
/// makes no difference there makes none here.
fn content(
    compiled: &CompiledType,
    known: SourceAndTime<'_>,
    json: &[u8],
    definition_in: DefinitionIn<'_>,
) -> BTreeMap<String, Value> {
    let plan = &compiled.plan;
    let mut content = BTreeMap::new();
    let mut extras = Map::new();
    for field in json::fields(json).unwrap_or_default() {
        let Ok(value) = serde_json::from_str::<Value>(field.raw) else {
            continue;
        };
        let named = plan.field(&field.name).and_then(|field| plan.fields.get(field));
        let Some(named) = named else {
            content.insert(field.name.into_owned(), value);
            continue;
        };
        match (named.role, value) {
            (Role::Column(_) | Role::Unit, value) => {
                content.insert(named.name.clone(), kept(value, named, plan));
            }
            (Role::Extras, Value::Object(members)) => extras.extend(members),
            _ => {}
        }
    }
    put_beside(extras, &mut content, plan);
    content.retain(|_, value| !value.is_null());
    spell_sources(&mut content, plan, known, definition_in);
    leave_out_definition(&mut content, plan, known);
    leave_out_own_unit(&mut content, compiled);
    convert_as_its_original(&mut content, compiled);
    undo_conversion(&mut content, compiled);
    content
}

/// Puts the members of extras beside the others, where it makes no difference to what is stored. Only what
/// has the name of a field that it does not stand for stays among the extras. Where `spread_extras` has put
/// them there in the text, this finds nothing else to move.
fn put_beside(extras: Map<String, Value>, content: &mut BTreeMap<String, Value>, plan: &FieldPlan) {
    let mut left = Map::new();
    for (name, value) in extras {
        let known = plan.field(&name).and_then(|field| plan.fields.get(field));
        match known {
            None => {
                content.insert(name, value);
            }
            // If the field was sent beside the extras too, it is the same there.
            Some(known) if known.is_meant_in_extras(&value) => {
                content.insert(known.name.clone(), kept(value, known, plan));
            }
            Some(_) if value.is_null() => {}
            Some(_) => {
                left.insert(name, value);
            }
        }
    }
    if !left.is_empty() {
        content.insert(EXTRAS.to_owned(), Value::Object(left));
    }
}

/// Puts the definitions among the sources in their one spelling. The definition of a record without sources
/// is put where it would be if the record were sent to its type.
fn spell_sources(
    content: &mut BTreeMap<String, Value>,
    plan: &FieldPlan,
    known: SourceAndTime<'_>,
    definition_in: DefinitionIn<'_>,
) {
    let [_, _, column] = plan.source_columns;
    let Some(name) = column.and_then(|column| name_of(plan, column)) else {
        return;
    };
    let named = content.get_mut(name).and_then(Value::as_array_mut);
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        for source in named {
            if let Some(definition) = source.as_str().and_then(definition_in) {
                *source = Value::String(definition);
            }
        }
    } else if let Some(definition) = known.source_id.filter(|_| known.is_defined) {
        content.insert(name.to_owned(), Value::from(vec![definition]));
    }
}

/// Leaves out what a record repeats of its definition, and the definition itself where it is taken from the
/// sources: rows that are read have all of it.
fn leave_out_definition(content: &mut BTreeMap<String, Value>, plan: &FieldPlan, known: SourceAndTime<'_>) {
    if known.is_defined {
        let of_definition = plan.of_definition.into_iter().flatten();
        for name in of_definition.filter_map(|column| name_of(plan, column)) {
            content.remove(name);
        }
    }
    if let Some(name) = plan.source_id.and_then(|column| name_of(plan, column)) {
        content.remove(name);
        if let Some(source_id) = known.source_id.filter(|_| known.source_id != known.in_sources) {
            content.insert(name.to_owned(), Value::from(source_id));
        }
    }
}

/// The name of the field that is kept in a column.
fn name_of(plan: &FieldPlan, column: usize) -> Option<&str> {
    let mut fields = plan.fields.iter();
    let kept = fields.find(|field| field.role == Role::Column(column));
    kept.map(|field| field.name.as_str())
}

/// Leaves out a unit that is not stored: the value is what it would be without it.
fn leave_out_own_unit(content: &mut BTreeMap<String, Value>, compiled: &CompiledType) {
    let Some([unit, value]) = names_of_unit_and_value(&compiled.plan) else {
        return;
    };
    let value = content.get(value).and_then(Value::as_f64);
    let sent = content.get(unit).and_then(Value::as_str);
    let conversion = sent.and_then(|sent| conversion(compiled, sent));
    if let (Some(value), Some(conversion)) = (value, conversion)
        && !conversion.leaves_original(value, conversion.apply(value))
    {
        content.remove(unit);
    }
}

/// Puts a value that came in another unit than its original into the type's unit, as the original says it:
/// somebody read the row so.
fn convert_as_its_original(content: &mut BTreeMap<String, Value>, compiled: &CompiledType) {
    let Some([unit, value]) = names_of_unit_and_value(&compiled.plan) else {
        return;
    };
    let (Some(original), Some(read), Some(read_in)) = (
        original_in(content),
        content.get(value).and_then(Value::as_f64),
        content.get(unit).and_then(Value::as_str),
    ) else {
        return;
    };
    let stored = conversion(compiled, read_in)
        .and_then(|conversion| original.in_own_unit(compiled, conversion.apply(read), conversion));
    if let Some(stored) = stored {
        content.insert(value.to_owned(), Value::from(stored));
        content.remove(unit);
    }
}

/// Puts a value that was converted back into the unit that it was sent in: rows that are read have both, and
/// are the same as what was sent.
fn undo_conversion(content: &mut BTreeMap<String, Value>, compiled: &CompiledType) {
    let Some([unit, value]) = names_of_unit_and_value(&compiled.plan) else {
        return;
    };
    let (
        Some(Original {
            value: original,
            unit: sent,
        }),
        Some(stored),
    ) = (original_in(content), content.get(value).and_then(Value::as_f64))
    else {
        return;
    };
    let comes_from_it = conversion(compiled, &sent).is_some_and(|conversion| {
        let converted = conversion.apply(original);
        conversion.leaves_original(original, converted) && converted.to_bits() == stored.to_bits()
    });
    if !comes_from_it || content.contains_key(unit) {
        return;
    }
    if compiled.units().is_absent(&sent, original) {
        content.remove(NOT_PRESENT);
    }
    for (original, name) in [(ORIGINAL_VALUE, value), (ORIGINAL_UNIT, unit)] {
        if let Some(as_sent) = content.remove(original) {
            content.insert(name.to_owned(), as_sent);
        }
    }
}

/// The names of the fields of a unit that is not stored, and of the value.
fn names_of_unit_and_value(plan: &FieldPlan) -> Option<[&str; 2]> {
    let unit = plan.fields.get(plan.unit?)?;
    let value = plan.fields.get(plan.value?)?;
    (unit.role == Role::Unit).then_some([unit.name.as_str(), value.name.as_str()])
}

/// What was kept of a value when its unit was converted.
fn original_in(content: &BTreeMap<String, Value>) -> Option<Original> {
    Some(Original {
        value: content.get(ORIGINAL_VALUE)?.as_f64()?,
        unit: content.get(ORIGINAL_UNIT)?.as_str()?.to_owned(),
    })
}

fn conversion(compiled: &CompiledType, unit: &str) -> Option<Conversion> {
    let traits = compiled.data_type.metric.as_ref()?;
    let found = compiled
        .units()
        .conversion(unit, traits, compiled.data_type.id.as_str());
    found.ok()
}

/// The value of one field, as its column keeps it.
fn kept(value: Value, known: &KnownField, plan: &FieldPlan) -> Value {
    let Role::Column(column) = known.role else {
        return value;
    };
    let column = plan.columns.get(column);
    column.map_or(Value::Null, |column| as_stored(value, column, &known.canonical))
}

/// The value of one column with times, uuids and longitudes as they are stored, and without what says
/// nothing: null members that the column has, and objects without any others.
fn as_stored(value: Value, column: &Field, canonical: &Canonical) -> Value {
    match (column.data_type(), value) {
        (_, value) if is_json_text(column) => value,
        (ColumnType::Timestamp(..), Value::String(text)) => {
            Value::String(parse_instant(&text).map_or(text, Instant::to_rfc3339))
        }
        (_, Value::String(text)) if *canonical == Canonical::Uuid => {
            Value::String(respelt(&text).unwrap_or(text))
        }
        (_, Value::Number(degrees)) if *canonical == Canonical::Longitude => degrees
            .as_f64()
            .map(western)
            .map_or(Value::Number(degrees), Value::from),
        (ColumnType::List(item), Value::Array(elements)) => {
            let canonical = match canonical {
                Canonical::Items(of_item) => of_item.as_ref(),
                _ => &Canonical::AsSent,
            };
            let elements = elements.into_iter();
            elements
                .map(|element| as_stored(element, item, canonical))
                .collect()
        }
        (ColumnType::Struct(columns), Value::Object(members)) => {
            let canonical = match canonical {
                Canonical::Members(members) => members.as_slice(),
                _ => &[],
            };
            let declared = DeclaredMembers::new(columns, members.len());
            let member = |(name, value): (String, Value)| {
                let Some((at, column)) = declared.find(&name) else {
                    return Some((name, value));
                };
                let value = as_stored(value, column, canonical.get(at).unwrap_or(&Canonical::AsSent));
                (!value.is_null()).then_some((name, value))
            };
            let members: Map<String, Value> = members.into_iter().filter_map(member).collect();
            if members.is_empty() {
                Value::Null
            } else {
                Value::Object(members)
            }
        }
        (_, value) => value,
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
