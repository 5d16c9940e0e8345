//! Zero and negative zero as the one number that they are.
//!
//! The engine takes them for equal where it compares or groups numbers, but tells them apart where it looks a
//! number up in a list, compares lists and structures, numbers rows by a value, chooses among cases, or
//! aggregates what is distinct, and so does the optimizer where it compares constants. There a query is given
//! one zero. What is stored and returned keeps its sign. Knows plans and expressions only.

mod both_zeros;
mod function;
mod zeros;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr, InList, Sort as SortExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable as _, LogicalPlan, Operator, Projection, ScalarUDF, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::moments::compares;
pub(in crate::query::sql) use both_zeros::BothZeros;
use function::WithOneZero;
use zeros::{has_zeros, is_zero, zeros};

/// Functions that look for numbers. Only `nullif` returns one of those that it looks through, and loses its
/// sign if it is zero.
const LOOKING_FUNCTIONS: [&str; 6] = [
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_position",
    "array_positions",
    "nullif",
];

/// Gives a query one zero once both sides of each comparison have one type.
#[derive(Debug)]
pub(in crate::query::sql) struct OneZero {
    function: Arc<ScalarUDF>,
    /// For what aggregates find distinct.
    of_distinct: Arc<ScalarUDF>,
}

impl OneZero {
    pub(in crate::query::sql) fn new() -> Self {
        let function = |keeps_name: bool| Arc::new(ScalarUDF::new_from_impl(WithOneZero::new(keeps_name)));
        Self {
            function: function(false),
            of_distinct: function(true),
        }
    }

    /// The value, with one zero if it may hold two.
    fn with_one_zero(&self, value: Expr, schema: &DFSchema) -> Expr {
        given(&self.function, value, schema)
    }

    fn all(&self, values: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
        values
            .into_iter()
            .map(|value| self.with_one_zero(value, schema))
            .collect()
    }

    fn keys(&self, keys: &mut [SortExpr], schema: &DFSchema) {
        for key in keys {
            key.expr = self.with_one_zero(std::mem::take(&mut key.expr), schema);
        }
    }

    /// Gives the constants among values that are compared one zero, and says whether there were any: the
    /// optimizer compares conditions by the bits of their constants, and finds that `w = 0.0 AND w = -0.0`
    /// never holds.
    fn sides<const SIDES: usize>(&self, sides: [&mut Expr; SIDES], schema: &DFSchema) -> bool {
        let mut given = false;
        for side in sides {
            if let Some(value) = constant(side) {
                if is_zero(&value)
                    && let Some([zero, _]) = zeros(&value.data_type())
                {
                    *side = Expr::Literal(zero, None);
                    given = true;
                }
            } else if is_computed_before(side) {
                *side = self.with_one_zero(std::mem::take(side), schema);
                given = true;
            }
        }
        given
    }

    /// An expression whose parts were given one zero before.
    fn expression(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match expr {
            Expr::InList(list) => self.list(list, schema),
            Expr::BinaryExpr(mut pair) if compares(pair.op) => {
                let sides = [pair.left.as_mut(), pair.right.as_mut()];
                let given = if is_nested(sides[0], schema) {
                    for side in sides {
                        *side = self.with_one_zero(std::mem::take(side), schema);
                    }
                    true
                } else {
                    self.sides(sides, schema)
                };
                Transformed::new_transformed(Expr::BinaryExpr(pair), given)
            }
            Expr::Between(mut between) => {
                let sides = [&mut between.expr, &mut between.low, &mut between.high];
                let given = self.sides(sides.map(Box::as_mut), schema);
                Transformed::new_transformed(Expr::Between(between), given)
            }
            Expr::Case(mut case) if case.expr.is_some() => {
                case.expr = case
                    .expr
                    .map(|value| Box::new(self.with_one_zero(*value, schema)));
                for (when, _) in &mut case.when_then_expr {
                    **when = self.with_one_zero(std::mem::take(when.as_mut()), schema);
                }
                Transformed::yes(Expr::Case(case))
            }
            Expr::ScalarFunction(mut call) if LOOKING_FUNCTIONS.contains(&call.func.name()) => {
                call.args = self.all(call.args, schema);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::AggregateFunction(mut call) if tells_values_apart(&call) => {
                let params = &mut call.params;
                // What is distinct is sorted by itself alone, so both have to be the same.
                let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
                for value in params.args.iter_mut().chain(keys) {
                    *value = given(&self.of_distinct, std::mem::take(value), schema);
                }
                Transformed::yes(Expr::AggregateFunction(call))
            }
            Expr::WindowFunction(mut window) => {
                let params = &mut window.params;
                params.partition_by = self.all(std::mem::take(&mut params.partition_by), schema);
                self.keys(&mut params.order_by, schema);
                Transformed::yes(Expr::WindowFunction(window))
            }
            other => Transformed::no(other),
        }
    }

    /// A list of constants has both zeros if it has one, so that its column is still compared as it is.
    fn list(&self, list: InList, schema: &DFSchema) -> Transformed<Expr> {
        let InList {
            expr,
            mut list,
            negated,
        } = list;
        let Some(data_type) = type_of(&expr, schema).filter(has_zeros) else {
            return Transformed::no(Expr::InList(InList::new(expr, list, negated)));
        };
        let constants: Option<Vec<ScalarValue>> = list.iter().map(constant).collect();
        if let (Some(constants), Some(zeros)) = (constants, zeros(&data_type)) {
            if constants.iter().any(is_zero) {
                list.extend(zeros.map(|zero| Expr::Literal(zero, None)));
            }
            return Transformed::yes(Expr::InList(InList::new(expr, list, negated)));
        }
        let list = self.all(list, schema);
        let value = Box::new(self.with_one_zero(*expr, schema));
        Transformed::yes(Expr::InList(InList::new(value, list, negated)))
    }

    /// A step whose expressions were given one zero before. Lists and structures make groups as they are.
    fn step(&self, plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Aggregate(mut aggregate)
                if aggregate.group_expr.iter().any(|key| is_nested(key, schema)) =>
            {
                for key in &mut aggregate.group_expr {
                    if is_nested(key, schema) {
                        let (relation, name) = key.qualified_name();
                        let value = self.with_one_zero(std::mem::take(key), schema);
                        *key = value.alias_qualified(relation, name);
                    }
                }
                Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
            }
            LogicalPlan::Distinct(Distinct::All(input))
                if input
                    .schema()
                    .fields()
                    .iter()
                    .any(|field| is_kept_apart(field.data_type())) =>
            {
                let column = |(relation, field): (Option<&TableReference>, &FieldRef)| {
                    let column = Column::from((relation, field));
                    let value = Expr::Column(column.clone());
                    if is_kept_apart(field.data_type()) {
                        self.function
                            .call(vec![value])
                            .alias_qualified(column.relation, column.name)
                    } else {
                        value
                    }
                };
                let columns: Vec<Expr> = input.schema().iter().map(column).collect();
                let input = LogicalPlan::Projection(Projection::try_new(columns, input)?);
                Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(
                    input,
                )))))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

impl AnalyzerRule for OneZero {
    fn name(&self) -> &'static str {
        "one_zero"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_steps(plan, &mut |plan| {
            let schema = merge_schema(&plan.inputs());
            let given = rewrite_keeping_names(plan, |expr| Ok(self.expression(expr, &schema)))?;
            let given = given.transform_data(|plan| self.step(plan, &schema))?;
            if given.transformed {
                given.map_data(LogicalPlan::recompute_schema)
            } else {
                Ok(given)
            }
        })
    }
}

/// The value, with one zero by that function if it may hold two.
fn given(function: &ScalarUDF, value: Expr, schema: &DFSchema) -> Expr {
    if type_of(&value, schema).is_some_and(|data_type| has_zeros(&data_type)) {
        function.call(vec![value])
    } else {
        value
    }
}

/// Whether an aggregate is made of values each of which counts once.
fn tells_values_apart(call: &AggregateFunction) -> bool {
    call.params.distinct || call.func.name() == "approx_distinct"
}

/// The type of a value. What cannot be typed is refused by whoever plans it.
fn type_of(value: &Expr, schema: &DFSchema) -> Option<DataType> {
    match value {
        // Chains of conditions are as long as a query allows: asking each part for its type would take long.
        Expr::BinaryExpr(BinaryExpr { op, .. })
            if compares(*op) || matches!(op, Operator::And | Operator::Or) =>
        {
            None
        }
        value => value.get_type(schema).ok(),
    }
}

/// Whether it is a list or structure of a type whose zeros the engine tells apart wherever it compares them.
fn is_kept_apart(data_type: &DataType) -> bool {
    data_type.is_nested() && has_zeros(data_type)
}

fn is_nested(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        // Of all operators only this one makes lists.
        Expr::BinaryExpr(BinaryExpr { op, .. }) if *op != Operator::StringConcat => false,
        value => type_of(value, schema).is_some_and(|data_type| is_kept_apart(&data_type)),
    }
}

/// The value of an expression, if it is a constant, converted to the type that it has there.
fn constant(value: &Expr) -> Option<ScalarValue> {
    match value {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) => constant(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        Expr::Negative(value) => constant(value)?.arithmetic_negate().ok(),
        _ => None,
    }
}

/// Whether the optimizer makes a constant of it.
fn is_computed_before(value: &Expr) -> bool {
    match value {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_computed_before(&cast.expr),
        Expr::TryCast(cast) => is_computed_before(&cast.expr),
        Expr::Negative(value) => is_computed_before(value),
        Expr::BinaryExpr(pair) => is_computed_before(&pair.left) && is_computed_before(&pair.right),
        Expr::ScalarFunction(call) => {
            call.func.signature().volatility != Volatility::Volatile
                && call.args.iter().all(is_computed_before)
        }
        _ => false,
    }
}
