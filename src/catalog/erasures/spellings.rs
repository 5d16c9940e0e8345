//! How a person's id is written in texts, and a text with another one in its place.
//!
//! With hyphens or without them, in capitals or not: what the search for traces takes for the id is what is
//! replaced. Knows nothing of rows.

use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;

/// The ways in which an id is written, in small letters: with hyphens, and without them.
#[must_use]
pub fn spellings_of(person: PersonId) -> [String; 2] {
    [person.to_string(), person.0.simple().to_string()]
}

/// Whether a text has the person's id in it, however it is written.
pub(super) fn is_named_in(text: &str, person: PersonId) -> bool {
    let lower = text.to_ascii_lowercase();
    spellings_of(person)
        .iter()
        .any(|spelling| lower.contains(spelling.as_str()))
}

/// Another id that stands for a person's. Folders named after different people stay different, and what was
/// shared of one of them does not become the other.
pub(super) struct StandIn {
    /// Each way of writing the id, and the other one written in that way.
    pairs: [(String, String); 2],
}

impl StandIn {
    /// `turn`: 0, or how many were tried that are taken.
    pub(super) fn of(person: PersonId, turn: u32) -> Self {
        let other = PersonId(ErasureMark::of(person).stand_in(turn));
        let [hyphenated, simple] = spellings_of(person);
        let [other_hyphenated, other_simple] = spellings_of(other);
        Self {
            pairs: [(hyphenated, other_hyphenated), (simple, other_simple)],
        }
    }

    /// Whether the whole text is the person's id.
    pub(super) fn replaces_all_of(&self, text: &str) -> bool {
        self.pairs.iter().any(|(name, _)| text.eq_ignore_ascii_case(name))
    }

    /// The text with the other id in place of the person's, written like that: names that differ in their
    /// capitals alone do so afterwards.
    pub(super) fn put_into(&self, text: &str) -> String {
        let [hyphenated, simple] = &self.pairs;
        replaced(&replaced(text, hyphenated), simple)
    }
}

fn replaced(text: &str, (name, stand_in): &(String, String)) -> String {
    let lower = text.to_ascii_lowercase();
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    for (index, between) in lower.split(name.as_str()).enumerate() {
        if index > 0 {
            let (written, after) = rest.split_at_checked(name.len()).unwrap_or((rest, ""));
            replaced.push_str(&in_the_case_of(written, stand_in));
            rest = after;
        }
        let (kept, after) = rest.split_at_checked(between.len()).unwrap_or((rest, ""));
        replaced.push_str(kept);
        rest = after;
    }
    replaced
}

/// `stand_in` with capitals where `written` has them. A digit counts like the letter before it.
fn in_the_case_of(written: &str, stand_in: &str) -> String {
    let mut letters = written.chars().filter(char::is_ascii_alphabetic);
    let mut is_capital = letters.next().is_some_and(|letter| letter.is_ascii_uppercase());
    let mut cased = String::with_capacity(stand_in.len());
    for (old, new) in written.chars().zip(stand_in.chars()) {
        if old.is_ascii_alphabetic() {
            is_capital = old.is_ascii_uppercase();
        }
        cased.push(if is_capital { new.to_ascii_uppercase() } else { new });
    }
    cased
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const GONE: u128 = 0x0191_f000_ab00_7000_8000_0000_0000_00aa;

    #[test]
    fn an_id_is_replaced_in_each_way_of_writing_it_and_stays_written_so() {
        let gone = PersonId(Uuid::from_u128(GONE));
        let stand_in = StandIn::of(gone, 0);
        let [hyphenated, simple] = spellings_of(gone);
        let [other, other_simple] = spellings_of(PersonId(ErasureMark::of(gone).stand_in(0)));
        for (written, expected) in [
            (hyphenated.clone(), other.clone()),
            (simple.clone(), other_simple.clone()),
            (hyphenated.to_uppercase(), other.to_uppercase()),
            (simple.to_uppercase(), other_simple.to_uppercase()),
        ] {
            assert!(is_named_in(&written, gone) && stand_in.replaces_all_of(&written));
            assert_eq!(stand_in.put_into(&written), expected);
            let text = format!("Ähm, /{written}/{written}{written} to É");
            let left = stand_in.put_into(&text);
            assert_eq!(left, format!("Ähm, /{expected}/{expected}{expected} to É"));
            assert!(!is_named_in(&left, gone) && !stand_in.replaces_all_of(&text));
        }
        let mixed = hyphenated.replace("f000", "F000");
        let left = stand_in.put_into(&mixed);
        assert!(left.eq_ignore_ascii_case(&other), "{left}");
        assert_eq!(stand_in.put_into("İ nobody ß"), "İ nobody ß");
        assert!(!is_named_in("", gone));
    }

    #[test]
    fn what_was_named_after_different_people_stays_different() {
        let [one, other] = [1, 2].map(|number| PersonId(Uuid::from_u128(number)));
        let [first, second] = [one, other].map(|gone| ErasureMark::of(gone).stand_in(0));
        assert_ne!(first, second);
        let text = format!("/{one}/plan of {one} and {other}");
        let left = StandIn::of(other, 0).put_into(&StandIn::of(one, 0).put_into(&text));
        assert_eq!(left, format!("/{first}/plan of {first} and {second}"));
    }
}
