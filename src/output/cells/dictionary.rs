//! Writes a dictionary column: the text of each value is made once and copied for each row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};

use super::super::encoder::EncodeError;
use super::uniform::all_equal;
use super::{Cells, Style};

/// A dictionary with more values than this is prepared only if the batch has more rows than the dictionary
/// has values.
const SMALL_DICTIONARY: usize = 4_096;

#[derive(Debug)]
pub(super) struct Dictionary {
    style: Style,
    values: Cells,
    /// The values that `values` and `texts` were made from.
    source: Option<ArrayRef>,
    /// Whether `texts` has a text for each value.
    prepared: bool,
    texts: Vec<u8>,
    /// Where the text of each value begins, followed by where the last one ends.
    bounds: Vec<usize>,
    keys: ScalarBuffer<i32>,
    nulls: Option<NullBuffer>,
    scratch: Vec<u8>,
}

impl Dictionary {
    pub(super) fn new(values: Cells, style: Style) -> Self {
        Self {
            style,
            values,
            source: None,
            prepared: false,
            texts: Vec::new(),
            bounds: Vec::new(),
            keys: ScalarBuffer::default(),
            nulls: None,
            scratch: Vec::new(),
        }
    }

    pub(super) fn load(&mut self, array: &ArrayRef) -> Result<(), EncodeError> {
        let dictionary = array.as_any_dictionary();
        self.keys = cast(dictionary.keys(), &DataType::Int32)?
            .as_primitive::<Int32Type>()
            .values()
            .clone();
        self.nulls = dictionary.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let values = dictionary.values();
        if !self
            .source
            .as_ref()
            .is_some_and(|source| Arc::ptr_eq(source, values))
        {
            self.values.load(values)?;
            self.source = Some(values.clone());
            self.prepared = false;
        }
        if !self.prepared && (values.len() <= SMALL_DICTIONARY || values.len() <= self.keys.len()) {
            self.prepare(values.len());
        }
        Ok(())
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The key of a row, `-1` for null. Rows of one batch with the same key have the same text.
    pub(super) fn key(&self, row: usize) -> i32 {
        if self.is_null(row) { -1 } else { self.keys[row] }
    }

    /// Whether every row has the same key. A batch without rows has none.
    pub(super) fn is_uniform(&self) -> bool {
        self.nulls.is_none() && all_equal(&self.keys)
    }

    pub(super) fn write(&mut self, row: usize, out: &mut Vec<u8>, null: &[u8]) {
        if self.is_null(row) {
            out.extend_from_slice(null);
            return;
        }
        let key = self.keys[row] as usize;
        if self.prepared {
            out.extend_from_slice(&self.texts[self.bounds[key]..self.bounds[key + 1]]);
        } else {
            self.values.write(key, self.style, &mut self.scratch, out);
        }
    }

    fn prepare(&mut self, count: usize) {
        self.texts.clear();
        self.bounds.clear();
        self.bounds.push(0);
        for value in 0..count {
            self.values
                .write(value, self.style, &mut self.scratch, &mut self.texts);
            self.bounds.push(self.texts.len());
        }
        self.prepared = true;
    }
}
