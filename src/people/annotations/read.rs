//! Reads an annotation from the JSON of a body, and reports the place of whatever is wrong.
//!
//! Where a member chooses among variants, a reader of the whole loses the places inside the variant; so each
//! such part is read separately first, the innermost ones before those around them.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::display::{ColorScaleMapping, EmojiScaleMapping};
use super::measurement::{
    CountMeasurement, CustomMeasurement, DistanceMeasurement, MassMeasurement, PercentMeasurement,
    PeriodMeasurement, ScaleMeasurement, StepMeasurement, TemperatureMeasurement, TimeSpanMeasurement,
    VolumeMeasurement, YesNoMeasurement,
};
use super::variants::{
    AnnotationRoot, AnnotationType, BooleanAnnotation, DurationAnnotation, MomentAnnotation,
    NumericAnnotation, PeopleAnnotation, ScaleAnnotation,
};
use crate::model::faults::{Fault, LocPart};
use crate::model::names::UnknownName;
use crate::model::registry::MetricKind;
use crate::model::strict_json;

/// The most bytes of a definition. Rows carry it, so its length adds to the cost of a row.
const MOST_BYTES: usize = 16 * 1024;

/// A result, or the first fault.
type Read<T> = Result<T, Box<Fault>>;

/// A part of a body and its place.
struct Part<'a> {
    value: &'a Value,
    loc: Vec<LocPart>,
}

type Check = fn(&Part<'_>) -> Read<()>;

impl AnnotationRoot {
    /// Reads the annotation that `body` describes.
    pub fn read(body: &Value) -> Result<Self, Vec<Fault>> {
        let body = Part {
            value: body,
            loc: vec!["body".into()],
        };
        read(&body).map_err(|fault| vec![*fault])
    }

    /// Reads a replacement for this annotation from `body`, which may omit the type.
    pub fn read_over(&self, body: &Value) -> Result<Self, Vec<Fault>> {
        match body {
            Value::Object(members) if !members.contains_key("annotation_type") => {
                let mut members = members.clone();
                let kind = self.annotation_type().name();
                members.insert("annotation_type".to_owned(), kind.into());
                Self::read(&Value::Object(members))
            }
            body => Self::read(body),
        }
    }

    /// Amounts that are added up are never below 0, so their scale does not begin there. Annotations from
    /// before this was a rule stay as they are.
    #[must_use]
    pub fn fault_of_amounts(&self) -> Option<Fault> {
        let Self::Scale(annotation) = self else {
            return None;
        };
        let measured = annotation.measurement_spec.as_ref()?;
        let ScaleMeasurement::Scale(StepMeasurement { scale, .. }) = measured;
        let message = "the amounts of a cumulative scale are never below 0; begin it at 0 or above, or make \
                       it discrete";
        let loc = ["body", "measurement_spec", "scale", "min_allowed"];
        let is_wrong = measured.kind() == MetricKind::Cumulative && scale.min_allowed < 0;
        is_wrong.then(|| Fault::new(loc, "value_error", message).with_value(scale.min_allowed))
    }

    /// Numbers that were recorded as levels may be below 0, so they do not become amounts. Answers of yes or
    /// no are never below it.
    #[must_use]
    pub fn fault_of_adding_up(&self, replacement: &Self) -> Option<Fault> {
        let is_added_up = |root: &Self| root.metric_kind() == Some(MetricKind::Cumulative);
        let are_numbers = matches!(replacement, Self::Numeric(_) | Self::Scale(_));
        let message = "the values of a discrete annotation do not become amounts, which are added up and are \
                       never below 0; make another one instead";
        let loc = ["body", "measurement_spec", "metric_kind"];
        (are_numbers && is_added_up(replacement) && !is_added_up(self))
            .then(|| Fault::new(loc, "value_error", message))
    }
}

fn read(body: &Part<'_>) -> Read<AnnotationRoot> {
    let kind = body.annotation_type()?;
    match body.member("measurement_spec") {
        Some(measured) => measured.measurement(kind)?,
        None if matches!(kind, AnnotationType::Boolean | AnnotationType::Duration) => {
            return Err(body.fault_at("measurement_spec", "missing", "this member is required"));
        }
        None => {}
    }
    if kind == AnnotationType::Scale
        && let Some(mapping) = body.way(&["spec", "scale", "scale_mapping"])
    {
        let variants: [(&str, Check); 2] = [
            ("color", is::<ColorScaleMapping>),
            ("emoji", is::<EmojiScaleMapping>),
        ];
        mapping.one_of("mapping_type", &variants)?;
    }
    let root = match kind {
        AnnotationType::Boolean => AnnotationRoot::Boolean(body.read::<BooleanAnnotation>()?),
        AnnotationType::Duration => AnnotationRoot::Duration(body.read::<DurationAnnotation>()?),
        AnnotationType::Moment => AnnotationRoot::Moment(body.read::<MomentAnnotation>()?),
        AnnotationType::Numeric => AnnotationRoot::Numeric(body.read::<NumericAnnotation>()?),
        AnnotationType::People => AnnotationRoot::People(body.read::<PeopleAnnotation>()?),
        AnnotationType::Scale => AnnotationRoot::Scale(body.read::<ScaleAnnotation>()?),
    };
    steps_in_order(&root, body)?;
    let length = serde_json::to_string(&root).map_or(usize::MAX, |text| text.len());
    if length > MOST_BYTES {
        let message = format!("an annotation may be {MOST_BYTES} bytes of JSON long, this would be {length}");
        return Err(body.fault("too_long", message));
    }
    Ok(root)
}

/// What annotations of this type may measure.
fn measurements(kind: AnnotationType) -> &'static [(&'static str, Check)] {
    match kind {
        AnnotationType::Moment | AnnotationType::People => &[],
        AnnotationType::Boolean => &[("boolean", is::<YesNoMeasurement>)],
        AnnotationType::Duration => &[("duration", is::<TimeSpanMeasurement>)],
        AnnotationType::Scale => &[("scale", is::<StepMeasurement>)],
        AnnotationType::Numeric => &[
            ("count", is::<CountMeasurement>),
            ("custom", is::<CustomMeasurement>),
            ("distance", is::<DistanceMeasurement>),
            ("mass", is::<MassMeasurement>),
            ("percent", is::<PercentMeasurement>),
            ("period", is::<PeriodMeasurement>),
            ("temperature", is::<TemperatureMeasurement>),
            ("volume", is::<VolumeMeasurement>),
        ],
    }
}

fn is<T: DeserializeOwned>(part: &Part<'_>) -> Read<()> {
    part.read::<T>().map(drop)
}

fn steps_in_order(root: &AnnotationRoot, body: &Part<'_>) -> Read<()> {
    let AnnotationRoot::Scale(ScaleAnnotation {
        measurement_spec: Some(ScaleMeasurement::Scale(StepMeasurement { scale, .. })),
        ..
    }) = root
    else {
        return Ok(());
    };
    let fault = |member: &str, message: String| {
        let mut loc = body.loc.clone();
        loc.extend(["measurement_spec", "scale", member].map(LocPart::from));
        Box::new(Fault::new(loc, "value_error", message))
    };
    if scale.min_allowed >= scale.max_allowed {
        let message = format!("expected more than min_allowed, {}", scale.min_allowed);
        return Err(fault("max_allowed", message));
    }
    if scale
        .value
        .is_some_and(|value| !(scale.min_allowed..=scale.max_allowed).contains(&value))
    {
        let message = format!(
            "expected a step between {} and {}",
            scale.min_allowed, scale.max_allowed
        );
        return Err(fault("value", message));
    }
    Ok(())
}

impl<'a> Part<'a> {
    /// A member that is present and not null.
    fn member(&self, name: &str) -> Option<Part<'a>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let mut loc = self.loc.clone();
        loc.push(name.into());
        Some(Part { value, loc })
    }

    fn way(&self, names: &[&str]) -> Option<Part<'a>> {
        let (first, rest) = names.split_first()?;
        let member = self.member(first)?;
        if rest.is_empty() {
            Some(member)
        } else {
            member.way(rest)
        }
    }

    /// The type that is named. Where none is, what is measured may tell: only one type measures it. What
    /// measures nothing, or does not say what, may be of several types.
    fn annotation_type(&self) -> Read<AnnotationType> {
        let measured = self.member("measurement_spec");
        if let Some(measured) = measured.filter(|_| self.value.get("annotation_type").is_none())
            && let Some(kind) = measured.measuring_type()
        {
            return Ok(kind);
        }
        let names = AnnotationType::ALL.map(AnnotationType::name);
        let kind = self.choice("annotation_type", &names)?;
        kind.parse()
            .map_err(|error: UnknownName| self.fault("enum", error.to_string()))
    }

    /// The only type of annotation that has this measurement.
    fn measuring_type(&self) -> Option<AnnotationType> {
        let measured = self.value.get("measurement_type")?.as_str()?;
        AnnotationType::ALL.into_iter().find(|kind| {
            let mut measurements = measurements(*kind).iter();
            measurements.any(|(name, _)| *name == measured)
        })
    }

    fn measurement(&self, kind: AnnotationType) -> Read<()> {
        let variants = measurements(kind);
        if variants.is_empty() {
            // Reading the whole reports a measurement.
            return Ok(());
        }
        self.one_of("measurement_type", variants)
    }

    /// Checks the variant that the member `by` chooses.
    fn one_of(&self, by: &str, variants: &[(&str, Check)]) -> Read<()> {
        let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
        let chosen = self.choice(by, &names)?;
        let check = variants.iter().find(|(name, _)| *name == chosen);
        check.map_or(Ok(()), |(_, check)| check(self))
    }

    /// The name that the member `by` chooses among `names`.
    fn choice(&self, by: &str, names: &[&str]) -> Read<&'a str> {
        if !self.value.is_object() {
            return Err(self.fault("object_type", "expected an object"));
        }
        let Some(value) = self.value.get(by) else {
            let message = format!("this member is required; use one of {}", names.join(", "));
            return Err(self.fault_at(by, "missing", message));
        };
        let chosen = value.as_str().filter(|chosen| names.contains(chosen));
        chosen.ok_or_else(|| {
            let shown: String = value.to_string().chars().take(64).collect();
            self.fault_at(by, "enum", format!("{shown} is none of {}", names.join(", ")))
        })
    }

    fn read<T: DeserializeOwned>(&self) -> Read<T> {
        strict_json::read(self.value)
            .map_err(|error| Box::new(Fault::misread(self.loc.clone(), error.path(), error.inner())))
    }

    fn fault(&self, kind: &'static str, message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault::new(self.loc.clone(), kind, message))
    }

    /// A fault in the member `name`, whether or not there is one.
    fn fault_at(&self, name: &str, kind: &'static str, message: impl Into<String>) -> Box<Fault> {
        let mut loc = self.loc.clone();
        loc.push(name.into());
        Box::new(Fault::new(loc, kind, message))
    }
}
