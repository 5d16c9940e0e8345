//! Sums, means, variances and standard deviations of numbers over frames that move.
//!
//! The engine's own take what leaves a frame out of a running sum again, and keep what was rounded on the
//! way: beside a large number small ones are lost, and stay lost once it has left; after one that is infinite
//! or no number nothing is ever one; of equal values the variance comes out below zero. Here nothing is taken
//! out ([`frame`]). Whole numbers, decimals and durations, of whose sums nothing is rounded, are left to the
//! engine. Knows which functions these are, and nothing of plans.

mod frame;
mod spread;
mod total;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use frame::MovingFrame;
use spread::Spread;
use total::Total;

/// One of the engine's functions, which is computed anew over moving frames.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct Moving {
    inner: Arc<AggregateUDF>,
    measure: Measure,
}

impl Moving {
    /// The function itself or, if it is one of these, the one to call instead.
    pub(in crate::query::sql) fn around(function: &Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        let inner = Arc::clone(function);
        match Measure::named(function.name()) {
            Some(measure) => Arc::new(AggregateUDF::new_from_impl(Self { inner, measure })),
            None => inner,
        }
    }
}

impl AggregateUDFImpl for Moving {
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
        self.inner.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(arguments)
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_of_fractions =
            matches!(arguments.expr_fields, [field] if *field.data_type() == DataType::Float64);
        if arguments.is_distinct || !is_of_fractions {
            return self.inner.create_sliding_accumulator(arguments);
        }
        Ok(self.measure.of_no_values())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.inner().order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.inner().reverse_expr()
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

    fn value_from_stats(&self, known: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.inner().value_from_stats(known)
    }
}

/// What is told of the values in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Measure {
    Sum,
    Mean,
    Variance,
    VarianceOfSample,
    Deviation,
    DeviationOfSample,
}

impl Measure {
    fn named(name: &str) -> Option<Self> {
        match name {
            "sum" => Some(Self::Sum),
            "avg" => Some(Self::Mean),
            "var" => Some(Self::VarianceOfSample),
            "var_pop" => Some(Self::Variance),
            "stddev" => Some(Self::DeviationOfSample),
            "stddev_pop" => Some(Self::Deviation),
            _ => None,
        }
    }

    /// A frame before any value has entered it.
    fn of_no_values(self) -> Box<dyn Accumulator> {
        match self {
            Self::Sum => Box::new(MovingFrame::new(Total::sum)),
            Self::Mean => Box::new(MovingFrame::new(Total::mean)),
            Self::Variance => Box::new(MovingFrame::new(Spread::variance)),
            Self::VarianceOfSample => Box::new(MovingFrame::new(Spread::variance_of_sample)),
            Self::Deviation => Box::new(MovingFrame::new(Spread::deviation)),
            Self::DeviationOfSample => Box::new(MovingFrame::new(Spread::deviation_of_sample)),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Float64Array};
    use proptest::prelude::*;

    use super::*;

    const SPREADS: [Measure; 4] = [
        Measure::Variance,
        Measure::VarianceOfSample,
        Measure::Deviation,
        Measure::DeviationOfSample,
    ];

    /// What is told of each frame of at most `width` values, of which null is none.
    fn moved(measure: Measure, values: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
        let one = |place: usize| -> ArrayRef { Arc::new(Float64Array::from(vec![values[place]])) };
        let mut moving = measure.of_no_values();
        let mut told = Vec::new();
        for place in 0..values.len() {
            moving.update_batch(&[one(place)]).unwrap();
            if place >= width {
                moving.retract_batch(&[one(place - width)]).unwrap();
            }
            let ScalarValue::Float64(value) = moving.evaluate().unwrap() else {
                panic!("a number");
            };
            told.push(value);
        }
        told
    }

    #[test]
    fn equal_values_have_no_spread_whatever_was_before_them() {
        let values = [1e9, 0.1, 1e-9, 7.3, 7.3, 7.3, 7.3, 0.0, 0.0, 0.0].map(Some);
        for measure in SPREADS {
            let told = moved(measure, &values, 3);
            for place in [5, 6, 9] {
                assert_eq!(told[place], Some(0.0), "{measure:?} at {place}");
            }
            assert!(told.iter().flatten().all(|value| *value >= 0.0), "{told:?}");
        }
    }

    #[test]
    fn a_frame_is_told_by_the_values_in_it() {
        let values = [
            Some(2.0),
            None,
            Some(4.0),
            Some(10.0),
            None,
            None,
            None,
            Some(1.0),
        ];
        for (measure, expected) in [
            (Measure::Sum, [2.0, 2.0, 6.0, 14.0, 14.0, 10.0, f64::NAN, 1.0]),
            (Measure::Mean, [2.0, 2.0, 3.0, 7.0, 7.0, 10.0, f64::NAN, 1.0]),
            (Measure::Variance, [0.0, 0.0, 1.0, 9.0, 9.0, 0.0, f64::NAN, 0.0]),
            (
                Measure::VarianceOfSample,
                [f64::NAN, f64::NAN, 2.0, 18.0, 18.0, f64::NAN, f64::NAN, f64::NAN],
            ),
            (Measure::Deviation, [0.0, 0.0, 1.0, 3.0, 3.0, 0.0, f64::NAN, 0.0]),
        ] {
            // No number stands for none.
            let expected = expected.map(|value| (!value.is_nan()).then_some(value));
            assert_eq!(moved(measure, &values, 3), expected, "{measure:?}");
        }
        let wide = moved(Measure::Variance, &values, 100);
        assert!((wide[7].unwrap() - 12.1875).abs() < 1e-12, "{wide:?}");
    }

    #[test]
    fn a_large_value_is_forgotten_once_it_has_left() {
        for large in [1e17, 1e308, f64::INFINITY, f64::NAN] {
            let values = [large, large, 1.0, 2.0, 3.0, 4.0].map(Some);
            assert_eq!(
                moved(Measure::Sum, &values, 2)[3..],
                [3.0, 5.0, 7.0].map(Some),
                "{large}"
            );
            assert_eq!(
                moved(Measure::Mean, &values, 2)[3..],
                [1.5, 2.5, 3.5].map(Some),
                "{large}"
            );
        }
    }

    #[test]
    fn what_is_left_of_a_frame_is_what_has_not_left_it() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1e17, 1e17, 1.0, 1.0, 2.0]));
        let mut frame = Measure::Sum.of_no_values();
        frame.update_batch(&[Arc::clone(&values)]).unwrap();
        for (place, sum) in [2e17, 1e17, 4.0, 3.0, 2.0].into_iter().enumerate() {
            assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(Some(sum)));
            frame.retract_batch(&[values.slice(place, 1)]).unwrap();
        }
        assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(None));
    }

    proptest! {
        /// Whole numbers below 2^53 are added exactly in any order.
        #[test]
        fn a_moving_sum_is_the_sum_of_the_frame(
            values in prop::collection::vec(prop::option::of(-1_000_000_000_i64..1_000_000_000), 0..40),
            width in 1_usize..9,
        ) {
            let number = |value: &Option<i64>| value.map(|value| value as f64);
            let numbers: Vec<Option<f64>> = values.iter().map(number).collect();
            let sums = moved(Measure::Sum, &numbers, width);
            for place in 0..values.len() {
                let frame = &values[(place + 1).saturating_sub(width)..=place];
                let all: Vec<i64> = frame.iter().flatten().copied().collect();
                let sum = (!all.is_empty()).then(|| all.iter().sum::<i64>() as f64);
                prop_assert_eq!(sums[place], sum);
            }
        }
    }
}
