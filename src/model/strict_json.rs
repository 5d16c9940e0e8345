//! Reads JSON more strictly than serde does. A struct is read from an object only: serde would also accept an
//! array of the members' values, which no client intends. And a member is given once: where the type to read
//! is not a struct, serde would take the last one.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a value that is written as an object.
pub fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Members<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(members))
        }
    }

    deserializer.deserialize_map(Members(PhantomData))
}

/// The same, but null is allowed.
pub fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|Object(value)| value))
}

/// Reads any value that is written as an object.
#[derive(Clone, Copy, Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer).map(Self)
    }
}

/// Any value in whose objects, however deep, each member is given once. Keeps nothing of it.
#[derive(Clone, Copy, Debug)]
pub struct EachOnce;

impl<'de> Deserialize<'de> for EachOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for EachOnce {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            names.insert(name);
            members.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self, A::Error> {
        while elements.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _value: &str) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{EachOnce, Object};

    #[test]
    fn a_member_is_given_once_in_each_object() {
        let read = serde_json::from_str::<EachOnce>;
        assert!(read(r#"{"a": [1, -1, 0.5, "b", null, true, {"a": {}}], "b": {"a": 1}}"#).is_ok());
        for (text, name) in [
            (r#"{"a": 1, "a": 1}"#, "a"),
            (r#"{"a": 1, "\u0061": 2}"#, "a"),
            (r#"[{"x": [{"b": 1, "c": 2, "b": null}]}]"#, "b"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(&format!("duplicate field `{name}`")), "{error}");
        }
    }

    #[derive(Deserialize)]
    struct Pair {
        one: u8,
        other: u8,
    }

    #[test]
    fn a_list_is_no_object() {
        let read = serde_json::from_str::<Object<Pair>>(r#"{"one": 1, "other": 2}"#);
        let Object(Pair { one, other }) = read.unwrap();
        assert_eq!((one, other), (1, 2));
        assert!(
            serde_json::from_str::<Pair>("[1, 2]").is_ok(),
            "which is why this is here"
        );
        assert!(serde_json::from_str::<Object<Pair>>("[1, 2]").is_err());
    }
}
