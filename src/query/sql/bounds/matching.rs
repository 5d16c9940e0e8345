//! Patterns with a limit on what they may cost: what is cheap in any text is left to the engine and to the
//! optimizer, and all else is weighed against the texts that it meets.
//!
//! Whether a regular expression is found in a text is decided here, text by text. What tells places, or
//! replaces, is the engine's, as is LIKE: these are given as many rows at a time as they may take steps
//! ([`super::weighed`], [`super::weighed_like`]). Between texts, and between such parts, a question that
//! nobody waits for ends. Knows expressions only.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, internal_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use regex::Regex;

use crate::model::weighed_pattern::{MadeStates, WeighedPattern};
use crate::query::ended::{beside_others, refuse_ended};

use super::cheap::{is_cheap, is_cheap_like, is_text, literal, with_flags};
use super::weighed::Weighing;
use super::weighed_like::WeighedLike;

const REGEXP_LIKE: &str = "regexp_like";

/// An expression with a pattern, weighed unless it is cheap.
pub(super) fn weighed(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let found = flags_of(op).and_then(|flags| Matches::of(literal(&right)?, flags));
            match found {
                Some(matches) => Transformed::yes(matches.in_text(*left, is_negated(op))),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::ScalarFunction(call) if call.func.name() == REGEXP_LIKE => weighed_call(call),
        Expr::ScalarFunction(call) => match Weighing::around(&call) {
            Some(func) => Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, ..call })),
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        Expr::Like(like) if !is_cheap_like(&like) => Transformed::yes(WeighedLike::of(like)),
        expr => Transformed::no(expr),
    }
}

/// `regexp_like(text, pattern, flags)`. What the engine refuses is left to it.
fn weighed_call(mut call: ScalarFunction) -> Transformed<Expr> {
    let found = match call.args.as_slice() {
        [_, pattern] => literal(pattern).and_then(|pattern| Matches::of(pattern, "")),
        [_, pattern, flags] => {
            let flags = literal(flags).filter(|flags| !flags.contains('g'));
            flags.and_then(|flags| Matches::of(literal(pattern)?, flags))
        }
        _ => None,
    };
    match found {
        Some(matches) => Transformed::yes(matches.in_text(call.args.swap_remove(0), false)),
        None => Transformed::no(Expr::ScalarFunction(call)),
    }
}

/// The flags with which an operator finds regular expressions.
const fn flags_of(op: Operator) -> Option<&'static str> {
    match op {
        Operator::RegexMatch | Operator::RegexNotMatch => Some(""),
        Operator::RegexIMatch | Operator::RegexNotIMatch => Some("i"),
        _ => None,
    }
}

const fn is_negated(op: Operator) -> bool {
    matches!(op, Operator::RegexNotMatch | Operator::RegexNotIMatch)
}

/// `matches(text)`: whether a regular expression is found in the text; null where that is null.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Matches {
    pattern: WeighedPattern,
    signature: Signature,
}

impl Matches {
    /// None if it is cheap without this, or if the engine does not take it, which then says why.
    fn of(pattern: &str, flags: &str) -> Option<Self> {
        let pattern = with_flags(pattern, flags);
        if is_cheap(&pattern) {
            return None;
        }
        Some(Self {
            pattern: WeighedPattern::new(Regex::new(&pattern).ok()?),
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }

    fn in_text(self, text: Expr, negated: bool) -> Expr {
        let found = ScalarUDF::new_from_impl(self).call(vec![text]);
        if negated {
            Expr::Not(Box::new(found))
        } else {
            found
        }
    }

    fn in_each<'t>(&self, texts: impl Iterator<Item = Option<&'t str>>) -> Result<BooleanArray> {
        let mut made = MadeStates::default();
        texts
            .map(|text| {
                let Some(text) = text else {
                    return Ok(None);
                };
                refuse_ended()?;
                let found = self.pattern.is_match(&mut made, text);
                found.map(Some).map_err(|costly| exec_datafusion_err!("{costly}"))
            })
            .collect()
    }
}

impl ScalarUDFImpl for Matches {
    fn name(&self) -> &'static str {
        "matches"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [text] if is_text(text) => Ok(vec![DataType::Utf8]),
            _ => plan_err!("a regular expression is found in texts only"),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("matches takes one argument");
        };
        let rows = match argument {
            ColumnarValue::Array(_) => arguments.number_rows,
            // A constant is computed once.
            ColumnarValue::Scalar(_) => 1,
        };
        let texts = argument.to_array(rows)?;
        let Some(texts) = texts.as_string_opt::<i32>() else {
            return internal_err!("matches takes texts");
        };
        let found = if self.pattern.is_fast(texts.value_data().len()) {
            self.in_each(texts.iter())?
        } else {
            beside_others(|| self.in_each(texts.iter()))?
        };
        Ok(match argument {
            ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(found)),
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
        })
    }
}
