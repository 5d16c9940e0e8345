//! Regular expressions that the optimizer misreads, written so that it leaves them alone, and `SIMILAR TO` as
//! the regular expression that it means.
//!
//! It writes a regular expression that is a plain text as `LIKE`, where a backslash does not stand for
//! itself, and takes `.*` for `IS NOT NULL`, which is false of null where a match is unknown. An empty group
//! in front of either finds the same texts, and is neither. Knows plans and expressions only.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, Like, LogicalPlan, Operator, lit};
use regex_syntax::hir::{Hir, HirKind};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::similar_to;

const ANY_TEXT: &str = ".*";
const EMPTY_GROUP: &str = "()";
const REGEXP_LIKE: &str = "regexp_like";

/// The plan without regular expressions that are misread. All of them are texts, and not computed.
pub(in crate::query::sql) fn escape_patterns(plan: LogicalPlan) -> Result<LogicalPlan> {
    change_steps(plan, &mut |plan| {
        rewrite_keeping_names(plan, |expr| Ok(grouped(expr)))
    })
}

fn grouped(mut expr: Expr) -> Transformed<Expr> {
    if let Expr::SimilarTo(similar) = expr {
        return matched(similar);
    }
    let pattern = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) if is_match(*op) => Some(right.as_mut()),
        Expr::ScalarFunction(call) if call.func.name() == REGEXP_LIKE => call.args.get_mut(1),
        _ => None,
    };
    match pattern {
        Some(Expr::Literal(ScalarValue::Utf8(Some(pattern)), _)) if is_misread(pattern) => {
            pattern.insert_str(0, EMPTY_GROUP);
            Transformed::yes(expr)
        }
        _ => Transformed::no(expr),
    }
}

/// `SIMILAR TO` as a match. A pattern that is computed is refused later.
fn matched(similar: Like) -> Transformed<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) = similar.pattern.as_ref() else {
        return Transformed::no(Expr::SimilarTo(similar));
    };
    let pattern = similar_to::regular_expression(pattern, similar.escape_char.unwrap_or('\\'));
    let op = if similar.negated {
        Operator::RegexNotMatch
    } else {
        Operator::RegexMatch
    };
    let pattern = Box::new(lit(format!("{EMPTY_GROUP}{pattern}")));
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(similar.expr, op, pattern)))
}

const fn is_match(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch)
}

/// Whether the optimizer takes a regular expression for another condition. One that is none is refused later.
fn is_misread(pattern: &str) -> bool {
    pattern == ANY_TEXT || regex_syntax::parse(pattern).is_ok_and(|parsed| seeks_backslash(&parsed))
}

/// Whether there is a backslash in a text that is sought.
fn seeks_backslash(parsed: &Hir) -> bool {
    match parsed.kind() {
        HirKind::Literal(text) => text.0.contains(&b'\\'),
        kind => kind.subs().iter().any(seeks_backslash),
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn what_is_misread_holds_a_backslash_that_stands_for_itself_or_is_anything() {
        for pattern in [
            r"\\",
            r"a\\b",
            r"^a\\",
            r"\\b$",
            r"a|b\\",
            r"\x5c",
            r"[\\]",
            r"(?i)\u{5C}",
            ".*",
        ] {
            assert!(is_misread(pattern), "{pattern}");
        }
        for pattern in [r"\d+", r"a\.b", "^a$", "", ".*a", "[a-z]", r"(\\", "ä_%"] {
            assert!(!is_misread(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_has_an_empty_group_finds_the_same_and_is_no_plain_text() {
        for pattern in [
            r"\\",
            r"^a\\",
            r"\\$",
            r"^a\\b$",
            r"b|^\\",
            r"(?x)a\\ # a comment",
            ".*",
        ] {
            let grouped = format!("{EMPTY_GROUP}{pattern}");
            let (one, other) = (Regex::new(pattern).unwrap(), Regex::new(&grouped).unwrap());
            for text in ["", "a", "b", r"\", r"a\", r"a\b", r"\a", "a\nb"] {
                assert_eq!(one.is_match(text), other.is_match(text), "{pattern}: {text}");
            }
            let parsed = regex_syntax::parse(&grouped).unwrap();
            let first = match parsed.kind() {
                HirKind::Alternation(either) => either.first().unwrap(),
                _ => &parsed,
            };
            let HirKind::Concat(parts) = first.kind() else {
                panic!("{grouped} is {parsed:?}");
            };
            assert!(
                matches!(parts.first().unwrap().kind(), HirKind::Capture(_)),
                "{parsed:?}"
            );
        }
    }
}
