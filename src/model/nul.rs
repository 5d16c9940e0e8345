//! Finds U+0000, which no text may contain: databases refuse it, and many programs take it for the end.
//!
//! Pure functions over texts and JSON.

use serde_json::Value;

use super::faults::LocPart;

/// How JSON writes it; unescaped it is not JSON.
const ESCAPED: &str = "\\u0000";

/// Whether a text contains it.
#[must_use]
pub fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// The path to the first text with U+0000 in `json`, which says `value`, from the outermost value on. A name
/// that contains it is shown without it.
#[must_use]
pub fn path_to_nul(json: &str, value: &Value) -> Option<Vec<LocPart>> {
    // Almost no JSON contains it, and that is soon seen. A backslash that is escaped itself looks the same.
    json.contains(ESCAPED).then(|| path_in(value)).flatten()
}

fn path_in(value: &Value) -> Option<Vec<LocPart>> {
    match value {
        Value::String(text) => has_nul(text).then(Vec::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let mut way = path_in(item)?;
            way.insert(0, LocPart::Index(index));
            Some(way)
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            if has_nul(name) {
                return Some(vec![LocPart::Name(name.replace('\0', ""))]);
            }
            let mut way = path_in(member)?;
            way.insert(0, LocPart::Name(name.clone()));
            Some(way)
        }),
        _ => None,
    }
}

/// The length in bytes of the longest text in `value`, names included.
#[must_use]
pub fn longest_text(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest_text).max().unwrap_or(0),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| name.len().max(longest_text(member)))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_it_is_found_however_deep() {
        let found = |json: &str| path_to_nul(json, &serde_json::from_str(json).unwrap());
        let way: [LocPart; 3] = ["a".into(), 1_usize.into(), "b".into()];
        assert_eq!(
            found(r#"{"a":[1,{"b":"x\u0000"}],"c":"\\u0000"}"#),
            Some(way.to_vec())
        );
        assert_eq!(found(r#"{"c":"\\u0000"}"#), None);
        assert_eq!(found(r#"{"c":"u0000"}"#), None);
        assert_eq!(found(r#"{"c\u0000":1}"#), Some(vec!["c".into()]));
    }
}
