//! LIKE and ILIKE for as many rows at a time as they may take steps. Knows functions and arrays only.

use datafusion::arrow::array::{BooleanArray, Datum};
use datafusion::arrow::compute::kernels::comparison::{ilike, like};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Like, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use std::sync::Arc;

use crate::model::weighed_pattern::FEW_STEPS;
use crate::query::ended::{beside_others, refuse_ended};

use super::cheap::is_text;
use super::weighed::{are_constants, as_texts, bearable, in_parts, rows};

/// The most states of any character, and of a letter in all its cases.
const STATES_OF_ANY: u64 = 16;

/// `like(text, pattern)`, or `ilike(text, pattern)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct WeighedLike {
    ignores_case: bool,
    signature: Signature,
}

impl WeighedLike {
    /// The same condition.
    pub(super) fn of(condition: Like) -> Expr {
        let function = ScalarUDF::new_from_impl(Self {
            ignores_case: condition.case_insensitive,
            signature: Signature::user_defined(Volatility::Immutable),
        });
        let found = function.call(vec![*condition.expr, *condition.pattern]);
        if condition.negated {
            Expr::Not(Box::new(found))
        } else {
            found
        }
    }

    fn compute(&self, arguments: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text, pattern] = arguments.args.as_slice() else {
            return internal_err!("LIKE compares a text and a pattern");
        };
        let texts = text.to_array(rows(arguments))?;
        let found = match pattern {
            ColumnarValue::Scalar(pattern) => self.found(&texts, &pattern.to_scalar()?)?,
            ColumnarValue::Array(patterns) => self.found(&texts, patterns)?,
        };
        Ok(if are_constants(arguments) {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(found))
        })
    }

    fn found(&self, texts: &dyn Datum, patterns: &dyn Datum) -> Result<BooleanArray, ArrowError> {
        if self.ignores_case {
            ilike(texts, patterns)
        } else {
            like(texts, patterns)
        }
    }

    fn steps(&self, arguments: &ScalarFunctionArgs) -> Result<Vec<u64>> {
        let [text, pattern] = arguments.args.as_slice() else {
            return internal_err!("LIKE compares a text and a pattern");
        };
        let rows = rows(arguments);
        let texts = as_texts(text, rows)?;
        let lengths = texts.iter().map(|text| text.map_or(0, str::len));
        let steps = |bytes: usize, states: u64| bearable(states.saturating_mul(bytes as u64 + 1), bytes);
        match pattern {
            ColumnarValue::Scalar(pattern) => {
                let states = self.states(pattern.try_as_str().flatten());
                lengths.map(|bytes| steps(bytes, states)).collect()
            }
            ColumnarValue::Array(_) => {
                let patterns = as_texts(pattern, rows)?;
                let states = patterns.iter().map(|pattern| self.states(pattern));
                lengths
                    .zip(states)
                    .map(|(bytes, states)| steps(bytes, states))
                    .collect()
            }
        }
    }

    /// The most states of the pattern.
    fn states(&self, pattern: Option<&str>) -> u64 {
        let of = |letter: char| match letter {
            '%' | '_' => STATES_OF_ANY,
            _ if self.ignores_case => STATES_OF_ANY,
            letter => letter.len_utf8() as u64,
        };
        STATES_OF_ANY + pattern.unwrap_or_default().chars().map(of).sum::<u64>()
    }
}

impl ScalarUDFImpl for WeighedLike {
    fn name(&self) -> &'static str {
        if self.ignores_case { "ilike" } else { "like" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.len() == 2 && given.iter().all(is_text) {
            Ok(vec![DataType::Utf8; 2])
        } else {
            plan_err!("LIKE and ILIKE compare texts only")
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        refuse_ended()?;
        let steps = self.steps(&arguments)?;
        let all = || in_parts(&arguments, &steps, |part| self.compute(&part));
        if steps.iter().copied().fold(0, u64::saturating_add) <= FEW_STEPS {
            all()
        } else {
            beside_others(all)
        }
    }
}
