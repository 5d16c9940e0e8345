//! Makes columns that hold nothing but what is seen.
//!
//! A value that is only marked as null is still there: a member is read without a look at the object that it
//! is in, and Arrow answers carry buffers as they are. And what is read may bring more than its rows: a
//! dictionary has the words of a whole row group, texts and lists have those of a whole page around them, the
//! last byte of a bitmap has bits of the rows that follow, and where a row has no number stands the number of
//! one that follows, since a page holds only those that there are. Knows arrays; knows nothing of windows.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, DictionaryArray, Int32Array, ListArray,
    MutableArrayData, StructArray, make_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;

/// The column without the values of the rows that are hidden, and without those of their members.
pub(super) fn without(column: &ArrayRef, hidden: impl IntoIterator<Item = bool>) -> Result<ArrayRef> {
    let kept: BooleanBuffer = hidden.into_iter().map(|is_hidden| !is_hidden).collect();
    of_rows(column, &kept)
}

/// The column with nulls in all rows but those that are kept.
fn of_rows(column: &ArrayRef, kept: &BooleanBuffer) -> Result<ArrayRef> {
    let held = column.to_data();
    let mut left = MutableArrayData::new(vec![&held], true, held.len());
    let mut next = 0;
    for (start, end) in kept.set_slices() {
        left.try_extend_nulls(start - next)?;
        left.try_extend(0, start, end)?;
        next = end;
    }
    left.try_extend_nulls(held.len() - next)?;
    Ok(make_array(left.freeze()))
}

/// The column without anything of other rows. It is the same where it has nothing of them.
pub(super) fn alone(column: &ArrayRef) -> Result<ArrayRef> {
    if !goes_on(column) {
        return with_own_values(column);
    }
    let held = column.to_data();
    let mut copied = MutableArrayData::new(vec![&held], false, held.len());
    copied.try_extend(0, 0, held.len())?;
    with_own_values(&make_array(copied.freeze()))
}

/// Whether the column has bits of other rows in the last byte of a bitmap, or texts or items of other rows.
fn goes_on(column: &ArrayRef) -> bool {
    let marked = column.nulls().filter(|nulls| nulls.null_count() > 0);
    if marked.is_some_and(|nulls| bits_go_on(nulls.inner())) {
        return true;
    }
    if let Some(truths) = column.as_boolean_opt() {
        bits_go_on(truths.values())
    } else if let Some(texts) = column.as_string_opt::<i32>() {
        has_others(texts.offsets(), texts.values().len())
    } else if let Some(lists) = column.as_list_opt::<i32>() {
        has_others(lists.offsets(), lists.values().len()) || goes_on(lists.values())
    } else {
        let structure = column.as_struct_opt();
        structure.is_some_and(|structure| structure.columns().iter().any(goes_on))
    }
}

/// Whether something is held before the first or after the last of these places.
fn has_others(places: &[i32], held: usize) -> bool {
    let ends = places.first().zip(places.last());
    ends.is_none_or(|(first, last)| *first != 0 || *last as usize != held)
}

fn bits_go_on(bits: &BooleanBuffer) -> bool {
    let end = bits.offset() + bits.len();
    let held = end.next_multiple_of(8).min(bits.inner().len() * 8);
    held > end && BooleanBuffer::new(bits.inner().clone(), end, held - end).count_set_bits() > 0
}

/// The column with those words in its dictionaries that its rows have, and with nothing where it is null.
fn with_own_values(column: &ArrayRef) -> Result<ArrayRef> {
    let own: ArrayRef = match column.data_type() {
        DataType::Dictionary(..) => {
            let words = column.as_dictionary_opt::<Int32Type>();
            match words.map(own_words).transpose()?.flatten() {
                Some(own) => Arc::new(own),
                None => Arc::clone(column),
            }
        }
        DataType::Struct(fields) => {
            let structure = column.as_struct();
            let members = structure.columns().iter().map(with_own_values);
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                members.collect::<Result<_>>()?,
                structure.nulls().cloned(),
                structure.len(),
            )?)
        }
        DataType::List(item) => {
            let lists = column.as_list::<i32>();
            Arc::new(ListArray::try_new(
                Arc::clone(item),
                lists.offsets().clone(),
                with_own_values(lists.values())?,
                lists.nulls().cloned(),
            )?)
        }
        _ => Arc::clone(column),
    };
    match own.nulls() {
        Some(nulls) if holds_where(&!nulls.inner(), own.as_ref()) => of_rows(&own, nulls.inner()),
        _ => Ok(own),
    }
}

/// Whether the column holds anything in these rows, in which it is null.
fn holds_where(missing: &BooleanBuffer, column: &dyn Array) -> bool {
    if let Some(truths) = column.as_boolean_opt() {
        are_any_of(missing, truths.values())
    } else if let Some(texts) = column.as_string_opt::<i32>() {
        is_any_long(missing, texts.value_offsets())
    } else if let Some(lists) = column.as_list_opt::<i32>() {
        is_any_long(missing, lists.value_offsets())
    } else if let Some(structure) = column.as_struct_opt() {
        let mut members = structure.columns().iter();
        members.any(|member| match member.nulls() {
            Some(nulls) => are_any_of(missing, nulls.inner()),
            None => missing.count_set_bits() > 0,
        })
    } else if let Some(words) = column.as_dictionary_opt::<Int32Type>() {
        holds_where(missing, words.keys())
    } else {
        holds_bytes_where(missing, &column.to_data())
    }
}

fn are_any_of(missing: &BooleanBuffer, bits: &BooleanBuffer) -> bool {
    (missing & bits).count_set_bits() > 0
}

fn is_any_long(missing: &BooleanBuffer, places: &[i32]) -> bool {
    // Most columns that are null somewhere are null everywhere.
    places.first() != places.last() && missing.set_indices().any(|row| places[row] != places[row + 1])
}

/// The same for values of one width. Of what has none it is not known.
fn holds_bytes_where(missing: &BooleanBuffer, values: &ArrayData) -> bool {
    let width = match values.data_type() {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        data_type => data_type.primitive_width(),
    };
    let (Some(width), [bytes]) = (width, values.buffers()) else {
        return true;
    };
    let mut slots = missing.set_indices().map(|row| (values.offset() + row) * width);
    !are_zero(bytes) && slots.any(|start| !are_zero(&bytes[start..start + width]))
}

/// Looked at in stretches, which the processor takes many bytes at a time.
fn are_zero(bytes: &[u8]) -> bool {
    let mut stretches = bytes.chunks(1 << 10);
    stretches.all(|stretch| stretch.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The same words from a dictionary that has no others; `None` if it has none.
fn own_words(words: &DictionaryArray<Int32Type>) -> Result<Option<DictionaryArray<Int32Type>>> {
    let used = words.occupancy();
    if used.count_set_bits() == used.len() {
        return Ok(None);
    }
    let mut next = 0;
    let places = used.iter().map(|is_used| {
        let place = next;
        next += i32::from(is_used);
        place
    });
    let places: Vec<i32> = places.collect();
    let place = |key: Option<i32>| places.get(usize::try_from(key?).ok()?).copied();
    let keys: Int32Array = words.keys().iter().map(place).collect();
    let values = filter(words.values(), &BooleanArray::new(used, None))?;
    Ok(Some(DictionaryArray::try_new(keys, values)?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, ListBuilder, StringArray, StringBuilder};
    use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
    use datafusion::arrow::compute::cast;
    use datafusion::arrow::datatypes::{Field, Fields, Int64Type};

    use super::*;
    use crate::model::registry::dictionary_text;

    fn words(texts: &[Option<&str>]) -> ArrayRef {
        let texts: StringArray = texts.iter().copied().collect();
        cast(&texts, &dictionary_text()).unwrap()
    }

    /// Each word in the dictionaries of a column.
    fn told(column: &ArrayRef) -> Vec<String> {
        if let Some(words) = column.as_dictionary_opt::<Int32Type>() {
            let known = words.values().as_string::<i32>().iter().flatten();
            return known.map(str::to_owned).collect();
        }
        let members = column
            .as_struct_opt()
            .map(|structure| structure.columns().to_vec());
        members.unwrap_or_default().iter().flat_map(told).collect()
    }

    fn objects() -> ArrayRef {
        let members: Vec<ArrayRef> = vec![
            words(&[Some("first"), Some("hidden"), Some("last")]),
            Arc::new(Int64Array::from(vec![1, 2, 3])),
        ];
        let fields = Fields::from(vec![
            Field::new("word", dictionary_text(), true),
            Field::new("number", DataType::Int64, true),
        ]);
        Arc::new(StructArray::new(fields, members, None))
    }

    #[test]
    fn rule_9_2c_what_is_hidden_is_not_in_the_column() {
        let left = alone(&without(&objects(), [false, true, false]).unwrap()).unwrap();
        assert!(left.is_null(1) && left.null_count() == 1);
        let members = left.as_struct().columns();
        assert!(members.iter().all(|member| member.is_null(1)));
        assert_eq!(told(&left), ["first", "last"]);
        assert_eq!(
            members[1].as_primitive::<Int64Type>().values().to_vec(),
            [1, 0, 3]
        );
        let texts = cast(&members[0], &DataType::Utf8).unwrap();
        let texts: Vec<Option<&str>> = texts.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("first"), None, Some("last")]);
    }

    #[test]
    fn rule_9_2c_a_part_of_a_column_has_nothing_of_the_rest() {
        assert_eq!(told(&alone(&objects().slice(2, 1)).unwrap()), ["last"]);
        assert_eq!(
            told(&alone(&objects().slice(2, 0)).unwrap()),
            Vec::<String>::new()
        );

        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![
            Some(false),
            None,
            Some(true),
            Some(true),
        ]));
        let part = alone(&truths.slice(0, 2)).unwrap();
        assert_eq!(part.as_boolean().values().inner().as_slice()[0], 0);
        assert_eq!(part.nulls().unwrap().inner().inner().as_slice()[0], 1);

        let mut lists = ListBuilder::new(StringBuilder::new());
        for text in ["first", "second"] {
            lists.values().append_value(text);
            lists.append(true);
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        let part = alone(&lists.slice(1, 1)).unwrap();
        assert_eq!(part.as_list::<i32>().values().len(), 1);
        assert_eq!(
            part.as_list::<i32>().value(0).as_string::<i32>().value(0),
            "second"
        );
    }

    /// A page holds no numbers of rows that have none; whoever reads it leaves there what comes next.
    #[test]
    fn rule_9_2c_nothing_of_others_stands_where_a_row_has_no_value() {
        let rows = || NullBuffer::from(vec![true, false, true]);
        let numbers: ArrayRef = Arc::new(Int64Array::new(vec![1, 880_000, 3].into(), Some(rows())));
        let keys = Int32Array::new(vec![0, 1, 1].into(), Some(rows()));
        let texts = StringArray::from(vec!["first", "second"]);
        let words: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(texts)));
        let truths: ArrayRef = Arc::new(BooleanArray::new(vec![false, true, true].into(), Some(rows())));
        let texts: ArrayRef = Arc::new(StringArray::new(
            OffsetBuffer::from_lengths([5, 6, 4]),
            Buffer::from("firsthiddenlast".as_bytes()),
            Some(rows()),
        ));
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        let items = Arc::new(Int64Array::from(vec![1, 880_000, 3]));
        let places = OffsetBuffer::from_lengths([1, 1, 1]);
        let lists: ArrayRef = Arc::new(ListArray::new(item, places, items, Some(rows())));
        let fields = Fields::from(vec![Field::new("number", DataType::Int64, true)]);
        let members = vec![Arc::clone(&numbers)];
        let objects: ArrayRef = Arc::new(StructArray::new(fields.clone(), members, None));
        let number: ArrayRef = Arc::new(Int64Array::from(vec![1, 880_000, 3]));
        let hidden: ArrayRef = Arc::new(StructArray::new(fields, vec![number], Some(rows())));
        for column in [numbers, words, truths, texts, lists, objects, hidden] {
            let left = alone(&column).unwrap();
            assert_eq!(&left, &column);
            let missing = BooleanBuffer::from(vec![false, true, false]);
            let mut parts = vec![Arc::clone(&left)];
            parts.extend(
                left.as_struct_opt()
                    .into_iter()
                    .flat_map(|object| object.columns().to_vec()),
            );
            for part in parts.iter().filter(|part| part.null_count() > 0) {
                assert!(!holds_where(&missing, part), "{column:?}");
            }
        }
    }

    #[test]
    fn what_has_nothing_of_others_stays_as_it_is() {
        let column = words(&[Some("one"), None, Some("two"), Some("one")]);
        assert!(Arc::ptr_eq(&alone(&column).unwrap(), &column));
    }
}
