//! What the times of a record mean by period: `period_start(start_time)` and `seen_part(value, start_time,
//! end_time)`.
//!
//! The bins are computed before; a row costs a comparison as long as rows come in order.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::registry::timestamp;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;

/// The start of the bin that a moment lies in.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PeriodStart {
    grid: Grid,
    zone: Zone,
    /// A record that begins before it may be seen counts where it is first seen. None: records count where
    /// they begin.
    seen: Option<Windows>,
    signature: Signature,
}

impl PeriodStart {
    pub(super) fn new(grid: Grid, zone: Zone, seen: Option<Windows>) -> Self {
        Self {
            grid,
            zone,
            seen,
            signature: Signature::exact(vec![timestamp()], Volatility::Immutable),
        }
    }

    fn first_seen(&self, start: Instant) -> Instant {
        let Some(windows) = &self.seen else { return start };
        let reaching = windows.as_slice().partition_point(|window| window.end() <= start);
        windows
            .as_slice()
            .get(reaching)
            .map_or(start, |window| start.max(window.start()))
    }
}

impl ScalarUDFImpl for PeriodStart {
    fn name(&self) -> &'static str {
        "period_start"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(
            TimeUnit::Microsecond,
            Some(self.zone.written().into()),
        ))
    }

    /// A later moment never lies in an earlier bin.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs
            .first()
            .map_or(SortProperties::Unordered, |input| input.sort_properties))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("period_start takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let Some(starts) = array.as_primitive_opt::<TimestampMicrosecondType>() else {
            return internal_err!("period_start takes microseconds");
        };
        let mut cursor = self.grid.cursor();
        let mut labels = Vec::with_capacity(starts.len());
        for start in starts.values() {
            let Some(bin) = cursor.find(self.first_seen(Instant::from_micros(*start))) else {
                return internal_err!("a record begins outside of the periods");
            };
            labels.push(bin.start.micros());
        }
        let labels = TimestampMicrosecondArray::new(labels.into(), starts.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(
            labels.with_timezone(self.zone.written()),
        )))
    }
}

/// What of an amount that is spread over its time may be seen.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenPart {
    windows: Windows,
    signature: Signature,
}

impl SeenPart {
    pub(super) fn new(windows: Windows) -> Self {
        Self {
            windows,
            signature: Signature::exact(
                vec![DataType::Float64, timestamp(), timestamp()],
                Volatility::Immutable,
            ),
        }
    }

    fn part(&self, value: f64, start: i64, end: i64) -> f64 {
        if start >= end {
            return value;
        }
        let seen =
            |window: &TimeRange| (window.end().micros().min(end) - window.start().micros().max(start)).max(0);
        let covered: i64 = self.windows.as_slice().iter().map(seen).sum();
        value * covered as f64 / (end - start) as f64
    }
}

impl ScalarUDFImpl for SeenPart {
    fn name(&self) -> &'static str {
        "seen_part"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [values, starts, ends] = arrays.as_slice() else {
            return internal_err!("seen_part takes three arguments");
        };
        let (Some(values), Some(starts), Some(ends)) = (
            values.as_primitive_opt::<Float64Type>(),
            starts.as_primitive_opt::<TimestampMicrosecondType>(),
            ends.as_primitive_opt::<TimestampMicrosecondType>(),
        ) else {
            return internal_err!("seen_part takes a number and microseconds");
        };
        let times = starts.values().iter().zip(ends.values());
        let parts: Float64Array = values
            .iter()
            .zip(times)
            .map(|(value, (start, end))| Some(self.part(value?, *start, *end)))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(parts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::duration::Truncation;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::between(Instant::from_micros(start), Instant::from_micros(end))
    }

    #[test]
    fn rule_9_2c_a_record_counts_from_when_it_is_first_seen() {
        let windows = Windows::new([range(100, 200), range(300, 400)]);
        let grid = Truncation::DAYS.grid(&Zone::UTC, range(0, 400));
        let period = PeriodStart::new(grid, Zone::UTC, Some(windows));
        let seen = [50, 150, 250, 350].map(|start| period.first_seen(Instant::from_micros(start)).micros());
        assert_eq!(seen, [100, 150, 300, 350]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "halves and quarters are exact")]
    fn rule_9_2c_of_an_amount_that_is_seen_which_falls_into_the_windows() {
        let part = SeenPart::new(Windows::new([range(100, 200), range(300, 400)]));
        assert_eq!(part.part(8.0, 0, 400), 4.0);
        assert_eq!(part.part(8.0, 150, 350), 4.0);
        assert_eq!(part.part(8.0, 120, 180), 8.0);
        assert_eq!(part.part(8.0, 150, 150), 8.0);
    }
}
