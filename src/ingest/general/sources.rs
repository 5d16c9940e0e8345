//! Determines where a record comes from: the source that it names, how long a name may be, and what follows
//! if the source is a definition.

use serde_json::Value;

use super::reading::Reading;
use crate::ingest::bounds::LONGEST_SOURCE;
use crate::ingest::context::DecodeContext;
use crate::model::faults::{Fault, LocPart};
use crate::model::registry::ValueLimits;
use crate::model::sources::{SourceFacts, source_key};

/// Members of a record that name sources, besides `sources` and `source_id`.
const NAMES_OF_SOURCES: [(&str, &str); 3] = [
    ("source_properties", "sourceBundleIdentifier"),
    ("source_properties", "productType"),
    ("source_properties", "name"),
];

/// The source that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ingest) struct FoundSource {
    pub key: String,
    pub name: Option<String>,
    pub class: i8,
    /// The definition among its sources.
    pub source_id: Option<String>,
    /// What its extras say of the source.
    pub marks: u32,
}

impl Reading<'_, '_> {
    /// Checks the length of the names of sources. They have a limit of their own, because they are kept
    /// beside the rows for as long as the person is.
    pub(super) fn hold_sources_to_length(&mut self, too_long_a_name: Option<&'static str>) {
        let is_too_long = |text: Option<&Value>| {
            let text = text.and_then(Value::as_str);
            text.is_some_and(|text| text.len() > LONGEST_SOURCE)
        };
        let mut found: Vec<Vec<LocPart>> = Vec::new();
        for (object, member) in NAMES_OF_SOURCES {
            if is_too_long(self.document.get(object).and_then(|named| named.get(member))) {
                found.push(vec![object.into(), member.into()]);
            }
        }
        let sources = self.document.get("sources").and_then(Value::as_array);
        for (index, source) in sources.into_iter().flatten().enumerate() {
            if is_too_long(Some(source)) {
                found.push(vec!["sources".into(), index.into()]);
            }
        }
        if is_too_long(self.document.get("source_id")) {
            found.push(vec!["source_id".into()]);
        }
        if let Some(member) = too_long_a_name {
            found.push(vec![member.into()]);
        }
        for way in found {
            let loc: Vec<LocPart> = self.loc.iter().cloned().chain(way).collect();
            let message = format!("what names a source has at most {LONGEST_SOURCE} bytes");
            self.faults.push(Fault::new(loc, "too_long", message));
        }
    }

    pub(super) fn source(&self, context: &DecodeContext) -> FoundSource {
        let rules = self.compiled.source_rules();
        let text = |object: &str, member: &str| self.document.get(object)?.get(member)?.as_str();
        let sources = || {
            self.document
                .get("sources")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
        };
        let mut facts = SourceFacts {
            device_model: text("device_properties", "model"),
            hardware_version: text("device_properties", "hardwareVersion"),
            product_type: text("source_properties", "productType"),
            bundle_identifier: text("source_properties", "sourceBundleIdentifier"),
            source_name: text("source_properties", "name"),
            first_source: sources().next(),
            ..SourceFacts::default()
        };
        for (name, raw) in self.extras.members() {
            if let Ok(value) = serde_json::from_str(raw) {
                rules.mark(&mut facts, name, &value);
            }
        }
        let definition = |source: &str| Some(context.source_of(context.definition_of(source)?));
        FoundSource {
            key: source_key(&facts).into_owned(),
            name: facts.source_name.map(str::to_owned),
            class: rules.classify(&facts).code(),
            marks: facts.marks(),
            source_id: sources()
                .find_map(definition)
                .or_else(|| sources().next().map(str::to_owned)),
        }
    }

    /// Checks the value against what the record's definition allows.
    pub(super) fn hold_value_to_limits(&mut self, context: &DecodeContext, source: &FoundSource) {
        // The record's own `source_id` takes precedence, because it is what will be stored.
        let said = self.document.get("source_id").and_then(Value::as_str);
        let limits = said
            .or(source.source_id.as_deref())
            .and_then(|source| context.value_limits_of(source));
        let value = self.document.get("value").and_then(Value::as_f64);
        let (Some(limits), Some(value)) = (limits, value) else {
            return;
        };
        let (kind, message) = match limits {
            ValueLimits::Scale(scale) if value < scale.min as f64 => {
                ("minimum", format!("the scale begins at {}", scale.min))
            }
            ValueLimits::Scale(scale) if value > scale.max as f64 => {
                ("maximum", format!("the scale ends at {}", scale.max))
            }
            ValueLimits::NotBelowZero if value < 0.0 => (
                "minimum",
                "the amounts of a cumulative annotation are never below 0".to_owned(),
            ),
            ValueLimits::Scale(_) | ValueLimits::NotBelowZero => return,
        };
        let mut loc = self.loc.clone();
        loc.push("value".into());
        self.faults.push(Fault::new(loc, kind, message).with_value(value));
    }
}
