//! From text to a selector, by a parser of the whole language.
//!
//! What the parser would misread without saying so is refused before it is asked: numbers and lengths that it drops or cannot hold, and nesting that is
//! deeper than any selector.

use std::time::{Duration, SystemTime};

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{self, AtModifier, Expr, Offset, VectorSelector};

use super::{Extent, MAX_SELECTOR_BYTES, Selector, SelectorError};
use crate::model::time::Instant;
use crate::query::filter::{Comparand, Comparison, Condition, LabelComparison, MAX_FILTERS};

const NAME: &str = "__name__";
/// No selector has more signs than this outside of its texts.
const MAX_SIGNS: usize = 64;
/// Plain numbers are seconds; beyond this they leave the calendar.
const MAX_SECONDS: f64 = 1e12;
/// A part of a length has at most so many digits.
const MAX_DIGITS: usize = 9;

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR_BYTES {
            return Err(SelectorError::TooLong);
        }
        check(text)?;
        let expression = parser::parse(text).map_err(|reason| SelectorError::Malformed { reason: said(&reason) })?;
        match expression {
            Expr::VectorSelector(selector) => Self::of(&selector, Extent::Latest),
            Expr::MatrixSelector(matrix) => Self::of(&matrix.vs, Extent::Back(micros(matrix.range))),
            other => Err(SelectorError::Unsupported { token: token_of(&other) }),
        }
    }

    fn of(selector: &VectorSelector, extent: Extent) -> Result<Self, SelectorError> {
        if !selector.matchers.or_matchers.is_empty() {
            return Err(SelectorError::Unsupported { token: "or".to_owned() });
        }
        let (names, labels): (Vec<&Matcher>, Vec<&Matcher>) = selector.matchers.matchers.iter().partition(|matcher| matcher.name == NAME);
        let name = match (&selector.name, names.as_slice()) {
            (Some(name), []) => name.clone(),
            (None, [one]) if matches!(one.op, MatchOp::Equal) => one.value.clone(),
            _ => return Err(SelectorError::NoName),
        };
        if labels.len() > MAX_FILTERS {
            return Err(SelectorError::TooManyLabels(labels.len()));
        }
        let at = match &selector.at {
            None => None,
            Some(AtModifier::At(time)) => Some(instant(*time)),
            Some(AtModifier::Start) => return Err(SelectorError::Unsupported { token: "start".to_owned() }),
            Some(AtModifier::End) => return Err(SelectorError::Unsupported { token: "end".to_owned() }),
        };
        let offset = match selector.offset {
            None => 0,
            Some(Offset::Pos(duration)) => micros(duration),
            Some(Offset::Neg(duration)) => -micros(duration),
        };
        Ok(Self {
            name,
            conditions: labels.into_iter().map(condition).collect(),
            extent,
            at,
            offset,
        })
    }
}

fn condition(matcher: &Matcher) -> Condition {
    let comparison = match matcher.op {
        MatchOp::Equal => LabelComparison::Equal,
        MatchOp::NotEqual => LabelComparison::NotEqual,
        MatchOp::Re(_) => LabelComparison::Matches,
        MatchOp::NotRe(_) => LabelComparison::MatchesNot,
    };
    Condition {
        field: matcher.name.clone(),
        operator: Comparison::Label(comparison),
        value: Comparand::Text(matcher.value.clone()),
    }
}

/// What the expression is that is no selector, as it is written.
fn token_of(expression: &Expr) -> String {
    match expression {
        Expr::Call(call) => call.func.name.to_owned(),
        Expr::Aggregate(aggregate) => aggregate.op.to_string(),
        Expr::Binary(binary) => binary.op.to_string(),
        Expr::Unary(_) => "-".to_owned(),
        Expr::Paren(_) => "(".to_owned(),
        Expr::Subquery(_) => ":".to_owned(),
        Expr::NumberLiteral(number) => number.val.to_string(),
        Expr::StringLiteral(text) => format!("\"{}\"", said(&text.val)),
        Expr::VectorSelector(_) | Expr::MatrixSelector(_) | Expr::Extension(_) => "this".to_owned(),
    }
}

/// Looks at everything outside of quotes.
fn check(text: &str) -> Result<(), SelectorError> {
    let mut signs = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' | '\'' => quoted(rest, first),
            // Comments are of no use here, and the parser reads escapes in raw strings too.
            '#' | '`' => return Err(SelectorError::Unsupported { token: first.to_string() }),
            _ if is_word(first) => {
                let word = rest
                    .get(..rest.find(|character| !is_word(character)).unwrap_or(rest.len()))
                    .unwrap_or_default();
                check_word(word)?;
                word.len()
            }
            _ => {
                signs += usize::from(!first.is_whitespace());
                if signs > MAX_SIGNS {
                    return Err(SelectorError::Malformed {
                        reason: format!("there are more than {MAX_SIGNS} signs"),
                    });
                }
                first.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(())
}

const fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.')
}

/// How long the text in quotes is with which `rest` begins, up to the end if they never close.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return place + 1;
        }
    }
    rest.len()
}

/// A word that begins like a number must be one that the parser reads as it is written.
fn check_word(word: &str) -> Result<(), SelectorError> {
    let wrong = || SelectorError::NoNumber(said(word));
    if ["inf", "nan", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name)) {
        return Err(wrong());
    }
    if !word.starts_with(|character: char| character.is_ascii_digit() || character == '.') {
        return Ok(());
    }
    if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let small = word.parse::<f64>().is_ok_and(|seconds| seconds <= MAX_SECONDS);
        return if small { Ok(()) } else { Err(wrong()) };
    }
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = rest.get(digits..).unwrap_or_default();
        let unit = ["ms", "s", "m", "h", "d", "w", "y"]
            .into_iter()
            .find(|unit| after.starts_with(unit));
        let Some(unit) = unit.filter(|_| (1..=MAX_DIGITS).contains(&digits)) else {
            return Err(wrong());
        };
        rest = after.get(unit.len()..).unwrap_or_default();
    }
    Ok(())
}

/// The beginning of a text that somebody sent.
fn said(text: &str) -> String {
    const ENOUGH: usize = 200;
    text.chars().take(ENOUGH).collect()
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn instant(time: SystemTime) -> Instant {
    let since = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => micros(after),
        Err(before) => -micros(before.duration()),
    };
    Instant::from_micros(since).clamp(Instant::MIN, Instant::MAX)
}
