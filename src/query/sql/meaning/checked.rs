//! Arithmetic with whole numbers that fails where the result does not fit its type.
//!
//! The engine's own starts again at the other end: the largest number plus one is the smallest. So sums,
//! differences, products and negations of whole numbers are computed by functions of this module, under the
//! names of the engine's. Knows expressions and arrays only.

use std::sync::Arc;

use datafusion::arrow::compute::kernels::numeric::{add, mul, neg, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, exec_datafusion_err, exec_err, internal_err};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::by_array::by_array;

/// Replaces the engine's arithmetic once both sides have one type.
#[derive(Debug)]
pub(in crate::query::sql) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &'static str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_steps(plan, &mut |plan| {
            let schema = merge_schema(&plan.inputs());
            let checked = rewrite_keeping_names(plan, |expr| Ok(checked(expr, &schema)))?;
            if checked.transformed {
                checked.map_data(LogicalPlan::recompute_schema)
            } else {
                Ok(checked)
            }
        })
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Operation::of(op) {
            Some(operation) if is_whole(&left, schema) && is_whole(&right, schema) => {
                Transformed::yes(operation.call(vec![*left, *right]))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Negative(inner) if is_whole(&inner, schema) => {
            Transformed::yes(Operation::Negate.call(vec![*inner]))
        }
        other => Transformed::no(other),
    }
}

/// Whether it is a whole number. What cannot be typed is refused by whoever plans it.
fn is_whole(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        // Chains are as long as a query allows: asking each part for its type would take too long.
        Expr::ScalarFunction(call) if call.func.inner().as_ref().is::<CheckedOperation>() => true,
        Expr::Literal(value, _) => value.data_type().is_integer(),
        expr => expr
            .get_type(schema)
            .is_ok_and(|data_type| data_type.is_integer()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Negate,
}

impl Operation {
    const fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Plus => Some(Self::Add),
            Operator::Minus => Some(Self::Subtract),
            Operator::Multiply => Some(Self::Multiply),
            _ => None,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract | Self::Negate => "-",
            Self::Multiply => "*",
        }
    }

    fn call(self, operands: Vec<Expr>) -> Expr {
        let checked = CheckedOperation {
            operation: self,
            signature: Signature::any(operands.len(), Volatility::Immutable),
        };
        ScalarUDF::new_from_impl(checked).call(operands)
    }
}

/// An operation whose operands have the type of the result.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperation {
    operation: Operation,
    signature: Signature,
}

impl ScalarUDFImpl for CheckedOperation {
    /// As plans show it.
    fn name(&self) -> &'static str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
            Operation::Negate => "checked_negate",
        }
    }

    /// The name of a column: that of the engine's own operation.
    fn schema_name(&self, operands: &[Expr]) -> Result<String> {
        let sign = self.operation.sign();
        match operands {
            [one] => Ok(format!("({sign} {})", one.schema_name())),
            [left, right] => Ok(format!("{} {sign} {}", left.schema_name(), right.schema_name())),
            _ => internal_err!("{} has one operand or two", self.name()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let data_type = given.first().cloned();
        data_type.map_or_else(|| internal_err!("{} has operands", self.name()), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = given
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        let is_nullable = given.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name(), self.return_type(&types)?, is_nullable);
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = match (self.operation, arguments.args.as_slice()) {
            (Operation::Add, [left, right]) => apply(left, right, add),
            (Operation::Subtract, [left, right]) => apply(left, right, sub),
            (Operation::Multiply, [left, right]) => apply(left, right, mul),
            (Operation::Negate, [value]) => by_array(value, |values| Ok(neg(values)?)),
            _ => exec_err!("{} was given other operands than it has", self.name()),
        };
        result.map_err(overflowed)
    }
}

/// The error in the words of this program, if a number did not fit.
fn overflowed(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::ArithmeticOverflow(what) => {
                let computed = what.rsplit(": ").next().unwrap_or(what);
                exec_datafusion_err!("an integer overflowed: {computed}; cast to DOUBLE or DECIMAL")
            }
            _ => error,
        },
        _ => error,
    }
}
