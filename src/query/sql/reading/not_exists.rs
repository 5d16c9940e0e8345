//! Reads `NOT EXISTS` as `NOT` before `EXISTS`.
//!
//! The parser takes the two words for one that binds more than any operator. In SQL `NOT` binds less than all
//! of them but `AND` and `OR`: `NOT EXISTS (…) IS NULL` denies that something is null. Knows expressions
//! only.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator, VisitorMut};

use super::distinct_from::taken;

/// Puts the `NOT` of a query where it belongs.
pub(super) struct NotPlacement;

impl VisitorMut for NotPlacement {
    type Break = Infallible;

    /// What is inside an expression was visited before.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if operand(expr).is_some_and(is_freed) {
            let inner = taken(expr);
            *expr = Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(inner),
            };
        }
        ControlFlow::Continue(())
    }
}

/// Takes away the `NOT` that an operand begins with, if it has one. None is there but that of `NOT EXISTS`,
/// and those that were put in front of an operand before: every other takes the operator for a part of what
/// it denies, unless it is in parentheses, and these are expressions of their own.
fn is_freed(operand: &mut Expr) -> bool {
    match operand {
        Expr::Exists { negated, .. } => std::mem::take(negated),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => {
            let inner = taken(expr);
            *operand = inner;
            true
        }
        _ => false,
    }
}

/// What stands on the left of an operator that binds more than `NOT`.
fn operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp {
            op: BinaryOperator::And | BinaryOperator::Or,
            ..
        } => None,
        Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand)
        | Expr::IsDistinctFrom(operand, _)
        | Expr::IsNotDistinctFrom(operand, _)
        | Expr::IsNormalized { expr: operand, .. }
        | Expr::InList { expr: operand, .. }
        | Expr::InSubquery { expr: operand, .. }
        | Expr::InUnnest { expr: operand, .. }
        | Expr::Between { expr: operand, .. }
        | Expr::Like { expr: operand, .. }
        | Expr::ILike { expr: operand, .. }
        | Expr::SimilarTo { expr: operand, .. }
        | Expr::RLike { expr: operand, .. }
        | Expr::AnyOp { left: operand, .. }
        | Expr::AllOp { left: operand, .. }
        | Expr::BinaryOp { left: operand, .. }
        | Expr::AtTimeZone {
            timestamp: operand, ..
        }
        | Expr::Collate { expr: operand, .. }
        | Expr::Cast {
            kind: CastKind::DoubleColon,
            expr: operand,
            ..
        } => Some(operand),
        _ => None,
    }
}
