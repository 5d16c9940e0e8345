//! Collects what a record carries beyond what its type declares, as text, and writes it as one JSON object.
//!
//! Lives as long as one record. Values keep every character except the blanks between tokens.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::json;

/// The members that keep a value, and its unit, as they were before the unit was converted.
pub(super) const ORIGINAL_VALUE: &str = "original_value";
pub(super) const ORIGINAL_UNIT: &str = "original_unit";
/// The member that is true where the unit had a code for what is not there.
pub(super) const NOT_PRESENT: &str = "not_present";

/// Up to so many members, comparing a name with all others costs less than hashing it.
const FEW_MEMBERS: usize = 16;

/// Members in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Extras<'a> {
    members: Vec<Member<'a>>,
    /// All names, once they are more than few.
    names: HashSet<String>,
    /// The object, without the bracket that closes it.
    text: String,
}

#[derive(Debug)]
struct Member<'a> {
    name: Cow<'a, str>,
    /// Where its value stands in the text.
    value: Range<usize>,
}

impl<'a> Extras<'a> {
    /// Adds a member. Returns false, without adding it, if there already is one of that name.
    pub(super) fn add(&mut self, name: impl Into<Cow<'a, str>>, raw: &str) -> bool {
        let name = name.into();
        if !self.is_new(&name) {
            return false;
        }
        self.text.reserve(name.len() + raw.len() + 5);
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        json::append_string(&name, &mut self.text);
        self.text.push(':');
        let start = self.text.len();
        json::append_compact(raw, &mut self.text);
        let value = start..self.text.len();
        self.members.push(Member { name, value });
        true
    }

    fn is_new(&mut self, name: &str) -> bool {
        if self.members.len() < FEW_MEMBERS {
            return self.members.iter().all(|member| member.name != name);
        }
        if self.names.is_empty() {
            let names = self.members.iter().map(|member| member.name.clone().into_owned());
            self.names.extend(names);
        }
        self.names.insert(name.to_owned())
    }

    /// Adds the original value and unit, from before the conversion.
    pub(super) fn add_original(&mut self, value: &str, unit: &str) -> bool {
        let mut quoted = String::new();
        json::append_string(unit, &mut quoted);
        self.add(ORIGINAL_VALUE, value) && self.add(ORIGINAL_UNIT, &quoted)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|member| {
            (
                member.name.as_ref(),
                self.text.get(member.value.clone()).unwrap_or_default(),
            )
        })
    }

    /// The object as text, or `None` if it has no members.
    pub(super) fn into_text(mut self) -> Option<String> {
        if self.members.is_empty() {
            return None;
        }
        self.text.push('}');
        Some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_come_once_however_many() {
        let mut extras = Extras::default();
        assert_eq!(Extras::default().into_text(), None);
        for number in 0..3 * FEW_MEMBERS {
            assert!(extras.add(format!("n{number}"), &format!("[ {number} ]")));
            for earlier in 0..=number {
                assert!(!extras.add(format!("n{earlier}"), "0"), "{earlier} of {number}");
            }
        }
        let expected: Vec<_> = (0..3 * FEW_MEMBERS)
            .map(|number| (format!("n{number}"), format!("[{number}]")))
            .collect();
        let found: Vec<_> = extras
            .members()
            .map(|(name, raw)| (name.to_owned(), raw.to_owned()))
            .collect();
        assert_eq!(found, expected);
        let whole: Vec<_> = expected
            .iter()
            .map(|(name, raw)| format!("\"{name}\":{raw}"))
            .collect();
        assert_eq!(extras.into_text(), Some(format!("{{{}}}", whole.join(","))));
    }
}
