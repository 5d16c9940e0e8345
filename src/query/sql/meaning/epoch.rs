//! `extract(epoch FROM …)`: seconds, as exactly as a double can hold them.
//!
//! The engine's own function loses the fractions of durations and of nanoseconds. Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Below this, a double holds every whole number.
const WHOLE_NUMBERS_END: u64 = 1 << 53;

/// The engine's function, of which only the part `epoch` is asked.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Epoch {
    inner: Arc<ScalarUDF>,
}

impl Epoch {
    /// The call of this function, if that is what `call` asks of the engine's.
    pub(super) fn instead_of(call: &ScalarFunction) -> Option<Expr> {
        let part = call.args.first()?.as_literal()?.try_as_str()??;
        let is_asked =
            call.func.name() == "date_part" && part.trim_matches('\'').eq_ignore_ascii_case("epoch");
        let is_ours = call.func.inner().as_ref().is::<Self>();
        (is_asked && !is_ours).then(|| {
            let inner = Arc::clone(&call.func);
            Expr::ScalarFunction(ScalarFunction {
                func: Arc::new(ScalarUDF::new_from_impl(Self { inner })),
                args: call.args.clone(),
            })
        })
    }
}

impl ScalarUDFImpl for Epoch {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = match arguments.args.get(1) {
            Some(times) if unit(&times.data_type()).is_some() => times,
            _ => return self.inner.invoke_with_args(arguments),
        };
        Ok(ColumnarValue::Array(Arc::new(seconds(
            &times.to_array(arguments.number_rows)?,
        )?)))
    }
}

/// The unit of a type that counts units of time.
const fn unit(held: &DataType) -> Option<TimeUnit> {
    match held {
        DataType::Duration(unit) | DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    }
}

fn seconds(times: &dyn Array) -> Result<Float64Array> {
    let per_second: i64 = match unit(times.data_type()) {
        Some(TimeUnit::Millisecond) => 1_000,
        Some(TimeUnit::Microsecond) => 1_000_000,
        Some(TimeUnit::Nanosecond) => 1_000_000_000,
        _ => 1,
    };
    let counts = cast(times, &DataType::Int64)?;
    let counts: &Int64Array = counts.as_primitive();
    Ok(counts.unary::<_, Float64Type>(|count| {
        if count.unsigned_abs() < WHOLE_NUMBERS_END {
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
        let found = seconds(&spans).unwrap();
        assert_eq!(
            found.iter().collect::<Vec<_>>(),
            [Some(172_801.75), None, Some(-1.5)]
        );
        let moments =
            TimestampNanosecondArray::from(vec![1_700_000_201_750_000_000, -1_700_000_201_750_000_000]);
        let found = seconds(&moments).unwrap();
        assert_eq!(found.values().as_ref(), [1_700_000_201.75, -1_700_000_201.75]);
    }
}
