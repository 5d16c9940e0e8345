//! Reads a comparison with `ANY` of an array so that it is unknown where SQL says so.
//!
//! The engine looks for the item alone: where it is not found, it is false that one compares so, also beside
//! an item that is null. `= ANY` of items that are written down is `IN` a list, of which the engine knows
//! better. Any other comparison is asked again what its array has ([`AnyItem`]). Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value, VisitorMut};

use crate::query::sql::meaning::any_item::AnyItem;

use super::called::call;
use super::clauses::Refusal;
use super::copies::Copies;
use super::distinct_from::taken;

/// Rewrites the comparisons of a query with items of arrays.
#[derive(Default)]
pub(super) struct AnyItems {
    copies: Copies,
}

impl VisitorMut for AnyItems {
    type Break = Refusal;

    /// What is inside an expression was visited before.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Refusal> {
        let Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        if matches!(right.as_ref(), Expr::Subquery(_)) {
            return ControlFlow::Continue(());
        }
        if *compare_op == BinaryOperator::Eq
            && let Some(items) = written_down(right)
        {
            *expr = among(left, items);
            return ControlFlow::Continue(());
        }
        let (items, value) = match (self.copies.copy(right), self.copies.copy(left)) {
            (Ok(items), Ok(value)) => (items, value),
            (Err(refused), _) | (_, Err(refused)) => return ControlFlow::Break(refused),
        };
        let found = taken(expr);
        *expr = call(AnyItem::NAME, vec![found, *items, *value]);
        ControlFlow::Continue(())
    }
}

/// The items of an array, if they are written down.
fn written_down(array: &mut Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Nested(inner) => written_down(inner),
        Expr::Array(array) => Some(std::mem::take(&mut array.elem)),
        _ => None,
    }
}

fn among(value: &mut Expr, items: Vec<Expr>) -> Expr {
    if items.is_empty() {
        return Expr::Value(Value::Boolean(false).into());
    }
    Expr::InList {
        expr: Box::new(taken(value)),
        list: items,
        negated: false,
    }
}
