//! Functions that return one of several values, of which some are moments and some are written as texts or
//! dates: these are moments of the same kind, as where they are compared. The engine takes them for
//! nanoseconds, which do not reach all years, or finds that they are of two kinds.
//!
//! The engine also writes the first value that is known as a `CASE`, which evaluates its operand twice. What
//! has another value each time that it is computed is evaluated once instead. Knows functions and types only.

use std::sync::Arc;

use datafusion::arrow::compute::is_not_null;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, TypeSignature};

use crate::query::sql::stand_in::{Change, StandIn};

const CHOOSING_FUNCTIONS: [&str; 6] = ["coalesce", "greatest", "least", "nullif", "nvl", TESTING_FUNCTION];

/// Returns the second or the third value by whether the first one is known.
const TESTING_FUNCTION: &str = "nvl2";

/// Those that return the first value that is known.
const FIRST_KNOWN_FUNCTIONS: [&str; 2] = ["coalesce", "nvl"];

/// What a query calls instead of the engine's `function`, if that is another.
pub(in crate::query::sql) fn instead_of(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    CHOOSING_FUNCTIONS
        .contains(&function.name())
        .then(|| Arc::new(ScalarUDF::new_from_impl(StandIn::new(function, Choice))))
}

/// The engine's function, given values of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice;

fn returns_first_known(engine: &ScalarUDF) -> bool {
    FIRST_KNOWN_FUNCTIONS.contains(&engine.name())
}

/// The types that the engine's function takes instead of those that are given.
fn taken(engine: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
    // Whoever asks adds the words that the engine has around an error of the function itself.
    if engine.signature().type_signature == TypeSignature::UserDefined {
        return engine.coerce_types(given);
    }
    let fields = given
        .iter()
        .map(|data_type| Arc::new(Field::new("", data_type.clone(), true)));
    let taken = fields_with_udf(&fields.collect::<Vec<FieldRef>>(), engine)?;
    Ok(taken.iter().map(|field| field.data_type().clone()).collect())
}

/// The types of values once those beside moments are moments too.
fn brought(given: &[DataType]) -> Vec<DataType> {
    let moments = given
        .iter()
        .find(|data_type| matches!(data_type, DataType::Timestamp(..)));
    let Some(moments) = moments else {
        return given.to_vec();
    };
    given
        .iter()
        .map(|data_type| match data_type {
            DataType::Date32 | DataType::Null => moments.clone(),
            text if text.is_string() => moments.clone(),
            other => other.clone(),
        })
        .collect()
}

impl Change for Choice {
    const COERCES: bool = true;

    fn coerce(&self, engine: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
        let ([tested, first, second], TESTING_FUNCTION) = (given, engine.name()) else {
            return taken(engine, &brought(given));
        };
        // What is tested is not chosen, and may be of any type.
        let chosen = brought(&[first.clone(), second.clone()]);
        let both = chosen.first().into_iter().chain(&chosen).cloned();
        let mut types = taken(engine, &both.collect::<Vec<DataType>>())?;
        if let Some(type_of_tested) = types.first_mut() {
            type_of_tested.clone_from(tested);
        }
        Ok(types)
    }

    fn simplify(
        &self,
        engine: &ScalarUDF,
        given: Vec<Expr>,
        context: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        let looked_at = given.split_last().map_or(&[][..], |(_, looked_at)| looked_at);
        if returns_first_known(engine) && looked_at.iter().any(Expr::is_volatile) {
            return Ok(ExprSimplifyResult::Original(given));
        }
        engine.inner().simplify(given, context)
    }

    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if returns_first_known(engine) {
            return first_known(&arguments.args, arguments.number_rows);
        }
        engine.invoke_with_args(arguments)
    }
}

/// The first value that is known in each row.
fn first_known(given: &[ColumnarValue], rows: usize) -> Result<ColumnarValue> {
    let are_one = given
        .iter()
        .all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if are_one { 1 } else { rows };
    let Some((last, before)) = given.split_last() else {
        return exec_err!("there are no values to choose from");
    };
    let mut found = last.to_array(rows)?;
    for values in before.iter().rev() {
        let values = values.to_array(rows)?;
        found = zip(&is_not_null(&values)?, &values, &found)?;
    }
    Ok(if are_one {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
    } else {
        ColumnarValue::Array(found)
    })
}
