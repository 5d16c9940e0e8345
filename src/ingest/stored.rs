//! The stored rows that changes refer to, in the columns of one layout.
//!
//! Lives as long as one commit or one chunk of a body. Knows rows; knows nothing of how they were found.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::model::ids::{PieceId, RecordId};
use crate::store::find::FoundRows;

/// Live rows, all in one batch.
#[derive(Clone, Debug)]
pub struct StoredRows {
    pub rows: RecordBatch,
    places: HashMap<RecordId, StoredRow>,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow {
    pub piece: PieceId,
    /// Its number among the rows.
    pub row: usize,
}

impl StoredRows {
    pub fn new(schema: &SchemaRef, found: &[FoundRows]) -> Result<Self, ArrowError> {
        let mut places = HashMap::with_capacity(found.iter().map(|part| part.ids.len()).sum());
        let mut batches = Vec::with_capacity(found.len());
        let mut base = 0;
        for part in found {
            for (row, id) in (base..).zip(&part.ids) {
                let piece = part.piece;
                places.insert(*id, StoredRow { piece, row });
            }
            base += part.rows.num_rows();
            batches.push(adapt(schema, &part.rows)?);
        }
        let rows = match batches.as_slice() {
            // No row is looked up in it.
            [] => RecordBatch::new_empty(Arc::new(Schema::empty())),
            [one] => one.clone(),
            several => concat_batches(schema, several)?,
        };
        Ok(Self { rows, places })
    }

    #[must_use]
    pub fn get(&self, id: RecordId) -> Option<StoredRow> {
        self.places.get(&id).copied()
    }

    /// In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (RecordId, StoredRow)> {
        self.places.iter().map(|(id, row)| (*id, *row))
    }
}

/// `rows` with exactly the columns of `schema`: older rows lack columns that a type gained later.
pub fn adapt(schema: &SchemaRef, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if rows.schema_ref() == schema {
        return Ok(rows.clone());
    }
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| match rows.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(Arc::clone(column)),
            Some(column) => arrow::compute::cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        })
        .collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}
