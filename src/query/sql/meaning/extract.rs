//! `extract(… FROM …)`, where the engine's own function is not exact.
//!
//! Seconds since 1970, and the seconds of a difference of times, are as exact as a double can hold them: the
//! engine loses the fractions of differences and of nanoseconds. The parts of a difference are its whole
//! days, and the hours and so on beside them: the engine counts the whole difference in each unit. Knows
//! functions and arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cast_utils::IntervalUnit;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF};

use crate::model::floats::EXACT_INTEGERS_BELOW;
use crate::query::sql::stand_in::{Change, StandIn};

use super::spans::length::{DAY, lengths, nanoseconds};

/// The engine's function.
pub(super) const EXTRACTING_FUNCTION: &str = "date_part";

const MINUTE: i128 = 60_000_000_000;

/// What the engine's function is asked for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Extract {
    /// The part `epoch`: all seconds.
    Epoch,
    /// A part of a difference.
    PartOfDifference {
        /// Nanoseconds that the part counts.
        unit: i128,
        /// Nanoseconds of what the part is counted in.
        within: i128,
    },
}

impl Extract {
    /// The exact call, if `call` asks the engine's function for the part `epoch`.
    pub(super) fn epoch(call: &ScalarFunction) -> Option<Expr> {
        let is_asked =
            call.func.name() == EXTRACTING_FUNCTION && part_of(call)?.eq_ignore_ascii_case("epoch");
        is_asked.then(|| Self::Epoch.instead_of(call))
    }

    /// The exact call, if `call` of the engine's function asks for a part of a difference, which is another
    /// one than the engine counts.
    pub(super) fn part_of_difference(call: &ScalarFunction) -> Result<Option<Expr>> {
        let Some(part) = part_of(call) else {
            return Ok(None);
        };
        let (unit, within) = match part.parse::<IntervalUnit>() {
            Ok(IntervalUnit::Week) => {
                return plan_err!(
                    "a difference of times has no weeks; count its days: extract(day FROM …) / 7"
                );
            }
            Ok(IntervalUnit::Day) => (DAY, i128::MAX),
            Ok(IntervalUnit::Hour) => (60 * MINUTE, DAY),
            Ok(IntervalUnit::Minute) => (MINUTE, 60 * MINUTE),
            Ok(IntervalUnit::Second) => (1_000_000_000, MINUTE),
            Ok(IntervalUnit::Millisecond) => (1_000_000, MINUTE),
            Ok(IntervalUnit::Microsecond) => (1_000, MINUTE),
            Ok(IntervalUnit::Nanosecond) => (1, MINUTE),
            _ => return Ok(None),
        };
        Ok(Some(Self::PartOfDifference { unit, within }.instead_of(call)))
    }

    fn instead_of(self, call: &ScalarFunction) -> Expr {
        let exact = StandIn::new(&call.func, self);
        Expr::ScalarFunction(ScalarFunction {
            func: Arc::new(ScalarUDF::new_from_impl(exact)),
            args: call.args.clone(),
        })
    }
}

/// The part that a call of the engine's own function is asked for, if it is written down.
fn part_of(call: &ScalarFunction) -> Option<&str> {
    let part = call.args.first()?.as_literal()?.try_as_str()??;
    let is_exact = StandIn::<Extract>::is(&call.func);
    (!is_exact).then(|| part.trim_matches('\''))
}

impl Change for Extract {
    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(times) = arguments.args.get(1) else {
            return engine.invoke_with_args(arguments);
        };
        match (self, times.data_type()) {
            (Self::Epoch, DataType::Duration(unit) | DataType::Timestamp(unit, _)) => {
                let times = times.to_array(arguments.number_rows)?;
                Ok(ColumnarValue::Array(Arc::new(seconds(&times, unit)?)))
            }
            (Self::PartOfDifference { unit, within }, DataType::Duration(_)) => {
                let lengths = lengths(&times.to_array(arguments.number_rows)?)?;
                let part = |length: i128| length % within / unit;
                Ok(ColumnarValue::Array(match arguments.return_field.data_type() {
                    DataType::Int64 => {
                        Arc::new(lengths.unary_opt::<_, Int64Type>(|length| part(length).try_into().ok()))
                    }
                    _ => Arc::new(lengths.unary_opt::<_, Int32Type>(|length| part(length).try_into().ok())),
                }))
            }
            _ => engine.invoke_with_args(arguments),
        }
    }
}

/// The seconds of times that are counted in `unit`.
fn seconds(times: &dyn Array, unit: TimeUnit) -> Result<Float64Array> {
    let per_second = nanoseconds(TimeUnit::Second) / nanoseconds(unit);
    let counts = cast(times, &DataType::Int64)?;
    let counts: &Int64Array = counts.as_primitive();
    Ok(counts.unary::<_, Float64Type>(|count| {
        if count.unsigned_abs() < EXACT_INTEGERS_BELOW {
            count as f64 / per_second as f64
        } else {
            let (whole, rest) = (count.div_euclid(per_second), count.rem_euclid(per_second));
            whole as f64 + rest as f64 / per_second as f64
        }
    }))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationMicrosecondArray, TimestampNanosecondArray};

    use super::*;

    #[test]
    fn no_fraction_is_lost_that_a_double_can_hold() {
        let spans = DurationMicrosecondArray::from(vec![Some(172_801_750_000), None, Some(-1_500_000)]);
        let found = seconds(&spans, TimeUnit::Microsecond).unwrap();
        assert_eq!(
            found.iter().collect::<Vec<_>>(),
            [Some(172_801.75), None, Some(-1.5)]
        );
        let moments =
            TimestampNanosecondArray::from(vec![1_700_000_201_750_000_000, -1_700_000_201_750_000_000]);
        let found = seconds(&moments, TimeUnit::Nanosecond).unwrap();
        assert_eq!(found.values().as_ref(), [1_700_000_201.75, -1_700_000_201.75]);
    }
}
