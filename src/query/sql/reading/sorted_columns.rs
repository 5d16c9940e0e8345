//! Says of which table the columns are that ORDER BY sorts by inside of expressions, where something that is
//! cut is called as one of them.
//!
//! In `SELECT k::varchar(2) FROM t ORDER BY length(k)`, `k` means the column of the table, as in SQL wherever
//! a name is part of an expression; alone, as in `ORDER BY k`, it means what is selected. The planner takes
//! what is selected in both, so the first is written as `t.k`, and then the second as a position, because the
//! planner does not tell both names in one ORDER BY apart.
//!
//! Only in the outermost SELECT, whose columns can be planned under other names than their own, and where it
//! is certain what a name means: one table is read, and no query stands within what sorts or filters groups.
//! Knows the grammar only.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Value, Visit, Visitor,
};

use super::short_texts::{column_cut, column_made_from, last_name};
use crate::query::sql::naming::duplicate_names::is_wildcard;
use crate::query::sql::naming::planned_name;
use crate::query::sql::walking::{change_expressions, look_through};

/// Names such columns by their tables.
pub(super) fn name_by_tables(query: &mut Query) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_mut(), &mut query.order_by) else {
        return;
    };
    let OrderByKind::Expressions(sorted) = &mut order.kind else {
        return;
    };
    // Rows that are distinct are sorted by what is selected, and by nothing else.
    let within_groups = [&select.having, &select.qualify];
    if select.distinct.is_some() || has_queries(sorted) || within_groups.into_iter().any(has_queries) {
        return;
    }
    let alone: HashSet<String> = sorted
        .iter()
        .filter_map(|by| Some(planned_name(name_alone(&by.expr)?)))
        .collect();
    let cut = cut_columns(select, &alone);
    let grouped_by = GroupKeys::of(select);
    let selected: Vec<Expr> = select.projection.iter().filter_map(expression).cloned().collect();
    let mut named = HashSet::new();
    for by in sorted.iter_mut().filter(|by| name_alone(&by.expr).is_none()) {
        let is_selected = selected.contains(&by.expr);
        let columns = cut
            .iter()
            .filter(|(_, cut)| is_selected || grouped_by.have(&cut.column))
            .map(|(name, cut)| (name.as_str(), &cut.column));
        named.extend(write_columns(&mut by.expr, &columns.collect()));
    }
    let named: HashMap<&str, &CutColumn> = cut
        .iter()
        .filter(|(name, _)| named.contains(*name))
        .map(|(name, cut)| (name.as_str(), cut))
        .collect();
    for by in sorted {
        let cut = name_alone(&by.expr).and_then(|name| named.get(planned_name(name).as_str()));
        if let Some(position) = cut.and_then(|cut| cut.position) {
            by.expr = Expr::Value(Value::Number(position.to_string(), false).into());
        }
    }
    let columns = named.iter().map(|(name, cut)| (*name, &cut.column)).collect();
    for condition in [&mut select.having, &mut select.qualify].into_iter().flatten() {
        write_columns(condition, &columns);
    }
}

fn has_queries(part: &impl Visit) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    look_through(part, &mut Queries).is_break()
}

/// A column of a table of which SELECT has a part under its name.
struct CutColumn {
    /// Named by its table.
    column: Expr,
    /// The place of the first that has its name in what is selected, counted from 1, where it is known.
    position: Option<usize>,
}

/// Those that are cut, by name, but for those that ORDER BY has `alone` too and that have no known place.
fn cut_columns(select: &Select, alone: &HashSet<String>) -> HashMap<String, CutColumn> {
    let items = &select.projection;
    let countable = items.iter().take_while(|item| !is_wildcard(item));
    let names: Vec<Option<String>> = countable.map(name).collect();
    let mut cut = HashMap::new();
    for item in items {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        let Some((column, name)) = column_cut(expr).and_then(|column| Some((column, last_name(column)?)))
        else {
            continue;
        };
        let name = planned_name(name);
        let position = names.iter().position(|known| known.as_ref() == Some(&name));
        let position = position.map(|position| position + 1);
        if position.is_none() && alone.contains(&name) {
            continue;
        }
        if let Some(column) = named_by_table(column, &select.from) {
            cut.entry(name).or_insert(CutColumn { column, position });
        }
    }
    cut
}

/// The column with the name of its table, if it is one of the only table that is read.
fn named_by_table(column: &Expr, from: &[TableWithJoins]) -> Option<Expr> {
    let [from] = from else {
        return None;
    };
    if !from.joins.is_empty() {
        return None;
    }
    let table = table_name(&from.relation)?;
    match column {
        Expr::Identifier(name) => {
            let names = table.iter().chain([name]).cloned();
            Some(Expr::CompoundIdentifier(names.collect()))
        }
        // Members of columns are written in the same way, and are none.
        Expr::CompoundIdentifier(names) => {
            let (_, named) = names.split_last()?;
            let planned = |names: &[Ident]| -> Vec<String> { names.iter().map(planned_name).collect() };
            let is_table = planned(&table).ends_with(&planned(named));
            is_table.then(|| column.clone())
        }
        _ => None,
    }
}

/// The names by which columns of a table are called.
fn table_name(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(vec![alias.name.clone()]),
        TableFactor::Table { name, args: None, .. } => {
            name.0.iter().map(|part| part.as_ident().cloned()).collect()
        }
        _ => None,
    }
}

/// What rows are grouped by.
enum GroupKeys {
    /// They are not grouped.
    None,
    These(Vec<Expr>),
    /// By all that is selected and no aggregate.
    Selected,
}

impl GroupKeys {
    fn of(select: &Select) -> Self {
        match &select.group_by {
            GroupByExpr::Expressions(keys, _) if keys.is_empty() => Self::None,
            GroupByExpr::Expressions(keys, _) => Self::These(keys.clone()),
            GroupByExpr::All(_) => Self::Selected,
        }
    }

    /// Whether a group has one value of `column`. What is cut may be the key instead: then its column is not
    /// there to sort by, but in aggregates.
    fn have(&self, column: &Expr) -> bool {
        match self {
            Self::None => true,
            Self::These(keys) => keys.iter().any(|key| {
                let is_column = matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                is_column && last_name(key).map(planned_name) == last_name(column).map(planned_name)
            }),
            Self::Selected => false,
        }
    }
}

/// Writes `columns` in the place of their names, and returns the names that were found.
fn write_columns(expr: &mut Expr, columns: &HashMap<&str, &Expr>) -> HashSet<String> {
    let mut found = HashSet::new();
    let ControlFlow::Continue(()) = change_expressions(expr, &mut |expr| -> ControlFlow<Infallible> {
        if let Expr::Identifier(name) = expr {
            let name = planned_name(name);
            if let Some(column) = columns.get(name.as_str()) {
                *expr = (*column).clone();
                found.insert(name);
            }
        }
        ControlFlow::Continue(())
    });
    found
}

/// The name that is all of `expr`.
fn name_alone(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::Nested(inner) => name_alone(inner),
        _ => None,
    }
}

/// The name that something has in what is selected, where the grammar says it.
fn name(item: &SelectItem) -> Option<String> {
    let name = match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(expr) => column_made_from(expr).or(column_cut(expr)).and_then(last_name),
        _ => None,
    };
    name.map(planned_name)
}

const fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn written(text: &str) -> String {
        let mut statements = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        let Statement::Query(query) = &mut statements[0] else {
            panic!("{text}");
        };
        name_by_tables(query);
        query.to_string()
    }

    #[test]
    fn a_name_inside_of_an_expression_is_that_of_a_column() {
        for (text, sorted) in [
            (
                "SELECT k::VARCHAR(2) FROM t ORDER BY length(k), n",
                "length(t.k), n",
            ),
            (
                "SELECT k::VARCHAR(2) FROM s.t ORDER BY -(K) DESC",
                "-(s.t.k) DESC",
            ),
            (
                "SELECT k::VARCHAR(2) FROM t AS a ORDER BY k % 5, (k)",
                "a.k % 5, 1",
            ),
            ("SELECT n, k::VARCHAR(2) FROM t ORDER BY k, k + 1", "2, t.k + 1"),
            (
                "SELECT a.k::VARCHAR(2) FROM t AS a ORDER BY length(k)",
                "length(a.k)",
            ),
            (
                "SELECT k::VARCHAR(2), max(k) FROM t GROUP BY k ORDER BY max(k), length(k)",
                "max(t.k), length(t.k)",
            ),
            (
                "SELECT k::VARCHAR(2), max(k) FROM t GROUP BY k::VARCHAR(2) ORDER BY max(k), length(k)",
                "max(t.k), length(k)",
            ),
        ] {
            let (selected, _) = text.split_once(" ORDER BY ").unwrap();
            assert_eq!(written(text), format!("{selected} ORDER BY {sorted}"));
        }
        assert_eq!(
            written("SELECT n::VARCHAR(1), sum(n) FROM t GROUP BY n HAVING sum(n) > 9 ORDER BY sum(n)"),
            "SELECT n::VARCHAR(1), sum(n) FROM t GROUP BY n HAVING sum(t.n) > 9 ORDER BY sum(t.n)"
        );
    }

    #[test]
    fn nothing_else_is_written_anew() {
        for text in [
            "SELECT k::VARCHAR(2) FROM t ORDER BY k",
            "SELECT k::VARCHAR FROM t ORDER BY length(k), k",
            "SELECT k::VARCHAR(2) AS k FROM t ORDER BY length(k)",
            "SELECT DISTINCT k::VARCHAR(2) FROM t ORDER BY length(k)",
            "SELECT *, k::VARCHAR(2) FROM t ORDER BY length(k), k",
            "SELECT k::VARCHAR(2) FROM t JOIN u ON t.n = u.n ORDER BY length(k)",
            "SELECT a.k::VARCHAR(2) FROM t AS a JOIN t AS b ON a.n = b.n ORDER BY length(k)",
            "SELECT k::VARCHAR(2) FROM t ORDER BY (SELECT max(k) FROM u), length(k)",
            "SELECT k::VARCHAR(2) FROM t GROUP BY k HAVING k IN (SELECT k FROM u) ORDER BY length(k)",
            "SELECT (k)::VARCHAR(2) FROM t ORDER BY length(k)",
            "SELECT s.k::VARCHAR(2) FROM t ORDER BY length(k)",
            "SELECT k::VARCHAR(2) FROM t HAVING k = 'a' ORDER BY n",
            "SELECT k::VARCHAR(2) FROM (SELECT k FROM t) ORDER BY length(k)",
            "SELECT k FROM (SELECT k::VARCHAR(2) FROM t ORDER BY length(k)) AS x",
        ] {
            assert_eq!(written(text), text);
        }
    }
}
