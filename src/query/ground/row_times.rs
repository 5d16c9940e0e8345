//! When rows begin and end, as numbers.
//!
//! Knows in which type stored moments are read; must not know what the rows are, nor who may see them.

use datafusion::arrow::array::{Array as _, AsArray as _, PrimitiveArray, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::common::{Result, internal_datafusion_err};

/// The moments in a column that has one in every row, in microseconds since 1970.
pub(in crate::query) fn micros_of<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r ScalarBuffer<i64>> {
    rows.column_by_name(name)
        .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>())
        .filter(|moments| moments.null_count() == 0)
        .map(PrimitiveArray::values)
        .ok_or_else(|| internal_datafusion_err!("not every row has a moment in {name}"))
}
