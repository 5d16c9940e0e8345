//! Compares whole rows, whatever their columns hold: which rows have the same content.
//!
//! Pure. Two batches whose rows stand in the same order are compared faster column by column
//! (`compare_columns`).

use std::cell::OnceCell;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};

use super::member_order::{holds_json, ordered};

/// Rows with their comparable forms. Each is made for all of them at once, and only when needed: made row by
/// row it would hold a whole dictionary each time.
pub struct ComparableRows<'a> {
    pub(super) rows: &'a RecordBatch,
    as_they_are: OnceCell<Rows>,
    /// With the members of JSON objects in order.
    in_order: OnceCell<Rows>,
}

impl<'a> ComparableRows<'a> {
    #[must_use]
    pub const fn new(rows: &'a RecordBatch) -> Self {
        Self {
            rows,
            as_they_are: OnceCell::new(),
            in_order: OnceCell::new(),
        }
    }
}

fn made_once(
    form: &OnceCell<Rows>,
    make: impl FnOnce() -> Result<Rows, ArrowError>,
) -> Result<&Rows, ArrowError> {
    if let Some(made) = form.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(form.get_or_init(|| made))
}

/// Compares whole rows, whatever their columns hold.
pub struct RowComparer {
    schema: SchemaRef,
    converter: RowConverter,
    /// The columns that hold JSON texts.
    with_json: Vec<usize>,
}

/// A [`RowComparer`] that is made only when needed: most rows are new, and nothing is compared.
pub(super) struct LazyComparer<'s> {
    schema: &'s SchemaRef,
    made: Option<RowComparer>,
}

impl<'s> LazyComparer<'s> {
    pub(super) const fn new(schema: &'s SchemaRef) -> Self {
        Self { schema, made: None }
    }

    pub(super) fn get(&mut self) -> Result<&RowComparer, ArrowError> {
        Ok(match &mut self.made {
            Some(made) => made,
            made => made.insert(RowComparer::new(self.schema)?),
        })
    }
}

impl RowComparer {
    pub fn new(schema: &SchemaRef) -> Result<Self, ArrowError> {
        let fields = schema
            .fields()
            .iter()
            .map(|field| SortField::new(field.data_type().clone()))
            .collect();
        let with_json = schema.fields().iter().enumerate();
        let with_json = with_json.filter(|(_, field)| holds_json(field));
        Ok(Self {
            schema: Arc::clone(schema),
            converter: RowConverter::new(fields)?,
            with_json: with_json.map(|(column, _)| column).collect(),
        })
    }

    /// Whether two rows have the same content. The texts of JSON objects may have their members in any order;
    /// they are read only where rows would be different otherwise.
    pub fn are_equal(
        &self,
        (one, row): (&ComparableRows<'_>, usize),
        (other, other_row): (&ComparableRows<'_>, usize),
    ) -> Result<bool, ArrowError> {
        let as_they_are = |rows: &ComparableRows<'_>| self.converter.convert_columns(rows.rows.columns());
        let left = made_once(&one.as_they_are, || as_they_are(one))?;
        let right = made_once(&other.as_they_are, || as_they_are(other))?;
        if left.row(row) == right.row(other_row) {
            return Ok(true);
        }
        let has_json = |column: &usize| {
            let has = |rows: &RecordBatch, row: usize| {
                rows.columns().get(*column).is_some_and(|held| held.is_valid(row))
            };
            has(one.rows, row) && has(other.rows, other_row)
        };
        if !self.with_json.iter().any(has_json) {
            return Ok(false);
        }
        let left = made_once(&one.in_order, || self.rows(one.rows))?;
        let right = made_once(&other.in_order, || self.rows(other.rows))?;
        Ok(left.row(row) == right.row(other_row))
    }

    /// Rows in a form in which rows of the same content compare equal.
    pub fn rows(&self, rows: &RecordBatch) -> Result<Rows, ArrowError> {
        let mut columns = rows.columns().to_vec();
        for column in &self.with_json {
            if let (Some(field), Some(held)) = (self.schema.fields().get(*column), columns.get_mut(*column)) {
                *held = ordered(field, held)?;
            }
        }
        self.converter.convert_columns(&columns)
    }

    /// Some of the rows, in the order given, in a form in which rows of the same content compare equal.
    pub fn some(&self, rows: &RecordBatch, of: &[usize]) -> Result<Rows, ArrowError> {
        let of = UInt32Array::from_iter_values(of.iter().map(|row| *row as u32));
        self.rows(&take_record_batch(rows, &of)?)
    }
}
