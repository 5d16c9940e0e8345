//! Gives what a query selects twice a second name: the planner wants a name of its own for each column.
//!
//! Knows the grammar only.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

/// Names each column of the answer that an earlier one repeats as the answer's other columns are told apart.
pub(super) fn told_apart(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let mut taken: HashSet<String> = select.projection.iter().filter_map(alias).collect();
    let mut selected = HashSet::new();
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        if selected.insert(expr.to_string()) {
            continue;
        }
        let name = name(expr);
        let mut count = 2;
        let mut free = format!("{name}_{count}");
        while !taken.insert(free.clone()) {
            count += 1;
            free = format!("{name}_{count}");
        }
        *item = SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::with_quote('"', free),
        };
    }
}

fn alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => Some(name(expr)),
        _ => None,
    }
}

/// The name that a column has by itself.
fn name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => names.last().map_or_else(String::new, |name| name.value.clone()),
        expr => expr.to_string(),
    }
}
