//! Decides what may be said in the call of a function, where the planner would pass over the rest in silence.
//!
//! Knows the grammar; knows nothing of what names stand for. If the grammar gains a field, this module does
//! not compile until somebody has decided about it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, ObjectNamePart, WindowSpec, WindowType,
};

use crate::query::sql::bounds::endless;
use crate::query::sql::walking::look_at_expressions;

use super::refusal::{Refusal, Where, because, refuse_any, start};
use crate::query::sql::naming::planned_name;

/// Functions of each row that the planner knows by their names, and that are not among its functions.
const PLANNED_BY_NAME: [&str; 3] = ["make_map", "unnest", "unnest_outer"];

/// Refuses what the planner would pass over in a call, and patterns that differ from row to row.
pub(super) fn called(function: &Function) -> ControlFlow<Refusal> {
    let Function {
        name,
        uses_odbc_syntax: _,
        parameters,
        args,
        filter: _,
        null_treatment: _,
        over,
        within_group: _,
    } = function;
    let parameters = !matches!(parameters, FunctionArguments::None);
    let subquery = matches!(args, FunctionArguments::Subquery(_));
    refuse_any(
        [
            ("a function with parameters and arguments", parameters),
            ("a query without parentheses in a call", subquery),
        ],
        function,
    )?;
    over.as_ref().map_or(ControlFlow::Continue(()), over_window)?;
    let FunctionArguments::List(list) = args else {
        return ControlFlow::Continue(());
    };
    let FunctionArgumentList {
        duplicate_treatment,
        args,
        clauses: _,
    } = list;
    if *duplicate_treatment == Some(DuplicateTreatment::Distinct) && args.iter().any(is_of_all_columns) {
        let message = format!(
            "{name}(DISTINCT *) is not allowed; name a column, or ask {name}(*) FROM (SELECT DISTINCT …)"
        );
        return because(message, Where::At(start(function)));
    }
    if name.to_string().to_ascii_lowercase().starts_with("regexp_")
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))) = args.get(1)
    {
        return constant(pattern, endless::OF_EXPRESSIONS);
    }
    ControlFlow::Continue(())
}

/// Refuses, beside the arguments of a function that is computed for each row by itself, what says how many
/// rows are taken together. `is_of_row`: whether a name is that of such a function.
pub(super) fn of_row(expr: &Expr, is_of_row: &dyn Fn(&str) -> bool) -> ControlFlow<Refusal> {
    let Expr::Function(function) = expr else {
        return ControlFlow::Continue(());
    };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return ControlFlow::Continue(());
    };
    let name = planned_name(name);
    let Some(words) = of_several_rows(function) else {
        return ControlFlow::Continue(());
    };
    if !is_of_row(&name) && !PLANNED_BY_NAME.contains(&name.as_str()) {
        return ControlFlow::Continue(());
    }
    because(
        format!("{words} is not allowed with {name}, which takes each row by itself"),
        Where::At(start(function)),
    )
}

/// The words of a call that say which rows are taken together, and in which order.
fn of_several_rows(function: &Function) -> Option<&'static str> {
    let (is_distinct, clauses) = match &function.args {
        FunctionArguments::List(list) => {
            let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            (is_distinct, list.clauses.as_slice())
        }
        FunctionArguments::None | FunctionArguments::Subquery(_) => (false, [].as_slice()),
    };
    let about_null =
        |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_));
    let is_order = |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    let about_nulls = function.null_treatment.is_some() || clauses.iter().any(about_null);
    let words = [
        ("DISTINCT", is_distinct),
        ("ORDER BY", clauses.iter().any(is_order)),
        ("IGNORE or RESPECT NULLS", about_nulls),
        ("WITHIN GROUP", !function.within_group.is_empty()),
        ("FILTER", function.filter.is_some()),
        ("OVER", function.over.is_some()),
    ];
    words
        .into_iter()
        .find(|(_, is_there)| *is_there)
        .map(|(word, _)| word)
}

/// Refuses the name of a window. Those that are defined were replaced by what they stand for.
fn over_window(window: &WindowType) -> ControlFlow<Refusal> {
    let name = match window {
        WindowType::NamedWindow(name) => Some(name),
        WindowType::WindowSpec(WindowSpec {
            window_name,
            partition_by: _,
            order_by: _,
            window_frame: _,
        }) => window_name.as_ref(),
    };
    match name {
        Some(name) => because(
            format!("there is no window {name}; define it with WINDOW"),
            Where::At(name.span.start),
        ),
        None => ControlFlow::Continue(()),
    }
}

fn is_of_all_columns(argument: &FunctionArg) -> bool {
    let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) =
        argument;
    !matches!(arg, FunctionArgExpr::Expr(_))
}

/// Refuses a pattern that differs from row to row, or is itself asked for.
pub(super) fn constant(pattern: &Expr, message: &str) -> ControlFlow<Refusal> {
    look_at_expressions(pattern, &mut |part| match part {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Subquery(_)
        | Expr::Exists { .. }
        | Expr::InSubquery { .. } => because(message, Where::At(start(pattern))),
        _ => ControlFlow::Continue(()),
    })
}
