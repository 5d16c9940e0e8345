//! Queries in SQL: of a text and of what its author may read, a plan.
//!
//! Tables are made from permits and from nothing else, functions are the questions of this room, and what
//! neither reads nor computes is refused by name. Texts are bounded before they are looked into, and planned
//! apart from everything else. Knows grammar, types and plans; who may read what is decided by the
//! [`Holdings`] that come from above.

mod about;
mod allowed;
mod answer_exec;
mod bounded;
mod calls;
mod columns;
mod functions;
mod guard;
mod local_day;
mod narrowing;
mod outer_side;
mod statement;
mod tables;
mod text;
mod widths;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::sql::sqlparser::parser::ParserError;
use serde_json::{Map, Value};

use crate::model::ids::PersonId;
use crate::model::nearest::{hint, nearest};
use crate::model::permit::ReadPermit;
use crate::model::time::Instant;

use super::engine::Engine;
use super::filter::Condition;
use super::{Archive, Prepared, QueryError, Scope, Source};
use functions::Functions;
use tables::Shelves;
use text::QueryText;

pub use about::Listed;
pub(super) use answer_exec::AnswerExec;
pub use calls::{Call, Function, Span};
pub(super) use guard::GuardExec;
pub(super) use outer_side::OuterSideExec;
pub use text::Place;

/// What a query may read, from the room that decides about reading.
#[async_trait]
pub trait Holdings<Authority>: fmt::Debug + Send + Sync {
    /// Where rows come from.
    fn archive(&self) -> &Archive<Authority>;

    /// What stands under a name among what is `of` a person, or of whoever asks where none is named. `None`
    /// is the answer both for what there is not and for what may not be seen.
    async fn find(
        &self,
        of: Option<PersonId>,
        name: &str,
    ) -> Result<Option<Holding<Authority>>, DataFusionError>;

    /// Every table that can be named, in the order in which they are listed.
    async fn listed(&self) -> Result<Vec<Listed>, DataFusionError>;

    /// Names of tables for somebody who misspelt one. They are everybody's.
    fn usual_names(&self) -> Vec<String>;

    /// The answer to the question that a function stands for, about whoever asks.
    async fn answer(&self, call: &Call) -> Result<Prepared, DataFusionError>;
}

/// A type of one person that may be read.
#[derive(Debug)]
pub struct Holding<Authority> {
    pub permit: ReadPermit<Authority>,
    pub sources: Vec<Source>,
    /// What singles it out among the records of its sources.
    pub conditions: Vec<Condition>,
}

/// A query as it was sent.
#[derive(Clone, Debug)]
pub struct SqlQuestion {
    pub text: String,
    pub parameters: Parameters,
}

/// Values for `$1`, `$2` or for `$name`.
#[derive(Clone, Debug, Default)]
pub enum Parameters {
    #[default]
    None,
    List(Vec<Value>),
    Named(Map<String, Value>),
}

/// Bytes of one text among the parameters. Every row may repeat it.
const LONGEST_TEXT: usize = 4 << 10;

impl Parameters {
    /// A list or an object.
    pub fn read(value: Option<Value>) -> Result<Self, String> {
        let parameters = match value {
            None | Some(Value::Null) => return Ok(Self::None),
            Some(Value::Array(values)) => Self::List(values),
            Some(Value::Object(values)) => Self::Named(values),
            Some(_) => return Err("send a list for $1, $2, or an object for $name".to_owned()),
        };
        let all: Vec<&Value> = match &parameters {
            Self::None => Vec::new(),
            Self::List(values) => values.iter().collect(),
            Self::Named(values) => values.values().collect(),
        };
        let is_long = |value: &&Value| value.to_string().len() > LONGEST_TEXT + 2;
        if all.iter().any(|value| match value {
            Value::Array(items) => items.iter().any(|item| is_long(&item)),
            value => is_long(value),
        }) {
            return Err(format!("a text has at most {LONGEST_TEXT} bytes"));
        }
        Ok(parameters)
    }

    /// The value for a name with its `$`.
    fn get(&self, name: &str) -> Option<&Value> {
        let name = name.strip_prefix('$')?;
        match self {
            Self::None => None,
            Self::List(values) => values.get(name.parse::<usize>().ok()?.checked_sub(1)?),
            Self::Named(values) => values.get(name),
        }
    }

    fn refuse_unused(&self, used: &BTreeSet<String>) -> Result<(), SqlError> {
        let names: Vec<String> = match self {
            Self::None => Vec::new(),
            Self::List(values) => (1..=values.len()).map(|place| format!("${place}")).collect(),
            Self::Named(values) => values.keys().map(|name| format!("${name}")).collect(),
        };
        match names.into_iter().find(|name| !used.contains(name)) {
            None => Ok(()),
            Some(name) => Err(SqlError::without_place(format!(
                "the query does not use the parameter {name}"
            ))),
        }
    }
}

/// What a query wants to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Rows,
    /// EXPLAIN: how the rows would be found.
    Plan,
    /// EXPLAIN ANALYZE: how they were found.
    Run,
}

/// A query that is ready to run.
#[derive(Debug)]
pub struct Planned {
    pub prepared: Prepared,
    pub show: Show,
}

/// What is wrong with a query, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SqlError {
    place: Option<Place>,
    message: String,
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(formatter, "{place}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum SqlFailure {
    /// The query is at fault.
    #[error(transparent)]
    Refused(#[from] SqlError),
    /// What it reads, or the machine, is.
    #[error(transparent)]
    Failed(DataFusionError),
}

impl SqlError {
    fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            message: message.into(),
        }
    }

    fn without_place(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
        }
    }

    /// What the parser or the planner has against a text. `known`: names of tables.
    fn of(error: &DataFusionError, text: &QueryText<'_>, known: &[String]) -> Self {
        match error.find_root() {
            DataFusionError::SQL(error, _) => Self::of_grammar(error, text),
            DataFusionError::SchemaError(error, _) => Self::of_names(error, text),
            root => {
                let message = readable(root);
                let name = quoted(&message).map(str::to_owned);
                let place = name.as_deref().and_then(|name| text.place_of(name));
                let message = match name {
                    Some(name) if message.starts_with("table '") && message.ends_with("not found") => {
                        unknown_table(&name, known)
                    }
                    Some(name) if message.contains("function '") && allowed::is_refused(&name) => {
                        format!("{name} is not allowed")
                    }
                    _ => message,
                };
                Self { place, message }
            }
        }
    }

    fn of_grammar(error: &ParserError, text: &QueryText<'_>) -> Self {
        let message = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
            ParserError::RecursionLimitExceeded => {
                return Self::without_place("the query is nested too deep");
            }
        };
        let Some((what, rest)) = message.split_once(" at Line: ") else {
            return Self {
                // The parser has no place for what is missing at the end.
                place: message.ends_with("found: EOF").then(|| text.end()).flatten(),
                message: message.clone(),
            };
        };
        let numbers = rest.split_once(", Column: ");
        let place = numbers.and_then(|(line, column)| {
            let digits = column.split(|letter: char| !letter.is_ascii_digit()).next()?;
            Some(Place {
                line: line.parse().ok()?,
                column: digits.parse().ok()?,
            })
        });
        Self {
            place,
            message: what.to_owned(),
        }
    }

    fn of_names(error: &SchemaError, text: &QueryText<'_>) -> Self {
        let SchemaError::FieldNotFound { field, valid_fields } = error else {
            let message = error.to_string();
            return Self {
                place: quoted(&message).and_then(|name| text.place_of(name)),
                message: first_line(&message),
            };
        };
        let known = valid_fields.iter().map(|column| column.name.as_str());
        let hint = hint(nearest(&field.name, known));
        Self {
            place: text.place_of(&field.name),
            message: format!("there is no column {}{hint}", field.name),
        }
    }
}

fn unknown_table(name: &str, known: &[String]) -> String {
    let shown = name.strip_prefix("almanac.").unwrap_or(name);
    let shown = shown.strip_prefix("own.").unwrap_or(shown);
    let table = shown.rsplit('.').next().unwrap_or(shown);
    let near = nearest(table, known.iter().map(String::as_str)).filter(|nearest| *nearest != table);
    let hint = hint(near);
    format!("there is no table {shown}{hint}")
}

/// What an error says to the author of a query.
#[must_use]
pub fn readable(error: &DataFusionError) -> String {
    let root = error.find_root();
    match root {
        DataFusionError::Internal(_) => UNPLANNED.to_owned(),
        root => first_line(
            &root
                .strip_backtrace()
                .replace(".\nDid you mean", "; is")
                .replace("'?", "' meant?"),
        ),
    }
}

/// What is said of a failure that says nothing to the author of a query.
const UNPLANNED: &str = "the query cannot be planned; say it in another way";

/// What errors of the engine begin with, which says nothing to the author of a query.
const KINDS: [&str; 9] = [
    "Error during planning: ",
    "Schema error: ",
    "Execution error: ",
    "Arrow error: ",
    "External error: ",
    "SQL error: ",
    "This feature is not implemented: ",
    "Optimizer rule failed: ",
    "Invalid or Unsupported Configuration: ",
];

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    KINDS
        .iter()
        .fold(line, |line, kind| line.strip_prefix(kind).unwrap_or(line))
        .to_owned()
}

/// The first thing in quotes.
fn quoted(message: &str) -> Option<&str> {
    message.split_once('\'')?.1.split_once('\'').map(|(name, _)| name)
}

impl Engine {
    /// The plan of `question`, asked at `now` by whoever has these holdings.
    pub async fn sql<Authority: 'static>(
        &self,
        holdings: Arc<dyn Holdings<Authority>>,
        question: SqlQuestion,
        now: Instant,
    ) -> Result<Planned, SqlFailure> {
        let state = self.state().clone();
        let planned = self.apart(move || async move { planned(state, holdings, &question, now).await });
        match planned.await {
            // A planner that fails altogether was given something that it should have refused.
            Err(DataFusionError::Internal(_)) => Err(SqlError::without_place(UNPLANNED).into()),
            planned => planned.map_err(SqlFailure::Failed)?,
        }
    }
}

async fn planned<Authority: 'static>(
    state: SessionState,
    holdings: Arc<dyn Holdings<Authority>>,
    question: &SqlQuestion,
    now: Instant,
) -> Result<Planned, SqlFailure> {
    let text = QueryText::read(&question.text)?;
    let asked = statement::read(&text, &question.parameters)?;
    let functions = Arc::new(Functions::default());
    let state = session(state, &holdings, &functions, now);
    let wrong = |error: DataFusionError| {
        if is_ours(&error) {
            SqlFailure::Failed(error)
        } else {
            SqlError::of(&error, &text, &holdings.usual_names()).into()
        }
    };
    // A function's columns are known when its question is prepared, which takes asking; so a plan that meets
    // one is made again with the answer at hand.
    let logical = loop {
        match state.statement_to_plan(asked.statement.clone()).await {
            Ok(plan) => break plan,
            Err(error) => {
                if !functions.prepare(holdings.as_ref()).await.map_err(wrong)? {
                    return Err(wrong(error));
                }
            }
        }
    };
    let only_reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    only_reads.verify_plan(&logical).map_err(wrong)?;
    let logical = bounded::bounded(logical).map_err(wrong)?;
    let plan = state.create_physical_plan(&logical).await.map_err(wrong)?;
    let plan = columns::with_names_of_their_own(plan).map_err(wrong)?;
    let plan = guard::guarded(plan, state.config().batch_size()).map_err(wrong)?;
    Ok(Planned {
        prepared: Prepared {
            schema: plan.schema(),
            plan,
            states: Vec::new(),
            scope: Scope::default(),
        },
        show: asked.show,
    })
}

/// What a query is planned with: its author's tables, and functions that do no harm.
fn session<Authority: 'static>(
    state: SessionState,
    holdings: &Arc<dyn Holdings<Authority>>,
    functions: &Arc<Functions>,
    now: Instant,
) -> SessionState {
    let mut config = state
        .config()
        .clone()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(tables::CATALOG, tables::OWN)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.enable_recursive_ctes = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    let scalars = allowed::scalars(&state);
    let rules = outer_side::before(state.physical_optimizers());
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_config(config)
        .with_physical_optimizer_rules(rules)
        .with_catalog_list(Arc::new(Shelves::of(holdings)))
        .with_scalar_functions(scalars)
        .with_table_functions(functions::all(functions))
        .build();
    let now = chrono::DateTime::from_timestamp_micros(now.micros());
    state.execution_props_mut().query_execution_start_time = now;
    state
}

/// Whether not the query is at fault but what it reads, or the machine. Nothing of the library is external to
/// it.
fn is_ours(error: &DataFusionError) -> bool {
    matches!(
        error.find_root(),
        DataFusionError::External(_)
            | DataFusionError::ResourcesExhausted(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::ParquetError(_)
    )
}

/// A question's error as a plan's.
#[must_use]
pub fn outside(error: QueryError) -> DataFusionError {
    match error {
        QueryError::Plan(error) => error,
        QueryError::Store(error) => DataFusionError::External(Box::new(error)),
        error => DataFusionError::Plan(error.to_string()),
    }
}
