//! Columns that are computed from others, as expressions of a plan.
//!
//! A [`Computed`] names and describes its column and computes it from the others; this module supplies the
//! rest of what DataFusion requires of a function. Knows arrays and expressions; knows nothing of what they
//! mean.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, SchemaRef};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::ident;

use super::operator::Plan;

/// How a column is computed from `N` others. Equal values compute the same.
pub(in crate::query) trait Computed<const N: usize>:
    Debug + Eq + Hash + Send + Sync + 'static
{
    /// The name of the function in a plan.
    const NAME: &'static str;

    /// The resulting column.
    fn column(&self) -> &FieldRef;

    fn compute(&self, columns: [ArrayRef; N]) -> Result<ArrayRef>;
}

/// The column that `computed` makes of others.
pub(in crate::query) fn computed<C: Computed<N>, const N: usize>(computed: C, of: [Expr; N]) -> Expr {
    let function = Function::<C, N> {
        computed,
        signature: Signature::any(N, Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(function).call(of.into())
}

/// Columns as expressions over others, each with its name.
pub(in crate::query) type Columns = Vec<(Expr, String)>;

/// `rows` with these columns instead.
pub(in crate::query) fn projected(rows: Plan, columns: Columns) -> Result<Plan> {
    let columns = expressions(&rows.schema(), columns)?;
    Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
}

/// Computes these columns for single batches with the columns of `held`. Few rows are left when rows are
/// inspected before they are shown, and the ordering that a plan would derive is not needed.
pub(in crate::query) fn projector(held: &SchemaRef, columns: Columns) -> Result<Projector> {
    ProjectionExprs::new(expressions(held, columns)?).make_projector(held)
}

fn expressions(held: &SchemaRef, columns: Columns) -> Result<Vec<ProjectionExpr>> {
    let held = DFSchema::try_from(held.as_ref().clone())?;
    let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let columns = columns.into_iter().map(|(expr, name)| {
        let expr = create_physical_expr(&expr, &held, &properties, &context)?;
        Ok(ProjectionExpr::new(expr, name))
    });
    columns.collect()
}

/// Those of `rows` that meet a condition.
pub(in crate::query) fn filtered(rows: Plan, condition: &Expr) -> Result<Plan> {
    let held = DFSchema::try_from(rows.schema().as_ref().clone())?;
    let context = PhysicalPlanningContext::default();
    let condition = create_physical_expr(condition, &held, &ExecutionProps::new(), &context)?;
    Ok(Arc::new(FilterExec::try_new(condition, rows)?))
}

/// `rows` with columns replaced, in their places, by what `replaced` returns for them.
pub(in crate::query) fn with_replaced(
    rows: Plan,
    replaced: impl Fn(&FieldRef) -> Option<Expr>,
) -> Result<Plan> {
    let held = rows.schema();
    let columns = held.fields().iter().map(|field| {
        let expr = replaced(field).unwrap_or_else(|| ident(field.name()));
        (expr, field.name().clone())
    });
    projected(rows, columns.collect())
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
