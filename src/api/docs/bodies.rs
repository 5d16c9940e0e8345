//! The documentation's view of bodies that are read member by member, so that one answer can name all of
//! their faults. The code that reads a body decides what it must be; tests check that the two agree.

#![expect(dead_code, reason = "these say how JSON looks and are never made")]

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::model::registry::{MetricKind, RecordClass, Scale};
use crate::model::units::UnitSystem;
use crate::people::annotations::AnnotationRoot;
use crate::people::annotations::display::ScaleAnnotationSpec;
use crate::people::annotations::measurement::MeasurementConfiguration;
use crate::people::text::{Line, Name, Prose};

/// Bytes without further structure.
#[derive(Debug)]
pub struct RawBytes;

impl PartialSchema for RawBytes {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .description(Some("Bytes as they are."))
            .into()
    }
}

impl ToSchema for RawBytes {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("RawBytes")
    }
}

/// What replaces an annotation: a whole one, or one without its type, which cannot change.
#[derive(Debug)]
pub struct AnnotationReplacement;

impl PartialSchema for AnnotationReplacement {
    fn schema() -> RefOr<Schema> {
        whole_or::<UntypedAnnotation>(
            "What replaces an annotation: a whole one, or one without its type, which cannot change.",
        )
    }
}

impl ToSchema for AnnotationReplacement {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("AnnotationReplacement")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas_of_whole_or::<UntypedAnnotation>(schemas);
    }
}

/// A new annotation: a whole one, or one without its type, which follows from what it measures.
#[derive(Debug)]
pub struct NewAnnotation;

impl PartialSchema for NewAnnotation {
    fn schema() -> RefOr<Schema> {
        whole_or::<MeasuredAnnotation>(
            "A new annotation: a whole one, or one without its type, which follows from what it measures.",
        )
    }
}

impl ToSchema for NewAnnotation {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewAnnotation")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas_of_whole_or::<MeasuredAnnotation>(schemas);
    }
}

/// A whole annotation, or one without a type as `Untyped` has it.
fn whole_or<Untyped: ToSchema>(description: &str) -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(Ref::from_schema_name(<AnnotationRoot as ToSchema>::name()))
        .item(Ref::from_schema_name(Untyped::name()))
        .description(Some(description))
        .into()
}

fn schemas_of_whole_or<Untyped: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((
        <AnnotationRoot as ToSchema>::name().into(),
        AnnotationRoot::schema(),
    ));
    AnnotationRoot::schemas(schemas);
    schemas.push((Untyped::name().into(), without_type::<Untyped>()));
    Untyped::schemas(schemas);
}

/// The schema of an annotation that has no type at all: one that has any must be a whole one.
fn without_type<Untyped: ToSchema>() -> RefOr<Schema> {
    let mut schema = Untyped::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        // JSON Schema knows `not`, but the builders do not: they write what an extension says as it is.
        let typed = json!({"required": ["annotation_type"]});
        object.extensions = Some(Extensions::from_iter([("not", typed)]));
    }
    schema
}

/// An annotation without its type, which follows from what it measures.
#[derive(Debug, ToSchema)]
pub struct MeasuredAnnotation {
    name: Name,
    description: Prose,
    #[schema(max_items = 100)]
    tags: Vec<Line>,
    measurement_spec: MeasurementConfiguration,
    spec: Option<ScaleAnnotationSpec>,
}

/// An annotation without its type, which decides what it may measure.
#[derive(Debug, ToSchema)]
pub struct UntypedAnnotation {
    name: Name,
    description: Prose,
    #[schema(max_items = 100)]
    tags: Vec<Line>,
    measurement_spec: Option<MeasurementConfiguration>,
    spec: Option<ScaleAnnotationSpec>,
}

/// A type to define. Members that are left out are empty.
#[derive(Debug, ToSchema)]
pub struct NewDataType {
    #[schema(example = "Cups of tea")]
    name: String,
    description: Option<String>,
    icon: Option<String>,
    /// Stored for clients, which put these tags on records that name none.
    default_event_tags: Option<Vec<String>>,
    /// Where records are meant to come from. Stored for clients.
    svc_source: Option<Vec<String>>,
    /// Whatever is sent, it is the id of the type.
    svc_data_type: Option<String>,
    deprecated: Option<bool>,
    record_spec: Option<DefinedSpec>,
}

/// Changes to a type. What is left out stays as it is. Null removes `icon`, `default_event_tags` and
/// `svc_source`; any other member that is null stays as it is too.
#[derive(Debug, ToSchema)]
pub struct DataTypeChange {
    name: Option<String>,
    description: Option<String>,
    icon: Option<String>,
    default_event_tags: Option<Vec<String>>,
    svc_source: Option<Vec<String>>,
    /// True archives the type, false restores it.
    deprecated: Option<bool>,
    /// What is left out of it stays as it is. Null removes a member where that is allowed, as it is for
    /// `aggregation` and `value_map`; a unit or a scale stays once it is there, and a discrete metric does
    /// not become cumulative.
    record_spec: Option<DefinedSpec>,
}

/// Describes the records of one's own type. The last four members are for metrics only.
#[derive(Debug, ToSchema)]
pub struct DefinedSpec {
    /// The base, if it is repeated here.
    r#type: Option<RecordClass>,
    /// JSON Schema of the type's own members, as an object or as JSON text.
    schema: Option<SentSchema>,
    unit: Option<String>,
    aggregation: Option<MetricKind>,
    scale: Option<Scale>,
    /// Names for the values.
    value_map: Option<HashMap<String, String>>,
}

/// A JSON Schema, or the text of one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SentSchema {
    Object(HashMap<String, Value>),
    Text(String),
}

/// A person's preferences. A preference that was never set is left out; null clears one.
#[derive(Debug, ToSchema)]
pub struct PreferencesDocument {
    calendar_events_data_track_filter_map: Option<HashMap<String, Vec<String>>>,
    calendars: Option<Vec<String>>,
    insight_targets: Option<InsightTargets>,
    location_resolution: Option<HashMap<String, i64>>,
    periods_of_day: Option<PeriodsOfDay>,
    pinned_metrics_count_map: Option<HashMap<String, i64>>,
    selected_calendar_vendor_ids: Option<Vec<String>>,
    selected_metrics: Option<Vec<String>>,
    selected_metrics_map: Option<HashMap<String, Vec<String>>>,
    /// The sources of a metric, best first.
    source_order: Option<HashMap<String, Vec<Uuid>>>,
    #[schema(example = "Europe/Berlin")]
    timezone: Option<String>,
    /// The units in which values are shown.
    units: Option<UnitSystem>,
}

/// The person's goals, which insights use.
#[derive(Debug, ToSchema)]
pub struct InsightTargets {
    #[schema(nullable = false, exclusive_minimum = 0.0, maximum = 24, example = 7.5)]
    sleep_hours: Option<f64>,
    #[schema(
        nullable = false,
        exclusive_minimum = 0.0,
        maximum = 1_000_000,
        example = 8000
    )]
    daily_steps: Option<f64>,
}

/// When the periods of a day begin, as HH:MM:SS.
#[derive(Debug, ToSchema)]
pub struct PeriodsOfDay {
    #[schema(nullable = false, example = "06:00:00")]
    morning: Option<String>,
    #[schema(nullable = false, example = "12:00:00")]
    afternoon: Option<String>,
    #[schema(nullable = false, example = "18:00:00")]
    evening: Option<String>,
    #[schema(nullable = false, example = "23:00:00")]
    end_of_day: Option<String>,
}

/// A record in its older, wrapped form.
#[derive(Debug, ToSchema)]
pub struct WrappedRecord {
    /// The record itself, as the text of its JSON.
    #[schema(example = "{\"value\": 61}")]
    data: String,
    specversion: Option<i64>,
    metadata: WrappedMetadata,
}

/// What a wrapper says about its record.
#[derive(Debug, ToSchema)]
pub struct WrappedMetadata {
    #[schema(example = "HeartRate")]
    data_type: String,
    content_type: Option<String>,
    id: Option<Uuid>,
    /// A moment, or a span of time.
    recorded_at: Option<RecordedAt>,
    source: Option<Vec<String>>,
    tags: Option<Vec<String>>,
}

/// When something was recorded.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RecordedAt {
    Moment(String),
    Span {
        #[schema(format = DateTime)]
        start_time: String,
        #[schema(format = DateTime)]
        end_time: String,
    },
}
