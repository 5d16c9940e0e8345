//! Renames ids that somebody else already has where an archive is imported.
//!
//! The new id is derived from the old one and the person, so the same archive yields the same ids however
//! often it is read. Ids are globally unique, so whatever looks like one of them in a text is one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, DictionaryArray, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;
use uuid::Uuid;

use crate::model::ids::PersonId;

/// The number of characters of an id.
const LENGTH: usize = 36;
/// The positions of its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Maps old ids to new ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Renaming(HashMap<Uuid, Uuid>);

impl Renaming {
    /// The id that `person`'s document gets if its own is taken.
    #[must_use]
    pub(super) fn other(person: PersonId, id: Uuid) -> Uuid {
        Uuid::new_v5(&person.0, id.as_bytes())
    }

    pub(super) fn rename(&mut self, from: Uuid, to: Uuid) {
        if from != to {
            self.0.insert(from, to);
        }
    }

    #[must_use]
    pub(super) fn of(&self, id: Uuid) -> Uuid {
        self.0.get(&id).copied().unwrap_or(id)
    }

    /// A text with every id in it renamed.
    #[must_use]
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || text.len() < LENGTH {
            return Cow::Borrowed(text);
        }
        let bytes = text.as_bytes();
        let mut renamed = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(window) = bytes.get(at..at + LENGTH) {
            let other = DASHES
                .iter()
                .all(|dash| window.get(*dash) == Some(&b'-'))
                .then(|| Uuid::try_parse_ascii(window).ok())
                .flatten()
                .and_then(|id| self.0.get(&id));
            if let (Some(other), Some(before)) = (other, text.get(copied..at)) {
                renamed.push_str(before);
                renamed.push_str(&other.to_string());
                at += LENGTH;
                copied = at;
            } else {
                at += 1;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        renamed.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(renamed)
    }

    /// Rows with every id in their texts renamed.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        if self.0.is_empty() {
            return Ok(batch.clone());
        }
        let columns = batch.columns().iter().map(|column| self.column(column));
        RecordBatch::try_new(batch.schema(), columns.collect::<Result<_, _>>()?)
    }

    fn column(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match column.data_type() {
            DataType::Utf8 => Ok(Arc::new(self.texts(column.as_string::<i32>()))),
            DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => {
                let column = column.as_dictionary::<Int32Type>();
                let values = self.texts(column.values().as_string::<i32>());
                Ok(Arc::new(DictionaryArray::try_new(
                    column.keys().clone(),
                    Arc::new(values),
                )?))
            }
            DataType::List(item) => {
                let column = column.as_list::<i32>();
                let (offsets, nulls) = (column.offsets().clone(), column.nulls().cloned());
                let values = self.column(column.values())?;
                Ok(Arc::new(ListArray::try_new(
                    Arc::clone(item),
                    offsets,
                    values,
                    nulls,
                )?))
            }
            DataType::Struct(members) => {
                let column = column.as_struct();
                let columns = column.columns().iter().map(|column| self.column(column));
                Ok(Arc::new(StructArray::try_new(
                    members.clone(),
                    columns.collect::<Result<_, _>>()?,
                    column.nulls().cloned(),
                )?))
            }
            _ => Ok(Arc::clone(column)),
        }
    }

    fn texts(&self, texts: &StringArray) -> StringArray {
        texts
            .iter()
            .map(|text| text.map(|text| self.text(text)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_renamed_wherever_they_stand_and_nothing_else_is() {
        let (from, to) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut renaming = Renaming::default();
        renaming.rename(from, to);
        let text = format!("é{from}-{from}\"com.almanac.annotation.{from}");
        assert_eq!(
            renaming.text(&text),
            format!("é{to}-{to}\"com.almanac.annotation.{to}")
        );
        for text in [
            "",
            "no id at all, however long this text may be, é",
            &to.to_string(),
        ] {
            assert!(matches!(renaming.text(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!((renaming.of(from), renaming.of(to)), (to, to));
    }
}
