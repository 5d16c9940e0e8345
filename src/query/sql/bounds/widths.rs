//! The greatest size of a row: each repetition of a row of a batch takes that much again.
//!
//! Knows arrays only.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// The size of a value without a buffer of its own.
const LEAST_WIDTH: usize = 1;
/// The size of a number, or of the offset of a text or a list.
pub(super) const USUAL_WIDTH: usize = 16;

/// An upper bound on the bytes of the widest row.
pub(super) fn widest(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|column| width(column.as_ref()));
    columns.fold(0, usize::saturating_add)
}

/// An upper bound on the bytes that one row becomes when its lists are unnested.
pub(super) fn widest_unnested(batch: &RecordBatch) -> usize {
    let columns = batch.columns();
    let most = columns.iter().map(|column| elements(column.as_ref())).max();
    let each = columns.iter().map(|column| match items(column.as_ref()) {
        Some((_, items)) => width(items),
        None => width(column.as_ref()),
    });
    let each = each.fold(0, usize::saturating_add);
    most.unwrap_or(LEAST_WIDTH).saturating_mul(each)
}

/// Bytes of the widest value.
pub(super) fn width(array: &dyn Array) -> usize {
    if let Some((longest, items)) = items(array) {
        return USUAL_WIDTH.saturating_add(longest.saturating_mul(width(items)));
    }
    let longest = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().offsets().lengths().max(),
        DataType::LargeUtf8 => array.as_string::<i64>().offsets().lengths().max(),
        DataType::Binary => array.as_binary::<i32>().offsets().lengths().max(),
        DataType::LargeBinary => array.as_binary::<i64>().offsets().lengths().max(),
        DataType::Utf8View => array
            .as_string_view()
            .lengths()
            .max()
            .map(|length| length as usize),
        DataType::BinaryView => array
            .as_binary_view()
            .lengths()
            .max()
            .map(|length| length as usize),
        DataType::FixedSizeBinary(size) => usize::try_from(*size).ok(),
        DataType::Struct(_) => {
            let members = array.as_struct().columns().iter();
            Some(
                members
                    .map(|member| width(member.as_ref()))
                    .fold(0, usize::saturating_add),
            )
        }
        DataType::Dictionary(..) => Some(width(array.as_any_dictionary().values().as_ref())),
        other => other.primitive_width(),
    };
    longest.unwrap_or(LEAST_WIDTH).saturating_add(USUAL_WIDTH)
}

/// Bytes of an item that is missing from lists of this type.
pub(super) fn of_missing_items(lists: &DataType) -> usize {
    match lists {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            of_missing(item.data_type())
        }
        _ => LEAST_WIDTH,
    }
}

/// Bytes of a value that is missing.
fn of_missing(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(members) => {
            let members = members.iter().map(|member| of_missing(member.data_type()));
            members.fold(LEAST_WIDTH, usize::saturating_add)
        }
        DataType::FixedSizeList(item, length) => {
            let length = usize::try_from(*length).unwrap_or_default();
            length.saturating_mul(of_missing(item.data_type()))
        }
        DataType::FixedSizeBinary(size) => usize::try_from(*size).unwrap_or_default(),
        other => other.primitive_width().unwrap_or(USUAL_WIDTH),
    }
}

/// The most elements of one list, including those of nested lists.
fn elements(array: &dyn Array) -> usize {
    match items(array) {
        Some((longest, items)) => longest.saturating_mul(elements(items)),
        None => LEAST_WIDTH,
    }
}

/// The length of the longest list, and the elements of all lists.
fn items(array: &dyn Array) -> Option<(usize, &dyn Array)> {
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let longest = lists.offsets().lengths().max();
            Some((longest.unwrap_or_default(), lists.values().as_ref()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let longest = lists.offsets().lengths().max();
            Some((longest.unwrap_or_default(), lists.values().as_ref()))
        }
        DataType::FixedSizeList(_, length) => {
            let lists = array.as_fixed_size_list();
            Some((
                usize::try_from(*length).unwrap_or_default(),
                lists.values().as_ref(),
            ))
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            let longest = maps.offsets().lengths().max();
            let entries: &dyn Array = maps.entries();
            Some((longest.unwrap_or_default(), entries))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, StringArray};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let named = columns.into_iter().enumerate();
        RecordBatch::try_from_iter(named.map(|(place, column)| (place.to_string(), column))).unwrap()
    }

    #[test]
    fn the_widest_row_is_at_least_as_wide_as_each() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "twelve bytes", ""]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let rows = batch(vec![texts, numbers]);
        let found = widest(&rows);
        assert!((20..60).contains(&found), "{found}");
        assert!(widest(&rows.slice(2, 1)) < found);
    }

    #[test]
    fn a_row_spreads_over_as_many_rows_as_its_longest_list_has_elements() {
        let list = |length: i64| Some((0..length).map(Some).collect::<Vec<_>>());
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![list(2), list(1000), None]);
        let text = "x".repeat(100);
        let texts = StringArray::from(vec![text.as_str(); 3]);
        let rows = batch(vec![Arc::new(lists), Arc::new(texts)]);
        let found = widest_unnested(&rows);
        assert!((100_000..200_000).contains(&found), "{found}");
        assert!(widest_unnested(&rows.slice(0, 1)) < 1_000);
    }
}
