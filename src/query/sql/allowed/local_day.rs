//! `local_day(time, tz)`: the local date of a moment in a time zone.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Date32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::model::time::Instant;
use crate::model::zone::Zone;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct LocalDay {
    signature: Signature,
}

impl LocalDay {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

fn moments() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl ScalarUDFImpl for LocalDay {
    fn name(&self) -> &'static str {
        "local_day"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [_] => Ok(vec![moments()]),
            [_, _] => Ok(vec![moments(), DataType::Utf8]),
            _ => plan_err!("'local_day' takes a moment and a time zone"),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((times, zones)) = arguments.args.split_first() else {
            return exec_err!("'local_day' takes a moment and a time zone");
        };
        let rows = arguments.number_rows;
        let times = cast(&times.to_array(rows)?, &moments())?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let days: Date32Array = match zones.first() {
            None => times.unary_opt(|micros| Some(day(Zone::UTC, micros))),
            Some(ColumnarValue::Scalar(ScalarValue::Utf8(None))) => Date32Array::new_null(rows),
            Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(name)))) => {
                let zone = named(name)?;
                times.unary_opt(|micros| Some(day(zone, micros)))
            }
            Some(zones) => {
                let zones = cast(&zones.to_array(rows)?, &DataType::Utf8)?;
                let zones = zones.as_string::<i32>();
                let mut days = Vec::with_capacity(rows);
                let mut last: Option<(&str, Zone)> = None;
                for row in 0..rows {
                    if times.is_null(row) || zones.is_null(row) {
                        days.push(None);
                        continue;
                    }
                    let name = zones.value(row);
                    let zone = match last {
                        Some((known, zone)) if known == name => zone,
                        _ => named(name)?,
                    };
                    last = Some((name, zone));
                    days.push(Some(day(zone, times.value(row))));
                }
                days.into()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(days)))
    }
}

fn named(name: &str) -> Result<Zone> {
    Zone::named(name).or_else(|error| exec_err!("local_day: {error}"))
}

fn day(zone: Zone, micros: i64) -> i32 {
    zone.day_of(Instant::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    #[test]
    fn a_day_begins_when_the_clocks_of_the_zone_say_so() {
        let day =
            |time: &str, zone: &str| day(Zone::parse(zone).unwrap(), parse_instant(time).unwrap().micros());
        assert_eq!(day("1970-01-01T23:30:00Z", "UTC"), 0);
        assert_eq!(day("1970-01-01T23:30:00Z", "Europe/Berlin"), 1);
        assert_eq!(day("1970-01-01T00:30:00Z", "America/New_York"), -1);
        // The hour that happens twice belongs to one day.
        assert_eq!(
            day("2024-10-27T00:30:00Z", "Europe/Berlin"),
            day("2024-10-27T01:30:00Z", "Europe/Berlin")
        );
    }
}
