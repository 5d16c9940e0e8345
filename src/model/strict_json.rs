//! Reads JSON more strictly than serde does. A structure is read from an object only: serde would also accept
//! an array of the members' values, which no client intends. A choice is read from a text only: serde would
//! also accept an object from its name to null. And a member is given once: where the type to read is not a
//! struct, serde would take the last one. A whole number may be written with a fraction of zeros, as JSON
//! Schema has it: `3.0`.
//!
//! What is wrong is said in words of JSON, where serde would name types of Rust.

use std::collections::HashSet;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Number, Value};

/// How the parser calls a number that is well formed and larger than any that can be kept; it counts such a
/// number among the faults of the text.
pub const OUT_OF_RANGE: &str = "number out of range";
/// How a caller is told.
pub const BEYOND_NUMBERS: &str = "beyond what a number can be: the largest is 1.7976931348623157e308";

/// Reads a value, and says where in it something is wrong.
pub fn read<T: DeserializeOwned>(json: &Value) -> Result<T, serde_path_to_error::Error<Error>> {
    serde_path_to_error::deserialize(Strict(json))
}

/// A number without a fraction, however it is written; `None` if it is none, or too large.
#[must_use]
pub fn whole_number(json: &Value) -> Option<i64> {
    let Value::Number(number) = json else {
        return None;
    };
    whole(number).and_then(|whole| i64::try_from(whole).ok())
}

/// JSON that is read by the rules above, with everything in it.
#[derive(Clone, Copy, Debug)]
struct Strict<'de>(&'de Value);

impl<'de> Strict<'de> {
    fn unexpected(self) -> Unexpected<'de> {
        match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => unexpected_number(number),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }

    fn refused(self, expected: &str) -> Error {
        Error::invalid_type(self.unexpected(), &expected)
    }
}

fn unexpected_number(number: &Number) -> Unexpected<'_> {
    let whole = number
        .as_i64()
        .map(Unexpected::Signed)
        .or_else(|| number.as_u64().map(Unexpected::Unsigned));
    whole.unwrap_or_else(|| Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)))
}

/// A number without a fraction, however it is written.
fn whole(number: &Number) -> Option<i128> {
    if let Some(signed) = number.as_i64() {
        return Some(signed.into());
    }
    if let Some(unsigned) = number.as_u64() {
        return Some(unsigned.into());
    }
    // Beyond 2^64 there is no whole number that anything here could hold.
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= u64::MAX as f64).then_some(float as i128)
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $number:ty),* $(,)?) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
                let Value::Number(number) = self.0 else {
                    return Err(self.refused("a whole number"));
                };
                let Some(whole) = whole(number) else {
                    return Err(Error::invalid_value(self.unexpected(), &"a whole number"));
                };
                match <$number>::try_from(whole) {
                    Ok(whole) => visitor.$visit(whole),
                    Err(_) => {
                        let (least, most) = (<$number>::MIN, <$number>::MAX);
                        let expected = format!("a whole number from {least} to {most}");
                        Err(Error::invalid_value(self.unexpected(), &expected.as_str()))
                    }
                }
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Strict<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(elements) => {
                let mut elements = SeqDeserializer::new(elements.iter().map(Strict));
                let read = visitor.visit_seq(&mut elements)?;
                elements.end()?;
                Ok(read)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), Strict(value)));
                let mut members = MapDeserializer::new(members);
                let read = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(read)
            }
            leaf => leaf.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_object() {
            self.deserialize_any(visitor)
        } else {
            Err(self.refused("an object"))
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        choices: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(self.refused(&format!("one of {}", choices.join(", ")))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.as_f64() {
            Some(number) => visitor.visit_f64(number),
            None => Err(self.refused("a number")),
        }
    }

    whole_numbers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Strict<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
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
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::{EachOnce, read};

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

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        one: u8,
        other: Option<i64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Tea,
        Coffee,
    }

    #[track_caller]
    fn refused<T: DeserializeOwned>(json: &Value, place: &str, message: &str) {
        let error = read::<T>(json).err().expect("a refusal");
        assert_eq!(
            (
                error.path().to_string().as_str(),
                error.inner().to_string().as_str()
            ),
            (place, message),
            "{json}"
        );
    }

    #[test]
    fn a_list_is_no_structure_at_any_depth() {
        let pair = json!({"one": 1, "other": 2});
        assert_eq!(
            read::<Pair>(&pair).unwrap(),
            Pair {
                one: 1,
                other: Some(2)
            }
        );
        assert!(
            serde_json::from_value::<Pair>(json!([1, 2])).is_ok(),
            "which is why this is here"
        );
        refused::<Pair>(&json!([1, 2]), ".", "invalid type: sequence, expected an object");
        refused::<Option<Vec<Pair>>>(
            &json!([pair, [1, 2]]),
            "[1]",
            "invalid type: sequence, expected an object",
        );
    }

    #[test]
    fn a_choice_is_a_text_and_a_refusal_names_what_can_be_chosen() {
        assert_eq!(
            read::<Vec<Choice>>(&json!(["tea", "coffee"])).unwrap(),
            [Choice::Tea, Choice::Coffee]
        );
        assert!(
            serde_json::from_value::<Choice>(json!({"tea": null})).is_ok(),
            "which is why this is here"
        );
        refused::<Choice>(
            &json!({"tea": null}),
            ".",
            "invalid type: map, expected one of tea, coffee",
        );
        refused::<Choice>(
            &json!(null),
            ".",
            "invalid type: null, expected one of tea, coffee",
        );
        refused::<Choice>(
            &json!("milk"),
            ".",
            "unknown variant `milk`, expected `tea` or `coffee`",
        );
    }

    #[test]
    fn numbers_are_refused_without_a_type_of_rust() {
        assert_eq!(
            read::<Pair>(&json!({"one": 255.0, "other": -3e2})).unwrap(),
            Pair {
                one: 255,
                other: Some(-300)
            }
        );
        assert_eq!(read::<u64>(&json!(u64::MAX)).unwrap(), u64::MAX);
        for (other, message) in [
            (json!("1"), "invalid type: string \"1\", expected a whole number"),
            (
                json!(1.5),
                "invalid value: floating point `1.5`, expected a whole number",
            ),
            (
                json!(1e30),
                "invalid value: floating point `1e+30`, expected a whole number",
            ),
        ] {
            refused::<Pair>(&json!({"one": 1, "other": other}), "other", message);
        }
        let message = "invalid value: integer `-1`, expected a whole number from 0 to 255";
        refused::<Pair>(&json!({"one": -1}), "one", message);
        refused::<f64>(&json!("1"), ".", "invalid type: string \"1\", expected a number");
    }

    #[test]
    fn what_is_kept_as_it_is_stays_as_it_is() {
        let free = json!({"a": [1, 2.0, -1, null, {"b": "c"}], "d": u64::MAX});
        assert_eq!(read::<Value>(&free).unwrap(), free);
    }
}
