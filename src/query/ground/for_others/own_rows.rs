//! Makes columns that hold nothing but what is seen.
//!
//! A value that is only marked as null is still there: a member is read without a look at the object that it
//! is in, and Arrow answers carry buffers as they are. And what is read may bring more than its rows: a
//! dictionary has the words of a whole row group, texts and lists have those of a whole page around them, and
//! the last byte of a bitmap has bits of the rows that follow. Knows arrays; knows nothing of windows.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Int32Array, ListArray, MutableArrayData,
    StructArray, make_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::filter;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;

/// The column without the values of the rows that are hidden, and without those of their members.
pub(super) fn without(column: &ArrayRef, hidden: impl IntoIterator<Item = bool>) -> Result<ArrayRef> {
    let held = column.to_data();
    let mut left = MutableArrayData::new(vec![&held], true, held.len());
    for (row, is_hidden) in hidden.into_iter().enumerate() {
        if is_hidden {
            left.try_extend_nulls(1)?;
        } else {
            left.try_extend(0, row, row + 1)?;
        }
    }
    Ok(make_array(left.freeze()))
}

/// The column without anything of other rows. It is the same where it has nothing of them.
pub(super) fn alone(column: &ArrayRef) -> Result<ArrayRef> {
    if !goes_on(column) {
        return with_own_words(column);
    }
    let held = column.to_data();
    let mut copied = MutableArrayData::new(vec![&held], false, held.len());
    copied.try_extend(0, 0, held.len())?;
    with_own_words(&make_array(copied.freeze()))
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

/// The column with those words in its dictionaries that its rows have.
fn with_own_words(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Dictionary(..) => {
            let words = column.as_dictionary_opt::<Int32Type>();
            match words.map(own_words).transpose()?.flatten() {
                Some(own) => Arc::new(own),
                None => Arc::clone(column),
            }
        }
        DataType::Struct(fields) => {
            let structure = column.as_struct();
            let members = structure.columns().iter().map(with_own_words);
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
                with_own_words(lists.values())?,
                lists.nulls().cloned(),
            )?)
        }
        _ => Arc::clone(column),
    })
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

    #[test]
    fn what_has_nothing_of_others_stays_as_it_is() {
        let column = words(&[Some("one"), None, Some("two"), Some("one")]);
        assert!(Arc::ptr_eq(&alone(&column).unwrap(), &column));
    }
}
