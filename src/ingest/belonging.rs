//! Finds out which records a tombstone for a definition means: those that belong to it.
//!
//! All annotations of one base keep their records in one partition, so an id alone does not say whose record
//! it is; the stored row does, or a row that was put before the tombstone. Knows rows; does not know which
//! definitions exist.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow::array::{Array, ArrayAccessor, AsArray, FixedSizeBinaryArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;

use super::changes::Change;
use super::stored::StoredRows;
use crate::model::ids::RecordId;

/// The stored column that names the definition of a record.
const DEFINITION: &str = "source_id";

/// A row, by the batch that it stands in and its number there.
type Row<'a> = (&'a RecordBatch, usize);

/// The changes, in which each deletion names only records that it deletes whatever they belong to. Most
/// changes have no deletion from a definition, and nothing is looked at.
pub(super) fn narrow_deletions<'a>(changes: &'a [Change], stored: &StoredRows) -> Cow<'a, [Change]> {
    let is_of_one_definition = |change: &Change| {
        matches!(
            change,
            Change::Delete {
                definition: Some(_),
                ..
            }
        )
    };
    if !changes.iter().any(is_of_one_definition) {
        return Cow::Borrowed(changes);
    }
    let mut newest: HashMap<RecordId, Row<'_>> = stored
        .iter()
        .map(|(id, existing)| (id, (&stored.rows, existing.row)))
        .collect();
    let mut narrowed = Vec::with_capacity(changes.len());
    for change in changes {
        narrowed.push(match change {
            Change::Put { rows, given, .. } => {
                newest.extend(chosen(rows, given));
                change.clone()
            }
            Change::Delete { records, definition } => {
                let is_meant = |id: &RecordId| match (newest.get(id), definition) {
                    (Some(row), Some(definition)) => belongs(*row, definition),
                    (row, _) => row.is_some(),
                };
                let records = records.as_slice().iter().copied();
                let records: Vec<RecordId> = records.filter(is_meant).collect();
                for id in &records {
                    newest.remove(id);
                }
                Change::Delete {
                    records: records.into(),
                    definition: None,
                }
            }
        });
    }
    Cow::Owned(narrowed)
}

/// The rows whose ids the caller chose, with these ids: no tombstone names another.
fn chosen<'a>(rows: &'a RecordBatch, given: &'a [bool]) -> impl Iterator<Item = (RecordId, Row<'a>)> {
    let ids = rows.columns().first();
    let ids = ids.and_then(|ids| ids.as_any().downcast_ref::<FixedSizeBinaryArray>());
    ids.into_iter()
        .flat_map(move |ids| ids.iter().zip(given).enumerate())
        .filter(|(_, (_, given))| **given)
        .filter_map(move |(row, (id, _))| Some((RecordId::from_slice(id?)?, (rows, row))))
}

fn belongs((rows, row): Row<'_>, definition: &str) -> bool {
    let sources = rows.column_by_name(DEFINITION);
    let Some(sources) = sources.and_then(|sources| sources.as_dictionary_opt::<Int32Type>()) else {
        return false;
    };
    let texts = sources.downcast_dict::<StringArray>();
    texts.is_some_and(|texts| texts.is_valid(row) && texts.value(row) == definition)
}
