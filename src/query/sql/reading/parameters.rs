//! Values that are sent along with the text of a query.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Values for `$1`, `$2` or for `$name`.
#[derive(Clone, Debug, Default)]
pub enum Parameters {
    #[default]
    None,
    List(Vec<Value>),
    Named(Map<String, Value>),
}

/// The most bytes of one text among the parameters. Every row may repeat it.
const LONGEST_TEXT: usize = 4 << 10;

impl Parameters {
    /// Reads a list or an object.
    pub fn read(value: Option<Value>) -> Result<Self, String> {
        let parameters = match value {
            None | Some(Value::Null) => return Ok(Self::None),
            Some(Value::Array(values)) => Self::List(values),
            Some(Value::Object(values)) => Self::Named(values),
            Some(_) => return Err("send a list for $1, $2, or an object for $name".to_owned()),
        };
        let all: Vec<&Value> = match &parameters {
            Self::None => Vec::new(),
            Self::List(values) => values.iter().collect(),
            Self::Named(values) => values.values().collect(),
        };
        let is_long = |value: &&Value| match value {
            Value::String(text) => text.len() > LONGEST_TEXT,
            other => other.to_string().len() > LONGEST_TEXT,
        };
        if all.iter().any(|value| match value {
            Value::Array(items) => items.iter().any(|item| is_long(&item)),
            value => is_long(value),
        }) {
            return Err(format!("a text has at most {LONGEST_TEXT} bytes"));
        }
        Ok(parameters)
    }

    /// The value for a name that starts with `$`.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let name = name.strip_prefix('$')?;
        match self {
            Self::None => None,
            Self::List(values) => {
                let place: usize = name.parse().ok()?;
                // Elsewhere they are told apart by their names.
                let is_written_so = place.to_string() == name;
                values.get(place.checked_sub(1)?).filter(|_| is_written_so)
            }
            Self::Named(values) => values.get(name),
        }
    }

    pub(super) fn refuse_unused(&self, used: &BTreeSet<String>) -> Result<(), String> {
        let names: Vec<String> = match self {
            Self::None => Vec::new(),
            Self::List(values) => (1..=values.len()).map(|place| format!("${place}")).collect(),
            Self::Named(values) => values.keys().map(|name| format!("${name}")).collect(),
        };
        match names.into_iter().find(|name| !used.contains(name)) {
            None => Ok(()),
            Some(name) => Err(format!("the query does not use the parameter {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_counts_by_its_own_bytes() {
        for (character, most) in [
            ('\u{1}', LONGEST_TEXT),
            ('"', LONGEST_TEXT),
            ('é', LONGEST_TEXT / 2),
        ] {
            let text = |count: usize| character.to_string().repeat(count);
            assert!(
                Parameters::read(Some(json!([text(most)]))).is_ok(),
                "{character:?}"
            );
            assert!(
                Parameters::read(Some(json!([[text(most)]]))).is_ok(),
                "{character:?}"
            );
            assert!(
                Parameters::read(Some(json!([text(most + 1)]))).is_err(),
                "{character:?}"
            );
            assert!(
                Parameters::read(Some(json!({"name": [text(most + 1)]}))).is_err(),
                "{character:?}"
            );
        }
    }

    #[test]
    fn a_place_in_a_list_has_one_name() {
        let parameters = Parameters::read(Some(json!(["a"]))).unwrap();
        assert_eq!(parameters.get("$1"), Some(&json!("a")));
        for other in ["$01", "$+1", "$0", "$2", "$name"] {
            assert_eq!(parameters.get(other), None, "{other}");
        }
    }
}
