//! Decides which clauses a query may have. Refused are those that write, those that let a few words produce
//! any amount of data, and those that the planner would silently ignore: an answer to another question is
//! worse than none.
//!
//! Knows the grammar; knows nothing of what names stand for. If the grammar gains a field, this module does
//! not compile until somebody has decided about it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, GroupByExpr, Query, Select, SelectFlavor, SelectModifiers, SetExpr,
    TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Visitor,
};

/// The most tables and functions that one query reads from: fifty joins.
const MOST_TABLES: usize = 51;

/// Checks every clause of a query, and counts its tables.
#[derive(Default)]
pub(super) struct Clauses {
    tables: usize,
}

impl Visitor for Clauses {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        if query.with.as_ref().is_some_and(|with| with.recursive) {
            return refused("WITH RECURSIVE");
        }
        let writes = match query.body.as_ref() {
            SetExpr::Insert(_) => "INSERT",
            SetExpr::Update(_) => "UPDATE",
            SetExpr::Delete(_) => "DELETE",
            SetExpr::Merge(_) => "MERGE",
            _ => return beside_body(query),
        };
        ControlFlow::Break(format!("{writes} is not allowed; only reading is"))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        if select.into.is_some() {
            return ControlFlow::Break("SELECT INTO is not allowed; only reading is".to_owned());
        }
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
            return ControlFlow::Break("FROM alone is not allowed; write SELECT * FROM".to_owned());
        }
        select.from.iter().try_for_each(joined)?;
        of_select(select)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        match expr {
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => ControlFlow::Break(
                "GROUPING SETS, CUBE and ROLLUP are not allowed; put queries together with UNION ALL"
                    .to_owned(),
            ),
            Expr::Cast { data_type, .. } if has_sized_list(&data_type.to_string()) => ControlFlow::Break(
                format!("{data_type} is not allowed: a list has no length of its type"),
            ),
            Expr::Function(function) => called(function),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<String> {
        self.tables += 1;
        if self.tables > MOST_TABLES {
            return ControlFlow::Break(format!(
                "the query reads from more than {MOST_TABLES} tables; ask in several queries"
            ));
        }
        read_from(table)
    }
}

fn refused(clause: &str) -> ControlFlow<String> {
    ControlFlow::Break(format!("{clause} is not allowed"))
}

/// Refuses the first clause that is present.
fn refuse_any<const N: usize>(clauses: [(&str, bool); N]) -> ControlFlow<String> {
    match clauses.into_iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => refused(clause),
        None => ControlFlow::Continue(()),
    }
}

fn beside_body(query: &Query) -> ControlFlow<String> {
    let Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators: _,
    } = query;
    refuse_any([
        ("FOR UPDATE or SHARE", !locks.is_empty()),
        ("FOR XML, JSON or BROWSE", for_clause.is_some()),
        ("SETTINGS", settings.is_some()),
        ("FORMAT", format_clause.is_some()),
    ])
}

fn of_select(select: &Select) -> ControlFlow<String> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top: _,
        top_before_distinct: _,
        projection: _,
        exclude,
        into: _,
        from: _,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by,
        sort_by: _,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    let group_modifiers = match group_by {
        GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
    };
    let modifiers = select_modifiers.as_ref().is_some_and(SelectModifiers::is_any_set);
    refuse_any([
        ("a word between SELECT and what is selected", modifiers),
        ("EXCLUDE after the columns", exclude.is_some()),
        ("PREWHERE", prewhere.is_some()),
        ("CONNECT BY", !connect_by.is_empty()),
        ("GROUP BY WITH", !group_modifiers.is_empty()),
        ("DISTRIBUTE BY", !distribute_by.is_empty()),
        ("SELECT AS", value_table_mode.is_some()),
    ])
}

fn joined(tables: &TableWithJoins) -> ControlFlow<String> {
    let is_global = tables.joins.iter().any(|join| join.global);
    refuse_any([("GLOBAL JOIN", is_global)])
}

fn read_from(table: &TableFactor) -> ControlFlow<String> {
    match table {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            let settings = matches!(
                args,
                Some(TableFunctionArgs {
                    settings: Some(_),
                    ..
                })
            );
            refuse_any([
                ("WITH after a table", !with_hints.is_empty()),
                ("a version of a table", version.is_some()),
                ("WITH ORDINALITY", *with_ordinality),
                ("PARTITION", !partitions.is_empty()),
                ("a path after a table", json_path.is_some()),
                ("TABLESAMPLE", sample.is_some()),
                ("a hint of an index", !index_hints.is_empty()),
                ("SETTINGS", settings),
            ])?;
            named(alias.as_ref())
        }
        TableFactor::Derived { alias, sample, .. } => {
            refuse_any([("TABLESAMPLE", sample.is_some())])?;
            named(alias.as_ref())
        }
        TableFactor::Function {
            alias,
            with_ordinality,
            ..
        } => {
            refuse_any([("WITH ORDINALITY", *with_ordinality)])?;
            named(alias.as_ref())
        }
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            joined(table_with_joins)?;
            named(alias.as_ref())
        }
        // The planner handles others fully or rejects them.
        _ => ControlFlow::Continue(()),
    }
}

fn named(alias: Option<&TableAlias>) -> ControlFlow<String> {
    refuse_any([("AT after a table", alias.is_some_and(|alias| alias.at.is_some()))])
}

fn called(function: &Function) -> ControlFlow<String> {
    let parameters = !matches!(function.parameters, FunctionArguments::None);
    refuse_any([("a function with parameters and arguments", parameters)])
}

/// Whether a type gives the length of a list: even null would take that much memory.
fn has_sized_list(shown: &str) -> bool {
    let mut brackets = shown.split('[').skip(1);
    brackets.any(|after| {
        after
            .trim_start()
            .starts_with(|letter: char| letter.is_ascii_digit())
    })
}
