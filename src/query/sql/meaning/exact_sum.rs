//! `sum` of whole numbers and durations that fails where the sum does not fit its type.
//!
//! The engine's own starts again at the other end. This one has the engine sum numbers that are twice as
//! wide, which no number of rows exceeds, and only brings the result back into its type: so what fits is
//! found, in whatever order rows arrive. Fractions are summed as ever. Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, FieldRef, Int64Type, UInt64Type,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

/// The type in which whole numbers are summed.
const SUM_TYPE: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// A `sum`, which this one is called instead of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct ExactSum {
    inner: Arc<AggregateUDF>,
}

impl ExactSum {
    /// The function itself or, if it is `sum`, the one that fails.
    pub(in crate::query::sql) fn around(function: &Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        if function.name() != "sum" {
            return Arc::clone(function);
        }
        let inner = Arc::clone(function);
        Arc::new(AggregateUDF::new_from_impl(Self { inner }))
    }
}

/// Whether sums of this type are counted in whole numbers of 64 bits.
const fn is_whole(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int64 | DataType::UInt64 | DataType::Duration(_)
    )
}

fn widened(values: &ArrayRef) -> Result<ArrayRef> {
    let wide: Decimal128Array = match values.as_primitive_opt::<UInt64Type>() {
        Some(unsigned) => unsigned.unary(i128::from),
        None => cast(values, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .unary(i128::from),
    };
    Ok(Arc::new(wide.with_data_type(SUM_TYPE)))
}

fn narrowed(sums: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let overflowed = |sum: i128| {
        exec_datafusion_err!(
            "an integer overflowed: the sum {sum} does not fit into {data_type}; sum it as DOUBLE or DECIMAL"
        )
    };
    let sums = sums.as_primitive::<Decimal128Type>();
    if *data_type == DataType::UInt64 {
        let fitting = sums.try_unary::<_, UInt64Type, DataFusionError>(|sum| {
            u64::try_from(sum).map_err(|_| overflowed(sum))
        })?;
        return Ok(Arc::new(fitting));
    }
    let fitting = sums
        .try_unary::<_, Int64Type, DataFusionError>(|sum| i64::try_from(sum).map_err(|_| overflowed(sum)))?;
    Ok(cast(&fitting, data_type)?)
}

fn wide_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(SUM_TYPE))
}

fn wide<'a>(arguments: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: wide_field(&arguments.return_field),
        ..*arguments
    }
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(given)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_type().clone();
        if !is_whole(&data_type) {
            return self.inner.accumulator(arguments);
        }
        let sum = self.inner.accumulator(wide(&arguments))?;
        Ok(Box::new(WideSum { sum, data_type }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_whole(arguments.return_type()) {
            return self.inner.state_fields(arguments);
        }
        self.inner.state_fields(StateFieldsArgs {
            return_field: wide_field(&arguments.return_field),
            ..arguments
        })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = arguments.return_type().clone();
        if !is_whole(&data_type) {
            return self.inner.create_groups_accumulator(arguments);
        }
        let sums = self.inner.create_groups_accumulator(wide(&arguments))?;
        Ok(Box::new(WideSums { sums, data_type }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_type().clone();
        // The engine knows no distinct sums over moving windows but of Int64; queries may ask for none.
        if !is_whole(&data_type) || arguments.is_distinct {
            return self.inner.create_sliding_accumulator(arguments);
        }
        let sum = self.inner.create_sliding_accumulator(wide(&arguments))?;
        Ok(Box::new(WideSum { sum, data_type }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }

    fn simplify_expr_op_literal(
        &self,
        call: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        let inner = self.inner.inner();
        inner.simplify_expr_op_literal(call, argument, operator, literal, is_left)
    }

    /// What was summed before may have begun again at the other end.
    fn value_from_stats(&self, known: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        if is_whole(known.return_type) {
            return None;
        }
        self.inner.inner().value_from_stats(known)
    }
}

/// A sum of which only the result has the type `data_type`.
#[derive(Debug)]
struct WideSum {
    sum: Box<dyn Accumulator>,
    data_type: DataType,
}

impl Accumulator for WideSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let wide = values.iter().map(widened).collect::<Result<Vec<_>>>()?;
        self.sum.update_batch(&wide)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let wide = values.iter().map(widened).collect::<Result<Vec<_>>>()?;
        self.sum.retract_batch(&wide)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sum.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrowed(&sum, &self.data_type)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }
}

/// The sums of many groups, in the wider type.
struct WideSums {
    sums: Box<dyn GroupsAccumulator>,
    data_type: DataType,
}

impl GroupsAccumulator for WideSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let wide = values.iter().map(widened).collect::<Result<Vec<_>>>()?;
        self.sums.update_batch(&wide, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.sums.evaluate(emit)?, &self.data_type)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.sums.merge_batch(states, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let wide = values.iter().map(widened).collect::<Result<Vec<_>>>()?;
        self.sums.convert_to_state(&wide, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationMicrosecondArray, Int64Array, UInt64Array};

    use super::*;

    #[test]
    fn what_fits_is_brought_back_and_the_rest_is_an_error() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN)]));
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 0]));
        let spans: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![Some(-1), None]));
        for values in [&numbers, &large, &spans] {
            let wide = widened(values).unwrap();
            assert_eq!(wide.data_type(), &SUM_TYPE);
            assert_eq!(&narrowed(&wide, values.data_type()).unwrap(), values);
        }
        assert!(narrowed(&widened(&large).unwrap(), &DataType::Int64).is_err());
        assert!(narrowed(&widened(&numbers).unwrap(), &DataType::UInt64).is_err());
    }
}
