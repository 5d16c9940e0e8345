//! `date_trunc` of moments of all years.
//!
//! The engine counts in nanoseconds where it needs a calendar, and these reach from 1677 to 2262 only: an
//! open end in the year 4001 would be refused. Here moments stay in microseconds. Knows arrays and calendars.

use std::sync::Arc;

use chrono::{
    DateTime, Datelike as _, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, Offset as _, TimeDelta,
    TimeZone as _, Timelike as _,
};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use crate::query::sql::stand_in::Change;

/// The calendar ends some years later, where clocks that are ahead would leave it.
const LAST_YEAR: i32 = 200_000;
/// How far a moment is moved that clocks skip, so that they show it. Clocks skip an hour.
const SKIPPED_TIME: TimeDelta = TimeDelta::hours(3);

/// The engine's function, with a calendar of its own for microseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DateTrunc;

impl Change for DateTrunc {
    const COERCES: bool = true;

    fn coerce(&self, _engine: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
        let moment = match given {
            [
                _,
                moment @ (DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_)),
            ] => moment.clone(),
            [_, DataType::Null | DataType::Date32 | DataType::Date64] => micros(),
            [_, text] if is_text(text) => micros(),
            _ => return plan_err!("'date_trunc' takes a part, such as 'day', and a time"),
        };
        Ok(vec![DataType::Utf8, moment])
    }

    fn return_type(&self, _engine: &ScalarUDF, given: &[DataType]) -> Result<DataType> {
        let [_, moment] = given else {
            return plan_err!("'date_trunc' takes a part, such as 'day', and a time");
        };
        Ok(moment.clone())
    }

    fn output_ordering(&self, engine: &ScalarUDF, inputs: &[ExprProperties]) -> Result<SortProperties> {
        engine.output_ordering(inputs)
    }

    fn invoke(&self, engine: &ScalarUDF, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), moments] = arguments.args.as_mut_slice() else {
            return engine.invoke_with_args(arguments);
        };
        let DataType::Timestamp(TimeUnit::Microsecond, zone) = moments.data_type() else {
            return engine.invoke_with_args(arguments);
        };
        // The engine truncates to short parts by arithmetic alone, but only columns.
        let column = moments.to_array(arguments.number_rows)?;
        let part = part.try_as_str().flatten().and_then(Part::named);
        let Some(part) = part else {
            *moments = ColumnarValue::Array(column);
            return engine.invoke_with_args(arguments);
        };
        Ok(ColumnarValue::Array(begun(part, &column, zone)?))
    }
}

/// Microseconds without a zone, as texts and dates are taken.
const fn micros() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => value.is_string(),
        data_type => data_type.is_string(),
    }
}

/// A part of time that needs a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_lowercase().as_str() {
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "month" => Self::Month,
            "quarter" => Self::Quarter,
            "year" => Self::Year,
            _ => return None,
        })
    }

    /// When the part begins in which clocks show `shown`.
    fn beginning(self, shown: NaiveDateTime) -> Option<NaiveDateTime> {
        let day = shown.date();
        let first = match self {
            Self::Hour => return day.and_hms_opt(shown.hour(), 0, 0),
            Self::Day => day,
            Self::Week => day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_monday())))?,
            Self::Month => day.with_day(1)?,
            Self::Quarter => day.with_day(1)?.with_month(day.month0() / 3 * 3 + 1)?,
            Self::Year => NaiveDate::from_ymd_opt(day.year(), 1, 1)?,
        };
        Some(first.and_time(NaiveTime::MIN))
    }
}

fn begun(part: Part, moments: &ArrayRef, zone: Option<Arc<str>>) -> Result<ArrayRef> {
    let clocks: Option<Tz> = match &zone {
        None => None,
        Some(name) => match name.parse() {
            Ok(clocks) => Some(clocks),
            Err(_) => return exec_err!("date_trunc: {name} is not a time zone"),
        },
    };
    let moments = moments.as_primitive::<TimestampMicrosecondType>();
    let begun: TimestampMicrosecondArray = moments.try_unary(|moment| {
        truncated(part, moment, clocks)
            .ok_or_else(|| exec_datafusion_err!("date_trunc: a time lies beyond the calendar"))
    })?;
    Ok(Arc::new(begun.with_timezone_opt(zone)))
}

fn truncated(part: Part, moment: i64, clocks: Option<Tz>) -> Option<i64> {
    let moment = DateTime::from_timestamp_micros(moment)?;
    if moment.year().abs() > LAST_YEAR {
        return None;
    }
    let Some(clocks) = clocks else {
        let begun = part.beginning(moment.naive_utc())?;
        return Some(begun.and_utc().timestamp_micros());
    };
    let here = moment.with_timezone(&clocks);
    let begun = part.beginning(here.naive_local())?;
    let begun = match clocks.from_local_datetime(&begun) {
        LocalResult::Single(begun) => begun,
        // Clocks that are put back show an hour twice; each begins before the moment, on the same side.
        LocalResult::Ambiguous(_, second)
            if part == Part::Hour && second.offset().fix() == here.offset().fix() =>
        {
            second
        }
        // A day has one beginning.
        LocalResult::Ambiguous(first, _) => first,
        LocalResult::None => {
            let shown = begun.checked_sub_signed(SKIPPED_TIME)?;
            let before = clocks.from_local_datetime(&shown).single()?;
            before.checked_add_signed(SKIPPED_TIME)?
        }
    };
    Some(begun.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::ScalarUDFImpl;
    use proptest::prelude::*;

    use super::*;
    use crate::query::sql::stand_in::StandIn;

    const PARTS: [&str; 10] = [
        "microsecond",
        "millisecond",
        "second",
        "Minute",
        "hour",
        "DAY",
        "week",
        "month",
        "quarter",
        "year",
    ];
    const ZONES: [Option<&str>; 7] = [
        None,
        Some("UTC"),
        Some("+05:30"),
        Some("Europe/Berlin"),
        Some("America/Sao_Paulo"),
        Some("Asia/Kathmandu"),
        Some("Pacific/Apia"),
    ];

    /// What `function` makes of one moment, as a column or as a value.
    fn asked(
        function: &dyn ScalarUDFImpl,
        part: &str,
        moment: i64,
        zone: Option<&str>,
        as_column: bool,
    ) -> Result<i64> {
        use datafusion::arrow::datatypes::Field;
        use datafusion::common::ScalarValue;
        let zone: Option<Arc<str>> = zone.map(Into::into);
        let data_type = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
        let value = ScalarValue::TimestampMicrosecond(Some(moment), zone);
        let moments = if as_column {
            ColumnarValue::Array(value.to_array()?)
        } else {
            ColumnarValue::Scalar(value)
        };
        let found = function.invoke_with_args(ScalarFunctionArgs {
            args: vec![ColumnarValue::Scalar(ScalarValue::from(part)), moments],
            arg_fields: Vec::new(),
            number_rows: 1,
            return_field: Arc::new(Field::new("", data_type.clone(), true)),
            config_options: Arc::default(),
        })?;
        assert_eq!(found.data_type(), data_type);
        Ok(found
            .to_array(1)?
            .as_primitive::<TimestampMicrosecondType>()
            .value(0))
    }

    fn both() -> (Arc<ScalarUDF>, StandIn<DateTrunc>) {
        let engines = datafusion::functions::datetime::date_trunc();
        let ours = StandIn::new(&engines, DateTrunc);
        (engines, ours)
    }

    fn at(text: &str) -> i64 {
        crate::model::time::parse_instant(text).unwrap().micros()
    }

    #[test]
    fn every_year_has_its_parts() {
        let (_, ours) = both();
        for (part, moment, zone, expected) in [
            ("day", "4001-01-01T05:00:00Z", Some("UTC"), "4001-01-01"),
            ("week", "4001-01-07T23:59:59Z", None, "4001-01-01"),
            (
                "quarter",
                "9999-12-31T23:59:59.999999Z",
                Some("UTC"),
                "9999-10-01",
            ),
            ("year", "0001-01-01T00:00:00Z", Some("UTC"), "0001-01-01"),
            ("month", "0001-03-31T12:00:00Z", None, "0001-03-01"),
            (
                "day",
                "4001-06-01T00:00:00Z",
                Some("Asia/Tokyo"),
                "4001-05-31T15:00:00Z",
            ),
            (
                "second",
                "4001-06-01T00:00:01.5Z",
                Some("Asia/Tokyo"),
                "4001-06-01T00:00:01Z",
            ),
        ] {
            for as_column in [true, false] {
                let found = asked(&ours, part, at(moment), zone, as_column).unwrap();
                assert_eq!(found, at(expected), "{part} of {moment}");
            }
        }
        // In Havana clocks were put back at one to midnight.
        for (part, moment, expected) in [
            ("day", "2024-11-03T04:30:00Z", "2024-11-03T04:00:00Z"),
            ("day", "2024-11-03T05:30:00Z", "2024-11-03T04:00:00Z"),
            ("day", "2024-11-03T12:00:00Z", "2024-11-03T04:00:00Z"),
            ("hour", "2024-11-03T04:30:00Z", "2024-11-03T04:00:00Z"),
            ("hour", "2024-11-03T05:30:00Z", "2024-11-03T05:00:00Z"),
        ] {
            let found = asked(&ours, part, at(moment), Some("America/Havana"), true).unwrap();
            assert_eq!(found, at(expected), "{part} of {moment}");
        }
        assert!(asked(&ours, "day", i64::MAX, Some("+14:00"), true).is_err());
        assert!(asked(&ours, "decade", at("2024-01-01"), None, true).is_err());
    }

    proptest! {
        /// Where the engine reaches, its answer is the same.
        #[test]
        fn it_is_the_engines_function(
            seconds in -9_000_000_000_i64..9_000_000_000,
            micros in 0_i64..1_000_000,
            part in 0..PARTS.len(),
            zone in 0..ZONES.len(),
        ) {
            let (engines, ours) = both();
            let moment = seconds * 1_000_000 + micros;
            let (part, zone) = (PARTS[part], ZONES[zone]);
            let expected = asked(engines.inner().as_ref(), part, moment, zone, true).ok();
            prop_assert_eq!(asked(&ours, part, moment, zone, true).ok(), expected);
            prop_assert_eq!(asked(&ours, part, moment, zone, false).ok(), expected);
        }
    }
}
