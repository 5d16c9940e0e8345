//! Walks through a query: through what was parsed, and through the steps of its plan.
//!
//! The ways through the parser's hundreds of kinds of parts, and through the engine's kinds of steps, are
//! generic and compiled anew for whatever walks there: for all that does so in this room, that would be a
//! tenth of all that is compiled here. So nothing walks but what hands everything on. Knows nothing of what
//! is looked for or changed.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

/// Shows `visitor` everything in `part`, until it breaks off.
pub(in crate::query::sql) fn look_through<B>(
    part: &impl Visit,
    visitor: &mut dyn Visitor<Break = B>,
) -> ControlFlow<B> {
    part.visit(&mut HandingOn(visitor))
}

/// Lets `visitor` change everything in `part`, until it breaks off.
pub(in crate::query::sql) fn change_through<B>(
    part: &mut impl VisitMut,
    visitor: &mut dyn VisitorMut<Break = B>,
) -> ControlFlow<B> {
    part.visit(&mut HandingOnMut(visitor))
}

/// Shows `look` each expression in `part`, before those within it.
pub(in crate::query::sql) fn look_at_expressions<B>(
    part: &impl Visit,
    look: &mut dyn FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    look_through(part, &mut Looking(look))
}

/// Lets `change` change each expression in `part`, after those within it.
pub(in crate::query::sql) fn change_expressions<B>(
    part: &mut impl VisitMut,
    change: &mut dyn FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    change_through(part, &mut Changing(change))
}

/// The plan in which `change` was given each step, those of subqueries too, after the steps below it.
pub(in crate::query::sql) fn change_steps(
    plan: LogicalPlan,
    change: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(change)?.data)
}

struct HandingOn<'v, B>(&'v mut dyn Visitor<Break = B>);

struct HandingOnMut<'v, B>(&'v mut dyn VisitorMut<Break = B>);

macro_rules! hand_on {
    ($($question:ident($part:ty),)+) => {
        $(fn $question(&mut self, part: $part) -> ControlFlow<B> {
            self.0.$question(part)
        })+
    };
}

impl<B> Visitor for HandingOn<'_, B> {
    type Break = B;

    hand_on!(
        pre_visit_query(&Query),
        post_visit_query(&Query),
        pre_visit_select(&Select),
        post_visit_select(&Select),
        pre_visit_relation(&ObjectName),
        post_visit_relation(&ObjectName),
        pre_visit_table_factor(&TableFactor),
        post_visit_table_factor(&TableFactor),
        pre_visit_expr(&Expr),
        post_visit_expr(&Expr),
        pre_visit_statement(&Statement),
        post_visit_statement(&Statement),
        pre_visit_value(&ValueWithSpan),
        post_visit_value(&ValueWithSpan),
    );
}

impl<B> VisitorMut for HandingOnMut<'_, B> {
    type Break = B;

    hand_on!(
        pre_visit_query(&mut Query),
        post_visit_query(&mut Query),
        pre_visit_select(&mut Select),
        post_visit_select(&mut Select),
        pre_visit_relation(&mut ObjectName),
        post_visit_relation(&mut ObjectName),
        pre_visit_table_factor(&mut TableFactor),
        post_visit_table_factor(&mut TableFactor),
        pre_visit_expr(&mut Expr),
        post_visit_expr(&mut Expr),
        pre_visit_statement(&mut Statement),
        post_visit_statement(&mut Statement),
        pre_visit_value(&mut ValueWithSpan),
        post_visit_value(&mut ValueWithSpan),
    );
}

struct Looking<'f, B>(&'f mut dyn FnMut(&Expr) -> ControlFlow<B>);

impl<B> Visitor for Looking<'_, B> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        (self.0)(expr)
    }
}

struct Changing<'f, B>(&'f mut dyn FnMut(&mut Expr) -> ControlFlow<B>);

impl<B> VisitorMut for Changing<'_, B> {
    type Break = B;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        (self.0)(expr)
    }
}
