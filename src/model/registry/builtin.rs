//! Reads the built-in types: two tables and the schemas of their records, all embedded.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::data_type::{ApiVersion, DataType, Layout, ReadFrom, RecordClass, TypeId, Undeclared};
use super::entry;
use super::error::RegistryError;
use super::layout::members_mut;
use super::schema::RecordSchema;
use crate::model::metric::{DefaultAggregate, MergePolicy, MetricKind, MetricTraits};

const METRICS: &str = include_str!("../../../schemas/metrics.tsv");
const TYPES: &str = include_str!("../../../schemas/types.tsv");
const METRIC_SAMPLE: &str = include_str!("../../../schemas/records/metric_sample.json");

macro_rules! records {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../schemas/records/", $name, ".json")))),*]
    };
}

const RECORDS: &[(&str, &str)] = records![
    "BooleanAnnotation",
    "Calendar",
    "CalendarEvent",
    "ClinicalDocument",
    "DeletedRecord",
    "DurationAnnotation",
    "Event",
    "FileInput",
    "MapsLocationUpdate",
    "MedicationDose",
    "Metric",
    "MomentAnnotation",
    "Note",
    "NumericAnnotation",
    "PeopleAnnotation",
    "PlatformLocationUpdate",
    "PlatformLocationVisit",
    "PlatformWorkout",
    "ScaleAnnotation",
    "StateOfMind",
];

/// A line of `metrics.tsv`.
#[derive(Deserialize)]
struct MetricRow {
    id: String,
    title: String,
    unit: String,
    ucum: String,
    kind: Option<MetricKind>,
    value_column: String,
    group: String,
    merge: MergePolicy,
    default_aggregate: DefaultAggregate,
    /// `low..high`, or `low..`, when the value is a code.
    codes: Option<String>,
    example: f64,
    healthkit: Option<String>,
    aliases: Option<String>,
    description: String,
}

/// A line of `types.tsv`.
#[derive(Deserialize)]
struct TypeRow {
    id: String,
    title: String,
    class: RecordClass,
    api_version: ApiVersion,
    base: String,
    recordable: String,
    /// `no` where there are never records to read.
    queryable: String,
    categories: String,
    aliases: Option<String>,
    description: String,
}

/// Every built-in type, metrics first, each table in its own order.
pub(super) fn types() -> Result<Vec<DataType>, RegistryError> {
    let mut types = Vec::new();
    let template = Arc::new(parse("metric_sample", METRIC_SAMPLE)?);
    let sample = layout("metric_sample", &template, Some("1"))?;
    for row in rows::<MetricRow>("metrics", METRICS)? {
        types.push(metric(row, &template, &sample)?);
    }
    for row in rows::<TypeRow>("types", TYPES)? {
        types.push(other(row)?);
    }
    Ok(types)
}

fn rows<R: DeserializeOwned>(table: &'static str, text: &str) -> Result<Vec<R>, RegistryError> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .quoting(false)
        .from_reader(text.as_bytes());
    reader
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|error| RegistryError::Table { table, error })
}

fn parse(name: &str, text: &str) -> Result<Value, RegistryError> {
    serde_json::from_str(text).map_err(|error| RegistryError::Schema {
        name: name.to_owned(),
        error,
    })
}

fn words(list: Option<&str>) -> Vec<String> {
    list.into_iter()
        .flat_map(|list| list.split(','))
        .map(str::to_owned)
        .collect()
}

fn layout(name: &str, schema: &Value, unit: Option<&str>) -> Result<Layout, RegistryError> {
    Layout::from_schema(schema, unit, 1, Undeclared::UnderExtras).map_err(|error| RegistryError::Layout {
        name: name.to_owned(),
        error,
    })
}

/// Samples of all metrics are stored alike, codes as numbers too, so that any of them can stand side by side
/// in one answer. They are also read alike, each in its unit.
fn metric(row: MetricRow, template: &Arc<Value>, sample: &Layout) -> Result<DataType, RegistryError> {
    let schema = metric_schema(&row, Arc::clone(template))?;
    let layout = in_unit(sample, &row.unit);
    let categories = metric_categories(&row);
    let traits = MetricTraits {
        unit: Some(row.unit),
        ucum: Some(row.ucum),
        kind: row.kind,
        value_column: row.value_column,
        group: row.group,
        merge: row.merge,
        default_aggregate: row.default_aggregate,
    };
    Ok(DataType {
        id: TypeId::new(&row.id),
        name: row.title,
        description: row.description,
        class: RecordClass::Metric,
        api_version: ApiVersion::V0,
        categories,
        icon: None,
        owner: None,
        recordable: true,
        queryable: true,
        deprecated: false,
        is_base: false,
        aliases: words(row.aliases.as_deref()),
        record_spec: entry::metric_spec(
            traits.kind,
            traits.unit.as_deref(),
            &Value::Null,
            &Value::Null,
            &Value::Null,
        ),
        metric: Some(traits),
        schema,
        layout: Arc::new(layout),
    })
}

/// `layout` for records in another unit, which is the constant text of every row.
fn in_unit(layout: &Layout, unit: &str) -> Layout {
    let mut layout = layout.clone();
    for column in &mut layout.read {
        if let ReadFrom::Constant(of_layout) = &mut column.from {
            unit.clone_into(of_layout);
        }
    }
    layout
}

fn metric_categories(row: &MetricRow) -> Vec<String> {
    let mut categories = Vec::new();
    if row.healthkit.is_some() {
        categories.push("healthkit");
    }
    categories.push("health");
    if row.group == "sleep" {
        categories.push("sleep");
    }
    if row.id == "MindfulSession" || row.id == "ReportedMood" {
        categories.push("mindfulness");
    }
    categories.into_iter().map(str::to_owned).collect()
}

/// The template adapted to one metric: its name, its allowed values, and examples of them.
fn metric_schema(row: &MetricRow, template: Arc<Value>) -> Result<RecordSchema, RegistryError> {
    let value = metric_value(row)?;
    let example = if row.codes.is_some() {
        json!(row.example as i64)
    } else {
        json!(row.example)
    };
    let [title, description, unit] = [&row.title, &row.description, &row.unit].map(String::clone);
    Ok(RecordSchema::made_by(move || {
        let mut schema = Value::clone(&template);
        if let Some(members) = members_mut(&mut schema) {
            members.insert("value".to_owned(), value);
        }
        for record in schema
            .get_mut("examples")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            record.insert("value".to_owned(), example.clone());
            if let Some(of_template) = record.get_mut("unit") {
                *of_template = json!(unit);
            }
        }
        titled(&title, &description, schema)
    }))
}

/// The schema of a metric's values.
fn metric_value(row: &MetricRow) -> Result<Value, RegistryError> {
    Ok(match &row.codes {
        Some(codes) => {
            let faulty = || RegistryError::Codes {
                name: row.id.clone(),
                codes: codes.clone(),
            };
            let (low, high) = codes.split_once("..").ok_or_else(faulty)?;
            let low: i64 = low.parse().map_err(|_| faulty())?;
            let mut value = json!({"description": "The code.", "type": "integer", "minimum": low});
            if !high.is_empty() {
                value["maximum"] = json!(high.parse::<i64>().map_err(|_| faulty())?);
            }
            value
        }
        None if row.kind == Some(MetricKind::Cumulative) => {
            json!({"description": "The amount, in the unit given.", "type": "number", "minimum": 0})
        }
        None => json!({"description": "The level, in the unit given.", "type": "number"}),
    })
}

/// `schema` with its title and description, near the top where a reader looks for them.
pub(super) fn titled(title: &str, description: &str, schema: Value) -> Value {
    let mut titled = serde_json::Map::new();
    let Value::Object(members) = schema else {
        return schema;
    };
    for (name, member) in members {
        let is_head = name == "$schema";
        titled.insert(name, member);
        if is_head {
            titled.insert("title".to_owned(), json!(title));
            titled.insert("description".to_owned(), json!(description));
        }
    }
    Value::Object(titled)
}

fn other(row: TypeRow) -> Result<DataType, RegistryError> {
    let text = RECORDS
        .iter()
        .find(|(name, _)| *name == row.id)
        .ok_or_else(|| RegistryError::NoSchema(row.id.clone()))?
        .1;
    let schema = titled(&row.title, &row.description, parse(&row.id, text)?);
    let layout = layout(&row.id, &schema, None)?;
    let metric = (row.class == RecordClass::Metric).then(|| plain_metric(None));
    // The bases of a person's own types have no members of their own.
    let is_base = row.base == "yes";
    let shown = if is_base && row.api_version == ApiVersion::V1 {
        Value::Null
    } else {
        schema.clone()
    };
    let record_spec = match row.class {
        RecordClass::Metric => entry::metric_spec(
            Some(MetricKind::Discrete),
            None,
            &Value::Null,
            &Value::Null,
            &shown,
        ),
        class => entry::spec(class, &shown),
    };
    Ok(DataType {
        id: TypeId::new(&row.id),
        name: row.title,
        description: row.description,
        class: row.class,
        api_version: row.api_version,
        categories: words(Some(&row.categories)),
        icon: None,
        owner: None,
        recordable: row.recordable == "yes",
        queryable: row.queryable == "yes",
        deprecated: false,
        is_base,
        aliases: words(row.aliases.as_deref()),
        metric,
        record_spec,
        schema: schema.into(),
        layout: Arc::new(layout),
    })
}

/// The traits of metrics that no table describes: every record counts, none is converted.
pub(super) fn plain_metric(unit: Option<String>) -> MetricTraits {
    MetricTraits {
        unit,
        ucum: None,
        kind: Some(MetricKind::Discrete),
        value_column: "value".to_owned(),
        group: "own".to_owned(),
        merge: MergePolicy::All,
        default_aggregate: DefaultAggregate::Mean,
    }
}
