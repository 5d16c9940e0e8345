//! The function that makes zeros of negative zeros, also inside lists and structures.
//!
//! Knows arrays only; knows nothing of where a query needs it.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::utils::normalize_float_zero;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::query::sql::meaning::by_array::by_array;

use super::zeros::has_zeros;

/// Returns its argument, in which negative zeros are zeros.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct WithOneZero {
    signature: Signature,
    /// Whether its column is called as that of the value.
    keeps_name: bool,
}

impl WithOneZero {
    pub(super) fn new(keeps_name: bool) -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
            keeps_name,
        }
    }
}

impl ScalarUDFImpl for WithOneZero {
    /// As plans show it.
    fn name(&self) -> &'static str {
        "one_zero"
    }

    /// The name of a column. Of what is distinct it is that of the value: the engine groups by what one
    /// aggregate finds distinct, but not if that aggregate has to be given its name back. Beside the value
    /// itself, as where two tables are joined by it, it has to be another one.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        let [value] = given else {
            return internal_err!("{} takes one value", self.name());
        };
        let name = value.schema_name();
        Ok(if self.keeps_name {
            name.to_string()
        } else {
            format!("{}({name})", self.name())
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let data_type = given.first().cloned();
        data_type.map_or_else(|| internal_err!("{} takes a value", self.name()), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = given.arg_fields.first() else {
            return internal_err!("{} takes a value", self.name());
        };
        Ok(Arc::new(field.as_ref().clone().with_name(self.name())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else {
            return internal_err!("{} takes one value", self.name());
        };
        by_array(value, with_one_zero)
    }
}

fn with_one_zero(values: &ArrayRef) -> Result<ArrayRef> {
    if !has_zeros(values.data_type()) {
        return Ok(Arc::clone(values));
    }
    Ok(match values.data_type() {
        DataType::List(_) => list_with_one_zero::<i32>(values)?,
        DataType::LargeList(_) => list_with_one_zero::<i64>(values)?,
        DataType::FixedSizeList(_, _) => {
            let (field, size, items, nulls) = values.as_fixed_size_list().clone().into_parts();
            Arc::new(FixedSizeListArray::try_new(
                field,
                size,
                with_one_zero(&items)?,
                nulls,
            )?)
        }
        DataType::Struct(_) => {
            let (fields, members, nulls) = values.as_struct().clone().into_parts();
            let members = members.iter().map(with_one_zero).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields, members, nulls)?)
        }
        _ => normalize_float_zero(values),
    })
}

fn list_with_one_zero<Offset: OffsetSizeTrait>(lists: &ArrayRef) -> Result<ArrayRef> {
    let (field, mut offsets, mut items, nulls) = lists.as_list::<Offset>().clone().into_parts();
    // A part of a batch has the items of the whole batch, which must not be converted again for each part.
    if let (Some(first), Some(last)) = (offsets.first().copied(), offsets.last().copied())
        && last - first < Offset::usize_as(items.len())
    {
        items = items.slice(first.as_usize(), (last - first).as_usize());
        offsets = OffsetBuffer::new(offsets.iter().map(|offset| *offset - first).collect());
    }
    let items = with_one_zero(&items)?;
    Ok(Arc::new(GenericListArray::<Offset>::try_new(
        field, offsets, items, nulls,
    )?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, ListArray};
    use datafusion::arrow::datatypes::Float64Type;

    use super::*;

    #[test]
    fn negative_zeros_are_zeros_inside_lists_and_structures_too() {
        let numbers =
            |zero: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![Some(zero), None, Some(-1.0)])) };
        let lists = |zero: f64| -> ArrayRef {
            let lists = [Some(vec![Some(7.0), Some(zero)]), None, Some(vec![None])];
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
        };
        let structures = |zero: f64| -> ArrayRef {
            let columns = [("n", numbers(zero)), ("l", lists(zero))];
            Arc::new(StructArray::try_from(columns.to_vec()).unwrap())
        };
        for (signed, plain) in [
            (numbers(-0.0), numbers(0.0)),
            (lists(-0.0), lists(0.0)),
            (structures(-0.0), structures(0.0)),
        ] {
            // Texts, because comparing would call them equal.
            let text = |values: &ArrayRef| format!("{values:?}");
            assert_ne!(text(&signed), text(&plain));
            assert_eq!(text(&with_one_zero(&signed).unwrap()), text(&plain));
            let sliced = with_one_zero(&signed.slice(1, 2)).unwrap();
            assert_eq!(text(&sliced), text(&plain.slice(1, 2)));
        }
    }

    #[test]
    fn of_a_part_of_lists_only_its_own_items_are_converted() {
        let lists = (0..100).map(|n| Some(vec![Some(f64::from(n)), Some(-0.0)]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
        for (start, length) in [(0, 100), (0, 3), (40, 2), (99, 1), (50, 0)] {
            let converted = with_one_zero(&lists.slice(start, length)).unwrap();
            let converted = converted.as_list::<i32>();
            assert_eq!(converted.values().len(), 2 * length);
            let expected = (start..start + length).flat_map(|n| [n as f64, 0.0]);
            let expected = format!("{:?}", expected.collect::<Vec<_>>());
            let items = converted.values().as_primitive::<Float64Type>().values();
            assert_eq!(format!("{:?}", items.to_vec()), expected);
        }
    }
}
