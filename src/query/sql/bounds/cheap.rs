//! Patterns as they are written, and which of them are cheap in any text. Knows expressions only.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, Like};
use regex_syntax::hir::{Hir, HirKind, Look};

/// The longest pattern that may be cheap in any text, in bytes.
const SHORT: usize = 64;

/// The text that an expression is.
pub(super) fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// The regular expression with its flags, as the engine writes them.
pub(super) fn with_flags(pattern: &str, flags: &str) -> String {
    if flags.is_empty() {
        pattern.to_owned()
    } else {
        format!("(?{flags}){pattern}")
    }
}

/// Whether a regular expression is one of a few short texts, which the engine finds as fast as any.
pub(super) fn is_cheap(pattern: &str) -> bool {
    pattern.len() <= SHORT && regex_syntax::parse(pattern).is_ok_and(|parsed| is_texts(&parsed))
}

fn is_texts(parsed: &Hir) -> bool {
    match parsed.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(Look::Start | Look::End) => true,
        kind @ (HirKind::Concat(_) | HirKind::Alternation(_) | HirKind::Capture(_)) => {
            kind.subs().iter().all(is_texts)
        }
        _ => false,
    }
}

/// Whether a pattern of LIKE is a short text at the beginning, at the end or anywhere.
pub(super) fn is_cheap_like(like: &Like) -> bool {
    if like.escape_char.is_some_and(|escape| escape != '\\') {
        // The engine refuses it.
        return true;
    }
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
        return false;
    };
    let Some(Some(pattern)) = pattern.try_as_str() else {
        return true;
    };
    let text = pattern.strip_prefix('%').unwrap_or(pattern);
    let text = text.strip_suffix('%').unwrap_or(text);
    text.len() <= SHORT && !text.contains(['%', '_', '\\'])
}

/// Whether patterns can be found in values of this type.
pub(super) fn is_text(given: &DataType) -> bool {
    match given {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn texts_are_cheap_and_repetitions_are_not() {
        for cheap in [
            "",
            "coffee",
            "^a",
            "tea$",
            "tea|coffee",
            "()a",
            "^(foo|bar)$",
            r"a\.b",
        ] {
            assert!(is_cheap(cheap), "{cheap}");
        }
        let long = "a".repeat(65);
        for other in ["a*", "[ab]", ".", r"\d", "(?i)a", r"\ba", "a{3}b+", &long] {
            assert!(!is_cheap(other), "{other}");
        }
    }

    #[test]
    fn like_is_cheap_at_the_ends_of_its_pattern() {
        let like = |pattern: &str| Like::new(false, Box::new(col("a")), Box::new(lit(pattern)), None, false);
        for cheap in ["", "%", "%%", "a", "a%", "%a", "%tea%"] {
            assert!(is_cheap_like(&like(cheap)), "{cheap}");
        }
        for other in ["a%b", "_", "%a_", r"a\%", "%a%b%", &"a".repeat(65)] {
            assert!(!is_cheap_like(&like(other)), "{other}");
        }
    }
}
