//! The questions that can be asked as functions: their names, their arguments, and how a call is read.
//!
//! A call is plain data; equal calls have equal answers on equal data.

use std::str::FromStr as _;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::model::duration::{SampleRate, Truncation};
use crate::model::time::{Instant, parse_instant};
use crate::model::zone::Zone;
use crate::query::aggregate::Resolution;
use crate::query::statistic::Statistic;

/// A function that returns rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionFunction {
    Series,
    SleepStages,
    SleepCycles,
    SleepAgg,
    LocationAt,
    LocationUpdates,
    LocationSeries,
    Agg,
}

impl QuestionFunction {
    pub const ALL: [Self; 8] = [
        Self::Series,
        Self::SleepStages,
        Self::SleepCycles,
        Self::SleepAgg,
        Self::LocationAt,
        Self::LocationUpdates,
        Self::LocationSeries,
        Self::Agg,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::SleepStages => "sleep_stages",
            Self::SleepCycles => "sleep_cycles",
            Self::SleepAgg => "sleep_agg",
            Self::LocationAt => "location_at",
            Self::LocationUpdates => "location_updates",
            Self::LocationSeries => "location_series",
            Self::Agg => "agg",
        }
    }

    /// The names of its arguments, in order.
    #[must_use]
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Series => &["type", "rate", "start", "end", "tz"],
            Self::SleepStages | Self::SleepCycles | Self::LocationUpdates => &["start", "end"],
            Self::SleepAgg => &["start", "end", "period", "tz"],
            Self::LocationAt => &["time"],
            Self::LocationSeries => &["start", "end", "seconds"],
            Self::Agg => &["type", "resolution", "function", "start", "end", "tz"],
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|function| function.name().eq_ignore_ascii_case(name))
    }
}

/// A function with its arguments. An omitted end of the range is that of the recorded data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Series {
        metric: String,
        rate: SampleRate,
        span: Span,
        zone: Zone,
    },
    SleepStages(Span),
    SleepCycles(Span),
    SleepAgg {
        span: Span,
        period: Truncation,
        zone: Zone,
    },
    LocationAt(Instant),
    LocationUpdates(Span),
    LocationSeries {
        span: Span,
        /// Microseconds from one row to the next.
        step: i64,
    },
    Agg {
        data_type: String,
        periods: Truncation,
        /// The functions of the values; if there are none, records are counted.
        totals: Vec<Statistic>,
        span: Span,
        zone: Zone,
    },
}

/// A range of time whose ends may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: Option<Instant>,
    pub end: Option<Instant>,
}

/// The default length of a window of a series: seconds, as at the endpoint.
const USUAL_RATE: &str = "60";
const USUAL_PERIOD: &str = "1d";
const USUAL_STEP: i64 = 900;
const USUAL_RESOLUTION: &str = "day";
const MICROS: i64 = 1_000_000;

impl Call {
    pub(super) fn read(function: QuestionFunction, values: &[ScalarValue]) -> Result<Self> {
        let most = function.arguments().len();
        if values.len() > most {
            return plan_err!("{} takes at most {most} arguments", function.name());
        }
        let given = CallArguments { function, values };
        Ok(match function {
            QuestionFunction::Series => Self::Series {
                metric: given.required_text("type")?,
                rate: given.parsed("rate", USUAL_RATE, SampleRate::parse)?,
                span: given.span()?,
                zone: given.parsed("tz", "UTC", Zone::named)?,
            },
            QuestionFunction::SleepStages => Self::SleepStages(given.span()?),
            QuestionFunction::SleepCycles => Self::SleepCycles(given.span()?),
            QuestionFunction::SleepAgg => Self::SleepAgg {
                span: given.span()?,
                period: given.parsed("period", USUAL_PERIOD, Truncation::parse)?,
                zone: given.parsed("tz", "UTC", Zone::named)?,
            },
            QuestionFunction::LocationAt => match given.instant("time")? {
                Some(time) => Self::LocationAt(time),
                None => return plan_err!("location_at needs its argument time"),
            },
            QuestionFunction::LocationUpdates => Self::LocationUpdates(given.span()?),
            QuestionFunction::LocationSeries => Self::LocationSeries {
                span: given.span()?,
                step: given.step("seconds")?,
            },
            QuestionFunction::Agg => Self::Agg {
                data_type: given.required_text("type")?,
                periods: given
                    .parsed("resolution", USUAL_RESOLUTION, Resolution::from_str)?
                    .periods(),
                totals: given.totals("function")?,
                span: given.span()?,
                zone: given.parsed("tz", "UTC", Zone::named)?,
            },
        })
    }
}

/// The arguments of one call.
struct CallArguments<'a> {
    function: QuestionFunction,
    values: &'a [ScalarValue],
}

impl CallArguments<'_> {
    /// The argument, unless it is null or omitted.
    fn value(&self, name: &str) -> Option<&ScalarValue> {
        let place = self
            .function
            .arguments()
            .iter()
            .position(|known| *known == name)?;
        self.values.get(place).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, name: &str, what: impl std::fmt::Display) -> Result<T> {
        plan_err!("{} of {}: {what}", name, self.function.name())
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.cast_to(&DataType::Utf8)? {
            ScalarValue::Utf8(text) => Ok(text),
            _ => self.wrong(name, "expected a text"),
        }
    }

    fn required_text(&self, name: &str) -> Result<String> {
        if let Some(text) = self.text(name)? {
            return Ok(text);
        }
        plan_err!("{} needs its argument {name}", self.function.name())
    }

    fn parsed<T, E: std::fmt::Display>(
        &self,
        name: &str,
        otherwise: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T> {
        let text = self.text(name)?;
        parse(text.as_deref().unwrap_or(otherwise)).or_else(|error| self.wrong(name, error))
    }

    fn instant(&self, name: &str) -> Result<Option<Instant>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        if let Some(Some(text)) = value.try_as_str() {
            return parse_instant(text)
                .map(Some)
                .or_else(|error| self.wrong(name, error));
        }
        let moments = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let is_time = matches!(
            value.data_type(),
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
        );
        match value.cast_to(&moments) {
            Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) if is_time => {
                let instant = Instant::from_micros(micros);
                if instant < Instant::MIN || instant > Instant::MAX {
                    return self.wrong(name, "outside the years 0001 to 9999");
                }
                Ok(Some(instant))
            }
            _ => self.wrong(name, "expected a moment"),
        }
    }

    fn span(&self) -> Result<Span> {
        let (start, end) = (self.instant("start")?, self.instant("end")?);
        if let (Some(first), Some(last)) = (start, end)
            && first > last
        {
            return self.wrong("start", format!("{first} is after the end, {last}"));
        }
        Ok(Span { start, end })
    }

    /// Comma-separated names, each at most once.
    fn totals(&self, name: &str) -> Result<Vec<Statistic>> {
        let text = self.text(name)?.unwrap_or_default();
        let mut totals: Vec<Statistic> = Vec::new();
        for named in text.split(',').map(str::trim).filter(|named| !named.is_empty()) {
            match named.parse() {
                Ok(total) if totals.contains(&total) => {
                    return self.wrong(name, format!("{named} is named twice"));
                }
                Ok(total) => totals.push(total),
                Err(error) => return self.wrong(name, error),
            }
        }
        Ok(totals)
    }

    fn step(&self, name: &str) -> Result<i64> {
        let seconds = match self.value(name) {
            None => Some(USUAL_STEP),
            Some(value) => match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(seconds)) if value.data_type().is_integer() => seconds,
                _ => None,
            },
        };
        let micros = seconds.filter(|seconds| *seconds > 0);
        match micros.and_then(|seconds| seconds.checked_mul(MICROS)) {
            Some(micros) => Ok(micros),
            None => self.wrong(name, "expected a whole number of at least 1"),
        }
    }
}
