//! Builds columns: one per stored column, fed one cell per row.
//!
//! They live from one `take` to the next. Values that repeat from row to row (texts of a dictionary, structs,
//! lists) are kept once and referred to by number. Knows Arrow; knows nothing of JSON or of what a column
//! means.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayBuilder, ArrayRef, AsArray as _, BooleanBuilder, DictionaryArray, Float64Builder,
    Int32Array, Int64Builder, ListArray, StringArray, StringBuilder, StructArray,
    TimestampMicrosecondBuilder, UInt32Array, new_empty_array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type, TimeUnit};
use arrow::error::ArrowError;

/// One value of one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Float(f64),
    Int(i64),
    Bool(bool),
    /// Microseconds since 1970.
    Time(i64),
    /// A text, or JSON as text.
    Text(Cow<'a, str>),
    List(Vec<Cell<'a>>),
    Struct(Vec<Cell<'a>>),
    /// A struct or list that this column has already received, by the number that it returned.
    Known(u32),
}

impl Cell<'_> {
    /// About how many bytes it takes beyond the fixed width of its column.
    fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Float(_) | Self::Int(_) | Self::Bool(_) | Self::Time(_) | Self::Known(_) => 0,
            Self::Text(text) => text.len(),
            Self::List(cells) | Self::Struct(cells) => cells
                .iter()
                .map(|cell| size_of::<Cell<'_>>() + cell.bytes())
                .sum(),
        }
    }

    pub(super) fn into_owned(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Float(value) => Cell::Float(value),
            Self::Int(value) => Cell::Int(value),
            Self::Bool(value) => Cell::Bool(value),
            Self::Time(value) => Cell::Time(value),
            Self::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Self::List(cells) => Cell::List(cells.into_iter().map(Cell::into_owned).collect()),
            Self::Struct(cells) => Cell::Struct(cells.into_iter().map(Cell::into_owned).collect()),
            Self::Known(number) => Cell::Known(number),
        }
    }
}

/// A column with its rows so far.
#[derive(Debug)]
pub(super) enum Column {
    Float(Float64Builder),
    Int(Int64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Words(Words),
    Composite(Composite),
}

/// A stored column has a type that no cell fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a column of type {0} cannot be filled from JSON")]
pub struct UnfillableColumn(pub DataType);

impl Column {
    pub(super) fn new(data_type: &DataType) -> Result<Self, UnfillableColumn> {
        if !is_fillable(data_type) {
            return Err(UnfillableColumn(data_type.clone()));
        }
        // No capacity is reserved: a body may have records of many types, and few of each.
        Ok(match data_type {
            DataType::Float64 => Self::Float(Float64Builder::with_capacity(0)),
            DataType::Int64 => Self::Int(Int64Builder::with_capacity(0)),
            DataType::Boolean => Self::Bool(BooleanBuilder::with_capacity(0)),
            DataType::Timestamp(..) => {
                Self::Time(TimestampMicrosecondBuilder::with_capacity(0).with_data_type(data_type.clone()))
            }
            DataType::Utf8 => Self::Text(StringBuilder::with_capacity(0, 0)),
            DataType::Dictionary(..) => Self::Words(Words::default()),
            _ => Self::Composite(Composite {
                data_type: data_type.clone(),
                copies: copies_texts(data_type),
                entries: Vec::new(),
                rows: Vec::new(),
            }),
        })
    }

    /// Sets the value of row number `row`; returns about how many bytes that takes beyond the fixed width of
    /// the column. Rows between the last one set and this one become null. A struct or list is taken out of
    /// its cell; cells are not moved, because that would cost more than setting them. A cell of another type
    /// than the column is refused; then nothing is set.
    pub(super) fn set(&mut self, row: usize, cell: &mut Cell<'_>) -> Result<usize, ArrowError> {
        self.pad(row);
        match (self, &*cell) {
            (_, Cell::Null) => {}
            (Self::Float(rows), Cell::Float(value)) => rows.append_value(*value),
            (Self::Int(rows), Cell::Int(value)) => rows.append_value(*value),
            (Self::Bool(rows), Cell::Bool(value)) => rows.append_value(*value),
            (Self::Time(rows), Cell::Time(value)) => rows.append_value(*value),
            (Self::Text(rows), Cell::Text(text)) => {
                rows.append_value(text);
                return Ok(text.len());
            }
            (Self::Words(rows), Cell::Text(text)) => return rows.push(text),
            (Self::Composite(rows), Cell::Known(number)) => return Ok(rows.push_again(*number)),
            (Self::Composite(rows), Cell::Struct(_) | Cell::List(_)) => {
                return rows.push(std::mem::replace(cell, Cell::Null).into_owned());
            }
            (column, cell) => {
                return Err(mismatch(
                    cell,
                    &format!("{column:?}").chars().take(40).collect::<String>(),
                ));
            }
        }
        Ok(0)
    }

    /// Whether no row has a value.
    pub(super) fn is_unset(&self) -> bool {
        self.len() == 0
    }

    /// The number of the value that was set last, by which to refer to it when it repeats. Only structs and
    /// lists have one.
    pub(super) fn last_number(&self) -> Option<u32> {
        match self {
            Self::Composite(rows) => *rows.rows.last()?,
            _ => None,
        }
    }

    /// The texts in the lists set so far; those of each distinct list once.
    pub(super) fn listed_texts(&self) -> impl Iterator<Item = &str> {
        let entries = match self {
            Self::Composite(composite) => composite.entries.as_slice(),
            _ => &[],
        };
        let items = entries.iter().flat_map(|entry| match entry {
            Cell::List(items) => items.as_slice(),
            _ => &[],
        });
        items.filter_map(|item| match item {
            Cell::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// The first `rows` rows as an array; afterwards the column is empty and its numbers are no longer valid.
    pub(super) fn finish(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        self.pad(rows);
        Ok(match self {
            Self::Float(rows) => Arc::new(rows.finish()),
            Self::Int(rows) => Arc::new(rows.finish()),
            Self::Bool(rows) => Arc::new(rows.finish()),
            Self::Time(rows) => Arc::new(rows.finish()),
            Self::Text(rows) => Arc::new(rows.finish()),
            Self::Words(rows) => Arc::new(std::mem::take(rows).finish()?),
            Self::Composite(rows) => rows.finish()?,
        })
    }

    /// Appends nulls until there are `rows` rows.
    fn pad(&mut self, rows: usize) {
        let missing = rows.saturating_sub(self.len());
        if missing == 0 {
            return;
        }
        match self {
            Self::Float(rows) => rows.append_nulls(missing),
            Self::Int(rows) => rows.append_nulls(missing),
            Self::Bool(rows) => rows.append_nulls(missing),
            Self::Time(rows) => rows.append_nulls(missing),
            Self::Text(rows) => rows.append_nulls(missing),
            Self::Words(words) => words.keys.resize(rows, None),
            Self::Composite(composite) => composite.rows.resize(rows, None),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Float(rows) => rows.len(),
            Self::Int(rows) => rows.len(),
            Self::Bool(rows) => rows.len(),
            Self::Time(rows) => rows.len(),
            Self::Text(rows) => rows.len(),
            Self::Words(words) => words.keys.len(),
            Self::Composite(composite) => composite.rows.len(),
        }
    }
}

/// What a word takes besides its text, in each of the two places that store it.
const WORD_BYTES: usize = 2 * size_of::<Box<str>>();

/// Texts of which few are distinct.
#[derive(Debug, Default)]
pub(super) struct Words {
    keys: Vec<Option<i32>>,
    numbers: HashMap<Box<str>, i32>,
    known: Vec<Box<str>>,
    last: usize,
}

impl Words {
    fn push(&mut self, word: &str) -> Result<usize, ArrowError> {
        let known = self.known.len();
        // Usually the word is the same as in the previous row, and comparing is cheaper than hashing.
        if self.known.get(self.last).is_none_or(|last| **last != *word) {
            self.last = match self.numbers.get(word) {
                Some(number) => usize::try_from(*number).unwrap_or_default(),
                None => self.learn(word)?,
            };
        }
        self.keys.push(i32::try_from(self.last).ok());
        let is_new = self.known.len() > known;
        Ok(if is_new { 2 * (word.len() + WORD_BYTES) } else { 0 })
    }

    fn learn(&mut self, word: &str) -> Result<usize, ArrowError> {
        let position = self.known.len();
        let number = i32::try_from(position).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
        self.numbers.insert(word.into(), number);
        self.known.push(word.into());
        Ok(position)
    }

    fn finish(self) -> Result<DictionaryArray<Int32Type>, ArrowError> {
        let words = StringArray::from_iter_values(self.known.iter());
        DictionaryArray::try_new(Int32Array::from(self.keys), Arc::new(words))
    }
}

/// Structs or lists, each distinct one kept once.
#[derive(Debug)]
pub(super) struct Composite {
    data_type: DataType,
    /// Whether each row gets its own copy of a repeated value in the end.
    copies: bool,
    entries: Vec<Cell<'static>>,
    rows: Vec<Option<u32>>,
}

impl Composite {
    fn push(&mut self, cell: Cell<'static>) -> Result<usize, ArrowError> {
        let number = u32::try_from(self.entries.len()).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
        let bytes = cell.bytes();
        self.entries.push(cell);
        self.rows.push(Some(number));
        Ok(bytes)
    }

    fn push_again(&mut self, number: u32) -> usize {
        self.rows.push(Some(number));
        let entry = self.entries.get(number as usize).filter(|_| self.copies);
        entry.map_or(0, Cell::bytes)
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        if self.entries.is_empty() {
            return Ok(new_null_array(&self.data_type, rows.len()));
        }
        let entries: Vec<&Cell<'_>> = self.entries.iter().collect();
        let distinct = array(&self.data_type, &entries)?;
        let all = match rows.first() {
            Some(Some(one)) if rows.iter().all(|row| *row == Some(*one)) => {
                repeated(&distinct, *one, rows.len())
            }
            _ => take(&distinct, &UInt32Array::from(rows), None),
        };
        self.entries.clear();
        all
    }
}

/// A column that has one row's value of `distinct` in all its rows, since most bodies come from one device.
fn repeated(distinct: &ArrayRef, row: u32, rows: usize) -> Result<ArrayRef, ArrowError> {
    if let Some(structs) = distinct.as_struct_opt()
        && structs.is_valid(row as usize)
    {
        let members = structs.columns().iter();
        let members = members.map(|member| repeated(member, row, rows));
        let members = members.collect::<Result<_, _>>()?;
        let all = StructArray::try_new_with_length(structs.fields().clone(), members, None, rows)?;
        return Ok(Arc::new(all));
    }
    if let Some(words) = distinct.as_dictionary_opt::<Int32Type>()
        && words.is_valid(row as usize)
    {
        let keys = Int32Array::from_value(words.keys().value(row as usize), rows);
        let all = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(words.values()))?;
        return Ok(Arc::new(all));
    }
    take(distinct, &UInt32Array::from_value(row, rows), None)
}

/// How many bytes a row of a column takes at least, even without a value.
pub(super) fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(members) => members.iter().map(|member| width(member.data_type())).sum(),
        // The offset of its value, or the number of its text.
        DataType::Utf8 | DataType::List(_) | DataType::Dictionary(..) => size_of::<i32>(),
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        other => other.primitive_width().unwrap_or(1),
    }
}

/// Whether each row with the same value has its own copy of the texts.
fn copies_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(members) => members.iter().any(|member| copies_texts(member.data_type())),
        DataType::Utf8 | DataType::List(_) => true,
        _ => false,
    }
}

fn is_fillable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float64
        | DataType::Int64
        | DataType::Boolean
        | DataType::Utf8
        | DataType::Timestamp(TimeUnit::Microsecond, _) => true,
        DataType::Dictionary(key, value) => **key == DataType::Int32 && **value == DataType::Utf8,
        DataType::List(item) => is_fillable(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_fillable(field.data_type())),
        _ => false,
    }
}

/// The cells as an array of the given type.
fn array(data_type: &DataType, cells: &[&Cell<'_>]) -> Result<ArrayRef, ArrowError> {
    match data_type {
        DataType::List(item) => {
            let mut items = Vec::new();
            let mut lengths = Vec::with_capacity(cells.len());
            for cell in cells {
                match cell {
                    Cell::List(list) => {
                        items.extend(list);
                        lengths.push(list.len());
                    }
                    Cell::Null => lengths.push(0),
                    other => return Err(mismatch(other, "a list")),
                }
            }
            let values = if items.is_empty() {
                new_empty_array(item.data_type())
            } else {
                array(item.data_type(), &items)?
            };
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(item),
                OffsetBuffer::from_lengths(lengths),
                values,
                validity(cells),
            )?))
        }
        DataType::Struct(fields) => {
            let mut children = Vec::with_capacity(fields.len());
            for (position, field) in fields.iter().enumerate() {
                let mut child = Vec::with_capacity(cells.len());
                for cell in cells {
                    child.push(match cell {
                        Cell::Struct(members) => members.get(position).unwrap_or(&Cell::Null),
                        Cell::Null => &Cell::Null,
                        other => return Err(mismatch(other, "a struct")),
                    });
                }
                children.push(array(field.data_type(), &child)?);
            }
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                children,
                validity(cells),
                cells.len(),
            )?))
        }
        _ => {
            let mut column =
                Column::new(data_type).map_err(|error| ArrowError::SchemaError(error.to_string()))?;
            for (row, cell) in cells.iter().enumerate() {
                column.set(row, &mut (*cell).clone())?;
            }
            column.finish(cells.len())
        }
    }
}

fn validity(cells: &[&Cell<'_>]) -> Option<NullBuffer> {
    let valid: NullBuffer = cells
        .iter()
        .map(|cell| **cell != Cell::Null)
        .collect::<Vec<_>>()
        .into();
    (valid.null_count() > 0).then_some(valid)
}

fn mismatch(cell: &Cell<'_>, column: &str) -> ArrowError {
    // The message goes to the log, which must not contain values.
    let kind = match cell {
        Cell::Null => "null",
        Cell::Float(_) => "a number",
        Cell::Int(_) => "an integer",
        Cell::Bool(_) => "a truth value",
        Cell::Time(_) => "a time",
        Cell::Text(_) => "a text",
        Cell::List(_) => "a list",
        Cell::Struct(_) => "a struct",
        Cell::Known(_) => "a repeated value",
    };
    ArrowError::InvalidArgumentError(format!("{kind} does not fit into {column}"))
}
