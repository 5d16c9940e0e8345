//! The two zeros that numbers with fractions have. Knows types and constants only.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

/// Whether values of a type hold fractions, which have two zeros.
pub(super) fn has_zeros(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_zeros(item.data_type())
        }
        DataType::Struct(members) => members.iter().any(|member| has_zeros(member.data_type())),
        data_type => data_type.is_floating(),
    }
}

pub(super) const fn is_zero(value: &ScalarValue) -> bool {
    matches!(
        value,
        ScalarValue::Float64(Some(0.0)) | ScalarValue::Float32(Some(0.0))
    )
}

/// The two zeros of a type of numbers.
pub(super) fn zeros(data_type: &DataType) -> Option<[ScalarValue; 2]> {
    match data_type {
        DataType::Float64 => Some([0.0, -0.0].map(|zero| ScalarValue::Float64(Some(zero)))),
        DataType::Float32 => Some([0.0, -0.0].map(|zero| ScalarValue::Float32(Some(zero)))),
        _ => None,
    }
}
