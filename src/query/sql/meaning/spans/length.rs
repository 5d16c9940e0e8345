//! The length of a span of time in nanoseconds, as a number that holds that of any span.
//!
//! Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray as _, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::query::sql::meaning::by_array::by_array;

pub(in crate::query::sql::meaning) const DAY: i128 = 86_400_000_000_000;
const DAYS_OF_A_MONTH: i128 = 30;
const DIGITS: u8 = 38;

/// The length of a span.
pub(super) fn length_of(span: Expr) -> Expr {
    let length = LengthOfSpan {
        signature: Signature::any(1, Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(length).call(vec![span])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LengthOfSpan {
    signature: Signature,
}

impl ScalarUDFImpl for LengthOfSpan {
    /// As plans show it.
    fn name(&self) -> &'static str {
        "length_of_span"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(DIGITS, 0))
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = given.arg_fields.iter().any(|field| field.is_nullable());
        let data_type = DataType::Decimal128(DIGITS, 0);
        Ok(Arc::new(Field::new(self.name(), data_type, is_nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [span] = arguments.args.as_slice() else {
            return internal_err!("{} takes one span", self.name());
        };
        by_array(span, |spans| Ok(Arc::new(lengths(spans)?)))
    }
}

/// The length of each span.
pub(in crate::query::sql::meaning) fn lengths(spans: &dyn Array) -> Result<Decimal128Array> {
    let lengths: Decimal128Array = match spans.data_type() {
        DataType::Null => Decimal128Array::new_null(spans.len()),
        DataType::Duration(unit) => {
            let one = i128::from(nanoseconds(*unit));
            let counts = cast(spans, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>();
            counts.unary::<_, Decimal128Type>(|count| i128::from(count) * one)
        }
        _ => {
            let spans = cast(spans, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
            spans.unary::<_, Decimal128Type>(length)
        }
    };
    Ok(lengths.with_precision_and_scale(DIGITS, 0)?)
}

fn length(span: IntervalMonthDayNano) -> i128 {
    let days = i128::from(span.months) * DAYS_OF_A_MONTH + i128::from(span.days);
    days * DAY + i128::from(span.nanoseconds)
}

/// Nanoseconds of one unit.
pub(in crate::query::sql::meaning) const fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationMicrosecondArray, IntervalMonthDayNanoArray, NullArray};

    use super::*;

    #[test]
    fn a_month_is_thirty_days_and_a_day_is_24_hours_also_of_the_longest_span() {
        let spans = IntervalMonthDayNanoArray::from(vec![
            Some(IntervalMonthDayNano::new(1, 0, 0)),
            Some(IntervalMonthDayNano::new(0, 1, -1)),
            None,
            Some(IntervalMonthDayNano::new(i32::MAX, i32::MAX, i64::MAX)),
        ]);
        let longest = (i128::from(i32::MAX) * 31) * DAY + i128::from(i64::MAX);
        let found = lengths(&spans).unwrap();
        let expected = [Some(30 * DAY), Some(DAY - 1), None, Some(longest)];
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        let differences = DurationMicrosecondArray::from(vec![Some(86_400_000_000), Some(i64::MIN), None]);
        let found = lengths(&differences).unwrap();
        let expected = [Some(DAY), Some(i128::from(i64::MIN) * 1_000), None];
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(found.data_type(), &DataType::Decimal128(DIGITS, 0));
        assert_eq!(lengths(&NullArray::new(2)).unwrap().null_count(), 2);
    }
}
