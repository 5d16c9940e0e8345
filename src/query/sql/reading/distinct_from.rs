//! Reads `IS [NOT] DISTINCT FROM` as an operator like others.
//!
//! The parser takes all that follows for its right side, `AND`, `OR` and what comes after them too. In SQL it
//! ends where that of a comparison ends. So the words of it are one sign while the text is parsed, of those
//! that bind less than comparisons and more than `NOT`. Other signs that bind alike here, such as `@>`, bind
//! more in SQL, and are brought back to its right side. Knows tokens and expressions only.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value, VisitorMut};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// Signs that no text has, since signs are not made of letters.
const DISTINCT_SIGN: &str = "IS DISTINCT FROM";
const NOT_DISTINCT_SIGN: &str = "IS NOT DISTINCT FROM";

/// The tokens to be parsed.
pub(super) fn as_signs(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // The last words, and where each of them stands in what is read.
    let mut words: Vec<(usize, Keyword)> = Vec::new();
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Word(word) => words.push((read.len(), word.keyword)),
            _ => words.clear(),
        }
        read.push(token.clone());
        let (first, sign) = match words.as_slice() {
            [
                ..,
                (first, Keyword::IS),
                (_, Keyword::DISTINCT),
                (_, Keyword::FROM),
            ] => (*first, DISTINCT_SIGN),
            [
                ..,
                (first, Keyword::IS),
                (_, Keyword::NOT),
                (_, Keyword::DISTINCT),
                (_, Keyword::FROM),
            ] => (*first, NOT_DISTINCT_SIGN),
            _ => continue,
        };
        let start = read.get(first).map_or(token.span.start, |token| token.span.start);
        let sign = Token::CustomBinaryOperator(sign.to_owned());
        read.truncate(first);
        read.push(TokenWithSpan::new(sign, Span::new(start, token.span.end)));
        words.clear();
    }
    read
}

/// Makes what they mean of the signs in a query.
pub(super) struct SignMeanings;

impl VisitorMut for SignMeanings {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::BinaryOp {
            left,
            op: BinaryOperator::Custom(sign),
            right,
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        let meant = match sign.as_str() {
            DISTINCT_SIGN => Expr::IsDistinctFrom,
            NOT_DISTINCT_SIGN => Expr::IsNotDistinctFrom,
            _ => return ControlFlow::Continue(()),
        };
        let [left, right] = [left, right].map(|side| Box::new(taken(side)));
        *expr = meant(left, right);
        ControlFlow::Continue(())
    }

    /// What is inside an expression was visited before.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        // In parentheses it would be another expression.
        if let Expr::BinaryOp { left, op, right } = expr
            && binds_alike(op)
            && let Expr::IsDistinctFrom(_, second) | Expr::IsNotDistinctFrom(_, second) = left.as_mut()
        {
            **second = Expr::BinaryOp {
                left: Box::new(taken(second)),
                op: op.clone(),
                right: Box::new(taken(right)),
            };
            let whole = taken(left);
            *expr = whole;
        }
        ControlFlow::Continue(())
    }
}

/// Whether an operator binds as the signs do while a text is parsed.
const fn binds_alike(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::AtArrow
            | BinaryOperator::ArrowAt
            | BinaryOperator::HashMinus
            | BinaryOperator::AtQuestion
            | BinaryOperator::AtAt
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::Custom(_)
    )
}

/// The expression, in whose place nothing of importance is left.
pub(super) fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}
