//! Finds members that are given twice in one object, however deep it stands: whoever reads them into a map
//! keeps one and drops the other without a word.
//!
//! Knows JSON; knows nothing of records.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;

use ahash::HashSet;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::json::{Field, NameSeed};
use crate::model::faults::LocPart;

/// Up to so many members, comparing a name with all others costs less than hashing it.
const FEW_MEMBERS: usize = 16;

/// The names of the members of one object.
#[derive(Debug, Default)]
pub(super) struct Names<N> {
    few: [N; FEW_MEMBERS],
    count: usize,
    /// All names, once they are more than few.
    many: Option<HashSet<N>>,
}

impl<N: Default + Eq + Hash> Names<N> {
    /// Adds a name. Returns false if it is there already.
    pub(super) fn add(&mut self, name: N) -> bool {
        if let Some(many) = &mut self.many {
            return many.insert(name);
        }
        if self.few.get(..self.count).unwrap_or_default().contains(&name) {
            return false;
        }
        if let Some(place) = self.few.get_mut(self.count) {
            *place = name;
            self.count += 1;
        } else {
            let few = self.few.iter_mut().map(std::mem::take);
            self.many = Some(few.chain([name]).collect());
        }
        true
    }
}

/// Whether two fields of one object have the same name.
pub(super) fn is_any_given_twice(fields: &[Field<'_>]) -> bool {
    let mut names = Names::default();
    !fields.iter().all(|field| names.add(&*field.name))
}

/// The way to the first member in the JSON text `raw` that is given twice.
pub(super) fn given_twice(raw: &str) -> Option<Vec<LocPart>> {
    if !raw.contains('{') {
        return None;
    }
    let mut way = Vec::new();
    let mut json = serde_json::Deserializer::from_str(raw);
    let error = Search(&mut way).deserialize(&mut json).err()?;
    way.reverse();
    error.is_data().then_some(way)
}

/// Reads any value. Where a member is given twice, notes the way to it, innermost first.
struct Search<'w>(&'w mut Vec<LocPart>);

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names: Names<Cow<'de, str>> = Names::default();
        while let Some(name) = members.next_key_seed(NameSeed)? {
            let read = if names.add(name.clone()) {
                members.next_value_seed(Search(&mut *self.0))
            } else {
                Err(A::Error::custom("given twice"))
            };
            if read.is_err() {
                self.0.push(LocPart::from(&*name));
                return read;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            match elements.next_element_seed(Search(&mut *self.0)) {
                Ok(Some(())) => index += 1,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.0.push(LocPart::from(index));
                    return Err(error);
                }
            }
        }
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _value: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _value: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _value: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _text: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::json::fields;

    /// The object with so many members, and one more of the name `last`.
    fn object(members: usize, last: &str) -> String {
        let mut members: Vec<String> = (0..members).map(|number| format!("\"n{number}\":1")).collect();
        members.push(format!("\"{last}\":2"));
        format!("{{{}}}", members.join(","))
    }

    #[test]
    fn each_name_comes_once_however_many_there_are() {
        for members in [1, FEW_MEMBERS - 1, FEW_MEMBERS, FEW_MEMBERS + 1, 3 * FEW_MEMBERS] {
            assert_eq!(given_twice(&object(members, "other")), None, "{members}");
            for again in [0, members / 2, members - 1] {
                let name = format!("n{again}");
                let found = given_twice(&object(members, &name));
                assert_eq!(found, Some(vec![LocPart::from(name.as_str())]), "{members}");
            }
        }
        assert_eq!(given_twice(r#"{"":1}"#), None);
        assert_eq!(given_twice(r#"{"":1,"":1}"#), Some(vec![LocPart::from("")]));
    }

    #[test]
    fn fields_have_the_same_name_however_it_is_spelt_and_whatever_they_say() {
        let is_found = |text: &str| is_any_given_twice(&fields(text.as_bytes()).unwrap());
        assert!(is_found(r#"{"a":1,"b":1,"a":1}"#));
        assert!(is_found(r#"{"a":null,"\u0061":null}"#));
        assert!(!is_found(r#"{"a":{"b":1},"b":1}"#));
        assert!(!is_found("{}"));
    }

    #[test]
    fn a_member_is_found_wherever_it_is_given_twice() {
        let found = given_twice(r#"[1, {"a": {"b": null}, "c": [true, {"d": "{", "\u0064": 1.5}]}]"#);
        let way = [
            LocPart::from(1),
            LocPart::from("c"),
            LocPart::from(1),
            LocPart::from("d"),
        ];
        assert_eq!(found, Some(way.to_vec()));
        let apart = r#"{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":-3}}"#;
        assert_eq!(given_twice(apart), None);
        assert_eq!(given_twice(r#""{\"a\":1,\"a\":2}""#), None);
    }
}
