//! When something is due: a cron pattern in a zone, between a start and an end.

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

/// A longer pattern says nothing that a shorter one could not.
const LONGEST_PATTERN: usize = 256;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "ScheduleAsSent")]
pub struct Schedule {
    /// Minute, hour, day of the month, month, day of the week; or `@daily` and the like.
    pub cron: CronPattern,
    /// No earlier than this.
    pub start_at: Option<Moment>,
    /// Earlier than this.
    pub end_at: Option<Moment>,
    /// Whether it rests.
    #[schema(required = false)]
    pub paused: bool,
    /// The IANA zone in which the pattern is meant.
    pub time_zone: ZoneName,
}

#[derive(Deserialize)]
struct ScheduleAsSent {
    cron: CronPattern,
    #[serde(default)]
    start_at: Option<Moment>,
    #[serde(default)]
    end_at: Option<Moment>,
    #[serde(default)]
    paused: bool,
    time_zone: ZoneName,
}

/// Why something is never due.
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

/// A cron pattern that can be run.
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
        // The 30th of February can be written down, and never comes.
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

/// A zone that there is.
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

/// A point in time, in any of the forms that are read; kept and shown in one.
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
