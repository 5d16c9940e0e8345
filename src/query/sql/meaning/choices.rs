//! Functions that return one of several values, of which some are moments and some are written as texts or
//! dates: these are moments of the same kind, as where they are compared. The engine takes them for
//! nanoseconds, which do not reach all years, or finds that they are of two kinds. Knows functions and types
//! only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const CHOOSING_FUNCTIONS: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// What a query calls instead of the engine's `function`, if that is another.
pub(in crate::query::sql) fn instead_of(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    let choice = || Choice {
        inner: Arc::clone(function),
        signature: Signature::user_defined(Volatility::Immutable),
    };
    CHOOSING_FUNCTIONS
        .contains(&function.name())
        .then(|| Arc::new(ScalarUDF::new_from_impl(choice())))
}

/// The engine's function, given values of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

/// The types of values once those beside moments are moments too.
fn brought(given: &[DataType]) -> Vec<DataType> {
    let moments = given.iter().find(|held| matches!(held, DataType::Timestamp(..)));
    let Some(moments) = moments else {
        return given.to_vec();
    };
    let becomes_one = |held: &DataType| held.is_string() || matches!(held, DataType::Date32 | DataType::Null);
    let types = given.iter();
    types
        .map(|held| if becomes_one(held) { moments } else { held }.clone())
        .collect()
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let fields: Vec<FieldRef> = brought(given)
            .into_iter()
            .map(|held| Arc::new(Field::new("", held, true)))
            .collect();
        let taken = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(taken.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn simplify(&self, given: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.inner().simplify(given, context)
    }

    fn short_circuits(&self) -> bool {
        self.inner.inner().short_circuits()
    }

    fn conditional_arguments<'a>(&self, given: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.inner().conditional_arguments(given)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(arguments)
    }
}
