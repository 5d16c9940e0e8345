//! Converts numbers sent as texts, and times sent as numbers, to the form that records have, if the sender
//! says that they may come this way. Nothing is coerced unasked.
//!
//! Works on the text, so that later steps see nothing unusual. Knows plans and JSON; a value that cannot be
//! coerced stays as it is, and the decoder reports what is wrong with it.

use std::borrow::Cow;

use arrow::datatypes::DataType as ColumnType;
use serde_json::{Number, Value};

use super::field_plan::{FieldPlan, Role};
use super::json;
use crate::model::names::named;
use crate::model::time::Instant;

/// From here on a number counts milliseconds: as seconds it would lie three thousand years ahead.
const MILLISECONDS_FROM: f64 = 100_000_000_000.0;

named! {
    "epoch",
    /// The unit in which numbers for times count from 1970.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Epoch {
        /// Seconds below 100,000,000,000, milliseconds from there on.
        ByMagnitude = "by_magnitude",
        Seconds = "seconds",
        Milliseconds = "milliseconds",
    }
}

impl Epoch {
    /// The unit in which `number` counts: seconds or milliseconds.
    const fn unit_of(self, number: f64) -> Self {
        match self {
            Self::ByMagnitude if number.abs() < MILLISECONDS_FROM => Self::Seconds,
            Self::ByMagnitude => Self::Milliseconds,
            said => said,
        }
    }
}

/// Converts the record to the form that records have.
pub(super) fn coerced<'a>(record: Cow<'a, [u8]>, plan: &FieldPlan, epoch: Epoch) -> Cow<'a, [u8]> {
    let rewritten = rewritten(&record, plan, epoch);
    rewritten.map_or(record, Cow::Owned)
}

/// Whether the field `name`, sent as `raw`, could be coerced to what its type expects.
pub(super) fn is_coercible(plan: &FieldPlan, name: &str, raw: &str) -> bool {
    form_of(plan, name).is_some_and(|held| value(raw, held, Epoch::ByMagnitude).is_some())
}

/// Why the number that was sent as `raw` for the time `name` was not coerced: counted in its unit, it is no
/// time. `None` where something else is sent, or expected.
pub(super) fn outside_of_times(plan: &FieldPlan, name: &str, raw: &str, epoch: Epoch) -> Option<String> {
    if form_of(plan, name)? == FieldKind::Number || time(raw, epoch).is_some() {
        return None;
    }
    let text = json::text(raw);
    let number = serde_json::from_str::<Number>(text.as_deref().unwrap_or(raw).trim()).ok()?;
    let unit = epoch.unit_of(number.as_f64()?).name();
    Some(format!("in {unit} since 1970 it is outside the years 1 to 9999"))
}

/// `None` if nothing is to be coerced.
fn rewritten(record: &[u8], plan: &FieldPlan, epoch: Epoch) -> Option<Vec<u8>> {
    let fields = json::fields(record).ok()?;
    let coerced: Vec<Option<String>> = fields
        .iter()
        .map(|field| value(field.raw, form_of(plan, &field.name)?, epoch))
        .collect();
    if coerced.iter().all(Option::is_none) {
        return None;
    }
    let members = fields.iter().zip(&coerced);
    let members =
        members.map(|(field, coerced)| (field.name.as_ref(), coerced.as_deref().unwrap_or(field.raw)));
    Some(json::object(members))
}

/// The kind of value that a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Number,
    Time,
    /// A time, or an object with two.
    Span,
}

fn form_of(plan: &FieldPlan, name: &str) -> Option<FieldKind> {
    let known = plan.fields.get(plan.field(name)?)?;
    match known.role {
        Role::Start | Role::End | Role::Moment => Some(FieldKind::Time),
        Role::RecordedAt => Some(FieldKind::Span),
        Role::Column(column) => match plan.columns.get(column)?.data_type() {
            ColumnType::Float64 | ColumnType::Int64 => Some(FieldKind::Number),
            ColumnType::Timestamp(..) => Some(FieldKind::Time),
            _ => None,
        },
        Role::Id | Role::Unit | Role::Extras | Role::Computed => None,
    }
}

fn value(raw: &str, held: FieldKind, epoch: Epoch) -> Option<String> {
    match held {
        FieldKind::Number => {
            let text = json::text(raw)?;
            let text = text.trim();
            serde_json::from_str::<Number>(text).ok().map(|_| text.to_owned())
        }
        FieldKind::Time => time(raw, epoch),
        FieldKind::Span if raw.starts_with('{') => {
            let members = json::fields(raw.as_bytes()).ok()?;
            let is_coerced = members.iter().any(|member| time(member.raw, epoch).is_some());
            let members: Vec<(&str, Cow<'_, str>)> = members
                .iter()
                .map(|member| {
                    let coerced = time(member.raw, epoch).map_or(Cow::Borrowed(member.raw), Cow::Owned);
                    (member.name.as_ref(), coerced)
                })
                .collect();
            let members = members.iter().map(|(name, raw)| (*name, raw.as_ref()));
            is_coerced.then(|| String::from_utf8(json::object(members)).ok())?
        }
        FieldKind::Span => time(raw, epoch),
    }
}

/// The moment that a number, or a text that is a number, represents, as a JSON string.
fn time(raw: &str, epoch: Epoch) -> Option<String> {
    let text = json::text(raw);
    let number = text.as_deref().unwrap_or(raw).trim();
    let counted = serde_json::from_str::<Number>(number).ok()?.as_f64()?;
    let unit = match epoch.unit_of(counted) {
        Epoch::Seconds => 1_000_000,
        _ => 1_000,
    };
    let micros = if let Ok(whole) = number.parse::<i64>() {
        whole.checked_mul(unit)?
    } else {
        let micros = (counted * unit as f64).round();
        (micros.abs() < i64::MAX as f64).then_some(micros as i64)?
    };
    // A time beyond the calendar's years has no text form: it would be written as the nearest one that has.
    let moment = Instant::from_micros(micros);
    let is_told = (Instant::MIN..=Instant::MAX).contains(&moment);
    is_told.then(|| Value::String(moment.to_rfc3339()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(raw: &str, epoch: Epoch) -> Option<String> {
        time(raw, epoch).map(|told| told.trim_matches('"').to_owned())
    }

    #[test]
    fn a_time_is_told_from_seconds_and_milliseconds_by_its_size_unless_it_is_said() {
        let any = Epoch::ByMagnitude;
        for (raw, expected) in [
            ("1717200000", "2024-06-01T00:00:00Z"),
            ("\"1717200000\"", "2024-06-01T00:00:00Z"),
            ("1717200000000", "2024-06-01T00:00:00Z"),
            ("1717200000.25", "2024-06-01T00:00:00.250Z"),
            ("1717200000123.456", "2024-06-01T00:00:00.123456Z"),
            ("-86400", "1969-12-31T00:00:00Z"),
            ("0", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(told(raw, any).as_deref(), Some(expected), "{raw}");
        }
        assert_eq!(
            told("60000", Epoch::Milliseconds).unwrap(),
            "1970-01-01T00:01:00Z"
        );
        assert_eq!(told("60000", Epoch::Seconds).unwrap(), "1970-01-01T16:40:00Z");
        for raw in ["\"2024-06-01\"", "\"\"", "null", "true", "1e300", "\"noon\""] {
            assert_eq!(told(raw, any), None, "{raw}");
        }
    }

    #[test]
    fn a_time_outside_the_years_1_to_9999_is_no_time() {
        let (seconds, millis) = (Epoch::Seconds, Epoch::Milliseconds);
        for (raw, epoch, expected) in [
            ("-62135596800", seconds, Some("0001-01-01T00:00:00Z")),
            ("-62135596801", seconds, None),
            ("253402300799", seconds, Some("9999-12-31T23:59:59Z")),
            ("253402300800", seconds, None),
            ("253402300800.0", seconds, None),
            ("-62135596800000", millis, Some("0001-01-01T00:00:00Z")),
            ("-62135596800001", millis, None),
            ("253402300799999", millis, Some("9999-12-31T23:59:59.999Z")),
            ("253402300800000", millis, None),
            ("1704067200123", seconds, None),
            ("-99999999999", Epoch::ByMagnitude, None),
            ("9223372036854775807", Epoch::ByMagnitude, None),
            ("\"99999999999999999999\"", Epoch::ByMagnitude, None),
        ] {
            assert_eq!(told(raw, epoch).as_deref(), expected, "{raw} in {}", epoch.name());
        }
    }
}
