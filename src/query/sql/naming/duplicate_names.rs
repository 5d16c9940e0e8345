//! Columns of an answer whose names are the same, which the planner refuses: it wants a name of its own for
//! each column of a SELECT, and for each that ORDER BY adds to them.
//!
//! Only where the planner refused a query for that, its outermost SELECTs are rewritten: `*` becomes the
//! columns that it stands for, those of `REPLACE` among them, a column whose name an earlier one has gets the
//! name that the answer gives it, and an expression without a name gets one to be planned with, which is
//! taken away from it afterwards. So does what has the name of another column by which ORDER BY sorts, as in
//! `SELECT left(t.a, 2) AS a FROM t ORDER BY t.a`. Knows the grammar and plans.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, SchemaError, plan_err};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, Query, ReplaceSelectElement, Select, SelectItem, SetExpr, Visit, With,
};

use super::columns::unique_names;
use super::group_keys::{self, KEY};
use super::planned_name;
use crate::query::sql::unfolding::in_plan;
use crate::query::sql::walking::look_at_expressions;

/// The beginning of the names that expressions are planned with. After a number and a space may come the name
/// that the query gives to one.
const PLANNED_PREFIX: &str = "__column_";

/// Whether a query was refused because of names that are the same.
pub(in crate::query::sql) fn is_about_names(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => {
            !matches!(error.as_ref(), SchemaError::FieldNotFound { .. })
        }
        DataFusionError::Plan(message) => message.contains("require unique expression names"),
        _ => false,
    }
}

/// Whether an error has names in it that the query does not have.
pub(in crate::query::sql) fn tells_of_names(error: &DataFusionError) -> bool {
    let message = error.to_string();
    is_about_names(error) || message.contains(PLANNED_PREFIX) || message.contains(KEY)
}

/// Each `*` of the outermost SELECTs, but for those that one before it is like, and a query whose columns it
/// stands for before `REPLACE`.
pub(in crate::query::sql) fn wildcards(query: &Query) -> Vec<(SelectItem, Query)> {
    let mut probes = Vec::new();
    for (select, with) in outermost(query, &[]) {
        let mut known: Vec<&SelectItem> = Vec::new();
        for item in select.projection.iter().filter(|item| is_wildcard(item)) {
            if known.contains(&item) {
                continue;
            }
            known.push(item);
            let probe = Query {
                with: joined(&with),
                body: Box::new(SetExpr::Select(Box::new(Select {
                    projection: vec![replacing_nothing(item.clone())],
                    distinct: None,
                    top: None,
                    selection: None,
                    group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
                    cluster_by: Vec::new(),
                    sort_by: Vec::new(),
                    having: None,
                    named_window: Vec::new(),
                    qualify: None,
                    ..select.clone()
                }))),
                order_by: None,
                limit_clause: None,
                fetch: None,
                pipe_operators: Vec::new(),
                ..query.clone()
            };
            probes.push((item.clone(), probe));
        }
    }
    probes
}

/// Whether some `*` of the outermost SELECTs has other values in some of its columns.
pub(in crate::query::sql) fn replaces(query: &Query) -> bool {
    let mut items = outermost(query, &[])
        .into_iter()
        .flat_map(|(select, _)| &select.projection);
    items.any(|item| !replaced(item).is_empty())
}

/// The columns of a `*` that have other values.
fn replaced(item: &SelectItem) -> &[Box<ReplaceSelectElement>] {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return &[];
    };
    let replace = options.opt_replace.as_ref();
    replace
        .map(|replace| replace.items.as_slice())
        .unwrap_or_default()
}

fn replacing_nothing(mut item: SelectItem) -> SelectItem {
    if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = &mut item {
        options.opt_replace = None;
    }
    item
}

/// What the `*` stands for whose columns were these before `REPLACE`, which the planner passes over where it
/// names another one.
pub(in crate::query::sql) fn spelled_out(item: &SelectItem, schema: &DFSchema) -> Result<Vec<SelectItem>> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let instead = replaced(item);
    for ReplaceSelectElement { column_name, .. } in instead.iter().map(AsRef::as_ref) {
        if !schema
            .fields()
            .iter()
            .any(|field| *field.name() == column_name.value)
        {
            return plan_err!("there is no column {column_name} that REPLACE could replace");
        }
    }
    let items = schema.iter().map(|(table, field)| {
        let column = quoted(field.name());
        if let Some(other) = instead
            .iter()
            .find(|other| other.column_name.value == *field.name())
        {
            let expr = other.expr.clone();
            return SelectItem::ExprWithAlias { expr, alias: column };
        }
        SelectItem::UnnamedExpr(match table {
            None => Expr::Identifier(column),
            Some(table) => {
                let table = table.to_vec();
                let names = table.iter().map(|name| quoted(name));
                Expr::CompoundIdentifier(names.chain([column]).collect())
            }
        })
    });
    Ok(items.collect())
}

/// Names the columns of the outermost SELECTs so that they can be planned. `spelled_out`: what each `*` of
/// them stands for, but for those that one before it is like.
pub(in crate::query::sql) fn named_apart(query: &mut Query, spelled_out: Vec<Vec<SelectItem>>) -> Result<()> {
    let mut spelled_out = spelled_out.into_iter();
    let mut planned_as = 0;
    let mut most = 0;
    for_each_outermost(query, &mut |select: &mut Select, order: Option<&OrderBy>| {
        let sorted_by = order
            .map(|order| names_of_tables(order, select))
            .unwrap_or_default();
        let selected = std::mem::take(&mut select.projection).into_iter();
        let mut known: Vec<(SelectItem, Vec<SelectItem>)> = Vec::new();
        let items = selected.flat_map(|item| {
            if !is_wildcard(&item) {
                return vec![item];
            }
            if let Some((_, meant)) = known.iter().find(|(known, _)| *known == item) {
                return meant.clone();
            }
            let meant = spelled_out.next().unwrap_or_else(|| vec![item.clone()]);
            known.push((item, meant.clone()));
            meant
        });
        let items: Vec<SelectItem> = items.collect();
        most = most.max(items.len());
        let names: Vec<String> = items
            .iter()
            .map(|item| match name(item) {
                Some(name) if !(is_aliased(item) && sorted_by.contains(&name)) => name,
                given => {
                    planned_as += 1;
                    let given = given.map(|name| format!(" {name}")).unwrap_or_default();
                    format!("{PLANNED_PREFIX}{planned_as}{given}")
                }
            })
            .collect();
        let held: Vec<&str> = names.iter().map(String::as_str).collect();
        let own = unique_names(&held);
        let named = items.into_iter().zip(held).zip(own);
        select.projection = named
            .map(|((item, held), own)| renamed(item, held, own))
            .collect();
    });
    in_plan::refuse_wide(most)
}

/// The item under the name `own`, if that is not the one that it has already.
fn renamed(item: SelectItem, held: &str, own: String) -> SelectItem {
    let has_it = own == held && !held.starts_with(PLANNED_PREFIX);
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } if !has_it => {
            let alias = Ident::with_quote('"', own);
            SelectItem::ExprWithAlias { expr, alias }
        }
        item => item,
    }
}

/// The names that columns have by themselves, by those that they were planned with.
pub(in crate::query::sql) fn own_names(plan: &LogicalPlan) -> Result<HashMap<String, String>> {
    let mut names = HashMap::new();
    plan.apply(|step| {
        step.apply_expressions(|expr| {
            if let Planned::Alias(Alias { expr, name, .. }) = expr
                && name.starts_with(PLANNED_PREFIX)
            {
                let own = match name.split_once(' ') {
                    Some((_, given)) => given.to_owned(),
                    None => group_keys::own_name(&expr.qualified_name().1),
                };
                if !own.starts_with(PLANNED_PREFIX) {
                    names.entry(name.clone()).or_insert(own);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(names)
}

/// The SELECTs whose rows are rows of the answer, the one first that names its columns, each with the WITH
/// that it sees, those `around` the query before its own.
fn outermost<'q>(query: &'q Query, around: &[&'q With]) -> Vec<(&'q Select, Vec<&'q With>)> {
    let seen: Vec<&With> = around.iter().copied().chain(&query.with).collect();
    outermost_in(&query.body, &seen)
}

fn outermost_in<'q>(body: &'q SetExpr, seen: &[&'q With]) -> Vec<(&'q Select, Vec<&'q With>)> {
    match body {
        SetExpr::Select(select) => vec![(select.as_ref(), seen.to_vec())],
        SetExpr::Query(query) => outermost(query, seen),
        SetExpr::SetOperation { left, right, .. } => {
            [outermost_in(left, seen), outermost_in(right, seen)].concat()
        }
        _ => Vec::new(),
    }
}

/// One WITH for several within each other, whose names are not the same: those that would hide others have
/// new ones.
fn joined(withs: &[&With]) -> Option<With> {
    let (first, within) = withs.split_first()?;
    let mut joined = With::clone(first);
    for with in within {
        joined.cte_tables.extend(with.cte_tables.iter().cloned());
    }
    Some(joined)
}

/// Calls `each` with every one of them, and with the order of its rows that it is asked for by itself.
fn for_each_outermost(query: &mut Query, each: &mut impl FnMut(&mut Select, Option<&OrderBy>)) {
    for_each_in(&mut query.body, query.order_by.as_ref(), each);
}

fn for_each_in(
    body: &mut SetExpr,
    order: Option<&OrderBy>,
    each: &mut impl FnMut(&mut Select, Option<&OrderBy>),
) {
    match body {
        SetExpr::Select(select) => each(select, order),
        SetExpr::Query(query) => for_each_outermost(query, each),
        SetExpr::SetOperation { left, right, .. } => {
            for_each_in(left, None, each);
            for_each_in(right, None, each);
        }
        _ => {}
    }
}

/// The names that ORDER BY finds in tables, and by which nothing means a column of the answer.
fn names_of_tables(order: &OrderBy, select: &Select) -> HashSet<String> {
    let (mut of_tables, mut alone) = names_in(order);
    for may_mean_column in [&select.having, &select.qualify] {
        alone.extend(names_in(may_mean_column).1);
    }
    alone.extend(names_in(&select.distinct).1);
    of_tables.retain(|name| !alone.contains(name));
    of_tables
}

/// The names that follow those of tables, and those that stand alone.
fn names_in(part: &impl Visit) -> (HashSet<String>, HashSet<String>) {
    let (mut of_tables, mut alone) = (HashSet::new(), HashSet::new());
    let ControlFlow::Continue(()) = look_at_expressions(part, &mut |expr| -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(name) => {
                alone.insert(planned_name(name));
            }
            Expr::CompoundIdentifier(names) => of_tables.extend(names.last().map(planned_name)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    (of_tables, alone)
}

const fn is_aliased(item: &SelectItem) -> bool {
    matches!(item, SelectItem::ExprWithAlias { .. })
}

pub(in crate::query::sql) const fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// The name that the planner gives to a column, where the grammar says it.
fn name(item: &SelectItem) -> Option<String> {
    let named = match item {
        SelectItem::ExprWithAlias { alias, .. } => alias,
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => name,
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last()?,
        _ => return None,
    };
    Some(planned_name(named))
}
