//! Patterns of `SIMILAR TO` as regular expressions.
//!
//! The engine takes such a pattern for a regular expression that is found anywhere in a text. In SQL it
//! describes the whole text: `%` and `_` stand for what they stand for in `LIKE`, and of the signs of regular
//! expressions only alternatives, repetitions, parentheses and brackets mean what they mean there. As in
//! PostgreSQL, a letter behind the escape character is one of a regular expression, as in `\d`. Knows texts
//! only.

use std::iter::Peekable;
use std::str::Chars;

use regex_syntax::is_meta_character;

/// The regular expression that finds the texts which are similar to `pattern`.
pub(super) fn regular_expression(pattern: &str, escape: char) -> String {
    let mut written = String::from("^(?s:");
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == escape => write_escaped(letters.next(), &mut written),
            '%' => written.push_str(".*"),
            '_' => written.push('.'),
            '(' => written.push_str("(?:"),
            '[' => write_bracket(&mut letters, escape, &mut written),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => written.push(letter),
            letter => write_plain(letter, &mut written),
        }
    }
    written.push_str(")$");
    written
}

fn write_plain(letter: char, written: &mut String) {
    if is_meta_character(letter) {
        written.push('\\');
    }
    written.push(letter);
}

/// Writes what stands behind the escape character: nothing at the end of the pattern.
fn write_escaped(letter: Option<char>, written: &mut String) {
    match letter {
        Some(letter) if letter.is_ascii_alphanumeric() => written.extend(['\\', letter]),
        Some(letter) => write_plain(letter, written),
        None => {}
    }
}

/// Writes what follows an opening bracket, up to the one that closes it. Directly behind the opening one, a
/// closing bracket is one of the characters.
fn write_bracket(letters: &mut Peekable<Chars<'_>>, escape: char, written: &mut String) {
    written.push('[');
    if letters.next_if_eq(&'^').is_some() {
        written.push('^');
    }
    if letters.next_if_eq(&']').is_some() {
        written.push_str(r"\]");
    }
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == escape => write_escaped(letters.next(), written),
            ']' => {
                written.push(']');
                return;
            }
            '[' if letters.peek() == Some(&':') => {
                written.push('[');
                write_class(letters, written);
            }
            '-' => written.push('-'),
            letter => write_plain(letter, written),
        }
    }
}

/// Writes the name of a class of characters, as in `[[:alpha:]]`.
fn write_class(letters: &mut Peekable<Chars<'_>>, written: &mut String) {
    for letter in letters.by_ref() {
        written.push(letter);
        if letter == ']' {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn a_pattern_describes_the_whole_text() {
        for (pattern, similar, others) in [
            ("a%", vec!["a", "abc", "a\nb"], vec!["", "ba"]),
            ("a_c", vec!["abc", "a\nc"], vec!["ac", "abcd", "xabc"]),
            ("abc", vec!["abc"], vec!["abcd", "xabc"]),
            ("a.c", vec!["a.c"], vec!["abc"]),
            ("^a$", vec!["^a$"], vec!["a"]),
            ("a|b", vec!["a", "b"], vec!["ab", "ba"]),
            ("(ab)+c?", vec!["ab", "ababc"], vec!["", "abcab"]),
            ("%(b|d)%", vec!["abc", "d"], vec!["ac"]),
            ("a{2,3}", vec!["aa", "aaa"], vec!["a", "aaaa"]),
            ("[a-c]x", vec!["ax", "cx"], vec!["dx", "-x"]),
            ("[^a-c]x", vec!["dx", "^x"], vec!["ax"]),
            ("[%_.|]", vec!["%", "_", ".", "|"], vec!["a", ""]),
            ("[]a]", vec!["]", "a"], vec!["b"]),
            ("[[&~]", vec!["[", "&", "~"], vec!["a"]),
            ("[[:digit:]a]+", vec!["1a2"], vec!["b", ":"]),
            (r"50\%", vec!["50%"], vec!["500"]),
            (r"a\_b", vec!["a_b"], vec!["aab"]),
            (r"\d+", vec!["12"], vec!["d", "1a"]),
            (r"\<a\>", vec!["<a>"], vec!["a"]),
            (r"a\\b", vec![r"a\b"], vec!["ab"]),
            ("", vec![""], vec!["a"]),
        ] {
            let written = regular_expression(pattern, '\\');
            let expression = Regex::new(&written).unwrap();
            for text in similar {
                assert!(expression.is_match(text), "{pattern}: {text}: {written}");
            }
            for text in others {
                assert!(!expression.is_match(text), "{pattern}: {text}: {written}");
            }
        }
    }

    #[test]
    fn another_character_may_escape_and_a_backslash_is_then_one() {
        let expression = Regex::new(&regular_expression(r"a#%\_", '#')).unwrap();
        assert!(expression.is_match(r"a%\b"));
        assert!(!expression.is_match(r"ab\b"));
        assert!(!expression.is_match("a%_"));
    }
}
