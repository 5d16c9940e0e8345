//! Builds one dictionary per column for a whole answer from batches that each bring their own.
//!
//! An IPC file may have one dictionary per column, and not every reader accepts additions to it (Polars
//! refuses them). A file's dictionaries may stand anywhere in it, since readers find them by the footer, so
//! they are collected while the rows are sent and written at the end. In an IPC stream a dictionary must come
//! before its first use and may be replaced; there it is sent again when it has grown. Keys once assigned
//! stay valid. The memory needed is that of the distinct values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;

/// The values seen so far, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    keys: HashMap<Arc<str>, i32>,
    values: Vec<Arc<str>>,
    /// The dictionary of the previous batch, and the key here of each of its values.
    source: Option<ArrayRef>,
    translation: Vec<i32>,
    /// Whether each key of the previous batch is the same here.
    identical: bool,
}

impl Lexicon {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The keys of a dictionary column's rows in this lexicon.
    pub(super) fn keys(&mut self, array: &ArrayRef) -> Result<Int32Array, ArrowError> {
        let dictionary = array.as_any_dictionary();
        self.learn(dictionary.values())?;
        let nulls = dictionary.logical_nulls();
        let keys = cast(dictionary.keys(), &DataType::Int32)?;
        let keys = keys.as_primitive::<Int32Type>().values();
        if self.identical && (nulls.is_none() || self.has_all(keys)) {
            return Int32Array::try_new(keys.clone(), nulls);
        }
        // The key of a null can be anything, but not every reader takes one that the dictionary does not
        // have (Polars refuses it).
        let translate = |key: &i32| self.translation.get(*key as usize).copied().unwrap_or(0);
        Int32Array::try_new(keys.iter().map(translate).collect(), nulls)
    }

    /// Whether the dictionary of the previous batch has each of these keys, those of nulls too. The first one
    /// always counts as there: where there are no words at all, nobody looks for it. Looks at all of them,
    /// which is quicker than to stop at the first.
    fn has_all(&self, keys: &[i32]) -> bool {
        let greatest = keys.iter().map(|key| key.cast_unsigned()).max();
        greatest.is_none_or(|greatest| (greatest as usize) < self.translation.len().max(1))
    }

    fn learn(&mut self, values: &ArrayRef) -> Result<(), ArrowError> {
        if self
            .source
            .as_ref()
            .is_some_and(|source| Arc::ptr_eq(source, values))
        {
            return Ok(());
        }
        self.translation.clear();
        for value in values.as_string::<i32>() {
            let key = match value {
                Some(value) => self.key(value)?,
                None => 0,
            };
            self.translation.push(key);
        }
        self.identical = values.null_count() == 0
            && self
                .translation
                .iter()
                .enumerate()
                .all(|(index, key)| *key as usize == index);
        self.source = Some(values.clone());
        Ok(())
    }

    fn key(&mut self, value: &str) -> Result<i32, ArrowError> {
        if let Some(key) = self.keys.get(value) {
            return Ok(*key);
        }
        let key = i32::try_from(self.values.len()).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
        let value: Arc<str> = value.into();
        self.keys.insert(value.clone(), key);
        self.values.push(value);
        Ok(key)
    }

    /// A column without rows whose dictionary has all values so far.
    pub(super) fn empty(&self) -> Result<DictionaryArray<Int32Type>, ArrowError> {
        let values = StringArray::from_iter_values(self.values.iter());
        DictionaryArray::try_new(Int32Array::new_null(0), Arc::new(values))
    }
}

#[cfg(test)]
mod tests {
    use arrow::buffer::NullBuffer;

    use super::*;

    #[test]
    fn the_dictionary_has_the_keys_of_nulls_too() {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let valid = NullBuffer::from(vec![true, true, false, false]);
        for of_nulls in [[2, 0], [-1, 2], [i32::MAX, i32::MIN], [1, 0]] {
            let keys = [0, 1].into_iter().chain(of_nulls).collect::<Vec<i32>>();
            let keys = Int32Array::new(keys.into(), Some(valid.clone()));
            let rows: ArrayRef = Arc::new(DictionaryArray::try_new(keys, values.clone()).unwrap());
            let mut lexicon = Lexicon::default();
            // Each batch finds the same dictionary again.
            for _ in 0..2 {
                let keys = lexicon.keys(&rows).unwrap();
                assert_eq!(keys.nulls(), Some(&valid));
                assert_eq!(keys.values()[..2], [0, 1]);
                assert!(keys.values().iter().all(|key| (0..2).contains(key)), "{keys:?}");
            }
        }
    }

    #[test]
    fn nulls_without_any_words_are_handed_on_as_they_came() {
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let keys = Int32Array::new(vec![0; 3].into(), Some(NullBuffer::new_null(3)));
        let came = keys.values().as_ptr();
        let rows: ArrayRef = Arc::new(DictionaryArray::try_new(keys, none).unwrap());
        let handed_on = Lexicon::default().keys(&rows).unwrap();
        assert_eq!(handed_on.values().as_ptr(), came);
        assert_eq!(handed_on.null_count(), 3);
    }
}
