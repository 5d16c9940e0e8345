//! Finds U+0000, which no text may contain: databases refuse it, and many programs take it for the end.
//!
//! Pure functions over JSON.

use serde_json::Value;

use super::faults::LocPart;

/// How JSON writes it; unescaped it is not JSON.
const ESCAPED: &str = "\\u0000";

/// Whether some text of `json` may contain U+0000. `false` is certain.
#[must_use]
pub fn may_hold_nul(json: &str) -> bool {
    json.contains(ESCAPED)
}

/// The path to the first text with U+0000, from the outermost value on. A name that contains it is shown
/// without it.
#[must_use]
pub fn path_to_nul(value: &Value) -> Option<Vec<LocPart>> {
    match value {
        Value::String(text) => text.contains('\0').then(Vec::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let mut way = path_to_nul(item)?;
            way.insert(0, LocPart::Index(index));
            Some(way)
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            if name.contains('\0') {
                return Some(vec![LocPart::Name(name.replace('\0', ""))]);
            }
            let mut way = path_to_nul(member)?;
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
    use serde_json::json;

    use super::*;

    #[test]
    fn the_way_to_it_is_found_however_deep() {
        let parsed: Value = serde_json::from_str(r#"{"a":[1,{"b":"x\u0000"}],"c":"\\u0000"}"#).unwrap();
        let way: [LocPart; 3] = ["a".into(), 1_usize.into(), "b".into()];
        assert_eq!(path_to_nul(&parsed), Some(way.to_vec()));
        assert_eq!(path_to_nul(&json!({"c": "\\u0000"})), None);
        assert_eq!(path_to_nul(&json!({"c\0": 1})), Some(vec!["c".into()]));
        assert!(may_hold_nul(r#"{"c":"\\u0000"}"#) && !may_hold_nul(r#"{"c":"u0000"}"#));
    }
}
