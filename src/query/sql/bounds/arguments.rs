//! How much the arguments of a function hold, and how long it is as text. Knows arrays, and how long a result
//! may be, beyond which nothing needs to be counted.

use std::fmt::{self, Display, Write};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int64Type, UInt64Type,
};
use datafusion::logical_expr::ColumnarValue;

use crate::query::ground::row_sizes::bytes_of_values;

use super::growth::LARGEST_RESULT;
use super::widths;

/// The most bytes of a truth value as text.
const LONGEST_TRUTH: usize = 5;
/// The most bytes of a moment as text: in the farthest year, with microseconds and its distance from UTC.
const LONGEST_MOMENT: usize = 35;
/// The most bytes of a date as text: in the farthest year.
const LONGEST_DATE: usize = 13;
/// The most bytes of a time of day as text: with nanoseconds.
const LONGEST_TIME: usize = 18;
/// What a decimal may have as text beside its digits: a sign, a zero and a point.
const AROUND_DIGITS: usize = 3;
/// More than spans have as text.
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
        ColumnarValue::Array(array) => bytes_of_values(array),
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
        DataType::Timestamp(..) | DataType::Date64 => LONGEST_MOMENT,
        DataType::Date32 => LONGEST_DATE,
        DataType::Time32(_) | DataType::Time64(_) => LONGEST_TIME,
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            let zeros = (*scale).min(0).unsigned_abs();
            usize::from(*digits) + usize::from(zeros) + AROUND_DIGITS
        }
        fractions if fractions.is_floating() => return fractions_as_texts(values),
        whole if whole.is_integer() => return wholes_as_texts(values),
        // Bytes that are text have as many as text.
        _ => widths::width(values.as_ref()).max(LONGEST_OTHER),
    };
    values.len().saturating_mul(longest)
}

/// As many bytes as whole numbers become as texts.
fn wholes_as_texts(values: &ArrayRef) -> usize {
    let digits = |size: u64| 1 + size.checked_ilog10().unwrap_or_default() as usize;
    if let Some(numbers) = values.as_primitive_opt::<UInt64Type>() {
        return numbers.iter().flatten().map(digits).sum();
    }
    match cast(values, &DataType::Int64) {
        Ok(numbers) => {
            let numbers = numbers.as_primitive::<Int64Type>().iter().flatten();
            let lengths = numbers.map(|number| usize::from(number < 0) + digits(number.unsigned_abs()));
            lengths.sum()
        }
        Err(_) => usize::MAX,
    }
}

/// As many bytes as fractions become as texts, which are written without exponents: between one and more than
/// three hundred each.
fn fractions_as_texts(values: &ArrayRef) -> usize {
    if *values.data_type() == DataType::Float64 {
        return written_out::<Float64Type>(values);
    }
    // Shorter ones are written as long as these.
    cast(values, &DataType::Float32).map_or(usize::MAX, |numbers| written_out::<Float32Type>(&numbers))
}

fn written_out<Number>(values: &ArrayRef) -> usize
where
    Number: ArrowPrimitiveType,
    Number::Native: Display,
{
    let mut counted = Counted(0);
    for number in values.as_primitive::<Number>().iter().flatten() {
        if write!(counted, "{number}").is_err() {
            break;
        }
    }
    counted.0
}

/// The bytes of what is written, until they are more than a result may have.
struct Counted(usize);

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        if self.0 <= LARGEST_RESULT {
            Ok(())
        } else {
            Err(fmt::Error)
        }
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

    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Date64Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
        Int64Array, ListArray, StringArray, Time64NanosecondArray, TimestampMicrosecondArray, UInt64Array,
    };
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

    /// What lists in a list hold, and the length of the text that they are joined to.
    fn held_and_joined(values: ArrayRef) -> (Items, usize) {
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
        (held, joined.as_string::<i32>().value(0).len())
    }

    #[test]
    fn items_of_lists_count_as_long_as_they_are_written() {
        let day = 86_400_000_000;
        let first = chrono::DateTime::<chrono::Utc>::MIN_UTC.timestamp_micros() + 2 * day + 1;
        let last = chrono::DateTime::<chrono::Utc>::MAX_UTC.timestamp_micros() - 2 * day;
        let moments = TimestampMicrosecondArray::from(vec![first, 0, last]);
        let decimals = |digits: u8, scale: i8| {
            let most = 10_i128.pow(u32::from(digits)) - 1;
            let decimals = Decimal128Array::from(vec![-most, 0, 1]);
            decimals.with_precision_and_scale(digits, scale).unwrap()
        };
        let all: [ArrayRef; 10] = [
            Arc::new(BooleanArray::from(vec![false; 100])),
            Arc::new(StringArray::from(vec!["a", "twelve bytes", ""])),
            Arc::new(moments.clone()),
            Arc::new(moments.with_timezone("+05:30")),
            Arc::new(Date32Array::from(vec![(first / day) as i32, (last / day) as i32])),
            Arc::new(Date64Array::from(vec![first / 1000, last / 1000])),
            Arc::new(Time64NanosecondArray::from(vec![0, day * 1000 - 1])),
            Arc::new(decimals(38, 38)),
            Arc::new(decimals(38, 10)),
            Arc::new(decimals(3, -5)),
        ];
        for values in all {
            let kind = values.data_type().clone();
            let (held, length) = held_and_joined(values);
            assert!(length <= held.bytes, "{kind} {length} {held:?}");
        }
    }

    #[test]
    fn numbers_count_exactly_as_long_as_they_are_written() {
        let numbers: [ArrayRef; 5] = [
            Arc::new(Float64Array::from(vec![
                Some(0.0),
                Some(-0.1),
                None,
                Some(62.5),
                Some(1e300),
                Some(-1e-300),
                Some(f64::from_bits(1)),
                Some(f64::MIN),
                Some(f64::INFINITY),
                Some(f64::NAN),
                Some(-1.0 / 3.0),
            ])),
            Arc::new(Float32Array::from(vec![0.1, 1e11, f32::MIN, f32::from_bits(1)])),
            Arc::new(Int64Array::from(vec![
                Some(0),
                None,
                Some(-10),
                Some(i64::MIN),
                Some(i64::MAX),
            ])),
            Arc::new(Int8Array::from(vec![-128, 9, 10, 99, 100])),
            Arc::new(UInt64Array::from(vec![u64::MAX, 0])),
        ];
        for values in numbers {
            let kind = values.data_type().clone();
            let (held, length) = held_and_joined(values);
            assert_eq!(length, held.bytes, "{kind}");
        }
    }

    #[test]
    fn fractions_beyond_the_limit_are_counted_beyond_it() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1e300; 20_000]));
        assert!(as_texts(&numbers) > LARGEST_RESULT);
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
