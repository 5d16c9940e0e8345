//! How much memory rows take by themselves. Knows arrays only.

use datafusion::arrow::array::{Array as _, ArrayRef, RecordBatch};

/// The bytes of the rows of a batch, whatever larger buffers they are part of.
pub(in crate::query) fn bytes_of_rows(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(bytes_of_values);
    sizes.fold(0, usize::saturating_add)
}

/// The bytes of the values of an array, whatever larger buffers they are part of.
pub(in crate::query) fn bytes_of_values(array: &ArrayRef) -> usize {
    let held = array.to_data().get_slice_memory_size();
    held.unwrap_or_else(|_| array.get_array_memory_size())
}
