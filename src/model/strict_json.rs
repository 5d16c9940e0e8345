//! Reads a struct from a JSON object only. Serde would also accept an array of the members' values, which no
//! client intends.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::Object;

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
