//! `extract(… FROM …)` of a difference of times: its whole days, and the hours and so on beside them.
//!
//! The engine counts the whole difference in each unit. Knows functions and arrays only.

use std::sync::Arc;

use datafusion::arrow::compute::kernels::cast_utils::IntervalUnit;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int32Type, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::length::{DAY, lengths};

/// The engine's function.
pub(super) const EXTRACTING_FUNCTION: &str = "date_part";

const MINUTE: i128 = 60_000_000_000;

/// What the engine's function is asked: a part of a difference.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PartOfDifference {
    inner: Arc<ScalarUDF>,
    /// Nanoseconds that the part counts.
    unit: i128,
    /// Nanoseconds of what the part is counted in.
    within: i128,
}

impl PartOfDifference {
    /// The call of this function, if `call` of the engine's asks for such a part of a difference.
    pub(super) fn instead_of(call: &ScalarFunction) -> Result<Option<Expr>> {
        let is_ours = call.func.inner().as_ref().is::<Self>();
        let part = call.args.first().and_then(|part| part.as_literal()?.try_as_str());
        let Some(part) = part.flatten().filter(|_| !is_ours) else {
            return Ok(None);
        };
        let (unit, within) = match part.trim_matches('\'').parse::<IntervalUnit>() {
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
        let inner = Arc::clone(&call.func);
        Ok(Some(Expr::ScalarFunction(ScalarFunction {
            func: Arc::new(ScalarUDF::new_from_impl(Self { inner, unit, within })),
            args: call.args.clone(),
        })))
    }

    const fn part_of(&self, length: i128) -> i128 {
        length % self.within / self.unit
    }
}

impl ScalarUDFImpl for PartOfDifference {
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
        let differences = match arguments.args.get(1) {
            Some(differences) if matches!(differences.data_type(), DataType::Duration(_)) => differences,
            _ => return self.inner.invoke_with_args(arguments),
        };
        let lengths = lengths(&differences.to_array(arguments.number_rows)?)?;
        Ok(ColumnarValue::Array(match arguments.return_field.data_type() {
            DataType::Int64 => {
                Arc::new(lengths.unary_opt::<_, Int64Type>(|length| self.part_of(length).try_into().ok()))
            }
            _ => Arc::new(lengths.unary_opt::<_, Int32Type>(|length| self.part_of(length).try_into().ok())),
        }))
    }
}
