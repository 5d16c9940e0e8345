//! A function of arrays, applied to a column or to one value. Knows values only.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

/// What `compute` makes of a column, or of one value as a column with one row.
pub(super) fn by_array(
    value: &ColumnarValue,
    compute: impl FnOnce(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Array(values) => Ok(ColumnarValue::Array(compute(values)?)),
        ColumnarValue::Scalar(value) => {
            let one = compute(&value.to_array()?)?;
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?))
        }
    }
}
