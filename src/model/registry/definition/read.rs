//! Reads a definition from the JSON of a body. Checks shapes only; the rules check whether the parts fit
//! together.

use serde_json::{Map, Value};

use super::shape::{Base, Definition, Scale};
use crate::model::faults::{Fault, LocPart};
use crate::model::metric::MetricKind;
use crate::model::registry::product_annotations::take_out;
use crate::model::strict_json;
use crate::model::text::composed;

/// `definition`, changed by what `body` says.
pub(super) fn over(mut definition: Definition, body: &Value) -> Result<Definition, Vec<Fault>> {
    let Some(members) = body.as_object() else {
        return Err(vec![Fault::new(
            ["body"],
            "object_type",
            "expected an object that defines a data type",
        )]);
    };
    let mut reader = Reader { faults: Vec::new() };
    reader.text(members, &["body", "name"], &mut definition.name);
    definition.name = composed(&definition.name).into_owned();
    reader.text(members, &["body", "description"], &mut definition.description);
    reader.optional_text(members, &["body", "icon"], &mut definition.icon);
    reader.texts(
        members,
        &["body", "default_event_tags"],
        &mut definition.default_event_tags,
    );
    reader.texts(members, &["body", "svc_source"], &mut definition.svc_source);
    // A type is called by the id that it gets. What is read can be sent back, so the name only has to be one.
    reader.optional_text(members, &["body", "svc_data_type"], &mut None);
    match members.get("deprecated") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(deprecated)) => definition.deprecated = *deprecated,
        Some(other) => reader.refuse(
            &["body", "deprecated"],
            "bool_type",
            "expected true or false",
            other,
        ),
    }
    match members.get("record_spec") {
        None | Some(Value::Null) => {}
        Some(Value::Object(spec)) => reader.spec(spec, &mut definition),
        Some(other) => reader.refuse(
            &["body", "record_spec"],
            "object_type",
            "expected an object",
            other,
        ),
    }
    if reader.faults.is_empty() {
        Ok(definition)
    } else {
        Err(reader.faults)
    }
}

struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn refuse(&mut self, loc: &[&str], kind: &'static str, message: &str, value: &Value) {
        self.faults.push(
            Fault::new(loc.iter().map(|part| LocPart::from(*part)), kind, message).with_value(value.clone()),
        );
    }

    /// Reads a text that stays as it is when not sent.
    fn text(&mut self, members: &Map<String, Value>, loc: &[&str], target: &mut String) {
        match loc.last().and_then(|name| members.get(*name)) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => target.clone_from(text),
            Some(other) => self.refuse(loc, "string_type", "expected a text", other),
        }
    }

    /// Reads a text that null removes.
    fn optional_text(&mut self, members: &Map<String, Value>, loc: &[&str], target: &mut Option<String>) {
        match loc.last().and_then(|name| members.get(*name)) {
            None => {}
            Some(Value::Null) => *target = None,
            Some(Value::String(text)) => *target = Some(text.clone()),
            Some(other) => self.refuse(loc, "string_type", "expected a text or null", other),
        }
    }

    /// Reads a list of texts that null removes.
    fn texts(&mut self, members: &Map<String, Value>, loc: &[&str], target: &mut Option<Vec<String>>) {
        let Some(sent) = loc.last().and_then(|name| members.get(*name)) else {
            return;
        };
        match serde_json::from_value(sent.clone()) {
            Ok(texts) => *target = texts,
            Err(_) => self.refuse(loc, "list_type", "expected a list of texts or null", sent),
        }
    }

    fn spec(&mut self, spec: &Map<String, Value>, definition: &mut Definition) {
        if let Some(kind) = spec.get("type").filter(|kind| !kind.is_null()) {
            let expected = definition.base.as_str().to_lowercase();
            if kind.as_str() != Some(expected.as_str()) {
                self.refuse(
                    &["body", "record_spec", "type"],
                    "literal_error",
                    &format!("expected {expected:?}, as the path says"),
                    kind,
                );
            }
        }
        let for_metrics = ["unit", "aggregation", "scale", "value_map"];
        for name in for_metrics {
            if let Some(value) = spec
                .get(name)
                .filter(|value| !value.is_null() && definition.base == Base::Event)
            {
                self.refuse(
                    &["body", "record_spec", name],
                    "event_member",
                    "only a metric has this; leave it out of an event",
                    value,
                );
            }
        }
        if definition.base == Base::Metric {
            self.unit(spec, &mut definition.unit);
            self.aggregation(spec, definition);
            self.scale(spec, definition);
            self.value_map(spec, definition);
        }
        self.schema(spec, definition);
    }

    /// A blank unit is none, and blanks around one are no part of it. One that was stored with blanks keeps
    /// them.
    fn unit(&mut self, spec: &Map<String, Value>, target: &mut Option<String>) {
        let mut sent = target.clone();
        self.optional_text(spec, &["body", "record_spec", "unit"], &mut sent);
        let unit = sent.as_deref().map(str::trim).filter(|unit| !unit.is_empty());
        if unit != target.as_deref().map(str::trim) {
            *target = unit.map(str::to_owned);
        }
    }

    fn aggregation(&mut self, spec: &Map<String, Value>, definition: &mut Definition) {
        definition.aggregation = match spec.get("aggregation") {
            None => definition.aggregation,
            Some(Value::Null) => None,
            Some(Value::String(kind)) if kind == "cumulative" => Some(MetricKind::Cumulative),
            Some(Value::String(kind)) if kind == "discrete" => Some(MetricKind::Discrete),
            Some(other) => {
                self.refuse(
                    &["body", "record_spec", "aggregation"],
                    "literal_error",
                    "expected \"cumulative\" or \"discrete\"",
                    other,
                );
                None
            }
        };
    }

    fn scale(&mut self, spec: &Map<String, Value>, definition: &mut Definition) {
        let loc = ["body", "record_spec", "scale"];
        match spec.get("scale") {
            None => {}
            Some(Value::Null) => definition.scale = None,
            Some(scale @ Value::Object(_)) => match strict_json::read::<Scale>(scale) {
                Ok(scale) => definition.scale = Some(scale),
                Err(_) => self.refuse(
                    &loc,
                    "scale",
                    "expected whole numbers min and max, and perhaps step",
                    scale,
                ),
            },
            Some(other) => self.refuse(&loc, "object_type", "expected {min, max, step} or null", other),
        }
    }

    fn value_map(&mut self, spec: &Map<String, Value>, definition: &mut Definition) {
        let loc = ["body", "record_spec", "value_map"];
        match spec.get("value_map") {
            None => {}
            Some(Value::Null) => definition.value_map = None,
            Some(Value::Object(labels)) if labels.values().all(Value::is_string) => {
                definition.value_map = Some(labels.clone());
            }
            Some(other) => self.refuse(
                &loc,
                "object_type",
                "expected an object from values to texts, or null",
                other,
            ),
        }
    }

    /// An object, or the text of one, without what only built-in schemas say.
    fn schema(&mut self, spec: &Map<String, Value>, definition: &mut Definition) {
        let loc = ["body", "record_spec", "schema"];
        let parsed = match spec.get("schema") {
            None => return,
            Some(Value::Null) => {
                definition.schema = None;
                return;
            }
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(other) => Some(other.clone()),
        };
        match parsed {
            Some(Value::Null) => definition.schema = None,
            Some(mut schema @ Value::Object(_)) => {
                take_out(&mut schema, definition.schema.as_ref());
                definition.schema = Some(schema);
            }
            _ => self.refuse(
                &loc,
                "schema",
                "expected a JSON Schema object, or the text of one",
                spec.get("schema").unwrap_or(&Value::Null),
            ),
        }
    }
}
