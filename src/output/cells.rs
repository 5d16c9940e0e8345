//! Writes the cells of one column of the current batch, row by row.
//!
//! A column's type is examined once per answer and its array once per batch; what remains per cell is a
//! branch that the processor predicts. What is expensive to make (the text of dictionary values, of a day,
//! the offset of a zone) is kept from batch to batch.

mod dictionary;
mod field;
mod json;
mod structure;
mod uniform;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int64Array, LargeStringArray, StringArray, StringViewArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt64Type,
};

use self::dictionary::Dictionary;
use self::structure::Structure;
use super::encoder::EncodeError;
use super::times::{DateText, InstantText};
use super::zones::Zone;
use crate::model::registry::{is_json_text, is_uuid};

pub(super) use self::field::FieldStyle;

/// How cells are written: as JSON or as a CSV field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Json,
    Field(FieldStyle),
}

/// A column. Empty until an array has been loaded.
#[derive(Debug)]
pub(super) struct Cells {
    nulls: Option<NullBuffer>,
    values: Values,
}

/// The cells of a column by their type. Where a type is rare, its values are converted to a common one when a
/// batch is loaded.
#[derive(Debug)]
enum Values {
    Null,
    Boolean(BooleanArray),
    Integer(Int64Array),
    Unsigned(UInt64Array),
    Single(Float32Array),
    Double(Float64Array),
    Text(Text),
    /// What Arrow prints of decimals, times of day, durations and intervals.
    Printed(Text),
    /// Text that is JSON.
    Json(Text),
    Uuid(FixedSizeBinaryArray),
    Bytes(BinaryArray),
    Instant {
        values: ScalarBuffer<i64>,
        text: Box<InstantText>,
        unit: TimeUnit,
    },
    Day {
        values: ScalarBuffer<i32>,
        text: DateText,
    },
    Dictionary(Box<Dictionary>),
    List {
        offsets: OffsetBuffer<i64>,
        items: Box<Cells>,
    },
    Structure(Box<Structure>),
}

#[derive(Debug)]
enum Text {
    Short(StringArray),
    Long(LargeStringArray),
    View(StringViewArray),
}

impl Text {
    fn empty() -> Self {
        Self::Short(StringArray::new_null(0))
    }

    fn load(&mut self, array: &ArrayRef) -> Result<(), EncodeError> {
        *self = match array.data_type() {
            DataType::Utf8 => Self::Short(array.as_string::<i32>().clone()),
            DataType::LargeUtf8 => Self::Long(array.as_string::<i64>().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            _ => Self::Short(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()),
        };
        Ok(())
    }

    fn value(&self, row: usize) -> &str {
        match self {
            Self::Short(array) => array.value(row),
            Self::Long(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }
}

impl Cells {
    pub(super) fn new(field: &Field, style: Style) -> Result<Self, EncodeError> {
        let values = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_json_text(field) => {
                Values::Json(Text::empty())
            }
            DataType::FixedSizeBinary(_) if is_uuid(field) => {
                Values::Uuid(FixedSizeBinaryArray::new_null(16, 0))
            }
            DataType::Dictionary(_, values) => {
                let values = field.clone().with_data_type(values.as_ref().clone());
                Values::Dictionary(Box::new(Dictionary::new(Self::new(&values, style)?, style)))
            }
            DataType::List(item) | DataType::LargeList(item) => Values::List {
                offsets: OffsetBuffer::new_empty(),
                items: Box::new(Self::new(item, Style::Json)?),
            },
            DataType::Struct(members) => Values::Structure(Box::new(Structure::new(members, style)?)),
            DataType::Timestamp(unit, zone) => {
                let zone = zone
                    .as_deref()
                    .map_or_else(|| Ok(Zone::utc()), |zone| known_zone(field, zone))?;
                Values::Instant {
                    values: ScalarBuffer::default(),
                    text: Box::new(InstantText::new(*unit, zone)),
                    unit: *unit,
                }
            }
            data_type => plain(data_type).ok_or_else(|| EncodeError::Unsupported {
                column: field.name().clone(),
            })?,
        };
        Ok(Self { nulls: None, values })
    }

    /// Loads the column of the next batch, which has the type of the field.
    pub(super) fn load(&mut self, array: &ArrayRef) -> Result<(), EncodeError> {
        self.nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => *values = array.as_boolean().clone(),
            Values::Integer(values) => {
                *values = converted(array, &DataType::Int64)?
                    .as_primitive::<Int64Type>()
                    .clone();
            }
            Values::Unsigned(values) => *values = array.as_primitive::<UInt64Type>().clone(),
            Values::Single(values) => {
                *values = converted(array, &DataType::Float32)?
                    .as_primitive::<Float32Type>()
                    .clone();
            }
            Values::Double(values) => *values = array.as_primitive::<Float64Type>().clone(),
            Values::Text(values) | Values::Printed(values) | Values::Json(values) => values.load(array)?,
            Values::Uuid(values) => *values = array.as_fixed_size_binary().clone(),
            Values::Bytes(values) => {
                *values = converted(array, &DataType::Binary)?.as_binary::<i32>().clone();
            }
            Values::Instant { values, unit, .. } => *values = instants(array, *unit),
            Values::Day { values, .. } => *values = array.as_primitive::<Date32Type>().values().clone(),
            Values::Dictionary(dictionary) => dictionary.load(array)?,
            Values::List { offsets, items } => *offsets = load_list(array, items)?,
            Values::Structure(structure) => structure.load(array)?,
        }
        Ok(())
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        match &self.values {
            Values::Null => true,
            Values::Dictionary(dictionary) => dictionary.is_null(row),
            _ => self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)),
        }
    }

    /// Writes the cell of a row. `scratch` is a reusable buffer; its content does not matter.
    pub(super) fn write(&mut self, row: usize, style: Style, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        match style {
            Style::Json => self.write_json(row, out),
            Style::Field(style) => self.write_field(row, style, scratch, out),
        }
    }

    /// The text of a row, if the column holds text.
    pub(super) fn text(&self, row: usize) -> Option<&str> {
        match &self.values {
            Values::Text(text) | Values::Json(text) if !self.is_null(row) => Some(text.value(row)),
            _ => None,
        }
    }
}

fn known_zone(field: &Field, zone: &str) -> Result<Zone, EncodeError> {
    Zone::parse(zone).ok_or_else(|| EncodeError::UnknownZone {
        column: field.name().clone(),
        zone: zone.to_owned(),
    })
}

fn plain(data_type: &DataType) -> Option<Values> {
    Some(match data_type {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Boolean(BooleanArray::new_null(0)),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => Values::Integer(Int64Array::new_null(0)),
        DataType::UInt64 => Values::Unsigned(UInt64Array::new_null(0)),
        DataType::Float16 | DataType::Float32 => Values::Single(Float32Array::new_null(0)),
        DataType::Float64 => Values::Double(Float64Array::new_null(0)),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Values::Bytes(BinaryArray::new_null(0))
        }
        DataType::Date32 => Values::Day {
            values: ScalarBuffer::default(),
            text: DateText::default(),
        },
        other if !arrow::compute::can_cast_types(other, &DataType::Utf8) => return None,
        // These are rare.
        printed if printed.is_decimal() || printed.is_temporal() => Values::Printed(Text::empty()),
        _ => Values::Text(Text::empty()),
    })
}

fn converted(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, EncodeError> {
    if array.data_type() == data_type {
        Ok(array.clone())
    } else {
        Ok(cast(array, data_type)?)
    }
}

fn instants(array: &ArrayRef, unit: TimeUnit) -> ScalarBuffer<i64> {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values().clone(),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values().clone(),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values().clone(),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values().clone(),
    }
}

fn load_list(array: &ArrayRef, items: &mut Cells) -> Result<OffsetBuffer<i64>, EncodeError> {
    if let Some(list) = array.as_list_opt::<i64>() {
        items.load(list.values())?;
        return Ok(list.offsets().clone());
    }
    let list = array.as_list::<i32>();
    items.load(list.values())?;
    Ok(OffsetBuffer::new(
        list.offsets().iter().map(|offset| i64::from(*offset)).collect(),
    ))
}
