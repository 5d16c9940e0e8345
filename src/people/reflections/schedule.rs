//! When a reflection is due: a cron pattern in a zone, between a start and an end.

use std::borrow::Cow;
use std::fmt;

use chrono::DateTime;
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::model::time::{Instant, parse_instant};
use crate::model::zone::{UnknownZone, Zone};

/// The most characters of a pattern; a longer one could express nothing more.
const LONGEST_PATTERN: usize = 256;

/// The fields of the longest pattern, in their order.
static FIELDS: [&str; 7] = [
    "second",
    "minute",
    "hour",
    "day of the month",
    "month",
    "day of the week",
    "year",
];

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "ScheduleAsSent")]
pub struct Schedule {
    /// Minute, hour, day of the month, month, day of the week; seconds may precede them, and then a year may
    /// follow; or `@daily` and the like.
    pub cron: CronPattern,
    /// The earliest time at which it is due.
    #[schema(required)]
    pub start_at: Option<Moment>,
    /// It is due only before this time.
    #[schema(required)]
    pub end_at: Option<Moment>,
    /// Whether it is paused.
    pub paused: bool,
    /// The IANA zone that the pattern refers to.
    pub time_zone: ZoneName,
}

/// All members are required. Serde would let an `Option` be left out, but not where it is read by a function.
#[derive(Deserialize)]
struct ScheduleAsSent {
    cron: CronPattern,
    #[serde(deserialize_with = "Option::deserialize")]
    start_at: Option<Moment>,
    #[serde(deserialize_with = "Option::deserialize")]
    end_at: Option<Moment>,
    paused: bool,
    time_zone: ZoneName,
}

/// Why a schedule is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    #[error("a pattern may have at most {LONGEST_PATTERN} characters")]
    PatternTooLong,
    #[error(transparent)]
    Zone(#[from] UnknownZone),
    #[error("not a time: {0}")]
    Moment(String),
    #[error("end_at must be after start_at")]
    EndsBeforeItStarts,
}

impl TryFrom<ScheduleAsSent> for Schedule {
    type Error = ScheduleError;

    fn try_from(sent: ScheduleAsSent) -> Result<Self, ScheduleError> {
        if let (Some(start), Some(end)) = (&sent.start_at, &sent.end_at)
            && start.0 >= end.0
        {
            return Err(ScheduleError::EndsBeforeItStarts);
        }
        Ok(Self {
            cron: sent.cron,
            start_at: sent.start_at,
            end_at: sent.end_at,
            paused: sent.paused,
            time_zone: sent.time_zone,
        })
    }
}

impl Schedule {
    /// Refuses a pattern that is not due at `moment` or later, whatever its start and its end: one with a
    /// year may be over.
    pub fn must_be_due_from(&self, moment: Instant) -> Result<(), ScheduleError> {
        let pattern = parsed(&self.cron.0)?;
        let zone = Zone::named(&self.time_zone.0)?;
        let moment = DateTime::from_timestamp_micros(moment.micros()).unwrap_or_default();
        let due = pattern.find_next_occurrence(&moment.with_timezone(&zone.tz()), true);
        due.map(drop).map_err(|_| unusable(&"it is never due again"))
    }
}

/// A cron pattern that is due at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronPattern(String);

impl TryFrom<String> for CronPattern {
    type Error = ScheduleError;

    fn try_from(text: String) -> Result<Self, ScheduleError> {
        if text.len() > LONGEST_PATTERN {
            return Err(ScheduleError::PatternTooLong);
        }
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(unusable(&"it holds characters that no pattern has"));
        }
        let pattern = parsed(&text)?;
        // The 30th of February can be written down, but never comes.
        pattern
            .find_next_occurrence(&DateTime::UNIX_EPOCH, true)
            .map_err(|_| unusable(&"it is never due"))?;
        Ok(Self(text))
    }
}

fn parsed(text: &str) -> Result<Cron, ScheduleError> {
    let parser = CronParser::builder().seconds(Seconds::Optional).build();
    let refused = |error: CronError| wrong_field(parser, text).unwrap_or_else(|| unusable(&error));
    parser.parse(text).map_err(refused)
}

/// Which field of a refused pattern is wrong. The parser says only what is wrong, and whoever forgets that
/// six fields begin with the second looks for it in another one.
fn wrong_field(parser: CronParser, text: &str) -> Option<ScheduleError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let names = match fields.len() {
        5 => FIELDS.get(1..6),
        6 => FIELDS.get(..6),
        7 => FIELDS.get(..),
        _ => None,
    }?;
    fields.iter().zip(names).find_map(|(field, name)| {
        let alone = FIELDS.map(|other| if other == *name { *field } else { "*" });
        let reason = match parser.parse(&alone.join(" ")).err()? {
            CronError::ComponentError(reason) => reason,
            CronError::IllegalCharacters(_) => "there are no such characters in it".to_owned(),
            other => other.to_string(),
        };
        let reason = reason.trim_end_matches('.');
        Some(unusable(&format!("`{field}` is no {name}: {reason}")))
    })
}

fn unusable(reason: &dyn fmt::Display) -> ScheduleError {
    ScheduleError::Pattern(reason.to_string())
}

impl From<CronPattern> for String {
    fn from(pattern: CronPattern) -> Self {
        pattern.0
    }
}

/// The name of an existing zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ZoneName(String);

impl TryFrom<String> for ZoneName {
    type Error = ScheduleError;

    fn try_from(name: String) -> Result<Self, ScheduleError> {
        Zone::named(&name)?;
        Ok(Self(name))
    }
}

impl From<ZoneName> for String {
    fn from(zone: ZoneName) -> Self {
        zone.0
    }
}

/// A point in time, accepted in several forms; stored and shown in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(Instant);

impl TryFrom<String> for Moment {
    type Error = ScheduleError;

    fn try_from(text: String) -> Result<Self, ScheduleError> {
        parse_instant(&text)
            .map(Self)
            .map_err(|error| ScheduleError::Moment(error.to_string()))
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.0.to_rfc3339()
    }
}

macro_rules! texts {
    ($($name:ident: $description:literal),* $(,)?) => {
        $(
            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new()
                        .schema_type(Type::String)
                        .description(Some($description))
                        .into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($name))
                }
            }
        )*
    };
}

texts! {
    CronPattern: "A cron pattern: five fields, six with seconds, seven with a year too, or a nickname such \
                  as @daily.",
    ZoneName: "The IANA name of a time zone.",
    Moment: "A date and time.",
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_that_is_wrong_is_named() {
        for (cron, expected) in [
            ("0 0 1 1 * 2020", "`2020` is no day of the week: "),
            ("0 0 9 1 13 * 2030", "`13` is no month: "),
            ("61 * * * *", "`61` is no minute: "),
            ("61 0 * * * *", "`61` is no second: "),
            ("0 24 * * MON", "`24` is no hour: "),
            ("0 9 32 feb *", "`32` is no day of the month: "),
            (
                "0 9 * * x",
                "`x` is no day of the week: there are no such characters in it",
            ),
            ("0 0 9 1 1 * 99999", "`99999` is no year: "),
        ] {
            let error = parsed(cron).map(drop).unwrap_err().to_string();
            let expected = format!("the pattern cannot be used: {expected}");
            assert!(error.starts_with(&expected), "{cron}: {error}");
            assert!(!error.contains("Component"), "{cron}: {error}");
        }
        let short = parsed("* * *").map(drop).unwrap_err().to_string();
        assert!(short.contains("between 5 and 7 fields"), "{short}");
    }

    #[test]
    fn a_pattern_with_a_year_is_over_once_its_last_time_is() {
        let refusal = |cron: &str, zone: &str, moment: &str| {
            let schedule = json!({"cron": cron, "start_at": null, "end_at": null, "paused": false,
                "time_zone": zone});
            let schedule: Schedule = serde_json::from_value(schedule).unwrap();
            let due = schedule.must_be_due_from(parse_instant(moment).unwrap());
            due.map_err(|error| error.to_string()).err()
        };
        let over = Some("the pattern cannot be used: it is never due again".to_owned());
        let morning = "0 0 9 1 1 * 2030";
        for (zone, last, expected) in [
            ("UTC", "2030-01-01T09:00:00Z", None),
            ("UTC", "2030-01-01T09:00:01Z", over.clone()),
            ("Asia/Tokyo", "2030-01-01T00:00:00Z", None),
            ("Asia/Tokyo", "2030-01-01T00:00:01Z", over.clone()),
            ("America/New_York", "2030-01-01T14:00:00Z", None),
            ("America/New_York", "2030-01-01T14:00:01Z", over),
        ] {
            assert_eq!(refusal(morning, zone, last), expected, "{zone} {last}");
        }
        for endless in [
            "0 9 * * *",
            "30 0 9 * * *",
            "0 0 29 2 *",
            "@yearly",
            "0 0 9 1 1 * *",
        ] {
            assert_eq!(refusal(endless, "UTC", "2400-03-01T00:00:00Z"), None, "{endless}");
        }
    }
}
