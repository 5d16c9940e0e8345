//! Collects what a record carries beyond what its type declares, as text, and writes it as one JSON object.
//!
//! Lives as long as one record. Values keep every character except the blanks between tokens.

use std::collections::HashSet;

use super::json;

/// Members in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Extras {
    members: Vec<(String, String)>,
    names: HashSet<String>,
}

impl Extras {
    /// Adds a member. Returns false, without adding it, if there already is one of that name.
    pub(super) fn add(&mut self, name: &str, raw: &str) -> bool {
        if !self.names.insert(name.to_owned()) {
            return false;
        }
        let mut text = String::with_capacity(raw.len());
        json::append_compact(raw, &mut text);
        self.members.push((name.to_owned(), text));
        true
    }

    /// Adds the original value and unit, from before the conversion.
    pub(super) fn add_original(&mut self, value: &str, unit: &str) -> bool {
        let mut quoted = String::new();
        json::append_string(unit, &mut quoted);
        self.add("original_value", value) && self.add("original_unit", &quoted)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members
            .iter()
            .map(|(name, raw)| (name.as_str(), raw.as_str()))
    }

    /// The object as text, or `None` if it has no members.
    pub(super) fn to_text(&self) -> Option<String> {
        if self.members.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(
            self.members
                .iter()
                .map(|(name, raw)| name.len() + raw.len() + 4)
                .sum::<usize>()
                + 2,
        );
        for (name, raw) in &self.members {
            text.push(if text.is_empty() { '{' } else { ',' });
            json::append_string(name, &mut text);
            text.push(':');
            text.push_str(raw);
        }
        text.push('}');
        Some(text)
    }
}
