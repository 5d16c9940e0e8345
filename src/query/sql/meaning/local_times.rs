//! Times without a zone as the moments at which clocks in a zone show them.
//!
//! Clocks that are put back show a time twice, and clocks that are put forward leave times out; the engine
//! refuses both. Here they are what they are in PostgreSQL: of two moments the later one, and of none that at
//! which clocks would have shown the time if they had not been put forward yet. In both cases it is the
//! smaller offset that counts. Knows arrays only.

use std::sync::Arc;

use chrono::{DateTime, LocalResult, Offset as _, TimeDelta, TimeZone as _};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{ArrayRef, AsArray as _, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use datafusion::common::{Result, exec_datafusion_err};

/// Longer than any time that clocks left out: a day, where a country changed sides of the date line, and what
/// they may differ from UTC.
const LONGEST_SKIP: TimeDelta = TimeDelta::days(2);

/// Whether values of a type are times without a zone.
pub(super) const fn are_local(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64
    )
}

/// The moments of `times` in a zone: in nanoseconds if these are, and in microseconds otherwise.
pub(super) fn moments(times: &ArrayRef, zone: &str) -> Result<ArrayRef> {
    if matches!(times.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _)) {
        return moments_of::<TimestampNanosecondType>(times, zone, 1_000_000_000);
    }
    let times = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    moments_of::<TimestampMicrosecondType>(&times, zone, 1_000_000)
}

fn moments_of<Type: ArrowTimestampType>(times: &ArrayRef, name: &str, in_second: i64) -> Result<ArrayRef> {
    let zone: Tz = name.parse()?;
    let found: PrimitiveArray<Type> = times.as_primitive::<Type>().try_unary(|time| {
        moment(time, in_second, zone).ok_or_else(|| exec_datafusion_err!("a time lies outside of all years"))
    })?;
    Ok(Arc::new(found.with_timezone(name)))
}

fn moment(time: i64, in_second: i64, zone: Tz) -> Option<i64> {
    let shown = DateTime::from_timestamp(time.div_euclid(in_second), 0)?.naive_utc();
    let ahead = match zone.offset_from_local_datetime(&shown) {
        LocalResult::Single(offset) => offset.fix().local_minus_utc(),
        LocalResult::Ambiguous(one, other) => {
            let (one, other) = (one.fix().local_minus_utc(), other.fix().local_minus_utc());
            one.min(other)
        }
        LocalResult::None => {
            let before = shown.checked_sub_signed(LONGEST_SKIP)?;
            zone.offset_from_utc_datetime(&before).fix().local_minus_utc()
        }
    };
    time.checked_sub(i64::from(ahead).checked_mul(in_second)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    #[test]
    fn a_time_that_is_shown_twice_or_never_has_one_moment() {
        for (zone, shown, expected) in [
            ("Europe/Berlin", "2024-01-01T12:00:00Z", "2024-01-01T11:00:00Z"),
            (
                "Europe/Berlin",
                "2024-07-01T12:00:00.25Z",
                "2024-07-01T10:00:00.25Z",
            ),
            ("Europe/Berlin", "2024-10-27T02:30:00Z", "2024-10-27T01:30:00Z"),
            ("Europe/Berlin", "2024-03-31T02:30:00Z", "2024-03-31T01:30:00Z"),
            ("Europe/Berlin", "2024-03-31T01:59:59Z", "2024-03-31T00:59:59Z"),
            ("Europe/Berlin", "2024-03-31T03:00:00Z", "2024-03-31T01:00:00Z"),
            ("America/New_York", "2024-11-03T01:30:00Z", "2024-11-03T06:30:00Z"),
            ("America/New_York", "2024-03-10T02:30:00Z", "2024-03-10T07:30:00Z"),
            ("Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T22:00:00Z"),
            ("+05:30", "2024-05-01T00:00:00Z", "2024-04-30T18:30:00Z"),
        ] {
            let micros = |text: &str| parse_instant(text).unwrap().micros();
            let found = moment(micros(shown), 1_000_000, zone.parse().unwrap());
            assert_eq!(found, Some(micros(expected)), "{shown} in {zone}");
        }
    }
}
