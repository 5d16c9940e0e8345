//! Reads a comparison with `ANY` of an array so that it is unknown where SQL says so.
//!
//! The engine looks for the item alone: where it is not found, it is false that one compares so, also beside
//! an item that is null. `= ANY` of items that are written down is `IN` a list, of which the engine knows
//! better. Any other comparison is asked again what its array has ([`AnyItem`]); of an array of constants,
//! which may be long, that is told by one of them. Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Array, BinaryOperator, Expr, UnaryOperator, Value, VisitorMut};

use crate::query::sql::meaning::any_item::AnyItem;

use super::called::call;
use super::copies::Copies;
use super::distinct_from::taken;
use super::refusal::Refusal;

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
        let (items, value) = match (self.told_by(right), self.copies.copy(left)) {
            (Ok(items), Ok(value)) => (items, value),
            (Err(refused), _) | (_, Err(refused)) => return ControlFlow::Break(refused),
        };
        let found = taken(expr);
        *expr = call(AnyItem::NAME, vec![found, items, *value]);
        ControlFlow::Continue(())
    }
}

impl AnyItems {
    /// An array that is missing, empty, or has a null if and only if `array` is or has.
    fn told_by(&mut self, array: &Expr) -> Result<Expr, Refusal> {
        match array {
            Expr::Nested(inner) => self.told_by(inner),
            Expr::Array(written) if written.elem.iter().all(is_constant) => {
                let null = written.elem.iter().find(|item| is_null(item));
                let one = null.or_else(|| written.elem.first());
                Ok(Expr::Array(Array {
                    elem: one.into_iter().cloned().collect(),
                    named: written.named,
                }))
            }
            array => self.copies.copy(array).map(|copy| *copy),
        }
    }
}

fn is_constant(item: &Expr) -> bool {
    match item {
        Expr::Value(_) => true,
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_constant(expr),
        _ => false,
    }
}

fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Value(value) => value.value == Value::Null,
        Expr::UnaryOp { expr, .. } => is_null(expr),
        _ => false,
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
