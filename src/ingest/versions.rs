//! Recognises versions that come back as they were read: as the numbers of the text that is stored.
//!
//! Pure. Knows rows.

use arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int32Type};

use crate::model::version::repeats;

/// The member of this object is the version that built-in types have.
const SOURCE_PROPERTIES: &str = "source_properties";
const VERSION: &str = "operatingSystemVersion";

/// Whether a column holds versions. In a person's own type a member of this name is a plain text, unless the
/// type was defined before annotations of built-in schemas were taken out of it.
pub(super) fn is_version(field: &Field) -> bool {
    field.name() == VERSION && matches!(field.data_type(), DataType::Dictionary(..))
}

/// Whether the version in row `row` of `now` only repeats the numbers of that in `before`.
pub(super) fn is_repeated(before: &ArrayRef, now: &ArrayRef, row: usize) -> bool {
    is_repeated_at((before, row), (now, row))
}

/// Whether two rows differ in a version of which the later one only repeats the numbers.
pub(super) fn differ_in_repeated(before: (&RecordBatch, usize), now: (&RecordBatch, usize)) -> bool {
    let versions = |rows: &RecordBatch| {
        let source = rows.column_by_name(SOURCE_PROPERTIES)?;
        source.as_struct_opt()?.column_by_name(VERSION).cloned()
    };
    match (versions(before.0), versions(now.0)) {
        (Some(earlier), Some(later)) => is_repeated_at((&earlier, before.1), (&later, now.1)),
        _ => false,
    }
}

fn is_repeated_at(before: (&ArrayRef, usize), now: (&ArrayRef, usize)) -> bool {
    let text = |column: &ArrayRef, row: usize| {
        let words = column.as_dictionary_opt::<Int32Type>()?;
        let texts = words.downcast_dict::<StringArray>()?;
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    match (text(before.0, before.1), text(now.0, now.1)) {
        (Some(earlier), Some(later)) => earlier != later && repeats(&earlier, &later),
        _ => false,
    }
}
