//! Explains errors of the parser and the planner to the author of a query.
//!
//! Knows the errors of the engine and the text; knows nothing of what is in the tables.

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;

use crate::model::nearest::{hint, nearest};
use crate::query::sql::allowed;
use crate::query::sql::errors::{SqlError, TextPosition};

use super::mistakes::{KnownBy, Mistake, mistake_in};
use super::text::QueryText;

/// The error of the parser or the planner, explained. `known`: names of tables.
pub(in crate::query::sql) fn explained(
    error: &DataFusionError,
    text: &QueryText,
    known: &[String],
) -> SqlError {
    match error.find_root() {
        DataFusionError::SQL(error, _) => of_grammar(error, text),
        DataFusionError::SchemaError(error, _) => of_names(error, text),
        root => {
            if let Some(mistake) = mistake_in(&root.strip_backtrace()) {
                return of_mistake(mistake, text);
            }
            let message = readable(root);
            if let Some(member) = missing_member(&message) {
                return unknown_member(member, text);
            }
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
            SqlError { place, message }
        }
    }
}

fn of_grammar(error: &ParserError, text: &QueryText) -> SqlError {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return SqlError::without_place("the query is nested too deep");
        }
    };
    let Some((what, rest)) = message.split_once(" at Line: ") else {
        return SqlError {
            // The parser gives no place for what is missing at the end.
            place: message.ends_with("found: EOF").then(|| text.end()).flatten(),
            message: message.clone(),
        };
    };
    let numbers = rest.split_once(", Column: ");
    let place = numbers.and_then(|(line, column)| {
        let digits = column.split(|letter: char| !letter.is_ascii_digit()).next()?;
        Some(TextPosition {
            line: line.parse().ok()?,
            column: digits.parse().ok()?,
        })
    });
    SqlError {
        place,
        message: what.to_owned(),
    }
}

fn of_names(error: &SchemaError, text: &QueryText) -> SqlError {
    if let SchemaError::DuplicateQualifiedField { qualifier, name } = error {
        // What is selected from a table without another name keeps the table's.
        let table = qualifier.table();
        return SqlError::without_place(format!(
            "two columns of FROM are called {table}.{name}; give each table and subquery there an alias of \
             its own"
        ));
    }
    let SchemaError::FieldNotFound { field, valid_fields } = error else {
        let message = error.to_string();
        return SqlError {
            place: quoted(&message).and_then(|name| text.place_of(name)),
            message: first_line(&message),
        };
    };
    let known = valid_fields.iter().map(|column| column.name.as_str());
    let hint = hint(nearest(&field.name, known));
    SqlError {
        place: text.place_of(&field.name),
        message: format!("there is no column {}{hint}", field.name),
    }
}

fn of_mistake(mistake: Mistake, text: &QueryText) -> SqlError {
    SqlError {
        place: match mistake.place {
            KnownBy::Names(names) => names.iter().find_map(|name| text.place_of(name)),
            KnownBy::Word(word) => text.only_place_of(word),
        },
        message: mistake.message,
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

/// The name in the engine's message about a member that a structure does not have.
fn missing_member(message: &str) -> Option<&str> {
    message
        .strip_prefix("Field ")?
        .strip_suffix(" not found in struct")
}

/// Members of structures often have capitals in their names, which count within double quotes only.
fn unknown_member(name: &str, text: &QueryText) -> SqlError {
    let hint = match text.capitalized(name) {
        Some(written) => format!("; capitals count within double quotes: write \"{written}\""),
        None => String::new(),
    };
    SqlError {
        place: text.place_of(name),
        message: format!("the structure has no member {name}{hint}"),
    }
}

/// The message of an error for the author of a query.
#[must_use]
pub fn readable(error: &DataFusionError) -> String {
    let root = error.find_root();
    let text = root.strip_backtrace();
    if let Some(mistake) = mistake_in(&text) {
        return mistake.message;
    }
    match root {
        DataFusionError::Internal(_) => UNPLANNED.to_owned(),
        root => {
            let message = first_line(&text.replace(".\nDid you mean", "; did you mean"));
            let message = without_far_name(message);
            match (dump_in(&message), root) {
                (None, _) => message,
                (Some(_), DataFusionError::NotImplemented(_)) => UNSUPPORTED_PART.to_owned(),
                (Some(dump), _) => before(&message, dump).unwrap_or(UNPLANNED).to_owned(),
            }
        }
    }
}

/// What stands between an unknown name and the one that the engine suggests.
const SUGGESTION: &str = "; did you mean '";

/// The message without a name that nobody meant: the engine suggests one however far it is.
fn without_far_name(message: String) -> String {
    let without = message.split_once(SUGGESTION).and_then(|(told, suggested)| {
        let (unknown, suggested) = (quoted(told)?, suggested.trim_end_matches("'?"));
        nearest(unknown, [suggested]).is_none().then(|| told.to_owned())
    });
    without.unwrap_or(message)
}

/// Where a message begins to show a value or a plan as the engine holds it, which is no text for people.
fn dump_in(message: &str) -> Option<usize> {
    let mut quoted = false;
    let mut last = ' ';
    for (place, letter) in message.char_indices() {
        if letter == '\'' && (quoted || !last.is_alphanumeric()) {
            quoted = !quoted;
        }
        let begins = letter.is_ascii_uppercase() && !last.is_alphanumeric() && last != '_';
        if begins && !quoted && message.get(place..).is_some_and(is_dump) {
            return Some(place);
        }
        last = letter;
    }
    None
}

/// Whether a text begins with a name and fields, with a part of a plan, or with what may be missing and is
/// there.
fn is_dump(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let fields = text.trim_start_matches(is_part);
    if text.starts_with("Plan: [")
        || text
            .strip_suffix(fields)
            .is_some_and(|name| name.ends_with("Exec"))
    {
        return true;
    }
    if let Some(fields) = fields.strip_prefix(" { ") {
        let after = fields.trim_start_matches(is_part);
        return after.len() < fields.len() && after.starts_with(": ");
    }
    text.starts_with("Some(")
}

/// The part of a message that is complete before `end`.
fn before(message: &str, end: usize) -> Option<&str> {
    let before = message.get(..end)?;
    let part = [": ", "; ", ". ", ", "]
        .iter()
        .filter_map(|mark| before.rfind(mark))
        .max();
    before.get(..part?)
}

/// The message for a failure that means nothing to the author of a query.
pub(in crate::query::sql) const UNPLANNED: &str = "the query cannot be planned; write it another way";

/// The message for what the engine does not know, and describes in words of its own.
const UNSUPPORTED_PART: &str = "the query has a part that is not supported; write it another way";

/// Prefixes of DataFusion's errors, which mean nothing to the author of a query.
const KINDS: [&str; 10] = [
    "Error during planning: ",
    "Schema error: ",
    "Execution error: ",
    "Arrow error: ",
    "External error: ",
    "SQL error: ",
    "This feature is not implemented: ",
    "Optimizer rule failed: ",
    "Invalid or Unsupported Configuration: ",
    "Internal error: ",
];

/// The prefix of an error in a regular expression.
const PATTERN_ERROR: &str = "regex parse error:";

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = KINDS
        .iter()
        .fold(line, |line, kind| line.strip_prefix(kind).unwrap_or(line));
    // One error may be the reason of another.
    let line = KINDS.iter().fold(line.to_owned(), |line, kind| {
        line.replace(&format!("failed with: {kind}"), "failed with: ")
    });
    if is_beyond_nanoseconds(&line) {
        return NANOSECONDS.to_owned();
    }
    // The lines below show the place of the error, and the last one says what is wrong.
    match text.lines().last().and_then(|last| last.strip_prefix("error: ")) {
        Some(reason) if line == PATTERN_ERROR => format!("{PATTERN_ERROR} {reason}"),
        _ => line,
    }
}

/// What an author can do about an error of nanoseconds.
const NANOSECONDS: &str = "a time lies outside of 1677 to 2262, which is as far as nanoseconds reach; \
                           date_bin and to_timestamp count in them: leave such times out, or use date_trunc";

/// Whether an error says that a moment has no value in nanoseconds.
fn is_beyond_nanoseconds(line: &str) -> bool {
    let has = |words: &str| line.contains(words);
    (has("to Timestamp(ns") && has("exceeds the representable"))
        || (has("Overflow converting") && has("to Nanosecond"))
        || has("DATE_BIN result timestamp out of range")
        || has("date_bin timestamp value")
}

/// The first quoted part.
fn quoted(message: &str) -> Option<&str> {
    message.split_once('\'')?.1.split_once('\'').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_nothing_as_the_engine_does() {
        let plan = |message: &str| readable(&DataFusionError::Plan(message.to_owned()));
        let unknown = |message: &str| readable(&DataFusionError::NotImplemented(message.to_owned()));
        let dump = "Unsupported ast node Pivot { table: Table { name: ObjectName([Identifier(Ident { value: \
                    \"t\" })]) } } in create_relation";
        assert_eq!(unknown(dump), UNSUPPORTED_PART);
        assert_eq!(plan(dump), UNPLANNED);
        assert_eq!(
            plan("coercion to 'sum' failed: it takes List(Field { name: \"item\", nullable: true })"),
            "coercion to 'sum' failed"
        );
        assert_eq!(plan("wrong options, namely Some(5)"), "wrong options");
        assert_eq!(
            plan("Function 'f' user-defined coercion failed with: Execution error: it takes 1"),
            "Function 'f' user-defined coercion failed with: it takes 1"
        );
        assert_eq!(plan("Internal error: it takes 1"), "it takes 1");
        for (suggested, expected) in [
            ("'mod'.\nDid you mean 'cot'?", "'mod'"),
            ("'width_bucket'.\nDid you mean 'list_cat'?", "'width_bucket'"),
            (
                "'local_dya'.\nDid you mean 'local_day'?",
                "'local_dya'; did you mean 'local_day'?",
            ),
        ] {
            let message = plan(&format!("Invalid function {suggested}"));
            assert_eq!(message, format!("Invalid function {expected}"));
        }
        let steps = "Plan: [\"SortExec: expr=[a@0 ASC]\", \"  AnswerExec: records\"] does not satisfy order";
        assert_eq!(plan(steps), UNPLANNED);
        assert_eq!(
            plan("it has no order: SortExec expr=[a@0 ASC]"),
            "it has no order"
        );
        for message in [
            "Cannot cast string 'Ident { value: 1 }' to value of Int64 type",
            "Cannot cast string '{ a: 1 }' to value of Int64 type",
            "Invalid function 'local_dya'; did you mean 'local_day'?",
            "it doesn't exist; Some other does",
            "Cannot cast string 'SortExec: a' to value of Int64 type",
        ] {
            assert_eq!(plan(message), message);
        }
    }
}
