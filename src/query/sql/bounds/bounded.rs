//! Functions whose results are longer than their input, with a limit on the length; and those that take
//! longer, with a limit too.
//!
//! Nested calls let results explode with a few words of text, and results are in no memory pool. So the size
//! of a result is checked before it is made, and a query may only make a limited number of them at a time.
//! Knows functions and arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::stand_in::{Change, StandIn};
use crate::query::sql::walking::change_steps;

use super::arguments::{bytes, items, lengths, longer_by, longest, numbers, written};
use super::growth::{Growth, refuse_large};
use super::pattern_sizes::PatternSizes;
use super::{endless, matching, widths};

/// The most comparisons for one batch of rows, which cannot be interrupted.
const MOST_COMPARISONS: usize = 1 << 26;
/// The number of bytes that are compared as fast as two numbers.
const AT_ONCE: usize = 32;
/// The most calls of such functions in one query.
const MOST_CALLS: usize = 64;

/// The most bytes of a character.
const CHARACTER_BYTES: usize = 4;

/// A limit on what a function makes, or on how long it takes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct Bounded {
    growth: Growth,
}

impl Bounded {
    /// The function itself or, if it needs a limit, a bounded version of it.
    pub(in crate::query::sql) fn around(function: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        let Some(growth) = Growth::of(function.name()) else {
            return Arc::clone(function);
        };
        if StandIn::<Self>::is(function) {
            return Arc::clone(function);
        }
        Self { growth }.of(function)
    }

    fn of(self, function: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(StandIn::new(function, self)))
    }

    fn refuse_growth(&self, function: &str, arguments: &ScalarFunctionArgs) -> Result<()> {
        let rows = if arguments
            .args
            .iter()
            .any(|value| matches!(value, ColumnarValue::Array(_)))
        {
            arguments.number_rows
        } else {
            1
        };
        let sizes = arguments.args.iter().map(|value| bytes(value, rows));
        let size = match self.growth {
            Growth::Sum => sizes.fold(0, usize::saturating_add),
            Growth::Joined => {
                let separator = arguments.args.first();
                let separator: usize = separator.map_or(0, |value| lengths(value, rows).into_iter().sum());
                // The sum has it once already.
                let others = arguments.args.len().saturating_sub(2);
                sizes.fold(others.saturating_mul(separator), usize::saturating_add)
            }
            Growth::Product => {
                let longest = arguments
                    .args
                    .iter()
                    .skip(1)
                    .map(longest)
                    .max()
                    .unwrap_or_default();
                let first = arguments.args.first().map_or(0, |value| bytes(value, rows));
                first.saturating_mul(longest.saturating_add(1))
            }
            Growth::JoinedItems => {
                let list = arguments.args.first();
                let held = list.map(|value| items(value, rows)).unwrap_or_default();
                let others = arguments.args.iter().skip(1).map(longest);
                let beside_each = others.fold(0, usize::saturating_add);
                held.count.saturating_mul(beside_each).saturating_add(held.bytes)
            }
            Growth::Written => arguments.args.get(1).map_or(0, |format| written(format, rows)),
            Growth::Replacement | Growth::Replacements => {
                let list = arguments.args.first();
                let replaced = if self.growth == Growth::Replacement {
                    rows
                } else {
                    list.map_or(0, |value| lengths(value, rows).into_iter().sum())
                };
                let item = arguments.args.get(2).map_or(0, longer_by);
                let first = list.map_or(0, |value| bytes(value, rows));
                replaced.saturating_mul(item).saturating_add(first)
            }
            Growth::Zipped => {
                let mut longest = vec![0; rows];
                for value in &arguments.args {
                    let lists = longest.iter_mut().zip(lengths(value, rows));
                    lists.for_each(|(longest, length)| *longest = length.max(*longest));
                }
                let items: usize = longest.into_iter().sum();
                let kinds = arguments.args.iter().map(ColumnarValue::data_type);
                let padded = kinds.map(|lists| widths::of_missing_items(&lists).saturating_mul(items));
                sizes.chain(padded).fold(0, usize::saturating_add)
            }
            Growth::Padding => {
                let first = arguments.args.first().map_or(0, |value| bytes(value, rows));
                let padded = numbers(arguments.args.get(1), rows).into_iter();
                let padded = padded.map(|characters| characters.saturating_mul(CHARACTER_BYTES));
                padded.fold(first, usize::saturating_add)
            }
            Growth::Repetition => {
                let texts = arguments.args.first().map(|value| lengths(value, rows));
                let times = numbers(arguments.args.get(1), rows);
                let repeated = texts.into_iter().flatten().zip(times);
                let repeated = repeated.map(|(bytes, times)| bytes.saturating_mul(times));
                repeated.fold(0, usize::saturating_add)
            }
            Growth::Comparisons => return refuse_comparisons(function, &arguments.args, rows),
        };
        refuse_large(function, size)
    }
}

fn refuse_comparisons(function: &str, arguments: &[ColumnarValue], rows: usize) -> Result<()> {
    let [first, second, ..] = arguments else {
        return Ok(());
    };
    let (firsts, seconds) = (lengths(first, rows), lengths(second, rows));
    let pairs = firsts.into_iter().zip(&seconds);
    let compared = pairs.map(|(first, second)| first.saturating_mul(*second));
    // Comparing two long texts means comparing their bytes.
    let most = seconds.iter().max().copied().unwrap_or_default();
    let long = (bytes(first, 1) / AT_ONCE).saturating_mul(most);
    if compared.fold(long, usize::saturating_add) <= MOST_COMPARISONS {
        return Ok(());
    }
    exec_err!("{function} would make more than {MOST_COMPARISONS} comparisons at once; give it less")
}

impl Change for Bounded {
    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.refuse_growth(engine.name(), &arguments)?;
        engine.invoke_with_args(arguments)
    }
}

/// The plan with limits on functions that the planner itself inserts: lists, structs and `||`; and on
/// patterns.
pub(in crate::query::sql) fn limit_functions(plan: LogicalPlan) -> Result<LogicalPlan> {
    let joined = Arc::new(ScalarUDF::new_from_impl(JoinedTexts::new()));
    let growth = Growth::Sum;
    let joined = Bounded { growth }.of(&joined);
    let mut calls = 0;
    let mut sizes = PatternSizes::new();
    let rewritten = change_steps(plan, &mut |plan| {
        rewrite_keeping_names(plan, |expr| {
            endless::refuse(&expr, &mut sizes)?;
            // What is weighed is computed in parts, and the limit on results is one for all of them.
            let weighed = matching::weighed(expr);
            let bounded = weighed.transform_data(|expr| Ok(bounded_expr(expr, &joined)))?;
            calls += usize::from(is_bounded(&bounded.data));
            Ok(bounded)
        })
    })?;
    if calls > MOST_CALLS {
        return plan_err!(
            "the query calls functions that make texts and lists, or compare their parts, more than \
             {MOST_CALLS} times; ask in several queries"
        );
    }
    Ok(rewritten)
}

fn is_bounded(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if StandIn::<Bounded>::is(&call.func))
}

fn bounded_expr(expr: Expr, joined: &Arc<ScalarUDF>) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(call) => {
            let func = Bounded::around(&call.func);
            let changed = !Arc::ptr_eq(&func, &call.func);
            let expr = Expr::ScalarFunction(ScalarFunction {
                func,
                args: call.args,
            });
            if changed {
                Transformed::yes(expr)
            } else {
                Transformed::no(expr)
            }
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::StringConcat,
            right,
        }) => Transformed::yes(Expr::ScalarFunction(ScalarFunction {
            func: Arc::clone(joined),
            args: vec![*left, *right],
        })),
        expr => Transformed::no(expr),
    }
}

/// `a || b`: both texts, one after the other; null where either is null.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JoinedTexts {
    signature: Signature,
}

impl JoinedTexts {
    fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for JoinedTexts {
    fn name(&self) -> &'static str {
        "joined_texts"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let is_nested = |data_type: &DataType| data_type.is_nested();
        if given.len() == 2 && !given.iter().any(is_nested) {
            Ok(vec![DataType::Utf8; 2])
        } else {
            plan_err!("'||' joins two texts, or lists of the same kind")
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = arguments.args.as_slice() else {
            return exec_err!("'||' joins two texts");
        };
        let rows = arguments.number_rows;
        let text = |value: &ColumnarValue| -> Result<_, DataFusionError> {
            Ok(cast(&value.to_array(rows)?, &DataType::Utf8)?)
        };
        let (left, right) = (text(left)?, text(right)?);
        let (left, right): (&StringArray, &StringArray) = (left.as_string(), right.as_string());
        let mut joined =
            StringBuilder::with_capacity(rows, left.value_data().len() + right.value_data().len());
        for (left, right) in left.iter().zip(right.iter()) {
            match (left, right) {
                (Some(left), Some(right)) => joined.append_value([left, right].concat()),
                _ => joined.append_null(),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(joined.finish())))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::functions::regex::regexp_replace;
    use datafusion::logical_expr::{LogicalPlanBuilder, lit};

    use super::*;
    use crate::query::sql::bounds::growth::LARGEST_RESULT;

    #[test]
    fn what_a_replacement_makes_of_a_batch_is_limited_as_a_whole() {
        let arguments = ["aaa", "a|(xyzq){700}", "b", "g"].map(lit).to_vec();
        let replaced = regexp_replace().call(arguments).alias("replaced");
        let rows = LogicalPlanBuilder::values(vec![vec![lit(1)]]).unwrap();
        let plan = rows.project(vec![replaced]).unwrap().build().unwrap();
        let limited = limit_functions(plan).unwrap();
        let called = limited.expressions().remove(0).unalias_nested().data;
        assert!(is_bounded(&called), "{called:?}");
    }

    fn texts(texts: &[String]) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(StringArray::from_iter_values(texts)))
    }

    /// A list of so many short texts, as one value.
    fn list_of(items: usize) -> ColumnarValue {
        let items = vec![ScalarValue::from("a"); items];
        let list = ScalarValue::new_list(&items, &DataType::Utf8, true);
        ColumnarValue::Scalar(ScalarValue::List(list))
    }

    fn is_refused(growth: Growth, args: Vec<ColumnarValue>, rows: usize) -> bool {
        let arguments = ScalarFunctionArgs {
            args,
            arg_fields: Vec::new(),
            number_rows: rows,
            return_field: Arc::new(Field::new("", DataType::Utf8, true)),
            config_options: Arc::default(),
        };
        Bounded { growth }.refuse_growth("it", &arguments).is_err()
    }

    #[test]
    fn a_separator_counts_between_each_two() {
        let separator = "x".repeat(LARGEST_RESULT / 10);
        let joined = |texts: usize| {
            let mut args = vec![ColumnarValue::Scalar(separator.as_str().into())];
            args.resize_with(1 + texts, || ColumnarValue::Scalar("a".into()));
            args
        };
        assert!(!is_refused(Growth::Joined, joined(9), 1));
        assert!(is_refused(Growth::Joined, joined(12), 1));
    }

    #[test]
    fn what_is_joined_counts_as_long_as_it_is_written() {
        let truths = vec![ScalarValue::from(false); 4000];
        let truths = ScalarValue::new_list(&truths, &DataType::Boolean, true);
        let joined = |separator: usize| {
            let list = ColumnarValue::Scalar(ScalarValue::List(Arc::clone(&truths)));
            vec![list, ColumnarValue::Scalar("x".repeat(separator).as_str().into())]
        };
        assert!(!is_refused(Growth::JoinedItems, joined(1000), 1));
        assert!(is_refused(Growth::JoinedItems, joined(4000), 1));
    }

    #[test]
    fn short_items_are_joined_in_great_numbers() {
        let fits = |item: ScalarValue, items: usize| {
            let items = vec![item; items];
            let list = ScalarValue::new_list(&items, &items[0].data_type(), true);
            let list = ColumnarValue::Scalar(ScalarValue::List(list));
            let separator = ColumnarValue::Scalar(",".into());
            !is_refused(Growth::JoinedItems, vec![list, separator], 1)
        };
        let moment = ScalarValue::TimestampMicrosecond(Some(0), Some("+00:00".into()));
        assert!(fits(moment.clone(), 100_000) && !fits(moment, 200_000));
        let date = ScalarValue::Date32(Some(0));
        assert!(fits(date.clone(), 250_000) && !fits(date, 400_000));
        let (fraction, least_fraction) = (ScalarValue::from(62.5), ScalarValue::from(f64::MIN));
        assert!(fits(fraction, 250_000) && !fits(least_fraction, 20_000));
        let (whole, least_whole) = (ScalarValue::from(60_i64), ScalarValue::from(i64::MIN));
        assert!(fits(whole, 250_000) && !fits(least_whole, 220_000));
    }

    #[test]
    fn two_bytes_of_a_format_may_be_a_whole_moment() {
        let written = |parts: &str, times: usize| {
            let moment = ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(0), None));
            vec![moment, ColumnarValue::Scalar(parts.repeat(times).as_str().into())]
        };
        assert!(!is_refused(
            Growth::Written,
            written("%Y-%m-%d %H:%M:%S ", 10_000),
            1
        ));
        assert!(is_refused(Growth::Written, written("%c ", 400_000), 1));
    }

    #[test]
    fn each_item_may_become_as_long_as_what_replaces_it() {
        let replaced = |items: usize, by: usize| {
            let to = ColumnarValue::Scalar(ScalarValue::Utf8(Some("x".repeat(by))));
            vec![list_of(items), ColumnarValue::Scalar("a".into()), to]
        };
        assert!(!is_refused(Growth::Replacements, replaced(1000, 4000), 1));
        assert!(is_refused(Growth::Replacements, replaced(1000, 5000), 1));
        assert!(!is_refused(Growth::Replacement, replaced(1000, 1 << 20), 1));
        // What is as short as an item makes no list longer, however many of them it replaces.
        assert!(!is_refused(Growth::Replacements, replaced(250_000, 1), 1));
        let mut by_none = replaced(250_000, 1);
        by_none[2] = ColumnarValue::Scalar(ScalarValue::Utf8(None));
        assert!(!is_refused(Growth::Replacements, by_none, 1));
        // One for each row.
        let mut by_row = replaced(2, 1 << 20);
        by_row[1] = texts(&["a", "b", "c", "d", "e"].map(str::to_owned));
        assert!(is_refused(Growth::Replacement, by_row, 5));
    }

    #[test]
    fn what_is_missing_beside_a_long_list_takes_room() {
        let zipped = |short: usize| {
            let mut lists = vec![list_of(1000)];
            lists.resize_with(1 + short, || list_of(1));
            lists
        };
        assert!(!is_refused(Growth::Zipped, zipped(10), 1));
        assert!(is_refused(Growth::Zipped, zipped(300), 1));
    }
}
