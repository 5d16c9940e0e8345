//! How a data type appears in the catalogues.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::category::Category;
use super::data_type::{ApiVersion, DataType, RecordClass, TypeId};
use super::definition::Scale;
use crate::model::ids::PersonId;
use crate::model::metric::MetricKind;

/// A data type in the catalogue.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatalogEntry<'t> {
    #[schema(value_type = String, example = "HeartRate")]
    id: &'t TypeId,
    name: &'t str,
    description: &'t str,
    class: RecordClass,
    api_version: ApiVersion,
    #[schema(value_type = Vec<Category>)]
    categories: Vec<&'t str>,
    /// The column that holds the value of a metric. Types without a value have no such column, and a label
    /// here: their name in snake case.
    column_name: String,
    deprecated: bool,
    /// The owner of the type: you, or the person who shares it.
    #[schema(value_type = Uuid)]
    svc_userid: PersonId,
    #[schema(required)]
    icon: Option<&'t str>,
    #[schema(required)]
    metric_kind: Option<MetricKind>,
    queryable: bool,
    recordable: bool,
    #[schema(value_type = RecordSpec)]
    record_spec: Cow<'t, Value>,
    #[schema(required)]
    unit: Option<&'t str>,
    /// The units of the numbers in its records, by column. Only present when a single type is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    column_units: Option<BTreeMap<String, String>>,
}

/// What a record of a type is. Only metrics have more than `type` and `schema`.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "a specification is kept as JSON; this is how it is documented"
)]
pub struct RecordSpec {
    r#type: RecordClass,
    /// JSON Schema, draft 2020-12.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    aggregation: Option<MetricKind>,
    unit: Option<String>,
    scale: Option<Scale>,
    /// The names of the values.
    value_map: Option<HashMap<String, String>>,
}

/// A data type in the plain list.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListEntry {
    #[schema(value_type = String, example = "HeartRate")]
    name: TypeId,
    description: String,
    #[schema(required)]
    class: Option<RecordClass>,
    #[schema(value_type = Vec<Category>)]
    category: Vec<String>,
}

impl DataType {
    /// The entry of the v1 catalogue, as `person` sees it among their own types.
    #[must_use]
    pub fn catalog_entry(&self, person: PersonId) -> Value {
        json!(self.listed_entry(self.owner.unwrap_or(person), false))
    }

    /// The entry with the whole schema of a record, for an answer about this type alone. `is_shared`:
    /// `person` lets the caller read it.
    #[must_use]
    pub fn detailed_entry(&self, person: PersonId, is_shared: bool) -> Value {
        let mut spec = self.record_spec.clone();
        if let Some(schema) = spec.get_mut("schema").filter(|schema| schema.is_null()) {
            *schema = self.schema.value().into_owned();
        }
        json!(CatalogEntry {
            record_spec: Cow::Owned(spec),
            column_units: Some(self.column_units()),
            ..self.listed_entry(self.owner.unwrap_or(person), is_shared)
        })
    }

    /// The entry of a type of `person`, who lets the caller read it if it `is_shared`.
    #[must_use]
    pub fn listed_entry(&self, person: PersonId, is_shared: bool) -> CatalogEntry<'_> {
        let own = self.categories.iter().map(String::as_str);
        let shared = is_shared.then(|| Category::SharedType.name());
        CatalogEntry {
            id: &self.id,
            name: &self.name,
            description: &self.description,
            class: self.class,
            api_version: self.api_version,
            categories: own.chain(shared).collect(),
            column_name: self.column_name(),
            deprecated: self.deprecated,
            svc_userid: person,
            icon: self.icon.as_deref(),
            metric_kind: self.metric.as_ref().and_then(|metric| metric.kind),
            queryable: self.queryable,
            recordable: self.recordable && !is_shared,
            record_spec: Cow::Borrowed(&self.record_spec),
            unit: self.metric.as_ref().and_then(|metric| metric.unit.as_deref()),
            column_units: None,
        }
    }

    /// The entry of the v1alpha1 list of data types.
    #[must_use]
    pub fn list_entry(&self) -> Value {
        listed(self.id.clone(), &self.description, self.class, &self.categories)
    }

    /// The column that holds the value of a metric; a label for a type without one.
    #[must_use]
    pub fn column_name(&self) -> String {
        self.metric.as_ref().map_or_else(
            || snake_case(self.id.base()),
            |metric| metric.value_column.clone(),
        )
    }
}

/// The entry of a type in the v1alpha1 list of data types.
pub(super) fn listed(id: TypeId, description: &str, class: RecordClass, categories: &[String]) -> Value {
    json!(ListEntry {
        name: id,
        description: description.to_owned(),
        class: Some(class),
        category: categories.to_vec(),
    })
}

/// `record_spec` of everything but metrics.
pub(super) fn spec(class: RecordClass, schema: &Value) -> Value {
    json!({"type": class, "schema": schema})
}

/// `record_spec` of metrics. A metric whose kind is not settled is a level.
pub(super) fn metric_spec(
    kind: Option<MetricKind>,
    unit: Option<&str>,
    scale: &Value,
    value_map: &Value,
    schema: &Value,
) -> Value {
    json!({
        "type": RecordClass::Metric,
        "aggregation": kind.unwrap_or(MetricKind::Discrete),
        "unit": unit,
        "scale": scale,
        "value_map": value_map,
        "schema": schema,
    })
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}
