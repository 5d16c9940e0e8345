//! Variances and standard deviations over frames that move.
//!
//! The engine's own take what leaves a frame out of a running variance again, and keep what was rounded on
//! the way: of equal values the variance comes out below zero, or their deviation as no number. Here nothing
//! is taken out. What is known of the values that leave next is kept for each of them on a stack, as it is
//! without those that leave before; what enters is added up beside it, and becomes such a stack once the last
//! one is used up. So each value is looked at twice, however wide the frame is. Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature};

/// One of the engine's functions, which is computed anew over moving frames.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct MovingVariance {
    inner: Arc<AggregateUDF>,
    measure: Measure,
}

impl MovingVariance {
    /// The function to call instead, if it is a variance or a standard deviation.
    pub(in crate::query::sql) fn instead_of(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
        let measure = Measure::named(function.name())?;
        let inner = Arc::clone(function);
        Some(Arc::new(AggregateUDF::new_from_impl(Self { inner, measure })))
    }
}

impl AggregateUDFImpl for MovingVariance {
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
        if arguments.is_distinct {
            return self.inner.create_sliding_accumulator(arguments);
        }
        Ok(Box::new(Moving::of(self.measure)))
    }
}

/// How a spread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Measure {
    Variance,
    VarianceOfSample,
    Deviation,
    DeviationOfSample,
}

impl Measure {
    fn named(name: &str) -> Option<Self> {
        match name {
            "var" => Some(Self::VarianceOfSample),
            "var_pop" => Some(Self::Variance),
            "stddev" => Some(Self::DeviationOfSample),
            "stddev_pop" => Some(Self::Deviation),
            _ => None,
        }
    }

    /// There is none of no value, and of a sample none of one.
    fn of(self, spread: Spread) -> Option<f64> {
        let freedom = match self {
            Self::Variance | Self::Deviation => spread.count,
            Self::VarianceOfSample | Self::DeviationOfSample => spread.count.saturating_sub(1),
        };
        if freedom == 0 {
            return None;
        }
        let variance = spread.squares / freedom as f64;
        Some(match self {
            Self::Variance | Self::VarianceOfSample => variance,
            Self::Deviation | Self::DeviationOfSample => variance.sqrt(),
        })
    }
}

/// What is known of some values.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: u64,
    mean: f64,
    /// The sum of the squares of the distances from the mean.
    squares: f64,
}

impl Spread {
    const fn of(value: f64) -> Self {
        Self {
            count: 1,
            mean: value,
            squares: if value.is_finite() { 0.0 } else { f64::NAN },
        }
    }

    /// What is known of these values and others together: only sums, none of which is below zero.
    fn with(self, other: Self) -> Self {
        if self.count == 0 {
            return other;
        }
        if other.count == 0 {
            return self;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let distance = other.mean - self.mean;
        Self {
            count,
            mean: distance.mul_add(share, self.mean),
            squares: self.squares + other.squares + distance * distance * share * self.count as f64,
        }
    }
}

/// The values of a frame, which leave it in the order in which they enter it.
#[derive(Debug)]
struct Moving {
    measure: Measure,
    /// For each value that leaves next, the first one last: what is known of it and of those after it that
    /// are in this stack.
    leaving: Vec<Spread>,
    /// The values that have entered since.
    entered: Vec<f64>,
    /// What is known of those.
    spread: Spread,
}

impl Moving {
    fn of(measure: Measure) -> Self {
        Self {
            measure,
            leaving: Vec::new(),
            entered: Vec::new(),
            spread: Spread::default(),
        }
    }

    fn leave(&mut self) {
        if self.leaving.is_empty() {
            let mut after = Spread::default();
            for value in self.entered.drain(..).rev() {
                after = Spread::of(value).with(after);
                self.leaving.push(after);
            }
            self.spread = Spread::default();
        }
        self.leaving.pop();
    }
}

impl Accumulator for Moving {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else {
            return internal_err!("a variance is one of one value");
        };
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            self.entered.push(value);
            self.spread = self.spread.with(Spread::of(value));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else {
            return internal_err!("a variance is one of one value");
        };
        for _ in values.null_count()..values.len() {
            self.leave();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let oldest = self.leaving.last().copied().unwrap_or_default();
        Ok(ScalarValue::Float64(self.measure.of(oldest.with(self.spread))))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a frame is computed in one piece")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a frame is computed in one piece")
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.leaving.capacity() * size_of::<Spread>()
            + self.entered.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;

    use super::*;

    const MEASURES: [Measure; 4] = [
        Measure::Variance,
        Measure::VarianceOfSample,
        Measure::Deviation,
        Measure::DeviationOfSample,
    ];

    /// What is told of each frame of at most `width` values, of which null is none.
    fn moved(measure: Measure, values: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
        let one = |place: usize| -> ArrayRef { Arc::new(Float64Array::from(vec![values[place]])) };
        let mut moving = Moving::of(measure);
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
        for measure in MEASURES {
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
}
