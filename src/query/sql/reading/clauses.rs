//! Decides which clauses a query may have. Refused are those that write, those that let a few words produce
//! any amount of data, and those that the planner would silently ignore: an answer to another question is
//! worse than none.
//!
//! Knows the grammar; knows nothing of what names stand for. If the grammar gains a field, this module does
//! not compile until somebody has decided about it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, GroupByExpr, Join, JoinConstraint,
    JoinOperator, Query, Select, SelectFlavor, SelectItem, SelectModifiers, SetExpr, SetOperator,
    SetQuantifier, Spanned, TableAlias, TableFactor, TableWithJoins, Visitor, WildcardAdditionalOptions,
};

use crate::query::sql::bounds::endless;
use crate::query::sql::walking::look_at_expressions;

use super::calls::{called, constant};
use super::refusal::{Refusal, Where, because, refuse_any, refused, start};

/// The most tables and functions that one query reads from: fifty joins.
const MOST_TABLES: usize = 51;
/// The most columns that a SELECT or a row of VALUES names: all those of several types.
const MOST_NAMED: usize = 1_000;
/// The most tables all of whose columns a SELECT asks for: twice as many as there are. What stands in
/// parentheses counts as one, whose columns are counted once they are known.
const MOST_OF_ALL_COLUMNS: usize = 2 * MOST_TABLES;

/// Checks every clause of a query, and counts its tables.
#[derive(Default)]
pub(super) struct Clauses {
    tables: usize,
}

impl Visitor for Clauses {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        if let Some(with) = &query.with
            && with.recursive
        {
            return refused("WITH RECURSIVE", Where::From(start(with), "RECURSIVE"));
        }
        let writes = match query.body.as_ref() {
            SetExpr::Insert(_) => "INSERT",
            SetExpr::Update(_) => "UPDATE",
            SetExpr::Delete(_) => "DELETE",
            SetExpr::Merge(_) => "MERGE",
            body => {
                counted(body)?;
                return beside_body(query);
            }
        };
        because(
            format!("{writes} is not allowed; only reading is"),
            Where::From(start(query.body.as_ref()), writes),
        )
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Refusal> {
        if select.into.is_some() {
            let message = "SELECT INTO is not allowed; only reading is";
            return because(message, Where::From(start(select), "INTO"));
        }
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
            let message = "FROM alone is not allowed; write SELECT * FROM";
            return because(message, Where::At(start(select)));
        }
        select.from.iter().try_for_each(joined)?;
        of_select(select)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Refusal> {
        let grouping = match expr {
            Expr::GroupingSets(_) => Some("GROUPING"),
            Expr::Cube(_) => Some("CUBE"),
            Expr::Rollup(_) => Some("ROLLUP"),
            _ => None,
        };
        if let Some(word) = grouping {
            let message =
                "GROUPING SETS, CUBE and ROLLUP are not allowed; put queries together with UNION ALL";
            return because(message, Where::Before(start(expr), word));
        }
        match expr {
            Expr::Cast { data_type, .. } if has_sized_list(&data_type.to_string()) => because(
                format!("{data_type} is not allowed: a list has no length of its type"),
                Where::At(start(expr)),
            ),
            Expr::Cast { data_type, .. } => typed(data_type, expr),
            Expr::TypedString(text) => typed(&text.data_type, expr),
            Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } => constant(pattern, endless::OF_LIKE),
            Expr::SimilarTo { pattern, .. } | Expr::RLike { pattern, .. } => {
                constant(pattern, endless::OF_EXPRESSIONS)
            }
            Expr::BinaryOp {
                op:
                    BinaryOperator::PGRegexMatch
                    | BinaryOperator::PGRegexIMatch
                    | BinaryOperator::PGRegexNotMatch
                    | BinaryOperator::PGRegexNotIMatch,
                right,
                ..
            } => constant(right, endless::OF_EXPRESSIONS),
            Expr::Function(function) => called(function),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Refusal> {
        self.tables += 1;
        if self.tables > MOST_TABLES {
            let message =
                format!("the query reads from more than {MOST_TABLES} tables; ask in several queries");
            return because(message, Where::At(start(table)));
        }
        read_from(table)
    }
}

/// Refuses queries that name too many columns, and operations on queries that would not count how often a row
/// is there.
fn counted(body: &SetExpr) -> ControlFlow<Refusal> {
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        if let SetExpr::Values(values) = body {
            values.rows.iter().try_for_each(|row| few_columns(&row.content))?;
        }
        let SetExpr::SetOperation {
            left,
            op,
            set_quantifier,
            right,
        } = body
        else {
            continue;
        };
        if matches!(op, SetOperator::Intersect | SetOperator::Except)
            && matches!(set_quantifier, SetQuantifier::All)
        {
            let message = format!(
                "{op} ALL is not allowed; leave ALL out, and where rows are to be counted, number equal rows \
                 on both sides by row_number() OVER (PARTITION BY all columns)"
            );
            return because(message, Where::Before(start(right.as_ref()), "ALL"));
        }
        bodies.extend([left.as_ref(), right.as_ref()]);
    }
    ControlFlow::Continue(())
}

fn beside_body(query: &Query) -> ControlFlow<Refusal> {
    let Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause,
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if !pipe_operators.is_empty() {
        let message = "|> is not allowed; select FROM (…) what stands before it";
        return because(message, Where::At(start(query)));
    }
    look_at_expressions(limit_clause, &mut |part| match part {
        Expr::Subquery(_) => because(
            "LIMIT and OFFSET are numbers or parameters, and not computed by a subquery",
            Where::At(start(part)),
        ),
        _ => ControlFlow::Continue(()),
    })?;
    refuse_any(
        [
            ("FOR UPDATE or SHARE", !locks.is_empty()),
            ("FOR XML, JSON or BROWSE", for_clause.is_some()),
            ("SETTINGS", settings.is_some()),
            ("FORMAT", format_clause.is_some()),
        ],
        query,
    )
}

fn of_select(select: &Select) -> ControlFlow<Refusal> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top: _,
        top_before_distinct: _,
        projection,
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
    few_columns(projection)?;
    few_of_all_columns(select)?;
    projection.iter().try_for_each(selected)?;
    refuse_any(
        [
            ("a word between SELECT and what is selected", modifiers),
            ("EXCLUDE after the columns", exclude.is_some()),
            ("PREWHERE", prewhere.is_some()),
            ("CONNECT BY", !connect_by.is_empty()),
            ("GROUP BY WITH", !group_modifiers.is_empty()),
            ("DISTRIBUTE BY", !distribute_by.is_empty()),
            ("SELECT AS", value_table_mode.is_some()),
        ],
        select,
    )
}

fn few_columns(named: &[impl Spanned]) -> ControlFlow<Refusal> {
    match named.get(MOST_NAMED) {
        Some(column) => because(
            format!("more than {MOST_NAMED} columns are named up to here; ask for them in several queries"),
            Where::At(start(column)),
        ),
        None => ControlFlow::Continue(()),
    }
}

/// Refuses a `*` that makes too many columns beside others, before it is known which they are.
fn few_of_all_columns(select: &Select) -> ControlFlow<Refusal> {
    let joined = select.from.iter().map(|tables| 1 + tables.joins.len());
    let tables: usize = joined.sum();
    let mut of_all = 0;
    for item in &select.projection {
        of_all += match item {
            SelectItem::Wildcard(_) => tables,
            SelectItem::QualifiedWildcard(..) => 1,
            _ => 0,
        };
        if of_all > MOST_OF_ALL_COLUMNS {
            let message = format!(
                "all columns of more than {MOST_OF_ALL_COLUMNS} tables are named up to here; name those of \
                 each table once"
            );
            return because(message, Where::At(start(item)));
        }
    }
    ControlFlow::Continue(())
}

fn selected(item: &SelectItem) -> ControlFlow<Refusal> {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return ControlFlow::Continue(());
    };
    let WildcardAdditionalOptions {
        wildcard_token,
        opt_ilike,
        opt_exclude: _,
        opt_except: _,
        opt_replace: _,
        opt_rename: _,
        opt_alias,
    } = options;
    let place = |word| Where::From(wildcard_token.0.span.start, word);
    if opt_ilike.is_some() {
        return refused("ILIKE after *", place("ILIKE"));
    }
    if opt_alias.is_some() {
        return refused("AS after *", place("AS"));
    }
    ControlFlow::Continue(())
}

fn joined(tables: &TableWithJoins) -> ControlFlow<Refusal> {
    let is_global = tables.joins.iter().any(|join| join.global);
    refuse_any([("GLOBAL JOIN", is_global)], tables)?;
    tables.joins.iter().try_for_each(merged)
}

/// Refuses joins in whose merged columns the values of the right side would be missing.
fn merged(join: &Join) -> ControlFlow<Refusal> {
    let (constraint, word, advice) = match &join.join_operator {
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (constraint, "RIGHT", "select the column of the right side")
        }
        JoinOperator::FullOuter(constraint) => (constraint, "FULL", "select coalesce(a.k, b.k)"),
        _ => return ControlFlow::Continue(()),
    };
    if matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural) {
        let message =
            format!("{word} JOIN with USING or NATURAL is not allowed; write ON a.k = b.k, and {advice}");
        return because(message, Where::Before(start(&join.relation), word));
    }
    ControlFlow::Continue(())
}

fn read_from(table: &TableFactor) -> ControlFlow<Refusal> {
    match table {
        TableFactor::Table { .. } => read_by_name(table),
        TableFactor::Derived { alias, sample, .. } => {
            refuse_any([("TABLESAMPLE", sample.is_some())], table)?;
            named(alias.as_ref())
        }
        TableFactor::Function {
            alias,
            with_ordinality,
            ..
        } => {
            refuse_any([("WITH ORDINALITY", *with_ordinality)], table)?;
            named(alias.as_ref())
        }
        TableFactor::UNNEST {
            alias,
            array_exprs: _,
            with_offset,
            with_offset_alias: _,
            with_ordinality,
        } => {
            refuse_any(
                [
                    ("WITH OFFSET", *with_offset),
                    ("WITH ORDINALITY", *with_ordinality),
                ],
                table,
            )?;
            named(alias.as_ref())
        }
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            joined(table_with_joins)?;
            named(alias.as_ref())
        }
        TableFactor::TableFunction { .. } => {
            refused("TABLE with a call", Where::Before(start(table), "TABLE"))
        }
        TableFactor::JsonTable { .. } => refuse_any([("JSON_TABLE", true)], table),
        TableFactor::OpenJsonTable { .. } => refuse_any([("OPENJSON", true)], table),
        TableFactor::XmlTable { .. } => refuse_any([("XMLTABLE", true)], table),
        TableFactor::SemanticView { .. } => refuse_any([("SEMANTIC_VIEW", true)], table),
        TableFactor::Pivot { .. } => refuse_any([("PIVOT", true)], table),
        TableFactor::Unpivot { .. } => refuse_any([("UNPIVOT", true)], table),
        TableFactor::MatchRecognize { .. } => refuse_any([("MATCH_RECOGNIZE", true)], table),
    }
}

/// Of a table, or a call that stands for one, what may follow its name.
fn read_by_name(table: &TableFactor) -> ControlFlow<Refusal> {
    let TableFactor::Table {
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
    } = table
    else {
        return ControlFlow::Continue(());
    };
    let has_settings = args.as_ref().is_some_and(|args| args.settings.is_some());
    refuse_any(
        [
            ("WITH after a table", !with_hints.is_empty()),
            ("a version of a table", version.is_some()),
            ("WITH ORDINALITY", *with_ordinality),
            ("PARTITION", !partitions.is_empty()),
            ("a path after a table", json_path.is_some()),
            ("TABLESAMPLE", sample.is_some()),
            ("a hint of an index", !index_hints.is_empty()),
            ("SETTINGS", has_settings),
        ],
        table,
    )?;
    named(alias.as_ref())
}

fn named(alias: Option<&TableAlias>) -> ControlFlow<Refusal> {
    match alias {
        Some(alias) => refuse_any([("AT after a table", alias.at.is_some())], alias),
        None => ControlFlow::Continue(()),
    }
}

/// Refuses a length or a precision that the planner would pass over.
fn typed(data_type: &DataType, whole: &Expr) -> ControlFlow<Refusal> {
    let advice = match data_type {
        DataType::Varchar(Some(_)) | DataType::Char(Some(_)) | DataType::String(Some(_)) => {
            "a text has no length of its type; cut it with left"
        }
        DataType::Float(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) => {
            "write real or double"
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(_, Some(_))) => "a list has no length of its type",
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(items)
            | ArrayElemTypeDef::SquareBracket(items, None)
            | ArrayElemTypeDef::Parenthesis(items),
        ) => return typed(items, whole),
        DataType::Struct(members, _) => {
            return members
                .iter()
                .try_for_each(|member| typed(&member.field_type, whole));
        }
        _ => return ControlFlow::Continue(()),
    };
    because(
        format!("{data_type} is not allowed: {advice}"),
        Where::At(start(whole)),
    )
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
