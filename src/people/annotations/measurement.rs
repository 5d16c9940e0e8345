//! What an annotation measures: one configuration for each kind of quantity, with its unit and the value that
//! a new record begins with.
//!
//! The same types are read, stored, returned and published as schema.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::text::Verbatim;
use crate::model::registry::MetricKind;

/// The farthest step of a scale; nobody counts further.
const FARTHEST_STEP: i64 = 1_000_000;

/// A member that is null or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_unit(Self)
    }
}

impl Visitor<'_> for Nothing {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("null, because this kind has none")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Null).into()
    }
}

impl ToSchema for Nothing {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Nothing")
    }
}

/// How the values of an annotation add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = MeasurementMetricKind)]
pub enum Aggregation {
    Cumulative,
    #[default]
    Discrete,
}

impl From<Aggregation> for MetricKind {
    fn from(kind: Aggregation) -> Self {
        match kind {
            Aggregation::Cumulative => Self::Cumulative,
            Aggregation::Discrete => Self::Discrete,
        }
    }
}

macro_rules! only {
    ($($name:ident { $variant:ident }),* $(,)?) => {
        $(
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
            #[serde(rename_all = "lowercase")]
            pub enum $name {
                #[default]
                $variant,
            }
        )*
    };
}

only! {
    BooleanValueType { Boolean },
    DurationValueType { Duration },
    IntegerValueType { Integer },
    RealValueType { Real },
}

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident { $($unit:ident),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
            #[serde(rename_all = "snake_case")]
            pub enum $name {
                $($unit),*
            }
        )*
    };
}

units! {
    DistanceUnit { Inch, Foot, Yard, Mile, Millimeter, Centimeter, Meter, Kilometer }
    MassUnit { Ounce, Pound, Stone, Microgram, Milligram, Gram, Kilogram }
    PeriodUnit { Millisecond, Second, Minute, Hour, Day, Week, Month, Year }
    TemperatureUnit { Celsius, Fahrenheit, Kelvin }
    VolumeUnit {
        Teaspoon, Tablespoon, FluidOunce, Cup, Pint, Quart, Gallon, Milliliter, Centiliter, Deciliter, Liter
    }
}

/// The value that a new record begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NumberDefault {
    #[serde(default)]
    pub value: Option<f64>,
}

/// The answer that a new record begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BooleanDefault {
    #[serde(default)]
    pub value: Option<bool>,
}

/// The steps of a scale, and the one that a new record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScaleDefault {
    #[serde(default, deserialize_with = "optional_step")]
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    pub value: Option<i64>,
    /// The first step.
    #[serde(deserialize_with = "step")]
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    pub min_allowed: i64,
    /// The last step.
    #[serde(deserialize_with = "step")]
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    pub max_allowed: i64,
}

/// A whole number, however it is written: `3`, `3.0`.
fn step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let farthest = FARTHEST_STEP as f64;
    if number.fract() == 0.0 && (-farthest..=farthest).contains(&number) {
        Ok(number as i64)
    } else {
        let expected = format!("a whole number between -{FARTHEST_STEP} and {FARTHEST_STEP}");
        Err(de::Error::invalid_value(
            de::Unexpected::Float(number),
            &expected.as_str(),
        ))
    }
}

fn optional_step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    struct Step(#[serde(deserialize_with = "step")] i64);
    Ok(Option::<Step>::deserialize(deserializer)?.map(|Step(step)| step))
}

macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident { $member:ident, $unit:ty })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
            pub struct $name {
                #[serde(default)]
                pub metric_kind: Aggregation,
                #[serde(default)]
                pub unit: $unit,
                #[serde(default)]
                pub value_type: RealValueType,
                pub $member: NumberDefault,
            }
        )*
    };
}

quantities! {
    /// A count.
    CountMeasurement { count, Nothing }
    /// A number in a unit that the person names.
    CustomMeasurement { custom, Option<Verbatim> }
    /// A distance.
    DistanceMeasurement { distance, Option<DistanceUnit> }
    /// A mass.
    MassMeasurement { mass, Option<MassUnit> }
    /// A percentage: 100 is the whole.
    PercentMeasurement { percent, Nothing }
    /// The length of a period, as a number.
    PeriodMeasurement { period, Option<PeriodUnit> }
    /// A temperature.
    TemperatureMeasurement { temperature, Option<TemperatureUnit> }
    /// A volume.
    VolumeMeasurement { volume, Option<VolumeUnit> }
}

/// Yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct YesNoMeasurement {
    #[serde(default)]
    pub metric_kind: Aggregation,
    #[serde(default)]
    pub unit: Nothing,
    #[serde(default)]
    pub value_type: BooleanValueType,
    pub boolean: BooleanDefault,
}

/// The time from a start to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeSpanMeasurement {
    #[serde(default)]
    pub metric_kind: Aggregation,
    #[serde(default)]
    pub unit: Nothing,
    #[serde(default)]
    pub value_type: DurationValueType,
}

/// A step between a first and a last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepMeasurement {
    #[serde(default)]
    pub metric_kind: Aggregation,
    #[serde(default)]
    pub unit: Nothing,
    #[serde(default)]
    pub value_type: IntegerValueType,
    pub scale: ScaleDefault,
}

/// What a boolean annotation measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "measurement_type", rename_all = "snake_case")]
pub enum BooleanMeasurement {
    Boolean(YesNoMeasurement),
}

/// What a duration annotation measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "measurement_type", rename_all = "snake_case")]
pub enum DurationMeasurement {
    Duration(TimeSpanMeasurement),
}

/// What a scale annotation measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "measurement_type", rename_all = "snake_case")]
pub enum ScaleMeasurement {
    Scale(StepMeasurement),
}

/// What a numeric annotation measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "measurement_type", rename_all = "snake_case")]
pub enum QuantityMeasurement {
    Count(CountMeasurement),
    Custom(CustomMeasurement),
    Distance(DistanceMeasurement),
    Mass(MassMeasurement),
    Percent(PercentMeasurement),
    Period(PeriodMeasurement),
    Temperature(TemperatureMeasurement),
    Volume(VolumeMeasurement),
}

/// What an annotation measures, whatever its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum MeasurementConfiguration {
    Boolean(BooleanMeasurement),
    Duration(DurationMeasurement),
    Quantity(QuantityMeasurement),
    Scale(ScaleMeasurement),
}

impl BooleanMeasurement {
    #[must_use]
    pub fn kind(&self) -> MetricKind {
        let Self::Boolean(measured) = self;
        measured.metric_kind.into()
    }
}

impl ScaleMeasurement {
    #[must_use]
    pub fn kind(&self) -> MetricKind {
        let Self::Scale(measured) = self;
        measured.metric_kind.into()
    }
}

/// A unit by its name on the wire.
fn wire_name<T: Serialize>(unit: Option<T>) -> Option<String> {
    let name = serde_json::to_value(unit?).ok()?;
    name.as_str().map(str::to_owned)
}

impl QuantityMeasurement {
    #[must_use]
    pub fn kind(&self) -> MetricKind {
        match self {
            Self::Count(measured) => measured.metric_kind,
            Self::Custom(measured) => measured.metric_kind,
            Self::Distance(measured) => measured.metric_kind,
            Self::Mass(measured) => measured.metric_kind,
            Self::Percent(measured) => measured.metric_kind,
            Self::Period(measured) => measured.metric_kind,
            Self::Temperature(measured) => measured.metric_kind,
            Self::Volume(measured) => measured.metric_kind,
        }
        .into()
    }

    /// The unit of its values, if it has one.
    #[must_use]
    pub fn unit(&self) -> Option<String> {
        match self {
            Self::Count(_) => None,
            // The annotation shows the text as it was sent. As a unit, a blank one is none.
            Self::Custom(measured) => measured
                .unit
                .as_ref()
                .map(|unit| unit.as_str().trim().to_owned())
                .filter(|unit| !unit.is_empty()),
            Self::Distance(measured) => wire_name(measured.unit),
            Self::Mass(measured) => wire_name(measured.unit),
            Self::Percent(_) => Some("%".to_owned()),
            Self::Period(measured) => wire_name(measured.unit),
            Self::Temperature(measured) => wire_name(measured.unit),
            Self::Volume(measured) => wire_name(measured.unit),
        }
    }
}
