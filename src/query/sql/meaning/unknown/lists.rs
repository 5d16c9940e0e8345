//! What the optimizer takes for a list, however it is written. Knows expressions; knows nothing of what is
//! done with them.

use datafusion::arrow::array::Array as _;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use super::subqueries::is_subquery;

const ARRAY_HAS: &str = "array_has";
const MAKE_ARRAY: &str = "make_array";
const REGEXP_LIKE: &str = "regexp_like";

/// Whether there is more than one list in a query, or one that has a name: where the name stands, conditions
/// get what stands behind it, each of them.
pub(super) fn may_lists_meet(plan: &LogicalPlan) -> Result<bool> {
    let mut lists = 0;
    plan.apply_with_subqueries(|plan| {
        let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        let uses = if is_condition { 1 } else { 2 };
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                if is_list(part) {
                    lists += uses;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(lists > 1)
}

/// Whether a condition is a list that holds for the same rows after it was merged with others that are.
///
/// Beside `AND`, what lists have in common, and what is left of one without the members of another one, is
/// found by comparing how members are written: the members must be constants, and null in a list of what a
/// value is not would be lost. Beside `OR`, lists of what a value is not become true if they have nothing in
/// common, which they are not for null.
pub(super) fn may_be_merged(condition: &Expr, is_either: bool) -> Result<bool> {
    let (condition, is_opposite) = match condition {
        Expr::Not(inner) => (inner.as_ref(), true),
        condition => (condition, false),
    };
    let Some(list) = as_list(condition)? else {
        return Ok(false);
    };
    let negated = list.negated != is_opposite;
    if (negated && is_either) || list.value.exists(|part| Ok(is_list(part) || is_subquery(part)))? {
        return Ok(false);
    }
    Ok(list.is_constant && (list.is_known || !negated))
}

/// What a list, however it is written, means to the optimizer.
struct List<'a> {
    value: &'a Expr,
    /// Whether all members are the same in every row.
    is_constant: bool,
    /// Whether no member is null.
    is_known: bool,
    negated: bool,
}

/// The list that a condition is or may become, unless it is a chain of `OR`.
fn as_list(condition: &Expr) -> Result<Option<List<'_>>> {
    if let Some(matched) = as_match(condition) {
        return Ok(Some(List {
            value: matched.value,
            is_constant: is_constant(matched.pattern)?,
            is_known: true,
            negated: matched.negated,
        }));
    }
    match condition {
        Expr::InList(list) => {
            let mut is_all_constant = true;
            for member in &list.list {
                is_all_constant &= is_constant(member)?;
            }
            Ok(Some(List {
                value: list.expr.as_ref(),
                is_constant: is_all_constant,
                is_known: list.list.iter().all(is_known),
                negated: list.negated,
            }))
        }
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_HAS => {
            let [items, value] = call.args.as_slice() else {
                return Ok(None);
            };
            Ok(Some(List {
                value,
                is_constant: is_constant(items)?,
                is_known: holds_known(items),
                negated: false,
            }))
        }
        _ => Ok(None),
    }
}

/// A text that is matched with a regular expression.
struct Match<'a> {
    value: &'a Expr,
    pattern: &'a Expr,
    negated: bool,
}

/// The match that a condition is. Where letters of both cases are the same, none becomes a list.
fn as_match(condition: &Expr) -> Option<Match<'_>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::RegexMatch | Operator::RegexNotMatch),
            right,
        }) => Some(Match {
            value: left,
            pattern: right,
            negated: *op == Operator::RegexNotMatch,
        }),
        Expr::ScalarFunction(call) if call.func.name() == REGEXP_LIKE => {
            let [value, pattern, ..] = call.args.as_slice() else {
                return None;
            };
            Some(Match {
                value,
                pattern,
                negated: false,
            })
        }
        _ => None,
    }
}

/// Whether a pattern may mean whole texts, such as `^(foo|bar)$` or `^foo$|^bar$`.
fn may_list_texts(pattern: &Expr) -> bool {
    let text = match pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    text.is_none_or(|text| text.contains(['(', '|']))
}

/// Whether an expression has the same value in every row.
pub(super) fn is_constant(expr: &Expr) -> Result<bool> {
    let varies = expr.exists(|part| {
        Ok(is_subquery(part)
            || is_list(part)
            || matches!(part, Expr::Column(_) | Expr::OuterReferenceColumn(..)))
    })?;
    Ok(!varies)
}

/// Whether a constant is a value, and not null.
fn is_known(constant: &Expr) -> bool {
    match constant {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Cast(cast) => is_known(&cast.expr),
        Expr::Negative(inner) => is_known(inner),
        _ => false,
    }
}

/// Whether an array of constants has no item that is null.
fn holds_known(items: &Expr) -> bool {
    match items {
        Expr::Literal(ScalarValue::List(lists), _) => lists.null_count() + lists.values().null_count() == 0,
        Expr::ScalarFunction(call) if call.func.name() == MAKE_ARRAY => call.args.iter().all(is_known),
        Expr::Cast(cast) => holds_known(&cast.expr),
        _ => false,
    }
}

/// A list, or what the optimizer may make one of: a chain of `OR`, or of what is the same once its `NOT` is
/// written inside, an item that an array has, as `= ANY` of an array is planned, or a match with whole texts.
pub(super) fn is_list(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => true,
        Expr::Not(inner) => matches!(
            inner.as_ref(),
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::And,
                ..
            })
        ),
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_HAS => true,
        expr => as_match(expr).is_some_and(|matched| may_list_texts(matched.pattern)),
    }
}
