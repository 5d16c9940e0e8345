//! The values of a frame that moves, of which none is ever taken out of a sum.
//!
//! What is known of the values that leave next is kept for each of them on a stack, as it is without those
//! that leave before; what enters is added up beside it, and becomes such a stack once the last one is used
//! up. So each value is looked at twice, however wide the frame is. Knows arrays; does not know what is told
//! of the values.

use std::fmt::Debug;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

/// What is known of some values; by default, of none.
pub(super) trait Summary: Clone + Copy + Debug + Default + Send + Sync {
    /// What is known of one value.
    fn of(value: f64) -> Self;

    /// What is known of these values and others together.
    fn with(self, other: Self) -> Self;
}

/// The values of a frame, which leave it in the order in which they enter it.
#[derive(Debug)]
pub(super) struct MovingFrame<S> {
    /// What is told of the values in it.
    told: fn(S) -> Option<f64>,
    /// For each value that leaves next, the first one last: what is known of it and of those after it that
    /// are in this stack.
    leaving: Vec<S>,
    /// The values that have entered since.
    entered: Vec<f64>,
    /// What is known of those.
    known: S,
}

impl<S: Summary> MovingFrame<S> {
    pub(super) fn new(told: fn(S) -> Option<f64>) -> Self {
        Self {
            told,
            leaving: Vec::new(),
            entered: Vec::new(),
            known: S::default(),
        }
    }

    fn leave(&mut self) {
        if self.leaving.is_empty() {
            let mut after = S::default();
            for value in self.entered.drain(..).rev() {
                after = S::of(value).with(after);
                self.leaving.push(after);
            }
            self.known = S::default();
        }
        self.leaving.pop();
    }
}

impl<S: Summary + 'static> Accumulator for MovingFrame<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else {
            return internal_err!("a frame is one of one value");
        };
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            self.entered.push(value);
            self.known = self.known.with(S::of(value));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else {
            return internal_err!("a frame is one of one value");
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
        Ok(ScalarValue::Float64((self.told)(oldest.with(self.known))))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a frame is computed in one piece")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a frame is computed in one piece")
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.leaving.capacity() * size_of::<S>()
            + self.entered.capacity() * size_of::<f64>()
    }
}
