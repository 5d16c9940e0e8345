//! Presents an annotation as an entry of the type catalogue.

use serde_json::{Map, Value};

use super::measurement::{QuantityMeasurement, ScaleMeasurement};
use super::row::AnnotationRow;
use super::variants::{AnnotationRoot, ScaleAnnotation};
use crate::model::registry::{AnnotationTraits, DataType, MetricKind, Registry, Scale, ValueLimits};

impl AnnotationRow {
    /// The data type under which clients find it. `None` if the registry lacks its base.
    #[must_use]
    pub fn data_type(&self, registry: &Registry) -> Option<DataType> {
        Some(self.upon(registry.get(self.root.annotation_type().base())?))
    }

    /// The same, made from its base.
    #[must_use]
    pub fn upon(&self, base: &DataType) -> DataType {
        base.as_annotation(self.svc_userid, self.id, self.root.traits())
    }

    /// What the plain list of types says of it. `None` if the registry lacks its base.
    #[must_use]
    pub fn list_entry(&self, registry: &Registry) -> Option<Value> {
        let base = registry.get(self.root.annotation_type().base())?;
        Some(base.annotation_list_entry(self.id, self.root.description()))
    }
}

impl AnnotationRoot {
    /// What restricts its records' values, if anything does.
    #[must_use]
    pub fn value_limits(&self) -> Option<ValueLimits> {
        match self {
            Self::Scale(annotation) => annotation
                .measurement_spec
                .as_ref()
                .map(|measured| ValueLimits::Scale(steps(measured))),
            Self::Numeric(annotation) => annotation
                .measurement_spec
                .as_ref()
                .filter(|measured| measured.kind() == MetricKind::Cumulative)
                .map(|_| ValueLimits::NotBelowZero),
            _ => None,
        }
    }

    /// Whether its records are amounts or levels, if it says so.
    #[must_use]
    pub fn metric_kind(&self) -> Option<MetricKind> {
        match self {
            Self::Duration(_) | Self::Moment(_) | Self::People(_) => None,
            Self::Boolean(annotation) => Some(annotation.measurement_spec.kind()),
            Self::Numeric(annotation) => annotation
                .measurement_spec
                .as_ref()
                .map(QuantityMeasurement::kind),
            Self::Scale(annotation) => annotation.measurement_spec.as_ref().map(ScaleMeasurement::kind),
        }
    }

    fn traits(&self) -> AnnotationTraits {
        let traits = AnnotationTraits {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            kind: self.metric_kind(),
            ..AnnotationTraits::default()
        };
        match self {
            Self::Boolean(_) | Self::Duration(_) | Self::Moment(_) | Self::People(_) => traits,
            Self::Numeric(annotation) => {
                let measured = annotation.measurement_spec.as_ref();
                AnnotationTraits {
                    unit: measured.and_then(QuantityMeasurement::unit),
                    limits: self.value_limits(),
                    ..traits
                }
            }
            Self::Scale(annotation) => AnnotationTraits {
                scale: annotation.measurement_spec.as_ref().map(steps),
                limits: self.value_limits(),
                value_map: labels(annotation),
                ..traits
            },
        }
    }
}

fn steps(ScaleMeasurement::Scale(measured): &ScaleMeasurement) -> Scale {
    Scale {
        min: measured.scale.min_allowed,
        max: measured.scale.max_allowed,
        step: None,
    }
}

fn labels(annotation: &ScaleAnnotation) -> Option<Map<String, Value>> {
    let labels = annotation.spec.as_ref()?.scale.as_ref()?.label_mapping.as_ref()?;
    let mapping = labels.string.mapping.iter();
    Some(
        mapping
            .map(|(step, label)| (step.to_string(), Value::from(label.as_str())))
            .collect(),
    )
}
