//! Reads and merges the members of a JSON object, which become members of the row that carries it.

use std::borrow::Cow;
use std::collections::HashSet;

/// Text that is not JSON where JSON was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Calls `member` with the name (as JSON, in quotes) and the value (as JSON) of each member of the object in
/// `json`.
///
/// Returns false if `json` is something other than an object.
pub(super) fn for_each_member(json: &str, member: impl FnMut(&str, &str)) -> Result<bool, Broken> {
    Scanner { text: json, at: 0 }.members(member)
}

/// Names and values of the members of the object in `json`, or `None` if it is not an object.
fn members_of(json: &str) -> Result<Option<Vec<(&str, &str)>>, Broken> {
    let mut scanner = Scanner { text: json, at: 0 };
    let mut members = Vec::new();
    let is_object = scanner.members(|name, value| members.push((name, value)))?;
    Ok(is_object.then_some(members))
}

fn begin_member(is_first: bool, name: &str, out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
}

/// Writes the object `declared` with the members of the object `besides` that it lacks, down through the
/// objects that both have. A value that is not an object stays as declared.
pub(super) fn merge(declared: &str, besides: &str, out: &mut Vec<u8>) -> Result<(), Broken> {
    let (Some(own), Some(mut more)) = (members_of(declared)?, members_of(besides)?) else {
        out.extend_from_slice(declared.as_bytes());
        return Ok(());
    };
    out.push(b'{');
    for (position, (name, value)) in own.iter().enumerate() {
        begin_member(position == 0, name, out);
        match more
            .iter()
            .position(|(other, _)| plain(other) == plain(name))
            .map(|found| more.remove(found))
        {
            Some((_, besides)) if *value == "null" => out.extend_from_slice(besides.as_bytes()),
            Some((_, besides)) => merge(value, besides, out)?,
            None => out.extend_from_slice(value.as_bytes()),
        }
    }
    for (position, (name, value)) in more.iter().enumerate() {
        begin_member(own.is_empty() && position == 0, name, out);
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    Ok(())
}

/// Names that a row already has.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn insert(&mut self, name: String) -> bool {
        self.0.insert(name)
    }

    /// Whether a name, given as quoted JSON, is in the set.
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

/// The name itself. Most names contain no escapes.
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
    /// Calls `member` for each member of the object that begins at the current position.
    fn members(&mut self, mut member: impl FnMut(&'a str, &'a str)) -> Result<bool, Broken> {
        self.skip_blanks();
        if self.peek() != Some(b'{') {
            return Ok(false);
        }
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            return Ok(true);
        }
        loop {
            self.skip_blanks();
            let name = self.string()?;
            self.skip_blanks();
            self.expect(b':')?;
            self.skip_blanks();
            let value = self.value()?;
            member(name, value);
            self.skip_blanks();
            match self.next() {
                Some(b',') => {}
                Some(b'}') => return Ok(true),
                _ => return Err(Broken),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.next() == Some(byte) {
            Ok(())
        } else {
            Err(Broken)
        }
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

    /// Reads one value, however deep: only strings and the depth of brackets determine where it ends.
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
        let object = for_each_member(json, |name, value| {
            found.push((name.to_owned(), value.to_owned()));
        })?;
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
                prop::collection::btree_map("[a-z\"\\\\}]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_are_those_that_serde_sees(value in json(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&value)
            } else {
                serde_json::to_string(&value)
            }
            .unwrap();
            let found = members(&text).unwrap();
            prop_assert_eq!(found.is_some(), value.is_object());
            if let (Some(found), Value::Object(map)) = (found, value) {
                let back: Map<String, Value> = found
                    .iter()
                    .map(|(name, value)| {
                        (
                            serde_json::from_str(name).unwrap(),
                            serde_json::from_str(value).unwrap(),
                        )
                    })
                    .collect();
                prop_assert_eq!(back, map);
            }
        }

        #[test]
        fn broken_text_causes_no_panic(text in "[{}\\[\\]\":,a1 \\\\]{0,24}") {
            let _ = members(&text);
        }
    }

    fn merged(declared: &str, besides: &str) -> String {
        let mut out = Vec::new();
        merge(declared, besides, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rule_8_4_members_that_an_object_lacks_are_added_however_deep() {
        assert_eq!(
            merged(r#"{"x":1}"#, r#"{"y":{"z":[1.10]}}"#),
            r#"{"x":1,"y":{"z":[1.10]}}"#
        );
        assert_eq!(
            merged(r#"{"a":{"x":null},"b":2}"#, r#"{"a":{"y":1},"\u0062":3,"c":4}"#),
            r#"{"a":{"x":null,"y":1},"b":2,"c":4}"#
        );
        assert_eq!(merged("{}", r#"{"y":1,"z":2}"#), r#"{"y":1,"z":2}"#);
        assert_eq!(merged(r#"{"x":null}"#, r#"{"x":1}"#), r#"{"x":1}"#);
        assert_eq!(merged("18", r#"{"x":1}"#), "18");
        assert_eq!(merge("{\"a\":1}", "{\"a\"", &mut Vec::new()), Err(Broken));
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
