//! What a definition consists of, and which members are its own. Knows no rules.

use std::fmt;

use arrow::datatypes::Field;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::model::metric::MetricKind;
use crate::model::registry::column::column;
use crate::model::registry::product_annotations::as_understood;

/// Members that every record of a defined type has; a person's own must have other names.
pub(super) const RESERVED_MEMBERS: [&str; 8] = [
    "id",
    "start_time",
    "end_time",
    "tags",
    "sources",
    "extras",
    "source",
    "source_class",
];

/// Members that every metric has besides. A person may describe them again, with the same types.
pub(in crate::model::registry) const OF_METRICS: [&str; 2] = ["value", "unit"];

/// The base of a person's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum Base {
    Event,
    Metric,
}

impl Base {
    /// The base of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "Event" => Some(Self::Event),
            "Metric" => Some(Self::Metric),
            _ => None,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "Event",
            Self::Metric => "Metric",
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A fixed scale of whole steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Scale {
    pub min: i64,
    pub max: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
}

/// A person's own type, as they defined it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub base: Base,
    pub name: String,
    pub description: String,
    pub icon: Option<String>,
    /// Tags that clients put on records of this type that have none. Kept for clients, and not used here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_event_tags: Option<Vec<String>>,
    /// Where its records are meant to come from. Also kept for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub svc_source: Option<Vec<String>>,
    /// Archived: still readable, no longer listed.
    pub deprecated: bool,
    /// For metrics only, like the following three.
    pub unit: Option<String>,
    pub aggregation: Option<MetricKind>,
    pub scale: Option<Scale>,
    pub value_map: Option<Map<String, Value>>,
    /// JSON Schema of its own members: `properties`, `required`, and other constraints.
    pub schema: Option<Value>,
}

impl Definition {
    /// Its own members, with their schemas.
    #[must_use]
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.schema.as_ref()?.get("properties")?.as_object()
    }

    /// The members that no other type of the same base has, with their schemas.
    pub(in crate::model::registry) fn own_properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        let is_own =
            |(name, _): &(&String, &Value)| self.base != Base::Metric || !OF_METRICS.contains(&name.as_str());
        self.properties().into_iter().flatten().filter(is_own)
    }

    /// The columns the members are stored in.
    pub(super) fn columns(&self) -> Vec<Field> {
        self.own_properties()
            .map(|(name, property)| column(name, &as_understood(property)))
            .collect()
    }
}
