//! Entity tags, and the lists of them in `If-Match` and `If-None-Match` (RFC 9110).
//!
//! Knows how tags are written and compared; knows nothing of what they stand for.

use axum::http::HeaderValue;

/// The weak tag of what has this hash.
#[must_use]
pub fn weak_tag(hash: u64) -> String {
    format!("W/\"{hash:016x}\"")
}

/// Which tags are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Those of the same thing, whose bytes may differ.
    Weak,
    /// Those of the same bytes, of which a weak tag is none.
    Strong,
}

impl Comparison {
    fn equates(self, tag: &str, other: &str) -> bool {
        match self {
            Self::Weak => opaque(tag) == opaque(other),
            Self::Strong => tag == other && opaque(tag) == tag,
        }
    }
}

/// Whether the lines of a header name `tag`, or everything. `None`: of what has no tag, or is not there.
pub fn is_tag_named<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    tag: Option<&str>,
    comparison: Comparison,
) -> bool {
    let lines = lines.into_iter().filter_map(|line| line.to_str().ok());
    let mut named = lines.flat_map(|line| line.split(',')).map(str::trim);
    named.any(|named| named == "*" || tag.is_some_and(|tag| comparison.equates(named, tag)))
}

fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_named(lines: &[&'static str], tag: Option<&str>, comparison: Comparison) -> bool {
        let lines: Vec<HeaderValue> = lines.iter().map(|line| HeaderValue::from_static(line)).collect();
        is_tag_named(&lines, tag, comparison)
    }

    #[test]
    fn a_tag_is_named_in_any_line_and_a_weak_one_only_where_it_is_compared_weakly() {
        for comparison in [Comparison::Weak, Comparison::Strong] {
            assert!(is_named(&["\"a\", \"b\"", "\"c\""], Some("\"b\""), comparison));
            assert!(is_named(&["\"a\"", "\"c\""], Some("\"c\""), comparison));
            assert!(!is_named(&["\"a\",, \"b"], Some("\"b\""), comparison));
            assert!(!is_named(&[], Some("\"a\""), comparison));
        }
        let weakly = [("\"a\"", "W/\"a\""), ("W/\"a\"", "\"a\""), ("W/\"a\"", "W/\"a\"")];
        for (named, tag) in weakly {
            assert!(is_named(&[named], Some(tag), Comparison::Weak), "{named} {tag}");
            assert!(
                !is_named(&[named], Some(tag), Comparison::Strong),
                "{named} {tag}"
            );
        }
    }

    #[test]
    fn a_star_names_also_what_has_no_tag_and_nothing_else_does() {
        for comparison in [Comparison::Weak, Comparison::Strong] {
            assert!(is_named(&["*"], None, comparison));
            assert!(is_named(&["\"a\", *"], Some("\"b\""), comparison));
            assert!(!is_named(&["", "\"a\","], None, comparison));
        }
    }
}
