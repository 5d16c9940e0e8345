//! Columns that are computed from others, as expressions of a plan.
//!
//! What is computed says how the column is called and described, and makes it of the others; the frame is
//! what the library wants to know besides. Knows arrays and expressions; knows nothing of what they mean.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// How a column is computed from `N` others. Equal ones compute the same.
pub(in crate::query) trait Computed<const N: usize>:
    Debug + Eq + Hash + Send + Sync + 'static
{
    /// What the function is called in a plan.
    const NAME: &'static str;

    /// The column that comes out.
    fn column(&self) -> &FieldRef;

    fn compute(&self, columns: [ArrayRef; N]) -> Result<ArrayRef>;
}

/// The column that `computed` makes of others of `rows`.
pub(in crate::query) fn computed<C: Computed<N>, const N: usize>(
    computed: C,
    of: [Arc<dyn PhysicalExpr>; N],
    rows: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let function = ScalarUDF::new_from_impl(Function::<C, N> {
        computed,
        signature: Signature::any(N, Volatility::Immutable),
    });
    let options = Arc::new(ConfigOptions::default());
    let expr = ScalarFunctionExpr::try_new(Arc::new(function), of.into(), rows, options)?;
    Ok(Arc::new(expr))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function<C, const N: usize> {
    computed: C,
    signature: Signature,
}

impl<C: Computed<N>, const N: usize> ScalarUDFImpl for Function<C, N> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.computed.column().data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(self.computed.column()))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let columns = arguments.args.iter().map(|column| column.to_array(rows));
        let Ok(columns) = <[_; N]>::try_from(columns.collect::<Result<Vec<_>>>()?) else {
            return internal_err!("{} takes {N} columns", C::NAME);
        };
        Ok(ColumnarValue::Array(self.computed.compute(columns)?))
    }
}
