//! Reads the rows of a partition that are still in its tail.
//!
//! Knows pieces in memory; knows nothing of objects.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, AsArray as _, BooleanArray, RecordBatch, StructArray, new_null_array,
};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;

use crate::model::ids::RecordId;
use crate::query::ground::errors::outside;
use crate::query::ground::key::{KEY_COLUMNS, key_order};
use crate::query::ground::operator::Plan;
use crate::store::arrange::{KeyColumns, sort_rows, with_columns};
use crate::store::snapshot::{SnapshotPiece, TailRows};

/// The living rows of `pieces`, with the stored `columns`, sorted by the key.
pub(super) fn sorted(
    pieces: &[(&SnapshotPiece, &Arc<TailRows>)],
    storage: &SchemaRef,
    columns: &[usize],
) -> Result<RecordBatch> {
    // Sorted by the whole key, whichever of its columns are wanted.
    let keys = KEY_COLUMNS.iter().filter_map(|name| storage.index_of(name).ok());
    let mut read: Vec<usize> = columns.iter().copied().chain(keys).collect();
    read.sort_unstable();
    read.dedup();
    let whole = Arc::new(storage.project(&read)?);
    let living = pieces.iter().map(|(piece, rows)| {
        let rows = with_columns(&with_members(rows.batch(), &whole)?, &whole).map_err(outside)?;
        living(&rows, &piece.dead)
    });
    let rows = concat_batches(&whole, &living.collect::<Result<Vec<_>>>()?)?;
    let wanted = Arc::new(storage.project(columns)?);
    with_columns(&sort_rows(&rows).map_err(outside)?, &wanted).map_err(outside)
}

/// A plan of rows that are already sorted by the key.
pub(super) fn in_memory(rows: RecordBatch, schema: &SchemaRef) -> Result<Plan> {
    let rows = MemorySourceConfig::try_new(&[vec![rows]], Arc::clone(schema), None)?;
    let rows = rows.try_with_sort_information(vec![key_order(schema)?])?;
    Ok(DataSourceExec::from_data_source(rows))
}

/// `rows` with struct columns reduced to the members that `schema` has.
fn with_members(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let own = rows.schema();
    let mut fields: Vec<FieldRef> = own.fields().iter().cloned().collect();
    let mut columns = rows.columns().to_vec();
    let mut is_same = true;
    for (field, column) in fields.iter_mut().zip(&mut columns) {
        let Some((_, wanted)) = schema.column_with_name(field.name()) else {
            continue;
        };
        if let (DataType::Struct(members), Some(structure)) = (wanted.data_type(), column.as_struct_opt())
            && members.len() < structure.num_columns()
        {
            let member = |member: &FieldRef| {
                let held = structure.column_by_name(member.name());
                held.map_or_else(|| new_null_array(member.data_type(), structure.len()), Arc::clone)
            };
            let kept = members.iter().map(member).collect();
            let kept = StructArray::try_new(members.clone(), kept, structure.nulls().cloned())?;
            *column = Arc::new(kept);
            *field = Arc::new(field.as_ref().clone().with_data_type(wanted.data_type().clone()));
            is_same = false;
        }
    }
    if is_same {
        return Ok(rows.clone());
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// `rows` without dead rows.
fn living(rows: &RecordBatch, dead: &[RecordId]) -> Result<RecordBatch> {
    if dead.is_empty() {
        return Ok(rows.clone());
    }
    let keys = KeyColumns::of(rows).map_err(outside)?;
    let keep: BooleanArray = (0..keys.len())
        .map(|row| Some(dead.binary_search(&keys.id(row)).is_err()))
        .collect();
    Ok(filter_record_batch(rows, &keep)?)
}
