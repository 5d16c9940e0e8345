//! The `filter` parameter: conditions on the fields of a record.
//!
//! A filter is parsed into plain data, checked against the fields that the type has, and bound as typed
//! literals. No text of a request ever becomes text of a query. Knows the type's columns; knows nothing of
//! where the rows are.

mod label;
#[cfg(test)]
mod tests;
mod whole;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions_nested::expr_fn::array_has;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, col, lit};
use datafusion::prelude::not;
use uuid::Uuid;

use crate::model::registry::{DataType, ReadFrom, is_json_text, respelt};
use crate::model::time::parse_instant_in_query;

use whole::Whole;

pub use label::LabelComparison;

/// The most conditions in a request.
pub const MAX_FILTERS: usize = 20;
/// Columns that the store keeps for its own use: the source in short form. No record has fields of these
/// names.
const INTERNAL_COLUMNS: [&str; 2] = ["source", "source_class"];
/// The most bytes in one condition.
pub const MAX_FILTER_BYTES: usize = 1024;

/// Why a filter cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FilterError {
    #[error("{0} filters were given; the limit is {MAX_FILTERS}")]
    TooMany(usize),
    #[error("a filter is longer than {MAX_FILTER_BYTES} bytes")]
    TooLong,
    #[error("`{0}` has no operator; expected field, one of : = != <= >= < > ~, and a value")]
    NoOperator(String),
    #[error("`{0}` has no field before its operator; expected field, one of : = != <= >= < > ~, and a value")]
    NoField(String),
    #[error("`{field}` is not a field of {data_type}; its fields are {known}")]
    UnknownField {
        field: String,
        data_type: String,
        known: String,
    },
    #[error("`{value}` is not a {expected}, which `{field}` holds")]
    WrongType {
        field: String,
        value: String,
        expected: &'static str,
    },
    #[error("`{operator}` cannot be used on `{field}`, which holds {holds}")]
    WrongOperator {
        field: String,
        operator: &'static str,
        holds: &'static str,
    },
    #[error("`{field}` of {data_type} can be read by its owner only")]
    Private { field: String, data_type: String },
    #[error("`{pattern}` is not a supported regular expression: {reason}")]
    Pattern { pattern: String, reason: String },
}

/// One condition as it was requested, not yet checked against a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub field: String,
    pub operator: Comparison,
    pub value: Comparand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    /// Substring, ignoring case.
    Contains,
    /// Compared as the labels of a selector are.
    Label(LabelComparison),
    /// Equal, as part of what the type is: no caller requests it, and it is not an alternative to requested
    /// conditions on the same field.
    Belongs,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Comparand {
    Null,
    Text(String),
}

impl Comparison {
    const ALL: [(&'static str, Self); 8] = [
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        (":", Self::Equal),
        ("=", Self::Equal),
        ("<", Self::Less),
        (">", Self::Greater),
        ("~", Self::Contains),
    ];

    const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::LessOrEqual => "<=",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::Contains => "~",
            Self::Label(comparison) => comparison.symbol(),
            Self::Belongs => "=",
        }
    }

    /// Whether it requires equal values (true) or unequal ones (false), or neither.
    const fn tells_equal(self) -> Option<bool> {
        match self {
            Self::Equal | Self::Belongs | Self::Label(LabelComparison::Equal) => Some(true),
            Self::NotEqual | Self::Label(LabelComparison::NotEqual) => Some(false),
            _ => None,
        }
    }

    const fn operator(self) -> Operator {
        match self {
            Self::Equal | Self::Belongs | Self::Contains | Self::Label(_) => Operator::Eq,
            Self::NotEqual => Operator::NotEq,
            Self::LessOrEqual => Operator::LtEq,
            Self::GreaterOrEqual => Operator::GtEq,
            Self::Less => Operator::Lt,
            Self::Greater => Operator::Gt,
        }
    }
}

/// Reads the texts of the `filter` parameter.
pub fn parse_all(texts: &[String]) -> Result<Vec<Condition>, FilterError> {
    if texts.len() > MAX_FILTERS {
        return Err(FilterError::TooMany(texts.len()));
    }
    texts.iter().map(|text| parse(text)).collect()
}

fn parse(text: &str) -> Result<Condition, FilterError> {
    if text.len() > MAX_FILTER_BYTES {
        return Err(FilterError::TooLong);
    }
    let no_operator = || FilterError::NoOperator(text.to_owned());
    let split = text
        .find([':', '=', '!', '<', '>', '~'])
        .ok_or_else(no_operator)?;
    let (field, rest) = text.split_at(split);
    let (symbol, operator) = Comparison::ALL
        .into_iter()
        .find(|(symbol, _)| rest.starts_with(symbol))
        .ok_or_else(no_operator)?;
    if field.is_empty() {
        return Err(FilterError::NoField(text.to_owned()));
    }
    let value = &rest[symbol.len()..];
    let comparand = match (operator, value) {
        (Comparison::Equal | Comparison::NotEqual, "null") => Comparand::Null,
        _ => Comparand::Text(unquote(value)),
    };
    Ok(Condition {
        field: field.to_owned(),
        operator,
        value: comparand,
    })
}

/// A JSON string literal stands for what it quotes; everything else stands for itself.
fn unquote(value: &str) -> String {
    if value.starts_with('"') {
        serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
    } else {
        value.to_owned()
    }
}

/// What conditions amount to on the rows of one type.
#[derive(Clone, Debug)]
pub enum Bound {
    Always,
    /// An expression over the stored columns of the type.
    When(Expr),
    /// No row can meet them.
    Never,
}

impl Bound {
    /// The condition; `None` if every row meets it.
    #[must_use]
    pub fn condition(self) -> Option<Expr> {
        match self {
            Self::Always => None,
            Self::When(condition) => Some(condition),
            Self::Never => Some(lit(false)),
        }
    }
}

/// Binds the conditions to each of several types that are read together. Each condition has to fit at least
/// one of them; on a type that lacks its field, or whose field cannot hold its value, it selects nothing.
pub fn bind_each(conditions: &[Condition], types: &[&DataType]) -> Result<Vec<Bound>, FilterError> {
    for condition in conditions {
        let mut refused = None;
        for data_type in types {
            match (bind_one(condition, data_type), &refused) {
                (Ok(_), _) => {
                    refused = None;
                    break;
                }
                // A type that has the field gives the better error.
                (Err(error), None | Some(FilterError::UnknownField { .. })) => refused = Some(error),
                (Err(_), Some(_)) => {}
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
    }
    Ok(types
        .iter()
        .map(|data_type| bind(conditions, data_type))
        .collect())
}

/// The fields whose values the conditions compare.
pub fn asked_fields(conditions: &[Condition]) -> impl Iterator<Item = &String> {
    conditions
        .iter()
        .filter(|condition| condition.operator != Comparison::Belongs)
        .map(|condition| &condition.field)
}

/// Refuses fields that only the owner may see, for questions of somebody else.
pub fn refuse_private<'a, 'b, Types: Iterator<Item = &'a DataType>>(
    fields: impl IntoIterator<Item = &'b String>,
    types: impl Fn() -> Types,
) -> Result<(), FilterError> {
    for field in fields {
        if let Some(data_type) = types().find(|data_type| data_type.layout.is_private(field)) {
            return Err(FilterError::Private {
                field: field.clone(),
                data_type: data_type.id.as_str().to_owned(),
            });
        }
    }
    Ok(())
}

/// Binds conditions that were already checked to the rows of `data_type`.
///
/// Equalities on the same field are alternatives; everything else must hold together.
#[must_use]
pub fn bind(conditions: &[Condition], data_type: &DataType) -> Bound {
    let mut bound: Vec<(Option<&str>, Option<Expr>)> = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let expression = bind_one(condition, data_type)
            .ok()
            .or_else(|| differs(condition, data_type));
        let alternative = (condition.operator == Comparison::Equal).then_some(condition.field.as_str());
        match bound
            .iter_mut()
            .find(|(field, _)| field.is_some() && *field == alternative)
        {
            Some((_, existing)) => *existing = existing.take().into_iter().chain(expression).reduce(Expr::or),
            None => bound.push((alternative, expression)),
        }
    }
    let all: Option<Vec<Expr>> = bound.into_iter().map(|(_, expression)| expression).collect();
    match all.map(|all| all.into_iter().reduce(Expr::and)) {
        None => Bound::Never,
        Some(None) => Bound::Always,
        Some(Some(condition)) => Bound::When(condition),
    }
}

/// A condition on a field that cannot hold its value: whatever the field holds differs from it.
fn differs(condition: &Condition, data_type: &DataType) -> Option<Expr> {
    let field = field_of(&condition.field, data_type)?;
    match condition.operator {
        Comparison::NotEqual if matches!(field.holds, ArrowType::List(_)) => Some(lit(true)),
        Comparison::NotEqual => Some(field.expression.is_not_null()),
        Comparison::Label(LabelComparison::NotEqual | LabelComparison::MatchesNot) => Some(lit(true)),
        _ => None,
    }
}

/// A field of a record: the expression that yields it and what it holds.
#[derive(Clone, Debug)]
pub struct FieldOf {
    pub expression: Expr,
    pub holds: ArrowType,
    /// The text is JSON of any shape.
    pub is_json: bool,
}

/// Finds the field called `name` among what records of `data_type` show and store. Dots reach into structs,
/// except where they are part of a field's own name.
#[must_use]
pub fn field_of(name: &str, data_type: &DataType) -> Option<FieldOf> {
    prefixes(name).find_map(|(first, rest)| within(top_level(first, data_type)?, rest))
}

/// The member called `rest` of a struct, or the field itself without `rest`.
fn within(field: FieldOf, rest: Option<&str>) -> Option<FieldOf> {
    let Some(rest) = rest else { return Some(field) };
    let ArrowType::Struct(members) = &field.holds else {
        return None;
    };
    prefixes(rest).find_map(|(first, rest)| {
        let member = members.iter().find(|member| member.name() == first)?;
        let found = FieldOf {
            expression: field.expression.clone().field(first),
            holds: member.data_type().clone(),
            is_json: is_json_text(member),
        };
        within(found, rest)
    })
}

/// The whole name, then each split of it at a dot, the longest first part first.
fn prefixes(name: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let parts = name
        .rmatch_indices('.')
        .filter_map(|(dot, _)| Some((name.get(..dot)?, name.get(dot + 1..))));
    std::iter::once((name, None)).chain(parts)
}

fn top_level(name: &str, data_type: &DataType) -> Option<FieldOf> {
    let storage = &data_type.layout.storage;
    let shown = data_type
        .layout
        .read
        .iter()
        .find(|column| column.name == name)
        .map(|column| &column.from);
    let stored = match shown {
        Some(ReadFrom::Id) => "id",
        Some(ReadFrom::Start) => "start_time",
        Some(ReadFrom::End) => "end_time",
        Some(ReadFrom::Span) => "start_time",
        Some(ReadFrom::Column(column) | ReadFrom::Versions { column, .. }) => column,
        Some(ReadFrom::Extras { .. }) => "extras",
        Some(ReadFrom::Constant(text)) => {
            return Some(FieldOf {
                expression: lit(text.clone()),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        Some(ReadFrom::Null) => {
            return Some(FieldOf {
                expression: lit(ScalarValue::Utf8(None)),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        None => name,
    };
    if shown.is_none() && INTERNAL_COLUMNS.contains(&name) {
        return None;
    }
    let field: &Field = storage.field_with_name(stored).ok()?;
    Some(FieldOf {
        expression: column(stored),
        holds: field.data_type().clone(),
        is_json: is_json_text(field),
    })
}

fn column(name: &str) -> Expr {
    col(datafusion::common::Column::new_unqualified(name))
}

fn bind_one(condition: &Condition, data_type: &DataType) -> Result<Expr, FilterError> {
    let canonical = match &condition.value {
        Comparand::Text(text) if data_type.holds_uuids(&condition.field) => respelt(text),
        _ => None,
    };
    let (Some(canonical), Some(is_equal)) = (canonical, condition.operator.tells_equal()) else {
        return bind_as_asked(condition, data_type);
    };
    // Ids are stored in one spelling; older rows may still have the spelling of the request.
    let respelt = Condition {
        value: Comparand::Text(canonical),
        ..condition.clone()
    };
    let (one, other) = (
        bind_as_asked(&respelt, data_type)?,
        bind_as_asked(condition, data_type)?,
    );
    Ok(if is_equal { one.or(other) } else { one.and(other) })
}

fn bind_as_asked(condition: &Condition, data_type: &DataType) -> Result<Expr, FilterError> {
    let field =
        field_of(&condition.field, data_type).ok_or_else(|| unknown_field(&condition.field, data_type))?;
    let text = match (&condition.value, condition.operator) {
        (Comparand::Null, Comparison::NotEqual) => return Ok(field.expression.is_not_null()),
        (Comparand::Null, _) => return Ok(field.expression.is_null()),
        (Comparand::Text(text), _) => text,
    };
    if let Comparison::Label(comparison) = condition.operator {
        return label::bind(condition, comparison, field, text);
    }
    match &field.holds {
        ArrowType::List(item) if item.data_type().is_nested() => Err(wrong_operator(
            condition,
            "a list of structures; only null can be looked for",
        )),
        ArrowType::List(item) => bind_membership(condition, field.expression.clone(), item.data_type(), text),
        ArrowType::Struct(_) => Err(wrong_operator(
            condition,
            "a structure; name one of its fields after a dot",
        )),
        _ if condition.operator == Comparison::Contains => bind_contains(condition, field, text),
        _ => compared(condition, field, condition.operator.operator(), text),
    }
}

/// Whether a field relates like this to the value of a text. A field without a value does not.
fn compared(
    condition: &Condition,
    field: FieldOf,
    operator: Operator,
    text: &str,
) -> Result<Expr, FilterError> {
    if field.holds.is_signed_integer() {
        return Ok(whole(condition, text)?.compared(field.expression, operator));
    }
    let value = literal(condition, &field.holds, text)?;
    let value_of_field = plain_text(field.expression, &field.holds);
    Ok(binary_expr(value_of_field, operator, lit(value)))
}

/// Whether a list has the value of a text.
fn list_has(condition: &Condition, list: Expr, item: &ArrowType, text: &str) -> Result<Expr, FilterError> {
    if item.is_signed_integer() {
        return Ok(match whole(condition, text)? {
            Whole::At(number) => array_has(list, lit(number)),
            Whole::After(_) => lit(false),
        });
    }
    Ok(match literal(condition, item, text)? {
        // Lists keep the sign of a zero, which does not make it another number.
        ScalarValue::Float64(Some(0.0)) => array_has(list.clone(), lit(0.0)).or(array_has(list, lit(-0.0))),
        value => array_has(list, lit(value)),
    })
}

fn bind_membership(
    condition: &Condition,
    list: Expr,
    item: &ArrowType,
    text: &str,
) -> Result<Expr, FilterError> {
    let holds = list_has(condition, list.clone(), item, text)?;
    match condition.operator {
        Comparison::Equal => Ok(holds),
        Comparison::NotEqual => Ok(not(holds).or(list.is_null())),
        _ => Err(wrong_operator(condition, "a list; use = or !=")),
    }
}

fn bind_contains(condition: &Condition, field: FieldOf, text: &str) -> Result<Expr, FilterError> {
    if !is_text(&field.holds) {
        return Err(wrong_operator(condition, "no text"));
    }
    // Escaped by hand and matched with an explicit escape, so that `%` and `_` in the request stand for
    // themselves.
    let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Ok(plain_text(field.expression, &field.holds).ilike(lit(format!("%{pattern}%"))))
}

const fn is_text(holds: &ArrowType) -> bool {
    matches!(
        holds,
        ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8 | ArrowType::Dictionary(_, _)
    )
}

/// Converts to plain strings, on which all comparisons of text run.
fn plain_text(expression: Expr, holds: &ArrowType) -> Expr {
    if matches!(holds, ArrowType::Dictionary(_, _)) {
        cast(expression, ArrowType::Utf8)
    } else {
        expression
    }
}

/// A whole number may be compared with any decimal one: `value>=2.5`.
fn whole(condition: &Condition, text: &str) -> Result<Whole, FilterError> {
    Whole::read(text).ok_or_else(|| wrong_type(condition, text, "number"))
}

fn literal(condition: &Condition, holds: &ArrowType, text: &str) -> Result<ScalarValue, FilterError> {
    let wrong = |expected| wrong_type(condition, text, expected);
    match holds {
        ArrowType::Float64 => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(ScalarValue::Float64(Some(number))),
            _ => Err(wrong("number")),
        },
        ArrowType::Boolean => match text {
            "true" | "True" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "false" | "False" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(wrong("boolean")),
        },
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => parse_instant_in_query(text)
            .map(|instant| ScalarValue::TimestampMicrosecond(Some(instant.micros()), zone.clone()))
            .map_err(|_| wrong("date-time")),
        ArrowType::FixedSizeBinary(16) => Uuid::parse_str(text)
            .map(|id| ScalarValue::FixedSizeBinary(16, Some(id.as_bytes().to_vec())))
            .map_err(|_| wrong("uuid")),
        _ => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
    }
}

/// The error for a field that does not exist, naming those that do.
#[must_use]
pub fn unknown_field(field: &str, data_type: &DataType) -> FilterError {
    let known: Vec<&str> = data_type
        .layout
        .read
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    FilterError::UnknownField {
        field: field.to_owned(),
        data_type: data_type.id.as_str().to_owned(),
        known: known.join(", "),
    }
}

fn wrong_type(condition: &Condition, text: &str, expected: &'static str) -> FilterError {
    FilterError::WrongType {
        field: condition.field.clone(),
        value: text.to_owned(),
        expected,
    }
}

fn wrong_operator(condition: &Condition, holds: &'static str) -> FilterError {
    FilterError::WrongOperator {
        field: condition.field.clone(),
        operator: condition.operator.symbol(),
        holds,
    }
}
