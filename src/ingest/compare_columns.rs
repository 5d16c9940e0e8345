//! Compares the rows of two batches column by column.
//!
//! A body that is sent again consists of rows that are stored already in the same form; converting each to a
//! form in which whole rows can be compared costs more than finding them. Agrees with `compare_rows`, which
//! compares rows in any order. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, DictionaryArray, RecordBatch,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Field, Float64Type, Int8Type, Int32Type, Int64Type, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::member_order::{holds_json, ordered, say_the_same};
use super::versions::{is_repeated, is_version};
use crate::model::registry::is_json_text;

/// For each row whether it says the same in the batch `other` as before, in `one`, which has equally many. A
/// column that one of them lacks is null in all its rows.
pub fn alike(schema: &SchemaRef, one: &RecordBatch, other: &RecordBatch) -> Result<Vec<bool>, ArrowError> {
    if one.num_rows() != other.num_rows() {
        return Err(ArrowError::InvalidArgumentError(format!(
            "{} rows are compared with {}",
            one.num_rows(),
            other.num_rows()
        )));
    }
    let mut equal = vec![true; one.num_rows()];
    for field in schema.fields() {
        let column = |batch: &RecordBatch| -> Result<Option<ArrayRef>, ArrowError> {
            Ok(match batch.column_by_name(field.name()) {
                Some(column) if column.data_type() == field.data_type() => Some(Arc::clone(column)),
                Some(column) => Some(arrow::compute::cast(column, field.data_type())?),
                None => None,
            })
        };
        match (column(one)?, column(other)?) {
            (Some(one), Some(other)) => compare(field, &one, &other, &mut equal)?,
            (Some(only), None) | (None, Some(only)) => {
                let nulls = only.logical_nulls();
                keep(&mut equal, |row| !is_valid(nulls.as_ref(), row));
            }
            (None, None) => {}
        }
    }
    Ok(equal)
}

fn compare(field: &Field, one: &ArrayRef, other: &ArrayRef, equal: &mut [bool]) -> Result<(), ArrowError> {
    let rows = equal.len();
    if one.logical_null_count() == rows && other.logical_null_count() == rows {
        return Ok(());
    }
    match one.data_type() {
        DataType::Float64 => primitives::<Float64Type>(one, other, equal),
        DataType::Int64 => primitives::<Int64Type>(one, other, equal),
        DataType::Int8 => primitives::<Int8Type>(one, other, equal),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            primitives::<TimestampMicrosecondType>(one, other, equal);
        }
        DataType::Boolean => {
            let (left, right) = (one.as_boolean(), other.as_boolean());
            valid_alike(one, other, equal, |row| left.value(row) == right.value(row));
        }
        DataType::Utf8 if is_json_text(field) => {
            let (left, right) = (one.as_string::<i32>(), other.as_string::<i32>());
            valid_alike(one, other, equal, |row| {
                say_the_same(left.value(row), right.value(row))
            });
        }
        DataType::Utf8 => {
            let (left, right) = (one.as_string::<i32>(), other.as_string::<i32>());
            valid_alike(one, other, equal, |row| left.value(row) == right.value(row));
        }
        DataType::FixedSizeBinary(_) => {
            let (left, right) = (one.as_fixed_size_binary(), other.as_fixed_size_binary());
            valid_alike(one, other, equal, |row| left.value(row) == right.value(row));
        }
        DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => {
            if is_version(field) {
                let mut same = vec![true; rows];
                words(one, other, &mut same);
                keep(equal, |row| same[row] || is_repeated(one, other, row));
            } else {
                words(one, other, equal);
            }
        }
        DataType::Struct(fields) => {
            // Where a structure is null, the values of its members do not matter.
            let mut members = vec![true; rows];
            let (left, right) = (one.as_struct(), other.as_struct());
            for ((field, left), right) in fields.iter().zip(left.columns()).zip(right.columns()) {
                compare(field, left, right, &mut members)?;
            }
            valid_alike(one, other, equal, |row| members[row]);
        }
        _ => {
            let mut same = whole_values(one, other)?;
            if holds_json(field) && same.contains(&false) {
                same = whole_values(&ordered(field, one)?, &ordered(field, other)?)?;
            }
            keep(equal, |row| same[row]);
        }
    }
    Ok(())
}

/// For each row whether the value is the same in both columns.
fn whole_values(one: &ArrayRef, other: &ArrayRef) -> Result<Vec<bool>, ArrowError> {
    let converter = RowConverter::new(vec![SortField::new(one.data_type().clone())])?;
    let left = converter.convert_columns(&[Arc::clone(one)])?;
    let right = converter.convert_columns(&[Arc::clone(other)])?;
    Ok(left
        .iter()
        .zip(right.iter())
        .map(|(left, right)| left == right)
        .collect())
}

/// Compares to the last bit, for floats too.
fn primitives<T: ArrowPrimitiveType>(one: &ArrayRef, other: &ArrayRef, equal: &mut [bool]) {
    let (left, right) = (one.as_primitive::<T>(), other.as_primitive::<T>());
    valid_alike(one, other, equal, |row| left.value(row).is_eq(right.value(row)));
}

/// Texts of which few are distinct: the distinct ones are compared once, and then their numbers.
fn words(one: &ArrayRef, other: &ArrayRef, equal: &mut [bool]) {
    let (left, right) = (
        one.as_dictionary::<Int32Type>(),
        other.as_dictionary::<Int32Type>(),
    );
    let mut numbers: HashMap<Option<&str>, usize> = HashMap::new();
    let mut numbered = |dictionary| -> Vec<usize> {
        texts(dictionary)
            .map(|text| {
                let next = numbers.len();
                *numbers.entry(text).or_insert(next)
            })
            .collect()
    };
    let (of_left, of_right) = (numbered(left), numbered(right));
    if let ([left], [right]) = (of_left.as_slice(), of_right.as_slice()) {
        return valid_alike(one, other, equal, |_| left == right);
    }
    let number = |dictionary: &DictionaryArray<Int32Type>, numbers: &[usize], row: usize| {
        usize::try_from(dictionary.keys().value(row))
            .ok()
            .and_then(|key| numbers.get(key).copied())
    };
    valid_alike(one, other, equal, |row| {
        number(left, &of_left, row) == number(right, &of_right, row)
    });
}

fn texts(dictionary: &DictionaryArray<Int32Type>) -> impl Iterator<Item = Option<&str>> {
    dictionary.values().as_string::<i32>().iter()
}

/// Keeps rows equal that are null in both, or have the same value in both.
fn valid_alike(one: &ArrayRef, other: &ArrayRef, equal: &mut [bool], is_same: impl Fn(usize) -> bool) {
    let nulls = |column: &ArrayRef| column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    match (nulls(one), nulls(other)) {
        (None, None) => keep(equal, is_same),
        (left, right) => keep(equal, |row| {
            match (is_valid(left.as_ref(), row), is_valid(right.as_ref(), row)) {
                (true, true) => is_same(row),
                (one, other) => one == other,
            }
        }),
    }
}

fn keep(equal: &mut [bool], is_same: impl Fn(usize) -> bool) {
    for (row, equal) in equal.iter_mut().enumerate() {
        *equal = *equal && is_same(row);
    }
}

fn is_valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BooleanArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, ListArray,
        NullBufferBuilder, StringArray, StructArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Fields, Schema};
    use proptest::prelude::*;

    use super::*;
    use crate::ingest::compare_rows::{ComparableRows, RowComparer};
    use crate::model::registry::json_text;

    const FLOATS: [f64; 5] = [0.0, -0.0, 1.5, f64::NAN, -f64::NAN];
    /// The first two say the same.
    const TEXTS: [&str; 5] = [
        r#"{"a":1,"b":{"x":1,"y":2}}"#,
        r#"{"b":{"y":2,"x":1},"a":1}"#,
        r#"{"a":1.0,"b":{"x":1,"y":2}}"#,
        r#"{"a":{"x":1,"y":2},"b":1}"#,
        "[1,2]",
    ];
    const WORDS: [&str; 3] = ["", "watch", "phone"];

    type Row = [Option<u8>; 9];

    fn words_of(rows: &[Row], column: usize) -> ArrayRef {
        let words = rows
            .iter()
            .map(|row| row[column].map(|choice| WORDS[usize::from(choice) % 3]));
        Arc::new(words.collect::<DictionaryArray<Int32Type>>())
    }

    fn batch(schema: &SchemaRef, rows: &[Row]) -> RecordBatch {
        let column = |column: usize| rows.iter().map(move |row| row[column]);
        let ids = rows.iter().map(|row| [row[0].unwrap_or(9); 16]);
        let mut there = NullBufferBuilder::new(rows.len());
        for row in rows {
            there.append(row[7].is_some());
        }
        let (Some(DataType::Struct(members)), Some(list)) =
            (data_type(schema, "device"), data_type(schema, "list"))
        else {
            unreachable!("the schema has both");
        };
        let device = StructArray::new(
            members,
            vec![words_of(rows, 6), words_of(rows, 8)],
            there.finish(),
        );
        let DataType::List(item) = list else {
            unreachable!("it is a list")
        };
        let mut lists = arrow::array::ListBuilder::new(arrow::array::Int64Builder::new()).with_field(item);
        for choice in column(8) {
            lists.append_option(choice.map(|choice| vec![Some(i64::from(choice)); usize::from(choice)]));
        }
        let lists: ListArray = lists.finish();
        let numbers = |place: usize| column(place).map(|choice| choice.map(i64::from));
        let times: TimestampMicrosecondArray = numbers(1).collect();
        let floats = column(2).map(|choice| choice.map(|choice| FLOATS[usize::from(choice)]));
        let classes = column(3).map(|choice| choice.map(|choice| choice as i8));
        let facts = column(4).map(|choice| choice.map(|choice| choice > 2));
        let texts = column(5).map(|choice| choice.map(|choice| TEXTS[usize::from(choice)]));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()),
            Arc::new(times.with_timezone("UTC")),
            Arc::new(floats.collect::<Float64Array>()),
            Arc::new(numbers(3).collect::<Int64Array>()),
            Arc::new(classes.collect::<Int8Array>()),
            Arc::new(facts.collect::<BooleanArray>()),
            Arc::new(texts.collect::<StringArray>()),
            words_of(rows, 6),
            Arc::new(device),
            Arc::new(lists),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns).unwrap()
    }

    fn data_type(schema: &SchemaRef, name: &str) -> Option<DataType> {
        Some(schema.field_with_name(name).ok()?.data_type().clone())
    }

    fn schema() -> SchemaRef {
        let words = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let members: Fields = vec![
            Field::new("name", words(), true),
            Field::new("model", words(), true),
        ]
        .into();
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::FixedSizeBinary(16), false),
            Field::new("time", time, true),
            Field::new("value", DataType::Float64, true),
            Field::new("count", DataType::Int64, true),
            Field::new("class", DataType::Int8, true),
            Field::new("is", DataType::Boolean, true),
            json_text("extras"),
            Field::new("word", words(), true),
            Field::new("device", DataType::Struct(members), true),
            Field::new("list", DataType::new_list(DataType::Int64, true), true),
        ]))
    }

    prop_compose! {
        fn some_row()(row in prop::array::uniform9(prop::option::weighted(0.8, 0_u8..5))) -> Row {
            row
        }
    }

    #[test]
    fn the_numbers_of_a_version_say_what_its_text_says_and_not_the_other_way_round() {
        let version = |text: &str| {
            let words: DictionaryArray<Int32Type> = [text].into_iter().collect();
            let column = Field::new("operatingSystemVersion", words.data_type().clone(), true);
            RecordBatch::try_new(Arc::new(Schema::new(vec![column])), vec![Arc::new(words)]).unwrap()
        };
        let (text, numbers) = (version("Version 17.5 (Build 21F90)"), version("17.5"));
        let others = version("17.6");
        let alike = |one, other| alike(&text.schema(), one, other).unwrap();
        assert_eq!(alike(&text, &numbers), [true]);
        assert_eq!(alike(&numbers, &text), [false]);
        assert_eq!(alike(&text, &others), [false]);
    }

    proptest! {
        /// Rows are alike if and only if their comparable forms are equal, whether few or all of their
        /// columns differ.
        #[test]
        fn it_agrees_with_whole_rows(
            rows in prop::collection::vec((some_row(), some_row(), 0_usize..12), 1..20),
        ) {
            let schema = schema();
            let one: Vec<Row> = rows.iter().map(|(one, ..)| *one).collect();
            let other: Vec<Row> = rows.iter().map(|(one, other, differ)| {
                let mut row = *one;
                if let Some(cell) = row.get_mut(*differ) {
                    *cell = other[*differ];
                }
                row
            }).collect();
            let (one, other) = (batch(&schema, &one), batch(&schema, &other));
            let comparer = RowComparer::new(&schema).unwrap();
            let (left, right) = (ComparableRows::new(&one), ComparableRows::new(&other));
            let expected: Vec<bool> = (0..one.num_rows())
                .map(|row| comparer.are_equal((&left, row), (&right, row)).unwrap())
                .collect();
            prop_assert_eq!(alike(&schema, &one, &other).unwrap(), expected);
        }

        /// Leaving out a column that is null in all rows makes no difference.
        #[test]
        fn absent_columns_are_null(rows in prop::collection::vec(some_row(), 1..10)) {
            let schema = schema();
            let whole = batch(&schema, &rows);
            for column in 1..schema.fields().len() {
                let mut part = whole.clone();
                part.remove_column(column);
                let nulls = whole.column(column).logical_nulls();
                let expected: Vec<bool> = (0..rows.len()).map(|row| !is_valid(nulls.as_ref(), row)).collect();
                prop_assert_eq!(alike(&schema, &whole, &part).unwrap(), expected.clone());
                prop_assert_eq!(alike(&schema, &part, &whole).unwrap(), expected);
            }
        }
    }
}
