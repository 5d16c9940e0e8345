//! Accepts one query, or EXPLAIN of one, and replaces parameters by their literals.
//!
//! Knows the grammar; knows nothing of what names stand for.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, ExplainStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    Array, Expr, FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePart, Query, Statement as Sql,
    TableFactor, Value as Literal, ValueWithSpan, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Span;
use serde_json::Value;

use crate::query::sql::errors::{SqlError, SqlFailure, TextPosition};
use crate::query::sql::meaning::all_years::AtTimeZone;
use crate::query::sql::relations::calls::QuestionFunction;
use crate::query::sql::unfolding::in_text::Repeated;
use crate::query::sql::walking::{change_through, look_at_expressions, look_through};

use super::any_item::AnyItems;
use super::called::call;
use super::calls::of_row;
use super::clauses::Clauses;
use super::distinct_from::{self, taken};
use super::explained::explained;
use super::fetched_rows::FetchedRows;
use super::hidden_names::HiddenNames;
use super::named_windows::NamedWindows;
use super::not_exists;
use super::parameters::Parameters;
use super::refusal::{Refusal, Where};
use super::replaced_columns::ReplacedColumns;
use super::rows::Rows;
use super::short_texts::ShortTexts;
use super::short_times::WithSeconds;
use super::sorted_columns;
use super::text::QueryText;

/// What a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Rows,
    /// EXPLAIN: the plan of the query.
    Plan,
    /// EXPLAIN ANALYZE: the plan, and what running it took.
    Analysis,
}

/// The parser's own limit, which counts differently from this module's.
const RECURSION: usize = 100;

/// A query that may be planned.
#[derive(Debug)]
pub(in crate::query::sql) struct AcceptedQuery {
    pub statement: Statement,
    pub show: Show,
}

/// The one query in `text`, with its parameters bound.
pub(in crate::query::sql) fn read(
    text: &QueryText,
    parameters: &Parameters,
) -> Result<AcceptedQuery, SqlFailure> {
    let (statement, show) = parsed(text)?;
    let Statement::Statement(mut sql) = statement else {
        return Err(refused(text, show).into());
    };
    let Sql::Query(query) = sql.as_mut() else {
        return Err(refused(text, show).into());
    };
    let ControlFlow::Continue(()) = change_through(query, &mut distinct_from::SignMeanings);
    let ControlFlow::Continue(()) = change_through(query, &mut not_exists::NotPlacement);
    let placed = |refused: Refusal| SqlFailure::Refused(placed(text, refused));
    let mut hidden = HiddenNames::of(query);
    finished(change_through(query, &mut hidden)).map_err(placed)?;
    finished(change_through(query, &mut FetchedRows)).map_err(placed)?;
    finished(change_through(query, &mut NamedWindows::default())).map_err(placed)?;
    finished(change_through(query, &mut ReplacedColumns)).map_err(placed)?;
    sorted_columns::name_by_tables(query);
    let ControlFlow::Continue(()) = change_through(query, &mut ShortTexts);
    finished(look_through(query, &mut Clauses::default())).map_err(placed)?;
    bind(query, text, parameters)?;
    let ControlFlow::Continue(()) = change_through(query, &mut WithSeconds);
    finished(change_through(query, &mut Rows::default())).map_err(placed)?;
    finished(change_through(query, &mut AnyItems::default())).map_err(placed)?;
    if let ControlFlow::Break(message) = look_through(query, &mut Repeated::default()) {
        return Err(SqlError::without_place(message).into());
    }
    Ok(AcceptedQuery {
        statement: Statement::Statement(sql),
        show,
    })
}

/// Refuses calls that say of a function of each row how rows are taken together. `is_of_row`: whether a name
/// is that of such a function.
pub(in crate::query::sql) fn refuse_several_rows(
    asked: &AcceptedQuery,
    text: &QueryText,
    is_of_row: &dyn Fn(&str) -> bool,
) -> Result<(), SqlError> {
    let Statement::Statement(sql) = &asked.statement else {
        return Ok(());
    };
    match look_at_expressions(sql.as_ref(), &mut |expr| of_row(expr, is_of_row)) {
        ControlFlow::Break(refused) => Err(placed(text, refused)),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The one statement in `text`, or the one that it asks to explain, and what is returned.
fn parsed(text: &QueryText) -> Result<(Statement, Show), SqlError> {
    let mut statements = DFParserBuilder::new(distinct_from::as_signs(text.tokens()))
        .with_dialect(&GenericDialect {})
        .with_recursion_limit(RECURSION)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| explained(&error, text, &[]))?;
    let Some(statement) = statements.pop_front() else {
        return Err(SqlError::without_place("there is no query in the text"));
    };
    if !statements.is_empty() {
        return Err(SqlError {
            place: text.second_statement(),
            message: "send one query at a time".to_owned(),
        });
    }
    match statement {
        Statement::Explain(explain) => {
            let show = shown(&explain, text)?;
            Ok((*explain.statement, show))
        }
        statement => Ok((statement, Show::Rows)),
    }
}

/// A walk that was broken off is an error.
fn finished(walk: ControlFlow<Refusal>) -> Result<(), Refusal> {
    match walk {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refused) => Err(refused),
    }
}

fn bind(query: &mut Query, text: &QueryText, parameters: &Parameters) -> Result<(), SqlFailure> {
    let mut binding = Binding {
        text,
        parameters,
        used: BTreeSet::new(),
    };
    if let ControlFlow::Break(failure) = change_through(query, &mut binding) {
        return Err(failure);
    }
    parameters
        .refuse_unused(&binding.used)
        .map_err(SqlFailure::WrongParameters)
}

fn placed(text: &QueryText, refused: Refusal) -> SqlError {
    SqlError {
        place: place(text, refused.place),
        message: refused.message,
    }
}

fn place(text: &QueryText, sought: Where) -> Option<TextPosition> {
    let (found, otherwise) = match sought {
        Where::At(place) => (None, place),
        Where::From(from, word) => (text.word_from(from, word), from),
        // Where the parser knows no place, every word is as good as the last.
        Where::Before(end, word) if end == Span::empty().start => (text.place_of(word), end),
        Where::Before(end, word) => (text.word_before(end, word), end),
    };
    let otherwise = (otherwise != Span::empty().start).then(|| TextPosition::from(otherwise));
    found.or(otherwise)
}

fn shown(explain: &ExplainStatement, text: &QueryText) -> Result<Show, SqlError> {
    let options = &explain.options;
    if options.format.is_some() || options.verbose {
        let word = if options.verbose { "VERBOSE" } else { "FORMAT" };
        return Err(SqlError {
            place: text.place_of(word),
            message: "EXPLAIN has one form; use EXPLAIN or EXPLAIN ANALYZE alone".to_owned(),
        });
    }
    Ok(if options.analyze {
        Show::Analysis
    } else {
        Show::Plan
    })
}

fn refused(text: &QueryText, show: Show) -> SqlError {
    const ALLOWED: &str = "only SELECT, EXPLAIN and EXPLAIN ANALYZE of one are";
    let mut words = text.words().peekable();
    if show != Show::Rows {
        // EXPLAIN itself, and what it is to do.
        words.next();
        words.next_if(|(word, _)| word == "ANALYZE");
    }
    match words.next() {
        Some((word, place)) => SqlError::at(place, format!("{word} is not allowed; {ALLOWED}")),
        None => SqlError::without_place(format!("this is not allowed; {ALLOWED}")),
    }
}

/// Replaces parameters by their values, puts named arguments of our functions into order, and calls ours for
/// `AT TIME ZONE`.
struct Binding<'a> {
    text: &'a QueryText,
    parameters: &'a Parameters,
    used: BTreeSet<String>,
}

impl Binding<'_> {
    /// The error where the query has this name.
    fn wrong(&self, name: &str, message: String) -> ControlFlow<SqlFailure> {
        let place = self.text.place_of(name);
        ControlFlow::Break(SqlError { place, message }.into())
    }
}

impl VisitorMut for Binding<'_> {
    type Break = SqlFailure;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Value(ValueWithSpan {
            value: Literal::Placeholder(name),
            ..
        }) = expr
        {
            let Some(value) = self.parameters.get(name) else {
                let message = format!("there is no value for {name} among the parameters");
                return self.wrong(name, message);
            };
            match literal(value) {
                Ok(bound) => {
                    self.used.insert(name.clone());
                    *expr = bound;
                }
                Err(message) => {
                    let message = format!("{name}: {message}");
                    return ControlFlow::Break(SqlFailure::WrongParameters(message));
                }
            }
        }
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            let arguments = [timestamp, time_zone].map(|argument| taken(argument));
            *expr = call(AtTimeZone::NAME, arguments.to_vec());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table {
            name,
            args: Some(arguments),
            ..
        } = table
            && let Some(function) = called(name)
            && arguments.args.iter().any(is_named)
        {
            match in_order(function, &arguments.args) {
                Ok(ordered) => arguments.args = ordered,
                Err(message) => return self.wrong(function.name(), message),
            }
        }
        ControlFlow::Continue(())
    }
}

fn called(name: &ObjectName) -> Option<QuestionFunction> {
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return None;
    };
    QuestionFunction::named(&name.value)
}

const fn is_named(argument: &FunctionArg) -> bool {
    !matches!(argument, FunctionArg::Unnamed(_))
}

/// Arguments by position, with null for those omitted between others.
fn in_order(function: QuestionFunction, given: &[FunctionArg]) -> Result<Vec<FunctionArg>, String> {
    let names = function.arguments();
    let mut ordered: Vec<Option<FunctionArgExpr>> = vec![None; names.len()];
    for (position, argument) in given.iter().enumerate() {
        let (position, arg) = match argument {
            FunctionArg::Unnamed(arg) => (position, arg),
            FunctionArg::Named { name, arg, .. } => {
                let known = names
                    .iter()
                    .position(|known| name.value.eq_ignore_ascii_case(known));
                let unknown = || {
                    let known = names.join(", ");
                    format!(
                        "{} has no argument {}; it has {known}",
                        function.name(),
                        name.value
                    )
                };
                (known.ok_or_else(unknown)?, arg)
            }
            FunctionArg::ExprNamed { .. } => return Err("name arguments by words".to_owned()),
        };
        match ordered.get_mut(position) {
            Some(free @ None) => *free = Some(arg.clone()),
            Some(Some(_)) => return Err(format!("an argument of {} is given twice", function.name())),
            None => {
                let most = names.len();
                return Err(format!("{} takes at most {most} arguments", function.name()));
            }
        }
    }
    let null = || FunctionArgExpr::Expr(Expr::Value(Literal::Null.into()));
    Ok(ordered
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(argument.unwrap_or_else(null)))
        .collect())
}

/// The literal for a parameter, as if it had been written in its place. A text takes the type of what it is
/// compared with.
fn literal(value: &Value) -> Result<Expr, String> {
    let plain = match value {
        Value::Null => Literal::Null,
        Value::Bool(truth) => Literal::Boolean(*truth),
        Value::Number(number) => Literal::Number(number.to_string(), false),
        Value::String(text) => Literal::SingleQuotedString(text.clone()),
        Value::Array(items) => {
            let elem = items
                .iter()
                .map(|item| match item {
                    Value::Array(_) => Err("a list holds texts, numbers and truth values".to_owned()),
                    item => literal(item),
                })
                .collect::<Result<Vec<Expr>, String>>()?;
            return Ok(Expr::Array(Array { elem, named: true }));
        }
        Value::Object(_) => {
            return Err("an object is not a value; send a text, a number or a list".to_owned());
        }
    };
    Ok(Expr::Value(plain.into()))
}
