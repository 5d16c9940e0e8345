//! Puts rows into the order in which they are stored: by start, end, id. Derives facts from rows in that
//! order.

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeBinaryArray, RecordBatch, TimestampMicrosecondArray,
    UInt32Array, new_null_array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef, TimestampMicrosecondType};
use std::sync::Arc;

use super::errors::StoreError;
use crate::catalog::records::Bounds;
use crate::model::columns::{END, ID, START};
use crate::model::ids::RecordId;
use crate::model::time::Instant;

/// The three columns that every stored row has.
#[derive(Clone, Debug)]
pub struct KeyColumns {
    pub ids: FixedSizeBinaryArray,
    pub starts: TimestampMicrosecondArray,
    pub ends: TimestampMicrosecondArray,
}

impl KeyColumns {
    pub fn of(batch: &RecordBatch) -> Result<Self, StoreError> {
        let column = |name: &str| {
            let column = batch
                .column_by_name(name)
                .ok_or_else(|| StoreError::rows(format!("column {name} is missing")))?;
            if column.null_count() > 0 {
                return Err(StoreError::rows(format!("column {name} has nulls")));
            }
            Ok(column)
        };
        let times = |name: &str| -> Result<TimestampMicrosecondArray, StoreError> {
            let times = column(name)?.as_primitive_opt::<TimestampMicrosecondType>();
            times
                .cloned()
                .ok_or_else(|| StoreError::rows(format!("column {name} holds no microseconds")))
        };
        let ids = column(ID)?
            .as_fixed_size_binary_opt()
            .filter(|ids| ids.value_length() == 16);
        let ids = ids
            .cloned()
            .ok_or_else(|| StoreError::rows("column id does not hold 16 bytes each"))?;
        Ok(Self {
            ids,
            starts: times(START)?,
            ends: times(END)?,
        })
    }

    /// The sort key of a row.
    #[must_use]
    pub fn key(&self, row: usize) -> (i64, i64, &[u8]) {
        (self.starts.value(row), self.ends.value(row), self.ids.value(row))
    }

    #[must_use]
    pub fn id(&self, row: usize) -> RecordId {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(self.ids.value(row));
        RecordId(uuid::Uuid::from_bytes(bytes))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn is_sorted(&self) -> bool {
        let (starts, ends) = (self.starts.values(), self.ends.values());
        starts
            .windows(2)
            .zip(ends.windows(2))
            .enumerate()
            .all(
                |(row, (start, end))| match (start[0].cmp(&start[1]), end[0].cmp(&end[1])) {
                    (std::cmp::Ordering::Less, _) | (std::cmp::Ordering::Equal, std::cmp::Ordering::Less) => {
                        true
                    }
                    (std::cmp::Ordering::Equal, std::cmp::Ordering::Equal) => {
                        self.ids.value(row) <= self.ids.value(row + 1)
                    }
                    _ => false,
                },
            )
    }

    /// The extremes; `None` without rows. The rows must be sorted.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        let (starts, ends) = (self.starts.values(), self.ends.values());
        Some(Bounds {
            min_start: Instant::from_micros(*starts.first()?),
            max_start: Instant::from_micros(*starts.last()?),
            max_end: Instant::from_micros(ends.iter().copied().max()?),
        })
    }
}

/// The ids of a column.
pub(super) fn all_ids(column: &FixedSizeBinaryArray) -> impl Iterator<Item = RecordId> + Clone {
    let (all, _) = column.value_data().as_chunks::<16>();
    all.iter().map(|bytes| RecordId(uuid::Uuid::from_bytes(*bytes)))
}

/// The rows sorted by (start, end, id). Cheap when they are sorted already.
pub fn sort_rows(batch: &RecordBatch) -> Result<RecordBatch, StoreError> {
    let keys = KeyColumns::of(batch)?;
    if keys.is_sorted() {
        return Ok(batch.clone());
    }
    // Starts are paired with row numbers, because they nearly always decide the order; and this sort is fast
    // where stretches of the rows are in order already.
    let mut order: Vec<(i64, u32)> = keys.starts.values().iter().copied().zip(0..).collect();
    order.sort_by(|(one, first), (other, second)| {
        one.cmp(other)
            .then_with(|| keys.key(*first as usize).cmp(&keys.key(*second as usize)))
    });
    let order = UInt32Array::from_iter_values(order.into_iter().map(|(_, row)| row));
    Ok(take_record_batch(batch, &order)?)
}

/// The columns in which at least one row of `batches` has a value, in the order of the first batch. Always
/// includes the three key columns.
pub fn present_columns<'b>(batches: impl IntoIterator<Item = &'b RecordBatch>) -> SchemaRef {
    let mut schema: Option<SchemaRef> = None;
    let mut present: Vec<bool> = Vec::new();
    for batch in batches {
        if schema.is_none() {
            schema = Some(batch.schema());
            present = vec![false; batch.num_columns()];
        }
        for (seen, column) in present.iter_mut().zip(batch.columns()) {
            *seen |= column.logical_null_count() < column.len();
        }
    }
    let Some(schema) = schema else {
        return Arc::new(Schema::empty());
    };
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .zip(present)
        .filter(|(field, present)| *present || [ID, START, END].contains(&field.name().as_str()))
        .map(|(field, _)| Arc::clone(field))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The batch with exactly the columns of `schema`: missing ones become null, others are dropped.
pub fn with_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, StoreError> {
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| {
            batch
                .column_by_name(field.name())
                .map_or_else(|| new_null_array(field.data_type(), batch.num_rows()), Arc::clone)
        })
        .collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// All columns of some schemas, each once. The names and types of a type's columns never change, so a column
/// that differs was damaged.
pub fn united<'s>(schemas: impl IntoIterator<Item = &'s SchemaRef>) -> Result<SchemaRef, StoreError> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in schemas.into_iter().flat_map(|schema| schema.fields()) {
        match fields.iter().find(|known| known.name() == field.name()) {
            None => fields.push(Arc::clone(field)),
            Some(known) if known.data_type() == field.data_type() => {}
            Some(known) => {
                return Err(StoreError::corrupt(format!(
                    "column {} is {} in one piece and {} in another",
                    known.name(),
                    known.data_type(),
                    field.data_type()
                )));
            }
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The rows of all batches, one after the other.
pub fn together(batches: &[RecordBatch]) -> Result<RecordBatch, StoreError> {
    if let [one] = batches {
        return Ok(one.clone());
    }
    let schema = united(batches.iter().map(RecordBatch::schema_ref))?;
    let alike = batches
        .iter()
        .map(|batch| with_columns(batch, &schema))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &alike)?)
}

/// The batch without the columns in which no row has a value.
pub fn without_null_columns(batch: &RecordBatch) -> Result<RecordBatch, StoreError> {
    with_columns(batch, &present_columns([batch]))
}
