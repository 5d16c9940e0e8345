//! Values of any kind as JSON text, where one column has to hold several kinds.
//!
//! A whole number is written like an integer, so that equal numbers are equal text whatever kind of column
//! they come from. Knows Arrow and expressions; knows nothing of where values come from or who reads them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, FieldRef, Float64Type, Int64Type, TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use uuid::Uuid;

use crate::model::floats::EXACT_BELOW;
use crate::model::registry::{is_json_text, json_text, timestamp};
use crate::model::time::Instant;

/// `json_text(value)`: null stays null, and text that is JSON stays as it is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query) struct JsonText {
    signature: Signature,
}

impl JsonText {
    #[must_use]
    pub(in crate::query) fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for JsonText {
    fn name(&self) -> &'static str {
        "json_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(json_text(self.name())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let missing = || internal_datafusion_err!("json_text takes one argument");
        let argument = arguments.args.first().ok_or_else(missing)?;
        let field = arguments.arg_fields.first().ok_or_else(missing)?;
        let values = Values::of(field, &argument.to_array(arguments.number_rows)?)?;
        let mut texts = StringBuilder::new();
        let mut text = String::new();
        for row in 0..arguments.number_rows {
            text.clear();
            if values.write(row, &mut text) {
                texts.append_value(&text);
            } else {
                texts.append_null();
            }
        }
        Ok(ColumnarValue::Array(Arc::new(texts.finish())))
    }
}

/// A column to write.
struct Values {
    array: ArrayRef,
    kind: Kind,
}

enum Kind {
    Boolean,
    Integer,
    Number,
    Instant,
    Uuid,
    Text,
    Json,
    List(Box<Values>),
    Structure(Vec<(String, Values)>),
}

impl Values {
    fn of(field: &Field, array: &ArrayRef) -> Result<Self> {
        let as_is = |kind| {
            Ok(Self {
                array: Arc::clone(array),
                kind,
            })
        };
        let converted = |to: &ArrowType, kind| {
            Ok(Self {
                array: cast(array, to)?,
                kind,
            })
        };
        match field.data_type() {
            ArrowType::Boolean => as_is(Kind::Boolean),
            ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 => {
                converted(&ArrowType::Int64, Kind::Integer)
            }
            ArrowType::Float32 | ArrowType::Float64 => converted(&ArrowType::Float64, Kind::Number),
            ArrowType::Timestamp(_, _) => converted(&timestamp(), Kind::Instant),
            ArrowType::FixedSizeBinary(16) => as_is(Kind::Uuid),
            ArrowType::List(item) => as_is(Kind::List(Box::new(Self::of(
                item,
                array.as_list::<i32>().values(),
            )?))),
            ArrowType::Struct(members) => {
                let columns = members.iter().zip(array.as_struct().columns());
                let columns =
                    columns.map(|(member, column)| Ok((quoted(member.name())?, Self::of(member, column)?)));
                as_is(Kind::Structure(columns.collect::<Result<_>>()?))
            }
            _ if is_json_text(field) => converted(&ArrowType::Utf8, Kind::Json),
            _ => converted(&ArrowType::Utf8, Kind::Text),
        }
    }

    /// Writes the value of a row. `false`: it has no value, and nothing was written.
    fn write(&self, row: usize, out: &mut String) -> bool {
        if self.array.is_null(row) {
            return false;
        }
        match &self.kind {
            Kind::Boolean => out.push_str(if self.array.as_boolean().value(row) {
                "true"
            } else {
                "false"
            }),
            Kind::Integer => {
                out.push_str(itoa::Buffer::new().format(self.array.as_primitive::<Int64Type>().value(row)));
            }
            Kind::Number => return write_number(self.array.as_primitive::<Float64Type>().value(row), out),
            Kind::Instant => {
                let micros = self.array.as_primitive::<TimestampMicrosecondType>().value(row);
                out.push('"');
                out.push_str(Instant::from_micros(micros).written().as_str());
                out.push('"');
            }
            Kind::Uuid => {
                let id = Uuid::from_slice(self.array.as_fixed_size_binary().value(row)).unwrap_or_default();
                out.push('"');
                out.push_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
                out.push('"');
            }
            Kind::Text => {
                return quoted(self.array.as_string::<i32>().value(row))
                    .map(|text| out.push_str(&text))
                    .is_ok();
            }
            Kind::Json => {
                let text = self.array.as_string::<i32>().value(row);
                out.push_str(text);
                return !text.is_empty();
            }
            Kind::List(items) => {
                let offsets = self.array.as_list::<i32>().value_offsets();
                let (Some(&first), Some(&end)) = (offsets.get(row), offsets.get(row + 1)) else {
                    return false;
                };
                out.push('[');
                for item in first..end {
                    if item > first {
                        out.push(',');
                    }
                    items.write_or_null(item as usize, out);
                }
                out.push(']');
            }
            Kind::Structure(members) => {
                out.push('{');
                for (place, (name, values)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    out.push_str(name);
                    out.push(':');
                    values.write_or_null(row, out);
                }
                out.push('}');
            }
        }
        true
    }

    fn write_or_null(&self, row: usize, out: &mut String) {
        if !self.write(row, out) {
            out.push_str("null");
        }
    }
}

/// Numbers that are not finite have no JSON form.
fn write_number(value: f64, out: &mut String) -> bool {
    if value.abs() < EXACT_BELOW && value.fract() == 0.0 {
        out.push_str(itoa::Buffer::new().format(value as i64));
    } else if value.is_finite() {
        out.push_str(ryu::Buffer::new().format_finite(value));
    }
    value.is_finite()
}

fn quoted(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(|error| internal_datafusion_err!("text without JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
        TimestampMicrosecondArray,
    };

    fn texts(field: &Field, array: &ArrayRef) -> Vec<Option<String>> {
        let values = Values::of(field, array).unwrap();
        let text = |row| {
            let mut out = String::new();
            values.write(row, &mut out).then_some(out)
        };
        (0..array.len()).map(text).collect()
    }

    fn of(array: impl Array + 'static) -> Vec<String> {
        let field = Field::new("v", array.data_type().clone(), true);
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        texts(&field, &(Arc::new(array) as ArrayRef))
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn rule_5_5_values_of_every_kind_have_their_json() {
        assert_eq!(
            of(BooleanArray::from(vec![Some(true), Some(false), None])),
            ["true", "false", "-"]
        );
        assert_eq!(
            of(Int64Array::from(vec![
                Some(9_007_199_254_740_993),
                Some(-1),
                None
            ])),
            ["9007199254740993", "-1", "-"]
        );
        assert_eq!(
            of(Float64Array::from(vec![7.0, 1.5, -0.0, 1e300, f64::NAN])),
            ["7", "1.5", "0", "1e300", "-"]
        );
        assert_eq!(
            of(StringArray::from(vec![Some("a\"b\n"), Some(""), None])),
            [r#""a\"b\n""#, r#""""#, "-"]
        );
        assert_eq!(
            of(TimestampMicrosecondArray::from(vec![Some(1_714_521_600_000_000), None]).with_timezone("UTC")),
            ["\"2024-05-01T00:00:00Z\"", "-"]
        );
        let id = Uuid::from_u128(0x0193_b5a2_0000_7000_8000_0000_0000_0001);
        assert_eq!(
            of(FixedSizeBinaryArray::try_from_iter([id.as_bytes()].into_iter()).unwrap()),
            [format!("\"{id}\"")]
        );
        let keys = StringArray::from(vec!["kg"]);
        let words = cast(&keys, &crate::model::registry::dictionary_text()).unwrap();
        assert_eq!(
            texts(&Field::new("v", words.data_type().clone(), true), &words),
            [Some("\"kg\"".to_owned())]
        );
    }

    #[test]
    fn rule_5_5_lists_structures_and_json_stay_what_they_are() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(1), None, Some(3)]),
            None,
            Some(vec![]),
        ]);
        assert_eq!(of(lists.slice(0, 3)), ["[1,null,3]", "-", "[]"]);
        assert_eq!(of(lists.slice(2, 1)), ["[]"]);
        let members = StructArray::from(vec![
            (
                Arc::new(Field::new("a b", ArrowType::Utf8, true)),
                Arc::new(StringArray::from(vec![Some("x"), None])) as ArrayRef,
            ),
            (
                Arc::new(json_text("j")),
                Arc::new(StringArray::from(vec![Some(r#"{"z":1}"#), None])),
            ),
        ]);
        assert_eq!(
            of(members),
            [r#"{"a b":"x","j":{"z":1}}"#, r#"{"a b":null,"j":null}"#]
        );
        let json: ArrayRef = Arc::new(StringArray::from(vec![Some("[1, 2]"), Some(""), None]));
        assert_eq!(
            texts(&json_text("v"), &json),
            [Some("[1, 2]".to_owned()), None, None]
        );
    }
}
