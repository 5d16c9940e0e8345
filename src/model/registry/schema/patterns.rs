//! How the patterns of a schema are compiled, and about how much memory they then take.
//!
//! A few characters can make a large pattern: a repetition takes what it repeats so many times, and a class
//! of characters may stand for hundreds of ranges. Knows the keywords that contain patterns.

use jsonschema::PatternOptions;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

/// The most bytes that one compiled pattern may take. A pattern with nested repetitions takes more.
pub const PATTERN_BYTES: usize = 1 << 18;
/// What each compiled pattern takes at least.
const AROUND_PATTERN: usize = 16 << 10;
/// A compiled pattern consists of so many parts of about the same size: what finds the end of a match, what
/// finds its start, and for each the states that were reached.
const PARTS: usize = 4;
/// A state of a pattern, of which each character needs one and each range of characters at least two.
const STATE: usize = 32;

/// Patterns that run in linear time, and stay small.
#[must_use]
pub fn linear_patterns() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex()
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
}

/// About how many bytes the patterns of `schema` take together.
#[must_use]
pub fn pattern_memory(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(pattern_memory).sum(),
        Value::Object(members) => {
            let member = |(keyword, value): (&String, &Value)| here(keyword, value) + pattern_memory(value);
            members.iter().map(member).sum()
        }
        _ => 0,
    }
}

/// The patterns that a keyword itself contains.
fn here(keyword: &str, value: &Value) -> usize {
    match (keyword, value) {
        ("pattern", Value::String(pattern)) => of_pattern(pattern),
        ("patternProperties", Value::Object(named)) => named.keys().map(|pattern| of_pattern(pattern)).sum(),
        _ => 0,
    }
}

fn of_pattern(pattern: &str) -> usize {
    // One that cannot be read here is compiled by another engine, within the same limit.
    let states = regex_syntax::parse(pattern).map_or(PATTERN_BYTES, |parsed| of_part(&parsed));
    AROUND_PATTERN + PARTS * states.min(PATTERN_BYTES)
}

fn of_part(part: &Hir) -> usize {
    let within = part.kind().subs().iter().map(of_part);
    let within = within.fold(0_usize, usize::saturating_add);
    match part.kind() {
        HirKind::Literal(text) => STATE * text.0.len(),
        HirKind::Class(Class::Unicode(class)) => 2 * STATE * class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => 2 * STATE * class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            within.saturating_add(STATE).saturating_mul(times.max(1) as usize)
        }
        _ => within.saturating_add(STATE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_weighs_as_much_as_it_repeats() {
        let short = of_pattern("^[a-z]+$");
        assert!(
            (AROUND_PATTERN..AROUND_PATTERN + 2_000).contains(&short),
            "{short}"
        );
        let repeated = of_pattern("^[a-z]{2000}$");
        assert!(repeated > AROUND_PATTERN + 2_000 * 2 * STATE, "{repeated}");
        let most = AROUND_PATTERN + PARTS * PATTERN_BYTES;
        for largest in [r"(\w{100}){100}", "((a{1000}){1000}){1000}", "(?=lookahead)"] {
            assert_eq!(of_pattern(largest), most, "{largest}");
        }
    }

    #[test]
    fn patterns_are_found_wherever_they_are() {
        let one = of_pattern("a");
        let schema = json!({
            "properties": {"name": {"type": "string", "pattern": "a"}, "pattern": {"type": "string"}},
            "patternProperties": {"a": {"anyOf": [{"pattern": "a"}, true]}},
        });
        assert_eq!(pattern_memory(&schema), 3 * one);
        assert_eq!(pattern_memory(&json!({"type": "object"})), 0);
    }
}
