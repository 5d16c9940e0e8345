//! Conversions, which keep the name of what they are made from, and calls that have one name because of it.
//!
//! Knows the grammar only.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Select, Value};

use crate::query::sql::meaning::all_years::AtTimeZone;
use crate::query::sql::walking::{change_expressions, look_at_expressions};

/// Whether an expression has the name of what it is made from.
pub(super) fn keeps_name(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { .. } => true,
        Expr::Function(call) => call.name.to_string() == AtTimeZone::NAME,
        _ => false,
    }
}

/// The conversions in calls of functions that differ in conversions only.
pub(super) fn in_calls_alike(select: &Select) -> Vec<Expr> {
    let mut calls: BTreeMap<Expr, Vec<Expr>> = BTreeMap::new();
    let ControlFlow::Continue(()) = look_at_expressions(select, &mut |expr| -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Function(_)) && !keeps_name(expr) {
            let alike = calls.entry(unconverted(expr.clone())).or_default();
            if !alike.contains(expr) {
                alike.push(expr.clone());
            }
        }
        ControlFlow::Continue(())
    });
    let mut conversions = Vec::new();
    for call in calls.into_values().filter(|alike| alike.len() > 1).flatten() {
        let ControlFlow::Continue(()) = look_at_expressions(&call, &mut |expr| -> ControlFlow<Infallible> {
            if keeps_name(expr) {
                conversions.push(expr.clone());
            }
            ControlFlow::Continue(())
        });
    }
    conversions
}

/// An expression of the same name that has no conversions.
fn unconverted(mut expr: Expr) -> Expr {
    let ControlFlow::Continue(()) = change_expressions(&mut expr, &mut |part| -> ControlFlow<Infallible> {
        if let Some(inner) = converted(part) {
            *part = inner;
        }
        ControlFlow::Continue(())
    });
    expr
}

/// What is converted, or stands in parentheses.
fn converted(expr: &mut Expr) -> Option<Expr> {
    let inner = match expr {
        Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => inner.as_mut(),
        Expr::Function(call) if call.name.to_string() == AtTimeZone::NAME => match &mut call.args {
            FunctionArguments::List(list) => match list.args.first_mut() {
                Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))) => inner,
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    Some(std::mem::replace(inner, Expr::Value(Value::Null.into())))
}
