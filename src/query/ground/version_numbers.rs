//! The numbers of versions, which are stored as text and shown as lists of numbers.
//!
//! Answers and conditions read them here, so that a condition finds what is shown. Knows arrays and
//! expressions; knows nothing of where versions are stored.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, Int64Builder, ListArray, ListBuilder, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Int32Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Expr;

use crate::model::version::numbers_of;

use super::computed::{Computed, computed};

/// The numbers of the versions in a column of texts.
pub(in crate::query) fn version_numbers(texts: Expr) -> Expr {
    let column = Arc::new(Field::new(VersionNumbers::NAME, list_of_numbers(), true));
    computed(VersionNumbers { column }, [texts])
}

/// `version_numbers(text)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct VersionNumbers {
    column: FieldRef,
}

impl Computed<1> for VersionNumbers {
    const NAME: &'static str = "version_numbers";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [texts]: [ArrayRef; 1]) -> Result<ArrayRef> {
        number_lists(&texts)
    }
}

/// The type of a column of lists of numbers.
pub(in crate::query) fn list_of_numbers() -> ArrowType {
    ArrowType::List(number_of_list())
}

fn number_of_list() -> FieldRef {
    Arc::new(Field::new("item", ArrowType::Int64, true))
}

/// The numbers of each version. Repeated texts are parsed once.
pub(in crate::query) fn number_lists(texts: &ArrayRef) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Int64Builder::new());
    let read = |texts: &StringArray| -> Vec<Option<Vec<i64>>> {
        texts.iter().map(|text| text.and_then(numbers_of)).collect()
    };
    let mut add = |numbers: Option<&Option<Vec<i64>>>| match numbers {
        Some(Some(numbers)) => {
            lists.values().append_slice(numbers);
            lists.append(true);
        }
        _ => lists.append(false),
    };
    if let Some(dictionary) = texts.as_dictionary_opt::<Int32Type>() {
        let versions = cast(dictionary.values(), &ArrowType::Utf8)?;
        let versions = read(versions.as_string());
        if let Some(only) = only_key(dictionary.keys())
            && let Some(Some(numbers)) = versions.get(only)
        {
            return repeated(numbers, dictionary.len());
        }
        for key in dictionary.keys() {
            add(key.and_then(|key| versions.get(key as usize)));
        }
    } else {
        let texts = cast(texts, &ArrowType::Utf8)?;
        for numbers in &read(texts.as_string()) {
            add(Some(numbers));
        }
    }
    Ok(Arc::new(lists.finish()))
}

/// The key that all rows share, as rows of one device mostly do.
fn only_key(keys: &Int32Array) -> Option<usize> {
    let first = keys.values().first().filter(|_| keys.null_count() == 0)?;
    let is_only = keys.values().iter().all(|key| key == first);
    usize::try_from(*first).ok().filter(|_| is_only)
}

/// The same numbers in every row.
fn repeated(numbers: &[i64], rows: usize) -> Result<ArrayRef> {
    let ends = numbers.len().checked_mul(rows);
    if ends.is_none_or(|ends| i32::try_from(ends).is_err()) {
        return internal_err!("the versions are too long");
    }
    let offsets = OffsetBuffer::from_repeated_length(numbers.len(), rows);
    let values = Int64Array::from(numbers.repeat(rows));
    Ok(Arc::new(ListArray::try_new(
        number_of_list(),
        offsets,
        Arc::new(values),
        None,
    )?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::DictionaryArray;
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn versions_that_repeat_are_the_lists_that_they_are_one_by_one() {
        let of = |texts: &[Option<&str>]| {
            let each: StringArray = texts.iter().copied().collect();
            let repeated: DictionaryArray<Int32Type> = texts.iter().copied().collect();
            let found = number_lists(&(Arc::new(repeated) as ArrayRef)).unwrap();
            assert_eq!(
                &found,
                &number_lists(&(Arc::new(each) as ArrayRef)).unwrap(),
                "{texts:?}"
            );
            found
        };
        let same = of(&[Some("10.2.1"); 3]);
        let same = same.as_list::<i32>();
        assert_eq!((same.len(), same.null_count()), (3, 0));
        assert_eq!(same.value(2).as_primitive::<Int64Type>().values(), &[10, 2, 1]);
        of(&[Some("10.2.1"), None, Some("10.2.1")]);
        of(&[Some("10.2.1"), Some("9")]);
        of(&[Some("no version"); 2]);
        of(&[None, None]);
        of(&[]);
    }
}
