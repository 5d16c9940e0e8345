//! How much the arguments of a function hold, and how long it is as text. Knows arrays only.

use std::num::FpCategory;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::logical_expr::ColumnarValue;

use super::widths;

/// The most bytes of a truth value as text.
const LONGEST_TRUTH: usize = 5;
/// The most bytes of a whole number as text.
const LONGEST_WHOLE: usize = 20;
/// Fractions of usual size have at most so many bytes as text, and all have at most so many.
const USUAL_FRACTION: usize = 24;
const LONGEST_FRACTION: usize = 344;
/// More than times, spans and decimals have as text.
const LONGEST_OTHER: usize = 100;
/// More than one part of a format of times becomes, and how much more than that a whole moment is.
const LONGEST_PART: usize = 16;
const REST_OF_MOMENT: usize = 24;
/// The parts of such a format that become whole moments.
const WHOLE_MOMENTS: [&str; 2] = ["%c", "%+"];

/// The number of elements of a list, or of bytes of a text, in each row.
pub(super) fn lengths(value: &ColumnarValue, rows: usize) -> Vec<usize> {
    match value {
        ColumnarValue::Scalar(scalar) => match scalar.to_array() {
            Ok(one) => vec![lengths_of(&one).first().copied().unwrap_or(0); rows],
            Err(_) => Vec::new(),
        },
        ColumnarValue::Array(array) => lengths_of(array),
    }
}

fn lengths_of(array: &ArrayRef) -> Vec<usize> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        lists.offsets().lengths().collect()
    } else if let Some(lists) = array.as_list_opt::<i64>() {
        lists.offsets().lengths().collect()
    } else if let Some(lists) = array.as_fixed_size_list_opt() {
        vec![usize::try_from(lists.value_length()).unwrap_or(0); lists.len()]
    } else {
        match cast(array, &DataType::Utf8) {
            Ok(texts) => texts.as_string::<i32>().offsets().lengths().collect(),
            Err(_) => Vec::new(),
        }
    }
}

/// The number in each row; none and those below zero count as zero.
pub(super) fn numbers(value: Option<&ColumnarValue>, rows: usize) -> Vec<usize> {
    let numbers = value.and_then(|value| {
        let numbers = cast(&value.to_array(rows).ok()?, &DataType::Int64).ok()?;
        let numbers = numbers.as_primitive::<Int64Type>().iter();
        let numbers = numbers.map(|number| number.and_then(|number| usize::try_from(number).ok()));
        Some(numbers.map(Option::unwrap_or_default).collect())
    });
    numbers.unwrap_or_default()
}

pub(super) fn bytes(value: &ColumnarValue, rows: usize) -> usize {
    match value {
        ColumnarValue::Array(array) => {
            let data = array.to_data();
            data.get_slice_memory_size()
                .unwrap_or_else(|_| array.get_array_memory_size())
        }
        ColumnarValue::Scalar(scalar) => scalar.size().saturating_mul(rows),
    }
}

/// The length of the longest text in bytes.
pub(super) fn longest(value: &ColumnarValue) -> usize {
    lengths(value, 1).into_iter().max().unwrap_or_default()
}

/// How much longer an item of a list may become where this value takes its place.
pub(super) fn longer_by(value: &ColumnarValue) -> usize {
    match value {
        value if value.data_type().is_primitive() => 0,
        ColumnarValue::Array(array) => width_inside(array),
        ColumnarValue::Scalar(scalar) if scalar.is_null() => 0,
        ColumnarValue::Scalar(scalar) => scalar.to_array().map_or(0, |one| width_inside(&one)),
    }
}

/// Bytes of the widest value without those of its place, which an item of a list has already.
fn width_inside(array: &ArrayRef) -> usize {
    widths::width(array.as_ref()).saturating_sub(widths::USUAL_WIDTH)
}

/// What lists hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Items {
    /// At any depth.
    pub(super) count: usize,
    /// At most, once they are written as texts.
    pub(super) bytes: usize,
}

/// What the lists of so many rows hold.
pub(super) fn items(value: &ColumnarValue, rows: usize) -> Items {
    match value {
        ColumnarValue::Array(array) => items_of(array),
        ColumnarValue::Scalar(scalar) => {
            let each = scalar.to_array().map(|one| items_of(&one)).unwrap_or_default();
            Items {
                count: each.count.saturating_mul(rows),
                bytes: each.bytes.saturating_mul(rows),
            }
        }
    }
}

fn items_of(lists: &ArrayRef) -> Items {
    let values = if let Some(lists) = lists.as_list_opt::<i32>() {
        values_of(lists)
    } else if let Some(lists) = lists.as_list_opt::<i64>() {
        values_of(lists)
    } else if let Some(lists) = lists.as_fixed_size_list_opt() {
        ArrayRef::clone(lists.values())
    } else {
        return Items::default();
    };
    let inside = items_of(&values);
    Items {
        count: values.len().saturating_add(inside.count),
        bytes: as_texts(&values).saturating_add(inside.bytes),
    }
}

fn values_of<Offset: OffsetSizeTrait>(lists: &GenericListArray<Offset>) -> ArrayRef {
    let offsets = lists.offsets();
    let from = offsets.first().map_or(0, |offset| offset.as_usize());
    let to = offsets.last().map_or(from, |offset| offset.as_usize());
    lists.values().slice(from, to.saturating_sub(from))
}

/// The most bytes that values become as texts; lists become none by themselves.
fn as_texts(values: &ArrayRef) -> usize {
    let longest = match values.data_type() {
        DataType::Null | DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => 0,
        DataType::Boolean => LONGEST_TRUTH,
        DataType::Utf8 | DataType::LargeUtf8 => return lengths_of(values).into_iter().sum(),
        DataType::Utf8View => {
            let lengths = values.as_string_view().lengths();
            return lengths.map(|length| length as usize).sum();
        }
        DataType::Dictionary(..) => widths::width(values.as_ref()),
        fractions if fractions.is_floating() => return fractions_as_texts(values),
        whole if whole.is_integer() => LONGEST_WHOLE,
        // Bytes that are text have as many as text.
        _ => widths::width(values.as_ref()).max(LONGEST_OTHER),
    };
    values.len().saturating_mul(longest)
}

fn fractions_as_texts(values: &ArrayRef) -> usize {
    // They are written without exponents.
    let length = |number: f64| match number.classify() {
        FpCategory::Normal | FpCategory::Subnormal if !(1e-5..1e17).contains(&number.abs()) => {
            LONGEST_FRACTION
        }
        _ => USUAL_FRACTION,
    };
    match cast(values, &DataType::Float64) {
        Ok(numbers) => {
            let numbers = numbers.as_primitive::<Float64Type>().iter();
            numbers.map(|number| number.map_or(0, length)).sum()
        }
        Err(_) => values.len().saturating_mul(LONGEST_FRACTION),
    }
}

/// The most bytes that a time becomes in each of so many rows, written in a format.
pub(super) fn written(format: &ColumnarValue, rows: usize) -> usize {
    let written = |format: &str| {
        let parts = format.matches('%').count();
        let moments = WHOLE_MOMENTS.map(|moment| format.matches(moment).count());
        let moments = moments.into_iter().fold(0, usize::saturating_add);
        let longer = parts
            .saturating_mul(LONGEST_PART)
            .saturating_add(moments.saturating_mul(REST_OF_MOMENT));
        format.len().saturating_add(longer)
    };
    match format {
        ColumnarValue::Scalar(scalar) => {
            let format = scalar.try_as_str().flatten();
            format.map_or(0, written).saturating_mul(rows)
        }
        ColumnarValue::Array(array) => match cast(array, &DataType::Utf8) {
            Ok(formats) => {
                let formats = formats.as_string::<i32>().iter().flatten();
                formats.map(written).fold(0, usize::saturating_add)
            }
            Err(_) => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{BooleanArray, Float64Array, ListArray, StringArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;
    use datafusion::functions_nested::string::array_to_string_udf;
    use datafusion::logical_expr::ScalarFunctionArgs;

    use super::*;

    fn in_lists(values: ArrayRef, lengths: &[usize]) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        Arc::new(ListArray::try_new(item, offsets, values, None).unwrap())
    }

    #[test]
    fn items_of_lists_count_as_long_as_they_are_written() {
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![false; 100]));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![
            0.0,
            -0.1,
            62.5,
            1e300,
            -1e-300,
            f64::from_bits(1),
            f64::MIN,
            f64::INFINITY,
            f64::NAN,
            -1.0 / 3.0,
        ]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "twelve bytes", ""]));
        for values in [truths, numbers, texts] {
            let count = values.len();
            let nested = in_lists(in_lists(values, &[1, count - 1]), &[2]);
            let held = items(&ColumnarValue::Array(Arc::clone(&nested)), 1);
            assert_eq!(held.count, 2 + count);
            let joined = array_to_string_udf()
                .invoke_with_args(ScalarFunctionArgs {
                    args: vec![ColumnarValue::Array(nested), ColumnarValue::Scalar("".into())],
                    arg_fields: Vec::new(),
                    number_rows: 1,
                    return_field: Arc::new(Field::new("", DataType::Utf8, true)),
                    config_options: Arc::default(),
                })
                .unwrap();
            let joined = joined.into_array(1).unwrap();
            let length = joined.as_string::<i32>().value(0).len();
            assert!(length <= held.bytes, "{length} {held:?}");
        }
    }

    #[test]
    fn only_the_lists_of_a_slice_count() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["aaaa", "bbb", "cc", "d"]));
        let lists = in_lists(texts, &[1, 1, 2]);
        let last = items(&ColumnarValue::Array(lists.slice(2, 1)), 1);
        assert_eq!(last, Items { count: 2, bytes: 3 });
    }

    #[test]
    fn no_time_is_longer_than_its_format_tells() {
        let moment = chrono::DateTime::<chrono::Utc>::MAX_UTC;
        for format in [
            "%c",
            "%+",
            "%A, %d. %B %Y, %H:%M:%S %Z",
            "%F%v%r%s%.9f%9f%:z",
            "%%%c%+%+",
            "at %T",
        ] {
            let text = moment.format(format).to_string();
            let most = written(&ColumnarValue::Scalar(format.into()), 1);
            assert!(text.len() <= most, "{text} {most}");
        }
    }
}
