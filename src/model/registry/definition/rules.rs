//! The rules for a definition, and for changing one into the next.

use arrow::datatypes::{DataType as ArrowType, Field};
use serde_json::Value;

use super::shape::{Base, Definition, OF_METRICS, RESERVED_MEMBERS};
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::metric::MetricKind;
use crate::model::registry::schema::{compile, cost};
use crate::model::text::{self, TextError, composed};

/// The longest name or unit, in characters.
const LONGEST_NAME: usize = 200;
/// The most members of one type; more would make every file of it wide.
const MOST_PROPERTIES: usize = 200;
/// The most columns of a new type, with those of the objects in it, for the same reason: each of them takes
/// memory in every row that is made and in every file that is written.
const MOST_COLUMNS: usize = 1000;
/// The most bytes of a new definition: all types of a person are read and shown together.
const MOST_BYTES: usize = 64 << 10;
/// The deepest nesting of a schema.
const DEEPEST_SCHEMA: usize = 32;

const SCHEMA: [&str; 3] = ["body", "record_spec", "schema"];

pub(super) fn faults_of(definition: &Definition) -> Vec<Fault> {
    let mut faults = Vec::new();
    if definition.name.trim().is_empty() {
        faults.push(Fault::new(
            ["body", "name"],
            "missing",
            "a data type needs a name",
        ));
    }
    if definition.name.chars().count() > LONGEST_NAME {
        faults.push(Fault::new(
            ["body", "name"],
            "string_too_long",
            format!("a name has at most {LONGEST_NAME} characters"),
        ));
    }
    if let Some(unit) = &definition.unit
        && (unit.trim().is_empty() || unit.chars().count() > LONGEST_NAME)
    {
        let message = format!("a unit has 1 to {LONGEST_NAME} characters; send null for none");
        faults.push(Fault::new(["body", "record_spec", "unit"], "unit", message).with_value(unit.as_str()));
    }
    if let Some(scale) = definition.scale
        && (scale.min >= scale.max || scale.step.is_some_and(|step| step < 1))
    {
        faults.push(Fault::new(
            ["body", "record_spec", "scale"],
            "scale",
            "min must be below max, and step at least 1",
        ));
    }
    if let Some(schema) = &definition.schema {
        faults.extend(faults_of_schema(definition, schema));
    }
    faults
}

/// The faults of what is defined anew. What was defined before these were rules stays as it is.
pub(super) fn faults_of_novelty(before: Option<&Definition>, after: &Definition) -> Vec<Fault> {
    let is_new_name = before.is_none_or(|before| composed(&before.name) != after.name);
    let name = fault_of_name(&after.name).filter(|_| is_new_name);
    let amounts = fault_of_amounts(after).filter(|_| before.and_then(fault_of_amounts).is_none());
    let required = fault_of_required(after).filter(|_| before.and_then(fault_of_required).is_none());
    let width = fault_of_width(after).filter(|_| before.and_then(fault_of_width).is_none());
    name.into_iter()
        .chain(amounts)
        .chain(required)
        .chain(width)
        .collect()
}

/// Whether a definition is too long and was not so `before`: what was defined before this was a rule stays,
/// and may be changed.
pub(super) fn fault_of_length(before: Option<&Definition>, after: &Definition) -> Option<Fault> {
    if before
        .and_then(length_of)
        .is_some_and(|length| length > MOST_BYTES)
    {
        return None;
    }
    let length = length_of(after).filter(|length| *length > MOST_BYTES)?;
    let message = format!("a data type may be {MOST_BYTES} bytes of JSON long, this would be {length}");
    Some(Fault::new(["body"], "too_long", message))
}

/// The bytes of a definition as it is kept.
fn length_of(definition: &Definition) -> Option<usize> {
    serde_json::to_vec(definition).ok().map(|json| json.len())
}

/// Objects are stored member by member, however few of them a record has.
fn fault_of_width(definition: &Definition) -> Option<Fault> {
    let columns = definition.columns();
    let width: usize = columns.iter().map(|column| columns_in(column.data_type())).sum();
    (width > MOST_COLUMNS).then(|| {
        let message = format!(
            "a data type has at most {MOST_COLUMNS} members, with those of the objects in it; put the rest \
             into an object without properties"
        );
        Fault::new(at_schema(&["properties"]), "too_many_properties", message)
    })
}

fn columns_in(stored: &ArrowType) -> usize {
    match stored {
        ArrowType::Struct(members) => members.iter().map(|member| columns_in(member.data_type())).sum(),
        ArrowType::List(item) => columns_in(item.data_type()),
        _ => 1,
    }
}

/// What no record keeps under its own name cannot be required.
fn fault_of_required(definition: &Definition) -> Option<Fault> {
    const OF_EACH_ROW: [&str; 2] = ["source", "source_class"];
    let required = definition.schema.as_ref()?.get("required")?.as_array()?;
    let mut names = required.iter().filter_map(Value::as_str);
    let name = names.find(|name| OF_EACH_ROW.contains(name))?;
    let message = format!("{name} is determined for each record and is not a member of it; require sources");
    Some(Fault::new(at_schema(&["required"]), "required", message).with_value(name))
}

/// A name stands in a path and among others in a list.
fn fault_of_name(name: &str) -> Option<Fault> {
    match text::name(name, LONGEST_NAME) {
        Err(error @ (TextError::Blanks | TextError::Control)) if !name.trim().is_empty() => {
            Some(Fault::new(["body", "name"], "value_error", error.to_string()).with_value(name))
        }
        _ => None,
    }
}

/// Amounts of a cumulative metric are added up and are never below 0, so its scale does not begin there.
fn fault_of_amounts(definition: &Definition) -> Option<Fault> {
    let scale = definition
        .scale
        .filter(|scale| is_cumulative(definition) && scale.min < 0)?;
    let message = "the amounts of a cumulative metric are never below 0; begin the scale at 0 or above, or \
                   define a discrete metric";
    Some(Fault::new(["body", "record_spec", "scale", "min"], "scale", message).with_value(scale.min))
}

fn is_cumulative(definition: &Definition) -> bool {
    definition.aggregation == Some(MetricKind::Cumulative)
}

fn at_schema<'a>(rest: &'a [&'a str]) -> impl Iterator<Item = LocPart> + 'a {
    SCHEMA.iter().chain(rest).map(|part| LocPart::from(*part))
}

fn faults_of_schema(definition: &Definition, schema: &Value) -> Vec<Fault> {
    if let Some(fault) = fault_of_whole_schema(schema) {
        return vec![fault];
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut faults: Vec<Fault> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| fault_of_property(definition, name, property))
        .collect();
    if properties.is_some_and(|properties| properties.len() > MOST_PROPERTIES) {
        let message = format!(
            "a data type has at most {MOST_PROPERTIES} members of its own; put the rest into an object"
        );
        faults.push(Fault::new(
            at_schema(&["properties"]),
            "too_many_properties",
            message,
        ));
    }
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let is_known = RESERVED_MEMBERS.contains(&name)
            || is_of_metrics(definition, name)
            || properties.is_some_and(|properties| properties.contains_key(name));
        if !is_known {
            let message = format!("{:?} is required but not among the properties", beginning(name));
            faults.push(Fault::new(at_schema(&["required"]), "required", message).with_value(name));
        }
    }
    faults
}

/// Why nothing in a schema can be looked at, if so.
fn fault_of_whole_schema(schema: &Value) -> Option<Fault> {
    if is_deeper_than(schema, DEEPEST_SCHEMA) {
        let message = format!("a schema nests at most {DEEPEST_SCHEMA} levels deep");
        return Some(Fault::new(at_schema(&[]), "schema", message));
    }
    // Before it is compiled, which is costly too.
    if let Err(error) = cost::checks(schema) {
        let message = format!("the schema would cost too much to check: {error}");
        return Some(Fault::new(at_schema(&[]), "schema", message));
    }
    if let Err(error) = compile(schema) {
        return Some(Fault::new(at_schema(&[]), "schema", error.to_string()));
    }
    if schema.get("type").is_some_and(|kind| kind != "object") {
        let message = "a record is an object; expected type \"object\" or none";
        return Some(Fault::new(at_schema(&["type"]), "schema", message));
    }
    None
}

fn fault_of_property(definition: &Definition, name: &str, property: &Value) -> Option<Fault> {
    if is_of_metrics(definition, name) {
        return fault_of_repeated(definition, name, property);
    }
    let (kind, message) = if RESERVED_MEMBERS.contains(&name) {
        let message = format!("{name:?} means something in every record; choose another name");
        ("reserved_name", message)
    } else if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        let message = format!("the name of a member has 1 to {LONGEST_NAME} printable characters");
        ("name", message)
    } else {
        return None;
    };
    Some(Fault::new(at_schema(&["properties", name]), kind, message).with_value(name))
}

/// Whether the type has the member because it is a metric.
fn is_of_metrics(definition: &Definition, name: &str) -> bool {
    definition.base == Base::Metric && OF_METRICS.contains(&name)
}

/// The members that every metric has can be described again, but not with another type.
fn fault_of_repeated(definition: &Definition, name: &str, property: &Value) -> Option<Fault> {
    let kinds: Vec<&str> = match property.get("type") {
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect(),
        kind => kind.and_then(Value::as_str).into_iter().collect(),
    };
    let is_unit = name == "unit";
    let is_same = match kinds.as_slice() {
        [] => property.get("type").is_none(),
        kinds => kinds.iter().all(|kind| {
            if is_unit {
                *kind == "string"
            } else {
                matches!(*kind, "number" | "integer")
            }
        }),
    };
    let expected = if is_unit { "a text" } else { "a number" };
    if !is_same {
        let message = format!("{name:?} of a metric is {expected}; choose another name for anything else");
        return Some(Fault::new(at_schema(&["properties", name]), "reserved_name", message).with_value(name));
    }
    let unit = definition.unit.as_ref().filter(|_| is_unit)?;
    let is_admitted =
        compile(property).is_ok_and(|validator| validator.is_valid(&Value::from(unit.as_str())));
    (!is_admitted).then(|| {
        let message = format!("records have the unit {unit:?}, which this does not admit");
        Fault::new(at_schema(&["properties", name]), "unit", message).with_value(unit.as_str())
    })
}

/// Stops at the limit, so that the depth of a request does not become the depth of our stack.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(members) => {
            levels == 0 || members.values().any(|member| is_deeper_than(member, levels - 1))
        }
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}

pub(super) fn faults_of_growth(old: &Definition, new: &Definition) -> Vec<Fault> {
    let mut faults = Vec::new();
    if old.unit != new.unit {
        let message = "the unit of a metric cannot change; define another metric";
        faults.push(Fault::new(
            ["body", "record_spec", "unit"],
            "unit_changed",
            message,
        ));
    }
    if old.scale.is_some() != new.scale.is_some() {
        let message = "a metric cannot change between a scale and any number; define another metric";
        faults.push(Fault::new(
            ["body", "record_spec", "scale"],
            "kind_changed",
            message,
        ));
    }
    if is_cumulative(new) && !is_cumulative(old) {
        let message = "the values of a discrete metric do not become amounts, which are added up and never \
                       below 0; define another metric";
        faults.push(Fault::new(
            ["body", "record_spec", "aggregation"],
            "kind_changed",
            message,
        ));
    }
    let columns = new.columns();
    for before in old.columns() {
        let name = before.name().as_str();
        match columns.iter().find(|column| column.name() == before.name()) {
            None => {
                let message = format!(
                    "{name:?} cannot be taken away once it is declared; describe it as unused instead"
                );
                faults.push(
                    Fault::new(at_schema(&["properties", name]), "property_removed", message)
                        .with_value(name),
                );
            }
            Some(after) if !is_same_kind(&before, after) => {
                let message =
                    format!("{name:?} cannot change its kind once it is declared; add another property");
                faults.push(
                    Fault::new(at_schema(&["properties", name]), "kind_changed", message).with_value(name),
                );
            }
            Some(_) => {}
        }
    }
    faults
}

fn is_same_kind(before: &Field, after: &Field) -> bool {
    before.data_type() == after.data_type() && before.metadata() == after.metadata()
}
