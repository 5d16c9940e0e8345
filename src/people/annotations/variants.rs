//! The six types of annotation, one variant each: the members common to all, and those specific to one.
//!
//! The same types are read, stored, returned and published as schema.

use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use crate::model::names::named;

use super::super::text::{Line, Name, Prose};
use super::display::{AnnotationSpec, ScaleAnnotationSpec};
use super::measurement::{
    BooleanMeasurement, DurationMeasurement, Nothing, QuantityMeasurement, ScaleMeasurement,
};

/// More default tags than this help nobody.
const MOST_TAGS: usize = 100;

named! {
    "annotation type",
    /// The type of an annotation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AnnotationType {
        Duration = "duration",
        Moment = "moment",
        Numeric = "numeric",
        People = "people",
        Scale = "scale",
        Boolean = "boolean",
    }
}

impl AnnotationType {
    /// The data type of its records.
    #[must_use]
    pub const fn base(self) -> &'static str {
        match self {
            Self::Duration => "DurationAnnotation",
            Self::Moment => "MomentAnnotation",
            Self::Numeric => "NumericAnnotation",
            Self::People => "PeopleAnnotation",
            Self::Scale => "ScaleAnnotation",
            Self::Boolean => "BooleanAnnotation",
        }
    }
}

fn few_tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Line>, D::Error> {
    let tags = Vec::<Line>::deserialize(deserializer)?;
    if tags.len() > MOST_TAGS {
        let message = format!("expected at most {MOST_TAGS} tags, found {}", tags.len());
        return Err(de::Error::custom(message));
    }
    Ok(tags)
}

macro_rules! variants {
    ($($(#[$doc:meta])* $name:ident { $(#[$measured:meta])* $measurement:ty, $spec:ty })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
            pub struct $name {
                pub name: Name,
                pub description: Prose,
                /// The tags that a new record begins with.
                #[serde(deserialize_with = "few_tags")]
                #[schema(max_items = 100)]
                pub tags: Vec<Line>,
                $(#[$measured])*
                pub measurement_spec: $measurement,
                #[serde(default)]
                pub spec: Option<$spec>,
            }
        )*
    };
}

variants! {
    /// A question that is answered with yes or no.
    BooleanAnnotation { BooleanMeasurement, AnnotationSpec }
    /// A stretch of time.
    DurationAnnotation { DurationMeasurement, AnnotationSpec }
    /// A point in time. It measures nothing.
    MomentAnnotation { #[serde(default)] Nothing, AnnotationSpec }
    /// A quantity.
    NumericAnnotation { #[serde(default)] Option<QuantityMeasurement>, AnnotationSpec }
    /// Contact with people. It measures nothing.
    PeopleAnnotation { #[serde(default)] Nothing, AnnotationSpec }
    /// A step on a fixed scale.
    ScaleAnnotation { #[serde(default)] Option<ScaleMeasurement>, ScaleAnnotationSpec }
}

/// An annotation with its type: exactly one of six variants, chosen by `annotation_type`. A new one may leave
/// that out where its `measurement_spec` says which it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "annotation_type", rename_all = "snake_case")]
pub enum AnnotationRoot {
    Boolean(BooleanAnnotation),
    Duration(DurationAnnotation),
    Moment(MomentAnnotation),
    Numeric(NumericAnnotation),
    People(PeopleAnnotation),
    Scale(ScaleAnnotation),
}

impl AnnotationRoot {
    #[must_use]
    pub const fn annotation_type(&self) -> AnnotationType {
        match self {
            Self::Boolean(_) => AnnotationType::Boolean,
            Self::Duration(_) => AnnotationType::Duration,
            Self::Moment(_) => AnnotationType::Moment,
            Self::Numeric(_) => AnnotationType::Numeric,
            Self::People(_) => AnnotationType::People,
            Self::Scale(_) => AnnotationType::Scale,
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Boolean(annotation) => annotation.name.as_str(),
            Self::Duration(annotation) => annotation.name.as_str(),
            Self::Moment(annotation) => annotation.name.as_str(),
            Self::Numeric(annotation) => annotation.name.as_str(),
            Self::People(annotation) => annotation.name.as_str(),
            Self::Scale(annotation) => annotation.name.as_str(),
        }
    }

    /// Removes all tags.
    pub fn untag(&mut self) {
        let tags = match self {
            Self::Boolean(annotation) => &mut annotation.tags,
            Self::Duration(annotation) => &mut annotation.tags,
            Self::Moment(annotation) => &mut annotation.tags,
            Self::Numeric(annotation) => &mut annotation.tags,
            Self::People(annotation) => &mut annotation.tags,
            Self::Scale(annotation) => &mut annotation.tags,
        };
        tags.clear();
    }

    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::Boolean(annotation) => annotation.description.as_str(),
            Self::Duration(annotation) => annotation.description.as_str(),
            Self::Moment(annotation) => annotation.description.as_str(),
            Self::Numeric(annotation) => annotation.description.as_str(),
            Self::People(annotation) => annotation.description.as_str(),
            Self::Scale(annotation) => annotation.description.as_str(),
        }
    }
}
