//! Turns a person's own definition into a data type like any other: the schema of its base plus the person's
//! members.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::column::DEEPEST_STRUCT;
use super::data_type::{DataType, Layout, TypeId, Undeclared};
use super::definition::{Base, Definition, OF_METRICS};
use super::layout::{LayoutError, members_mut};
use super::product_annotations::as_understood;
use super::schema::RecordSchema;
use super::{builtin, entry};
use crate::model::ids::PersonId;
use crate::model::metric::MetricKind;

/// Keywords of a person's schema that are merged by hand, or say nothing about a record.
const MERGED_KEYWORDS: [&str; 8] = [
    "$schema",
    "$id",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "examples",
];
/// Scales with more steps than this are bounded, but their steps are not checked.
const MOST_LISTED_STEPS: i64 = 1000;

impl DataType {
    /// The type that `definition` makes upon the built-in type `base`. `version` grows with every change of
    /// the definition.
    pub fn from_definition(
        owner: PersonId,
        id: Uuid,
        base: &Self,
        definition: &Definition,
        version: u32,
    ) -> Result<Self, LayoutError> {
        let schema = record_schema(base, definition);
        let layout = Layout::from_schema(&schema, definition.unit.as_deref(), version, Undeclared::AsGiven)?;
        let own_schema = definition.schema.as_ref().unwrap_or(&Value::Null);
        let metric = (definition.base == Base::Metric).then(|| {
            let kind = definition.aggregation.or(Some(MetricKind::Discrete));
            super::MetricTraits {
                kind,
                ..builtin::plain_metric(definition.unit.clone())
            }
        });
        let record_spec = match &metric {
            Some(metric) => entry::metric_spec(
                metric.kind,
                metric.unit.as_deref(),
                &json!(definition.scale),
                &json!(definition.value_map),
                own_schema,
            ),
            None => entry::spec(base.class, own_schema),
        };
        Ok(Self {
            id: TypeId::of_definition(base.id.as_str(), id),
            name: definition.name.clone(),
            description: definition.description.clone(),
            class: base.class,
            api_version: base.api_version,
            categories: vec!["user_configured".to_owned()],
            icon: definition.icon.clone(),
            owner: Some(owner),
            recordable: true,
            queryable: true,
            deprecated: definition.deprecated,
            is_base: false,
            aliases: Vec::new(),
            metric,
            record_spec,
            schema: RecordSchema::as_text(schema),
            layout: Arc::new(layout),
        })
    }
}

/// The schema of a whole record: standard members first, then the person's, then `extras`.
fn record_schema(base: &DataType, definition: &Definition) -> Value {
    let own = definition.schema.as_ref().and_then(Value::as_object);
    let own_required = strings(own.and_then(|own| own.get("required")));
    let of_base = base.schema.value();
    let mut schema = Value::clone(&of_base);
    if let Some(members) = members_mut(&mut schema) {
        let extras = members.shift_remove("extras");
        if definition.base == Base::Metric {
            members.insert("value".to_owned(), value_schema(definition));
            for name in OF_METRICS {
                let repeated = definition
                    .properties()
                    .and_then(|properties| properties.get(name));
                if let (Some(member), Some(repeated)) = (members.get_mut(name), repeated) {
                    let repeated = as_understood(repeated);
                    let is_required = name == "value" || own_required.contains(&name);
                    bind_besides(member, if is_required { repeated } else { nullable(repeated) });
                }
            }
        }
        for (name, property) in definition.own_properties() {
            let property = members_nullable(as_understood(property), 0);
            let is_required = own_required.contains(&name.as_str());
            members.insert(
                name.clone(),
                if is_required { property } else { nullable(property) },
            );
        }
        members.extend(extras.map(|extras| ("extras".to_owned(), extras)));
    }
    let mut required = strings(of_base.get("required"));
    required.extend(
        own_required
            .iter()
            .filter(|name| !required.contains(name))
            .copied()
            .collect::<Vec<_>>(),
    );
    let required = json!(required);
    if let Some(members) = schema.as_object_mut() {
        members.insert("title".to_owned(), json!(definition.name));
        members.insert("description".to_owned(), json!(definition.description));
        members.insert("required".to_owned(), required);
        members.shift_remove("examples");
        for (keyword, value) in own
            .into_iter()
            .flatten()
            .filter(|(keyword, _)| !MERGED_KEYWORDS.contains(&keyword.as_str()))
        {
            members.insert(keyword.clone(), value.clone());
        }
    }
    schema
}

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn value_schema(definition: &Definition) -> Value {
    let mut value = Map::new();
    value.insert("description".to_owned(), json!("The value."));
    if let Some(scale) = definition.scale {
        value.insert("type".to_owned(), json!("integer"));
        value.insert("minimum".to_owned(), json!(scale.min));
        value.insert("maximum".to_owned(), json!(scale.max));
        let steps = scale
            .step
            .filter(|step| *step > 1)
            .and_then(|step| Some((step, scale.max.checked_sub(scale.min)? / step)));
        if let Some((step, count)) = steps.filter(|(_, count)| *count <= MOST_LISTED_STEPS) {
            value.insert(
                "enum".to_owned(),
                (0..=count)
                    .map(|number| json!(scale.min + number * step))
                    .collect(),
            );
        }
    } else {
        value.insert("type".to_owned(), json!("number"));
        if definition.aggregation == Some(MetricKind::Cumulative) {
            value.insert("minimum".to_owned(), json!(0));
        }
    }
    Value::Object(value)
}

/// Adds the constraints of the person's schema to a member that every metric has.
fn bind_besides(member: &mut Value, repeated: Value) {
    let says_more = |(keyword, asked): (&String, &Value)| match keyword.as_str() {
        "title" | "description" | "examples" | "default" => false,
        "type" => member.get("type") != Some(asked),
        _ => true,
    };
    let binds = repeated
        .as_object()
        .is_some_and(|keywords| keywords.iter().any(says_more));
    let Some(members) = member.as_object_mut() else {
        return;
    };
    for keyword in ["title", "description"] {
        members.extend(
            repeated
                .get(keyword)
                .map(|said| (keyword.to_owned(), said.clone())),
        );
    }
    if binds {
        members.insert("allOf".to_owned(), Value::Array(vec![repeated]));
    }
}

/// The members of an object that is stored as one follow the same rule as those of the record, except where
/// objects are kept as text.
fn members_nullable(mut property: Value, depth: usize) -> Value {
    if depth >= DEEPEST_STRUCT {
        return property;
    }
    // The names of an object's members may be as many as a body can hold.
    let required: HashSet<String> = strings(property.get("required"))
        .into_iter()
        .map(str::to_owned)
        .collect();
    for (name, member) in members_mut(&mut property).into_iter().flatten() {
        let inner = members_nullable(member.take(), depth + 1);
        *member = if required.contains(name) {
            inner
        } else {
            nullable(inner)
        };
    }
    property
}

/// A member that may be left out is null in the rows that are read, so null is accepted on writing too, also
/// where nothing else is.
fn nullable(mut property: Value) -> Value {
    if property == Value::Bool(false) {
        return json!({"type": "null"});
    }
    let Some(members) = property.as_object_mut() else {
        return property;
    };
    if members.is_empty() {
        return property;
    }
    let is_listed = members.contains_key("enum") || members.contains_key("const");
    match members.get_mut("type") {
        Some(Value::String(kind)) if !is_listed => {
            let kinds = if kind == "null" {
                json!("null")
            } else {
                json!([kind, "null"])
            };
            members.insert("type".to_owned(), kinds);
            property
        }
        Some(Value::Array(kinds)) if !is_listed => {
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push(json!("null"));
            }
            property
        }
        _ => json!({"anyOf": [property, {"type": "null"}]}),
    }
}
