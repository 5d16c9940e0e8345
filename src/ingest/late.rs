//! Finds values that records brought before their type declared the field, and puts them into the field's
//! column.
//!
//! Pure functions. Values are read as when records come in, so it makes no difference which was first, the
//! record or the field.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::Field;
use arrow::error::ArrowError;

use super::cells;
use super::columns::Column;
use super::json;
use crate::model::registry::Canonical;

/// The array of `column`, whose nulls are filled from the members of its name in `extras`. What does not fit
/// into the column stays where it is.
pub fn declared_later(
    column: &Field,
    canonical: &Canonical,
    values: &ArrayRef,
    extras: &ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let Some(extras) = extras.as_string_opt::<i32>() else {
        return Ok(ArrayRef::clone(values));
    };
    if values.logical_null_count() == 0 || extras.null_count() == extras.len() {
        return Ok(ArrayRef::clone(values));
    }
    let nulls = values.logical_nulls();
    let is_empty = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let mut found =
        Column::new(column.data_type()).map_err(|error| ArrowError::SchemaError(error.to_string()))?;
    let mut is_found = vec![false; values.len()];
    for (row, place) in is_found.iter_mut().enumerate() {
        if extras.is_null(row) || !is_empty(row) {
            continue;
        }
        let Some(raw) = member(extras.value(row), column.name()) else {
            continue;
        };
        if let Ok(filled) = cells::fill(raw, column) {
            found.set(row, &mut cells::in_one_spelling(filled.cell, canonical))?;
            *place = true;
        }
    }
    if !is_found.contains(&true) {
        return Ok(ArrayRef::clone(values));
    }
    zip(
        &BooleanArray::from(is_found),
        &found.finish(values.len())?,
        values,
    )
}

/// The value of a member of the object in `json`, as it was written.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    // A name with escapes cannot be recognised without parsing.
    if !json.contains(name) && !json.contains('\\') {
        return None;
    }
    let fields = json::fields(json.as_bytes()).ok()?;
    fields
        .into_iter()
        .find(|field| field.name == name)
        .map(|field| field.raw)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Int64Type};

    use super::*;

    #[test]
    fn rule_8_4_what_came_before_its_field_is_found_where_it_fits() {
        let column = Field::new("n", DataType::Int64, true);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1), None, None, None, None]));
        let extras: ArrayRef = Arc::new(StringArray::from(vec![
            Some(r#"{"m":{"n":7},"n":3.0}"#),
            Some(r#"{"n":2}"#),
            Some(r#"{"n":"three"}"#),
            None,
            Some(r#"{"\u006e":4}"#),
            Some(r#"{"m":{"n":7}}"#),
        ]));
        let found = declared_later(&column, &Canonical::AsSent, &values, &extras).unwrap();
        let found: Vec<_> = found.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(found, [Some(3), Some(1), None, None, Some(4), None]);
    }
}
