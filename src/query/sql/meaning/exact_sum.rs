//! `sum` of whole numbers, decimals and durations that fails where the sum does not fit its type, and `avg`
//! of durations, which always fits.
//!
//! The engine's own start again at the other end. These have the engine sum numbers that are twice as wide,
//! which no number of rows exceeds, and only bring the result back into its type: so what fits is found, in
//! whatever order rows arrive. Fractions are summed as ever, and decimals of more than 38 digits, for which
//! there is nothing wider. Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, FieldRef, Int64Type,
    UInt64Type,
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
const WHOLE_SUM: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

const SUM: &str = "sum";
const MEAN: &str = "avg";

/// A `sum` or `avg`, which this one is called instead of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct ExactSum {
    inner: Arc<AggregateUDF>,
}

impl ExactSum {
    /// The function itself or, if it is one of these, the one to call instead.
    pub(in crate::query::sql) fn around(function: &Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        let inner = Arc::clone(function);
        if ![SUM, MEAN].contains(&function.name()) {
            return inner;
        }
        Arc::new(AggregateUDF::new_from_impl(Self { inner }))
    }

    /// The type to sum in, where the result has this type; `None` where the engine does as it does.
    fn sums(&self, result: &DataType, is_distinct: bool) -> Option<DataType> {
        let is_mean = self.inner.name() == MEAN;
        match result {
            DataType::Duration(_) if !(is_mean && is_distinct) => Some(WHOLE_SUM),
            _ if is_mean => None,
            DataType::Int64 | DataType::UInt64 => Some(WHOLE_SUM),
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale) => Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale)),
            _ => None,
        }
    }
}

fn widened(values: &ArrayRef, sums: &DataType) -> Result<ArrayRef> {
    if *sums != WHOLE_SUM {
        return Ok(cast(values, sums)?);
    }
    let wide: Decimal128Array = match values.as_primitive_opt::<UInt64Type>() {
        Some(unsigned) => unsigned.unary(i128::from),
        None => cast(values, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .unary(i128::from),
    };
    Ok(Arc::new(wide.with_data_type(WHOLE_SUM)))
}

fn all_widened(values: &[ArrayRef], sums: &DataType) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| widened(values, sums)).collect()
}

fn narrowed(sums: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let overflowed = |sum: i128| {
        exec_datafusion_err!(
            "an integer overflowed: the sum {sum} does not fit into {data_type}; sum it as DOUBLE or DECIMAL"
        )
    };
    if data_type.is_decimal() {
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        return cast_with_options(sums, data_type, &options).map_err(|_| {
            exec_datafusion_err!(
                "a decimal overflowed: the sum does not fit into {data_type}; sum it as DOUBLE"
            )
        });
    }
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

fn wide_field(field: &FieldRef, sums: &DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(sums.clone()))
}

fn wide_fields(fields: &[FieldRef], sums: &DataType) -> Vec<FieldRef> {
    fields.iter().map(|field| wide_field(field, sums)).collect()
}

/// `fields`: those of the wider values.
fn wide<'a>(arguments: &AccumulatorArgs<'a>, fields: &'a [FieldRef], sums: &DataType) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: wide_field(&arguments.return_field, sums),
        expr_fields: fields,
        ..*arguments
    }
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(given)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_type().clone();
        let Some(sums) = self.sums(&data_type, arguments.is_distinct) else {
            return self.inner.accumulator(arguments);
        };
        let fields = wide_fields(arguments.expr_fields, &sums);
        let sum = self.inner.accumulator(wide(&arguments, &fields, &sums))?;
        Ok(Box::new(WideSum { sum, sums, data_type }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let Some(sums) = self.sums(arguments.return_type(), arguments.is_distinct) else {
            return self.inner.state_fields(arguments);
        };
        self.inner.state_fields(StateFieldsArgs {
            return_field: wide_field(&arguments.return_field, &sums),
            input_fields: &wide_fields(arguments.input_fields, &sums),
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
        let Some(sums) = self.sums(&data_type, arguments.is_distinct) else {
            return self.inner.create_groups_accumulator(arguments);
        };
        let fields = wide_fields(arguments.expr_fields, &sums);
        let inner = self
            .inner
            .create_groups_accumulator(wide(&arguments, &fields, &sums))?;
        Ok(Box::new(WideSums {
            inner,
            sums,
            data_type,
        }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_type().clone();
        let sums = self.sums(&data_type, arguments.is_distinct);
        // The engine knows no distinct sums over moving windows but of Int64; queries may ask for none.
        let Some(sums) = sums.filter(|_| !arguments.is_distinct) else {
            return self.inner.create_sliding_accumulator(arguments);
        };
        let fields = wide_fields(arguments.expr_fields, &sums);
        let sum = self
            .inner
            .create_sliding_accumulator(wide(&arguments, &fields, &sums))?;
        Ok(Box::new(WideSum { sum, sums, data_type }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
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
        if self.sums(known.return_type, known.is_distinct).is_some() {
            return None;
        }
        self.inner.inner().value_from_stats(known)
    }
}

/// A sum of which only the result has the type `data_type`.
#[derive(Debug)]
struct WideSum {
    sum: Box<dyn Accumulator>,
    /// The type to sum in.
    sums: DataType,
    data_type: DataType,
}

impl Accumulator for WideSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let wide = all_widened(values, &self.sums)?;
        self.sum.update_batch(&wide)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let wide = all_widened(values, &self.sums)?;
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
    inner: Box<dyn GroupsAccumulator>,
    /// The type to sum in.
    sums: DataType,
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
        let wide = all_widened(values, &self.sums)?;
        self.inner.update_batch(&wide, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.inner.evaluate(emit)?, &self.data_type)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let wide = all_widened(values, &self.sums)?;
        self.inner.convert_to_state(&wide, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DurationMicrosecondArray, Int64Array, UInt64Array};
    use datafusion::functions_aggregate::average::avg_udaf;
    use datafusion::functions_aggregate::sum::sum_udaf;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn what_fits_is_brought_back_and_the_rest_is_an_error() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN)]));
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 0]));
        let spans: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![Some(-1), None]));
        let wide = |values: &ArrayRef| widened(values, &WHOLE_SUM).unwrap();
        for values in [&numbers, &large, &spans] {
            let wide = wide(values);
            assert_eq!(wide.data_type(), &WHOLE_SUM);
            assert_eq!(&narrowed(&wide, values.data_type()).unwrap(), values);
        }
        assert!(narrowed(&wide(&large), &DataType::Int64).is_err());
        assert!(narrowed(&wide(&numbers), &DataType::UInt64).is_err());
    }

    /// The numbers in the column `found` of an answer.
    async fn found(query: &str) -> Result<Vec<String>> {
        let context = SessionContext::new();
        for function in [sum_udaf(), avg_udaf()] {
            context.register_udaf(ExactSum::around(&function).as_ref().clone());
        }
        let batches = context.sql(query).await?.collect().await?;
        let mut numbers = Vec::new();
        for batch in batches {
            for row in 0..batch.num_rows() {
                numbers.push(ScalarValue::try_from_array(batch.column(0), row)?.to_string());
            }
        }
        Ok(numbers)
    }

    const WAYS: [&str; 3] = [
        "SELECT CAST(it(x) AS kind) AS found FROM numbers",
        "SELECT CAST(it(x) AS kind) AS found FROM numbers GROUP BY g",
        "SELECT CAST(it(x) OVER (ORDER BY n ROWS 2 PRECEDING) AS kind) AS found FROM numbers \
         ORDER BY n DESC LIMIT 1",
    ];

    #[tokio::test]
    async fn a_sum_of_decimals_fits_or_is_an_error() {
        let numbers = |sign: &str| {
            let most = |sign: &str| format!("'{sign}9{}'::DECIMAL(38, 0)", "0".repeat(37));
            let [one, other] = [most(""), most(sign)];
            format!("(VALUES (1, 1, {one}), (1, 2, {other}), (1, 3, {one})) AS t (g, n, x)")
        };
        for way in WAYS {
            let query = |sign: &str| {
                let query = way.replace("numbers", &numbers(sign)).replace("it(x)", "sum(x)");
                query.replace("kind", "TEXT")
            };
            let fits = found(&query("-")).await.unwrap();
            assert_eq!(fits, [format!("9{}", "0".repeat(37))], "{way}");
            let error = found(&query("")).await.unwrap_err().to_string();
            assert!(error.contains("a decimal overflowed"), "{way}: {error}");
        }
    }

    #[tokio::test]
    async fn a_mean_of_durations_is_found_whatever_they_add_up_to() {
        let largest = i64::MAX;
        let numbers = format!(
            "(SELECT g, n, arrow_cast(y, 'Duration(Microsecond)') AS x FROM \
             (VALUES (1, 1, {largest}), (1, 2, {largest}), (1, 3, {largest} - 3)) AS t (g, n, y))"
        );
        for way in WAYS {
            let query = way.replace("numbers", &numbers).replace("it(x)", "avg(x)");
            let mean = found(&query.replace("kind", "BIGINT")).await.unwrap();
            assert_eq!(mean, [(largest - 1).to_string()], "{way}");
        }
    }
}
