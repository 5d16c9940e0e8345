//! When a reflection is due: a cron pattern in a zone, between a start and an end.

use std::borrow::Cow;
use std::fmt;

use chrono::DateTime;
use croner::parser::{CronParser, Seconds};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::model::time::{Instant, parse_instant};
use crate::model::zone::{UnknownZone, Zone};

/// The most characters of a pattern; a longer one could express nothing more.
const LONGEST_PATTERN: usize = 256;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "ScheduleAsSent")]
pub struct Schedule {
    /// Minute, hour, day of the month, month, day of the week; or `@daily` and the like.
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
        let unusable = |reason: &dyn fmt::Display| ScheduleError::Pattern(reason.to_string());
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(unusable(&"it holds characters that no pattern has"));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let pattern = parser.parse(&text).map_err(|error| unusable(&error))?;
        // The 30th of February can be written down, but never comes.
        pattern
            .find_next_occurrence(&DateTime::UNIX_EPOCH, true)
            .map_err(|_| unusable(&"it is never due"))?;
        Ok(Self(text))
    }
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
    CronPattern: "A cron pattern: five fields, six with seconds, or a nickname such as @daily.",
    ZoneName: "The IANA name of a time zone.",
    Moment: "A date and time.",
}
