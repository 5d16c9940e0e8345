//! Zero and negative zero as the one number that they are.
//!
//! The engine takes them for equal where it compares or groups numbers, but tells them apart where it looks a
//! number up in a list, compares lists and structures, numbers rows by a value, chooses among cases, or
//! aggregates what is distinct, and so does the optimizer where it compares constants. There a query is given
//! one zero. What is stored and returned keeps its sign. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::utils::normalize_float_zero;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference, internal_err};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr, InList, Sort as SortExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, ExprSchemable as _, LogicalPlan, Operator, Projection, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::sql::keep_names::rewrite_keeping_names;

use super::by_array::by_array;
use super::moments::compares;

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
        let function = |keeps_name: bool| {
            Arc::new(ScalarUDF::new_from_impl(WithOneZero {
                signature: Signature::any(1, Volatility::Immutable),
                keeps_name,
            }))
        };
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
        let Some(held) = held(&expr, schema).filter(has_zeros) else {
            return Transformed::no(Expr::InList(InList::new(expr, list, negated)));
        };
        let constants: Option<Vec<ScalarValue>> = list.iter().map(constant).collect();
        if let (Some(constants), Some(zeros)) = (constants, zeros(&held)) {
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
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let given = rewrite_keeping_names(plan, |expr| Ok(self.expression(expr, &schema)))?;
            let given = given.transform_data(|plan| self.step(plan, &schema))?;
            if given.transformed {
                given.map_data(LogicalPlan::recompute_schema)
            } else {
                Ok(given)
            }
        })?;
        Ok(rewritten.data)
    }
}

/// The value, with one zero by that function if it may hold two.
fn given(function: &ScalarUDF, value: Expr, schema: &DFSchema) -> Expr {
    if held(&value, schema).is_some_and(|held| has_zeros(&held)) {
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
fn held(value: &Expr, schema: &DFSchema) -> Option<DataType> {
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

/// Whether values of a type hold fractions, which have two zeros.
fn has_zeros(held: &DataType) -> bool {
    match held {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_zeros(item.data_type())
        }
        DataType::Struct(members) => members.iter().any(|member| has_zeros(member.data_type())),
        held => held.is_floating(),
    }
}

/// Whether it is a list or structure of a type whose zeros the engine tells apart wherever it compares them.
fn is_kept_apart(held: &DataType) -> bool {
    held.is_nested() && has_zeros(held)
}

fn is_nested(value: &Expr, schema: &DFSchema) -> bool {
    match value {
        // Of all operators only this one makes lists.
        Expr::BinaryExpr(BinaryExpr { op, .. }) if *op != Operator::StringConcat => false,
        value => held(value, schema).is_some_and(|held| is_kept_apart(&held)),
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

const fn is_zero(value: &ScalarValue) -> bool {
    matches!(
        value,
        ScalarValue::Float64(Some(0.0)) | ScalarValue::Float32(Some(0.0))
    )
}

/// The two zeros of a type of numbers.
fn zeros(held: &DataType) -> Option<[ScalarValue; 2]> {
    match held {
        DataType::Float64 => Some([0.0, -0.0].map(|zero| ScalarValue::Float64(Some(zero)))),
        DataType::Float32 => Some([0.0, -0.0].map(|zero| ScalarValue::Float32(Some(zero)))),
        _ => None,
    }
}

/// Gives the lists that the optimizer makes both zeros, if they have one.
///
/// It makes one list of `w = 0.0 OR w = 5.0 OR …` as soon as all of these values are constants, which some
/// are only once it has computed them or has found them in a subquery.
#[derive(Debug)]
pub(in crate::query::sql) struct BothZeros;

impl OptimizerRule for BothZeros {
    fn name(&self) -> &'static str {
        "both_zeros"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        rewrite_keeping_names(plan, |expr| Ok(with_both_zeros(expr)))
    }
}

fn with_both_zeros(expr: Expr) -> Transformed<Expr> {
    let Expr::InList(mut list) = expr else {
        return Transformed::no(expr);
    };
    let mut first = None;
    let mut has_both = false;
    for member in &list.list {
        match member {
            Expr::Literal(value, _) if is_zero(value) => {
                has_both |= *first.get_or_insert(value) != value;
            }
            Expr::Literal(..) => {}
            // Such a list is compared with values that have one zero.
            _ => return Transformed::no(Expr::InList(list)),
        }
    }
    let lacking = first.filter(|_| !has_both).and_then(other_zero);
    let lacks = lacking.is_some();
    list.list.extend(lacking.map(|zero| Expr::Literal(zero, None)));
    Transformed::new_transformed(Expr::InList(list), lacks)
}

/// The zero with the other sign. Zeros are told apart by their bits here.
fn other_zero(zero: &ScalarValue) -> Option<ScalarValue> {
    let zeros = zeros(&zero.data_type())?;
    zeros.into_iter().find(|other| other != zero)
}

/// The value that it is given, in which negative zeros are zeros.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithOneZero {
    signature: Signature,
    /// Whether its column is called as that of the value.
    keeps_name: bool,
}

impl ScalarUDFImpl for WithOneZero {
    /// As plans show it.
    fn name(&self) -> &'static str {
        "one_zero"
    }

    /// The name of a column. Of what is distinct it is that of the value: the engine groups by what one
    /// aggregate finds distinct, but not if that aggregate has to be given its name back. Beside the value
    /// itself, as where two tables are joined by it, it has to be another one.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        let [value] = given else {
            return internal_err!("{} takes one value", self.name());
        };
        let name = value.schema_name();
        Ok(if self.keeps_name {
            name.to_string()
        } else {
            format!("{}({name})", self.name())
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let held = given.first().cloned();
        held.map_or_else(|| internal_err!("{} takes a value", self.name()), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = given.arg_fields.first() else {
            return internal_err!("{} takes a value", self.name());
        };
        Ok(Arc::new(field.as_ref().clone().with_name(self.name())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else {
            return internal_err!("{} takes one value", self.name());
        };
        by_array(value, with_one_zero)
    }
}

fn with_one_zero(values: &ArrayRef) -> Result<ArrayRef> {
    if !has_zeros(values.data_type()) {
        return Ok(Arc::clone(values));
    }
    Ok(match values.data_type() {
        DataType::List(_) => list_with_one_zero::<i32>(values)?,
        DataType::LargeList(_) => list_with_one_zero::<i64>(values)?,
        DataType::FixedSizeList(_, _) => {
            let (field, size, items, nulls) = values.as_fixed_size_list().clone().into_parts();
            Arc::new(FixedSizeListArray::try_new(
                field,
                size,
                with_one_zero(&items)?,
                nulls,
            )?)
        }
        DataType::Struct(_) => {
            let (fields, members, nulls) = values.as_struct().clone().into_parts();
            let members = members.iter().map(with_one_zero).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields, members, nulls)?)
        }
        _ => normalize_float_zero(values),
    })
}

fn list_with_one_zero<Offset: OffsetSizeTrait>(lists: &ArrayRef) -> Result<ArrayRef> {
    let (field, mut offsets, mut items, nulls) = lists.as_list::<Offset>().clone().into_parts();
    // A part of a batch has the items of the whole batch, which must not be turned again for each part.
    if let (Some(first), Some(last)) = (offsets.first().copied(), offsets.last().copied())
        && last - first < Offset::usize_as(items.len())
    {
        items = items.slice(first.as_usize(), (last - first).as_usize());
        offsets = OffsetBuffer::new(offsets.iter().map(|offset| *offset - first).collect());
    }
    let items = with_one_zero(&items)?;
    Ok(Arc::new(GenericListArray::<Offset>::try_new(
        field, offsets, items, nulls,
    )?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, ListArray};
    use datafusion::arrow::datatypes::Float64Type;

    use super::*;

    #[test]
    fn negative_zeros_are_zeros_inside_lists_and_structures_too() {
        let numbers =
            |zero: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![Some(zero), None, Some(-1.0)])) };
        let lists = |zero: f64| -> ArrayRef {
            let lists = [Some(vec![Some(7.0), Some(zero)]), None, Some(vec![None])];
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
        };
        let structures = |zero: f64| -> ArrayRef {
            let columns = [("n", numbers(zero)), ("l", lists(zero))];
            Arc::new(StructArray::try_from(columns.to_vec()).unwrap())
        };
        for (signed, plain) in [
            (numbers(-0.0), numbers(0.0)),
            (lists(-0.0), lists(0.0)),
            (structures(-0.0), structures(0.0)),
        ] {
            // Texts, because comparing would call them equal.
            let text = |values: &ArrayRef| format!("{values:?}");
            assert_ne!(text(&signed), text(&plain));
            assert_eq!(text(&with_one_zero(&signed).unwrap()), text(&plain));
            let sliced = with_one_zero(&signed.slice(1, 2)).unwrap();
            assert_eq!(text(&sliced), text(&plain.slice(1, 2)));
        }
    }

    #[test]
    fn of_a_part_of_lists_only_its_own_items_are_turned() {
        let lists = (0..100).map(|n| Some(vec![Some(f64::from(n)), Some(-0.0)]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
        for (start, length) in [(0, 100), (0, 3), (40, 2), (99, 1), (50, 0)] {
            let turned = with_one_zero(&lists.slice(start, length)).unwrap();
            let turned = turned.as_list::<i32>();
            assert_eq!(turned.values().len(), 2 * length);
            let expected = (start..start + length).flat_map(|n| [n as f64, 0.0]);
            let expected = format!("{:?}", expected.collect::<Vec<_>>());
            let items = turned.values().as_primitive::<Float64Type>().values();
            assert_eq!(format!("{:?}", items.to_vec()), expected);
        }
    }
}
