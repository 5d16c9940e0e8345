//! Checks whether rows of an archive could have been sent: no reader of rows is prepared for what ingestion
//! refuses.
//!
//! Knows stored rows; knows nothing of their place in an archive, and applies no limits that an operator
//! sets.

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, TimeUnit, TimestampMicrosecondType};
use serde_json::Value;

use crate::model::columns::{END, EXTRAS};
use crate::model::nul::{has_nul, path_to_nul};
use crate::model::registry::is_json_text;
use crate::model::time::Instant;
use crate::store::arrange::KeyColumns;

/// The place and reason of a value that cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnfitRow {
    /// Its number among the rows.
    pub row: usize,
    /// The column, with dots leading into objects.
    pub column: String,
    pub reason: String,
}

/// Refuses rows that could not have been sent.
pub(super) fn judge(rows: &RecordBatch) -> Result<(), UnfitRow> {
    let schema = rows.schema();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        unfit_value(field, column).map_or(Ok(()), Err)?;
    }
    let keys = KeyColumns::of(rows).map_err(|error| UnfitRow {
        row: 0,
        column: END.to_owned(),
        reason: error.to_string(),
    })?;
    let spans = keys.starts.values().iter().zip(keys.ends.values().iter());
    let reversed = spans.clone().position(|(start, end)| end < start);
    reversed.map_or(Ok(()), |row| {
        let [start, end] = [&keys.starts, &keys.ends].map(|times| Instant::from_micros(times.value(row)));
        Err(UnfitRow {
            row,
            column: END.to_owned(),
            reason: format!("the end, {end}, lies before the start, {start}"),
        })
    })
}

/// The first value of a column that could not have been sent.
fn unfit_value(field: &Field, column: &ArrayRef) -> Option<UnfitRow> {
    let here = |(row, reason): (usize, String)| UnfitRow {
        row,
        column: field.name().clone(),
        reason,
    };
    match column.data_type() {
        DataType::Float64 => {
            let numbers = column.as_primitive_opt::<Float64Type>()?;
            let mut numbered = numbers.values().iter().enumerate();
            let unfit = numbered.find(|(row, number)| !number.is_finite() && numbers.is_valid(*row));
            unfit.map(|(row, number)| here((row, format!("{number} is not a number that can be sent"))))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let times = column.as_primitive_opt::<TimestampMicrosecondType>()?;
            let range = Instant::MIN.micros()..=Instant::MAX.micros();
            let mut numbered = times.values().iter().enumerate();
            let unfit = numbered.find(|(row, time)| !range.contains(*time) && times.is_valid(*row));
            unfit.map(|(row, time)| {
                let reason = format!("{time} microseconds from 1970 lie outside the years 1 to 9999");
                here((row, reason))
            })
        }
        DataType::Utf8 if is_json_text(field) => {
            unfit_json(column.as_string_opt::<i32>()?, field.name() == EXTRAS).map(here)
        }
        DataType::Utf8 => text_with_nul(column.as_string_opt::<i32>()?).map(here),
        DataType::Dictionary(..) => {
            let texts = column.as_dictionary_opt::<Int32Type>()?;
            let (number, reason) = text_with_nul(texts.values().as_string_opt::<i32>()?)?;
            let mut keys = texts.keys().iter();
            let row = keys.position(|key| key.and_then(|key| usize::try_from(key).ok()) == Some(number))?;
            Some(here((row, reason)))
        }
        DataType::List(item) => {
            let lists = column.as_list_opt::<i32>()?;
            let offsets = lists.offsets();
            let bound = |offset: Option<&i32>| offset.and_then(|offset| usize::try_from(*offset).ok());
            let (first, last) = (bound(offsets.first())?, bound(offsets.last())?);
            let found = unfit_value(item, &lists.values().slice(first, last.checked_sub(first)?))?;
            let place = i32::try_from(first + found.row).ok()?;
            let row = offsets
                .partition_point(|offset| *offset <= place)
                .saturating_sub(1);
            let column = found.column.replacen(item.name().as_str(), field.name(), 1);
            Some(UnfitRow { row, column, ..found })
        }
        DataType::Struct(members) => {
            let object = column.as_struct_opt()?;
            let found = members
                .iter()
                .zip(object.columns())
                .find_map(|(member, column)| unfit_value(member, column))?;
            let column = format!("{}.{}", field.name(), found.column);
            Some(UnfitRow { column, ..found })
        }
        _ => None,
    }
}

fn text_with_nul(texts: &StringArray) -> Option<(usize, String)> {
    // All texts are searched at once, since almost none contains it.
    if !texts.value_data().contains(&0) {
        return None;
    }
    let mut numbered = texts.iter().enumerate();
    let found = numbered.find(|(_, text)| text.is_some_and(has_nul));
    found.map(|(row, _)| (row, "U+0000 cannot be stored".to_owned()))
}

fn unfit_json(texts: &StringArray, must_be_object: bool) -> Option<(usize, String)> {
    let mut before = None;
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else { continue };
        // A text that repeats the previous row's was checked already.
        if before == Some(text) {
            continue;
        }
        if let Err(reason) = json(text, must_be_object) {
            return Some((row, reason));
        }
        before = Some(text);
    }
    None
}

fn json(text: &str, must_be_object: bool) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if must_be_object && !value.is_object() {
        return Err("it is not a JSON object".to_owned());
    }
    if path_to_nul(text, &value).is_some() {
        return Err("U+0000 cannot be stored".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, ListArray, StructArray,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Fields, Schema};

    use super::*;
    use crate::model::registry::json_text;

    const TIMES: [(i64, i64); 3] = [(0, 0), (10, 20), (-5, 5)];

    /// Three rows at these times, with one more column.
    fn rows(times: [(i64, i64); 3], more: Option<(Field, ArrayRef)>) -> RecordBatch {
        let moments = |values: [i64; 3]| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(values.to_vec()).with_timezone("UTC"))
        };
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let mut fields = vec![
            Field::new("id", DataType::FixedSizeBinary(16), false),
            Field::new("start_time", timestamp.clone(), false),
            Field::new("end_time", timestamp, false),
        ];
        let ids = FixedSizeBinaryArray::try_from_iter([[1_u8; 16], [2; 16], [3; 16]].into_iter()).unwrap();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(ids),
            moments(times.map(|(start, _)| start)),
            moments(times.map(|(_, end)| end)),
        ];
        if let Some((field, column)) = more {
            fields.push(field);
            columns.push(column);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    /// The row and the column found unfit in a column beside sound times.
    fn unfit(field: Field, column: ArrayRef) -> Option<(usize, String)> {
        let found = judge(&rows(TIMES, Some((field, column)))).err();
        found.map(|found| (found.row, found.column))
    }

    fn numbers(values: [f64; 3]) -> (Field, ArrayRef) {
        let column = Float64Array::from(values.to_vec());
        (Field::new("value", DataType::Float64, true), Arc::new(column))
    }

    #[test]
    fn times_lie_in_the_years_1_to_9999_and_in_order() {
        assert_eq!(judge(&rows(TIMES, None)), Ok(()));
        let whole = (Instant::MIN.micros(), Instant::MAX.micros());
        assert_eq!(judge(&rows([whole, whole, whole], None)), Ok(()));
        for (time, column) in [
            ((i64::MIN, 0), "start_time"),
            ((0, i64::MAX), "end_time"),
            ((Instant::MIN.micros() - 1, 0), "start_time"),
            ((0, Instant::MAX.micros() + 1), "end_time"),
            ((1, 0), "end_time"),
        ] {
            let found = judge(&rows([(0, 0), (0, 0), time], None)).unwrap_err();
            assert_eq!((found.row, found.column.as_str()), (2, column), "{found:?}");
        }
    }

    #[test]
    fn numbers_are_finite() {
        let (field, column) = numbers([1.0, f64::MAX, -0.0]);
        assert_eq!(unfit(field, column), None);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (field, column) = numbers([1.0, value, 2.0]);
            assert_eq!(unfit(field, column), Some((1, "value".to_owned())), "{value}");
        }
    }

    #[test]
    fn what_is_nowhere_is_no_value() {
        let values = arrow::buffer::ScalarBuffer::from(vec![1.0, f64::NAN, 2.0]);
        let nulls = arrow::buffer::NullBuffer::from(vec![true, false, true]);
        let column = Float64Array::new(values, Some(nulls));
        let field = Field::new("value", DataType::Float64, true);
        assert_eq!(unfit(field, Arc::new(column)), None);
        let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
        let field = Field::new("flag", DataType::Boolean, true);
        assert_eq!(unfit(field, Arc::new(flags)), None);
    }

    #[test]
    fn extras_are_an_object_and_other_json_is_json() {
        let texts = |second: &str| -> ArrayRef {
            Arc::new(StringArray::from(vec![Some("{\"a\":1}"), Some(second), None]))
        };
        for text in ["[1]", "1", "null", "", "{", "{\"a\":\"x\\u0000\"}"] {
            let found = unfit(json_text("extras"), texts(text));
            assert_eq!(found, Some((1, "extras".to_owned())), "{text}");
        }
        for text in ["[1]", "{}", "\"\\\\u0000\""] {
            assert_eq!(unfit(json_text("anything"), texts(text)), None, "{text}");
        }
        assert_eq!(unfit(json_text("extras"), texts("{}")), None);
        assert_eq!(
            unfit(json_text("anything"), texts("{]")),
            Some((1, "anything".to_owned()))
        );
    }

    #[test]
    fn texts_are_without_nul_wherever_they_stand() {
        let texts = || StringArray::from(vec![Some("a"), None, Some("b\0")]);
        let field = Field::new("note", DataType::Utf8, true);
        assert_eq!(unfit(field, Arc::new(texts())), Some((2, "note".to_owned())));
        let words: DictionaryArray<Int32Type> = vec!["a", "b\0", "a"].into_iter().collect();
        let field = Field::new("word", words.data_type().clone(), true);
        assert_eq!(unfit(field, Arc::new(words)), Some((1, "word".to_owned())));
    }

    #[test]
    fn the_row_of_what_lies_in_lists_and_objects_is_found() {
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let items = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, f64::NAN]));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([2, 0, 2]);
        let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, items, None));
        let field = Field::new("values", lists.data_type().clone(), true);
        assert_eq!(
            unfit(field.clone(), Arc::clone(&lists)),
            Some((2, "values".to_owned()))
        );
        let members = Fields::from(vec![field]);
        let object = StructArray::new(members, vec![lists], None);
        let field = Field::new("beats", object.data_type().clone(), true);
        assert_eq!(
            unfit(field, Arc::new(object)),
            Some((2, "beats.values".to_owned()))
        );
    }
}
