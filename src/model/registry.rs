//! What can be recorded: data types, the columns their records are stored in, and the shape in which they are read.
//!
//! Built-in types come from `schemas/`, embedded; a person's own types come from the catalogue and look exactly the same from here on.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::PersonId;

/// `HeartRate`, `Event`, `Event/0191…`. The uuid part is lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeId(pub Arc<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordClass {
    Metric,
    Event,
    Location,
    Entry,
    Tombstone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiVersion {
    V0,
    V1alpha1,
    V1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    Cumulative,
    Discrete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergePolicy {
    BestSource,
    SumAll,
    All,
    SleepPriority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAggregate {
    Sum,
    Mean,
    Last,
    Leq,
}

/// What makes a metric a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricTraits {
    /// Catalogue unit: the unit of storage and of every answer. `None`: the type has no unit.
    pub unit: Option<String>,
    /// The same unit in UCUM.
    pub ucum: Option<String>,
    pub kind: Option<MetricKind>,
    /// Name of the value column in series.
    pub value_column: String,
    pub group: String,
    pub merge: MergePolicy,
    pub default_aggregate: DefaultAggregate,
}

/// One data type, built in or a person's own.
#[derive(Clone, Debug)]
pub struct DataType {
    pub id: TypeId,
    pub name: String,
    pub description: String,
    pub class: RecordClass,
    pub api_version: ApiVersion,
    pub categories: Vec<String>,
    pub icon: Option<String>,
    /// `None` for built-in types.
    pub owner: Option<PersonId>,
    pub recordable: bool,
    pub queryable: bool,
    pub deprecated: bool,
    /// A base of person-defined types or of annotation definitions.
    pub is_base: bool,
    pub metric: Option<MetricTraits>,
    /// `record_spec` as the catalogue shows it.
    pub record_spec: Value,
    /// JSON Schema (draft 2020-12) of one record.
    pub schema: Arc<Value>,
    pub layout: Arc<Layout>,
}

/// How records of a type are stored and shown.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Grows with every change of a person's own type; 1 for built-in ones.
    pub version: u32,
    /// The stored columns, in order. Always begins with `id` (`FixedSizeBinary(16)`), `start_time`, `end_time` (`Timestamp(us, UTC)`, both not null; equal for
    /// instants), ends with `extras` (JSON text, nullable). Everything between is nullable.
    pub storage: SchemaRef,
    /// The columns of an answer, in order.
    pub read: Vec<ReadColumn>,
    /// How the times arrive: names accepted for the start and end, first the canonical one.
    pub times: TimeFields,
}

/// One column of an answer, made from the stored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    pub name: String,
    pub from: ReadFrom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The record's id as text.
    Id,
    Start,
    End,
    /// `{start_time, end_time}`.
    Span,
    /// A stored column as it is, by its name there.
    Column(String),
    /// The same text in every row.
    Constant(String),
    /// Null in every row, as text.
    Null,
}

/// Where a record of the type carries its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFields {
    /// `start` is required; without `end` the record is an instant. Each name is a list: canonical first, then accepted spellings.
    StartEnd { start: Vec<String>, end: Vec<String> },
    /// One moment. `optional`: now when absent.
    Moment { at: Vec<String>, optional: bool },
    /// `recorded_at`: a moment or `{start_time, end_time}`; now when absent.
    RecordedAt,
}
