//! Functions that stand for the engine's own, under their names.
//!
//! What a stand-in does not change is as the engine has it, with two exceptions, which are taken over only
//! where a [`Change`] says so: simplifying would put the engine's own function back in its place, and an
//! order that is kept was promised for the values of the engine's function alone. Knows functions; knows
//! nothing of what is changed or why.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What differs from the engine's function.
pub(super) trait Change: fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// Whether [`Self::coerce`] says which arguments are taken, and not the engine's signature.
    const COERCES: bool = false;

    /// The types that arguments of these types are brought to.
    fn coerce(&self, engine: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
        engine.coerce_types(given)
    }

    fn return_type(&self, engine: &ScalarUDF, given: &[DataType]) -> Result<DataType> {
        engine.inner().return_type(given)
    }

    fn return_field(&self, engine: &ScalarUDF, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        engine.return_field_from_args(arguments)
    }

    fn output_ordering(&self, _engine: &ScalarUDF, _inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(SortProperties::Unordered)
    }

    fn simplify(
        &self,
        _engine: &ScalarUDF,
        given: Vec<Expr>,
        _context: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Original(given))
    }

    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue>;
}

/// A function of the engine with a change.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StandIn<Changed> {
    engine: Arc<ScalarUDF>,
    signature: Signature,
    change: Changed,
}

impl<Changed: Change> StandIn<Changed> {
    pub(super) fn new(engine: &Arc<ScalarUDF>, change: Changed) -> Self {
        let signature = if Changed::COERCES {
            Signature::user_defined(Volatility::Immutable)
        } else {
            engine.signature().clone()
        };
        Self {
            engine: Arc::clone(engine),
            signature,
            change,
        }
    }

    /// Whether `function` has such a change.
    pub(super) fn is(function: &ScalarUDF) -> bool {
        function.inner().as_ref().is::<Self>()
    }
}

impl<Changed: Change> ScalarUDFImpl for StandIn<Changed> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.change.coerce(&self.engine, given)
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.change.return_type(&self.engine, given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.change.return_field(&self.engine, arguments)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.change.output_ordering(&self.engine, inputs)
    }

    fn simplify(&self, given: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.change.simplify(&self.engine, given, context)
    }

    fn short_circuits(&self) -> bool {
        self.engine.short_circuits()
    }

    fn conditional_arguments<'a>(&self, given: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.engine.conditional_arguments(given)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.change.invoke(&self.engine, arguments)
    }
}
