//! The members of a JSON object, as members of the row that carries it.

use std::borrow::Cow;
use std::collections::HashSet;

/// Text that is not JSON where JSON was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Calls `member` with the name (as JSON, in quotes) and the value (as JSON) of each member of the object in `json`.
///
/// Returns false if `json` is something other than an object.
pub(super) fn for_each_member(json: &str, mut member: impl FnMut(&str, &str)) -> Result<bool, Broken> {
    let mut scanner = Scanner { text: json, at: 0 };
    scanner.skip_blanks();
    if scanner.peek() != Some(b'{') {
        return Ok(false);
    }
    scanner.at += 1;
    scanner.skip_blanks();
    if scanner.peek() == Some(b'}') {
        return Ok(true);
    }
    loop {
        scanner.skip_blanks();
        let name = scanner.string()?;
        scanner.skip_blanks();
        scanner.expect(b':')?;
        scanner.skip_blanks();
        let value = scanner.value()?;
        member(name, value);
        scanner.skip_blanks();
        match scanner.next() {
            Some(b',') => {}
            Some(b'}') => return Ok(true),
            _ => return Err(Broken),
        }
    }
}

/// Names that a row has already.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn insert(&mut self, name: String) -> bool {
        self.0.insert(name)
    }

    /// Whether the row has a member of this name, given as JSON in quotes.
    pub(super) fn contain(&self, quoted: &str) -> bool {
        self.0.contains(plain(quoted).as_ref())
    }

    pub(super) fn insert_quoted(&mut self, quoted: &str) {
        self.0.insert(plain(quoted).into_owned());
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The name itself. Most have nothing escaped.
fn plain(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('\\') {
        serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
    } else {
        Cow::Borrowed(inner)
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.next() == Some(byte) { Ok(()) } else { Err(Broken) }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> Result<&'a str, Broken> {
        self.text.get(start..self.at).ok_or(Broken)
    }

    fn string(&mut self) -> Result<&'a str, Broken> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.next().ok_or(Broken)? {
                b'"' => return self.since(start),
                b'\\' => _ = self.next(),
                _ => {}
            }
        }
    }

    /// One value, however deep: only strings and the depth of brackets matter for where it ends.
    fn value(&mut self) -> Result<&'a str, Broken> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(Broken)? {
                b'"' => _ = self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' if depth == 0 => break,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                break;
            }
        }
        let value = self.since(start)?.trim_end();
        if value.is_empty() { Err(Broken) } else { Ok(value) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn members(json: &str) -> Result<Option<Vec<(String, String)>>, Broken> {
        let mut found = Vec::new();
        let object = for_each_member(json, |name, value| found.push((name.to_owned(), value.to_owned())))?;
        Ok(object.then_some(found))
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\PC\"\\\\,{}\\[\\]:]{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\}]{0,4}", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_are_those_that_serde_sees(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let found = members(&text).unwrap();
            prop_assert_eq!(found.is_some(), value.is_object());
            if let (Some(found), Value::Object(map)) = (found, value) {
                let back: Map<String, Value> = found
                    .iter()
                    .map(|(name, value)| (serde_json::from_str(name).unwrap(), serde_json::from_str(value).unwrap()))
                    .collect();
                prop_assert_eq!(back, map);
            }
        }

        #[test]
        fn broken_text_is_an_error_or_nothing(text in "[{}\\[\\]\":,a1 \\\\]{0,24}") {
            let _ = members(&text);
        }
    }

    #[test]
    fn text_that_ends_early_is_broken() {
        for text in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":}",
            "{\"a\":[1}",
            "{\"a\":1 \"b\":2}",
            "{\"a",
            "{1:2}",
        ] {
            assert_eq!(members(text), Err(Broken), "{text}");
        }
    }

    #[test]
    fn an_escaped_name_is_the_same_name() {
        let mut names = Names::default();
        names.insert("a\"b".to_owned());
        assert!(names.contain("\"a\\\"b\""));
        assert!(names.contain("\"\\u0061\\\"b\""));
        assert!(!names.contain("\"a\""));
    }
}
