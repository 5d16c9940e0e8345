//! Parses text into a selector, with a parser of the whole language.

use std::time::Duration;

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{self, AtModifier, Expr, Offset, VectorSelector};

use super::words::{Words, said, unsupported};
use super::{Extent, MOST_SELECTOR_BYTES, Selector, SelectorError};
use crate::model::time::Instant;
use crate::query::filter::{Comparand, Comparison, Condition, LabelComparison, MOST_FILTERS};

const NAME: &str = "__name__";

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MOST_SELECTOR_BYTES {
            return Err(SelectorError::TooLong);
        }
        let words = Words::read(text)?;
        // The parser also checks types, so it rejects some of the unsupported language as malformed.
        let expression = parser::parse(&words.text).map_err(|reason| match unsupported(text) {
            Some(token) => SelectorError::Unsupported { token },
            None => SelectorError::Malformed {
                reason: said(&reason),
            },
        })?;
        match expression {
            Expr::VectorSelector(selector) => Self::of(&selector, Extent::Latest, &words),
            Expr::MatrixSelector(matrix) => Self::of(&matrix.vs, Extent::Back(micros(matrix.range)), &words),
            other => Err(SelectorError::Unsupported {
                token: token_of(&other),
            }),
        }
    }

    fn of(selector: &VectorSelector, extent: Extent, words: &Words) -> Result<Self, SelectorError> {
        if !selector.matchers.or_matchers.is_empty() {
            return Err(SelectorError::Unsupported {
                token: "or".to_owned(),
            });
        }
        let matchers = &selector.matchers.matchers;
        let is_pattern = |place: usize| words.patterns.get(place).copied().unwrap_or(false);
        let (names, labels): (Vec<_>, Vec<_>) = matchers
            .iter()
            .enumerate()
            .map(|(place, matcher)| (matcher, is_pattern(place)))
            .partition(|(matcher, _)| matcher.name == NAME);
        let name = match (&selector.name, names.as_slice()) {
            (Some(name), []) => name.clone(),
            (None, [(one, false)]) if matches!(one.op, MatchOp::Equal) => one.value.clone(),
            _ => return Err(SelectorError::NoName),
        };
        if labels.len() > MOST_FILTERS {
            return Err(SelectorError::TooManyLabels(labels.len()));
        }
        let at = match &selector.at {
            None => None,
            Some(AtModifier::At(_)) => words.moment.map(Instant::from_micros),
            Some(AtModifier::Start) => {
                return Err(SelectorError::Unsupported {
                    token: "start".to_owned(),
                });
            }
            Some(AtModifier::End) => {
                return Err(SelectorError::Unsupported {
                    token: "end".to_owned(),
                });
            }
        };
        let offset = match selector.offset {
            None => 0,
            Some(Offset::Pos(duration)) => micros(duration),
            Some(Offset::Neg(duration)) => -micros(duration),
        };
        Ok(Self {
            name,
            conditions: labels
                .into_iter()
                .map(|(matcher, is_pattern)| condition(matcher, is_pattern))
                .collect(),
            extent,
            at,
            offset,
        })
    }
}

fn condition(matcher: &Matcher, is_pattern: bool) -> Condition {
    let is_equal = matches!(matcher.op, MatchOp::Equal | MatchOp::Re(_));
    let comparison = match (is_equal, is_pattern) {
        (true, false) => LabelComparison::Equal,
        (false, false) => LabelComparison::NotEqual,
        (true, true) => LabelComparison::Matches,
        (false, true) => LabelComparison::MatchesNot,
    };
    Condition {
        field: matcher.name.clone(),
        operator: Comparison::Label(comparison),
        value: Comparand::Text(matcher.value.clone()),
    }
}

/// The part of the expression that makes it no selector, as it is written.
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

/// Rounds to the nearest microsecond, because fractions of seconds pass through a float.
fn micros(duration: Duration) -> i64 {
    i64::try_from((duration.as_nanos() + 500) / 1000).unwrap_or(i64::MAX)
}
