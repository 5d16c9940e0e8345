//! Turns a person's annotation definition into an entry of the type catalogue: its base, with the name and
//! unit that the person gave. Its records are stored as those of the base, so this is never a type to store
//! under.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::data_type::{DataType, RecordClass, TypeId};
use super::definition::Scale;
use super::entry;
use crate::model::ids::PersonId;
use crate::model::metric::MetricKind;

/// The categories of annotations that people made.
pub const ANNOTATION_CATEGORIES: [&str; 2] = ["annotations", "user_configured"];

/// What restricts the values of an annotation's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLimits {
    Scale(Scale),
    /// Amounts that are added up.
    NotBelowZero,
}

/// What a person says about something that they annotate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotationTraits {
    pub name: String,
    pub description: String,
    /// For metrics only, like the following four.
    pub kind: Option<MetricKind>,
    pub unit: Option<String>,
    pub scale: Option<Scale>,
    pub limits: Option<ValueLimits>,
    /// The names of the steps of a scale.
    pub value_map: Option<Map<String, Value>>,
}

impl DataType {
    /// What the plain list of types says of the annotation `id` upon this base, without making a type of it.
    #[must_use]
    pub fn annotation_list_entry(&self, id: Uuid, description: &str) -> Value {
        let id = TypeId::of_definition(self.id.as_str(), id);
        entry::listed(
            id,
            description,
            self.class,
            &ANNOTATION_CATEGORIES.map(str::to_owned),
        )
    }

    /// This base as `owner`'s annotation `id`.
    #[must_use]
    pub fn as_annotation(&self, owner: PersonId, id: Uuid, traits: AnnotationTraits) -> Self {
        let mut schema = self.schema.value().into_owned();
        if let Some(members) = schema.as_object_mut() {
            members.insert("title".to_owned(), json!(traits.name));
            members.insert("description".to_owned(), json!(traits.description));
        }
        if let (Some(limits), Some(value)) = (traits.limits, schema.pointer_mut("/properties/value"))
            && let Some(members) = value.as_object_mut()
        {
            match limits {
                ValueLimits::Scale(scale) => {
                    members.insert("minimum".to_owned(), json!(scale.min));
                    members.insert("maximum".to_owned(), json!(scale.max));
                }
                ValueLimits::NotBelowZero => {
                    members.insert("minimum".to_owned(), json!(0));
                }
            }
        }
        let metric = self.metric.as_ref().map(|metric| super::MetricTraits {
            unit: traits.unit,
            kind: traits.kind.or(metric.kind),
            ..metric.clone()
        });
        let record_spec = match (&metric, self.class) {
            (Some(metric), RecordClass::Metric) => entry::metric_spec(
                metric.kind,
                metric.unit.as_deref(),
                &json!(traits.scale),
                &json!(traits.value_map),
                &schema,
            ),
            (_, class) => entry::spec(class, &schema),
        };
        Self {
            id: TypeId::of_definition(self.id.as_str(), id),
            name: traits.name,
            description: traits.description,
            categories: ANNOTATION_CATEGORIES.map(str::to_owned).to_vec(),
            owner: Some(owner),
            is_base: false,
            aliases: Vec::new(),
            metric,
            record_spec,
            schema: schema.into(),
            layout: Arc::clone(&self.layout),
            ..self.clone()
        }
    }
}
