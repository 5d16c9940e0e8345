//! Rows of types that grew: fields that were declared only after records had them are filled from what these
//! records brought undeclared.
//!
//! Only a person's own types grow, and types that have not grown cost nothing. Knows types and plans; knows
//! nothing of where the rows are.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::prelude::ident;
use serde_json::Value;

use crate::ingest::late::declared_later;
use crate::model::columns::{END, EXTRAS, ID, SOURCE, SOURCE_CLASS, START};
use crate::model::registry::{Canonical, DataType, Undeclared};

use super::computed::{Computed, computed, with_replaced};
use super::operator::Plan;

/// The first version of a definition; each change increments it.
const FIRST_VERSION: u32 = 1;

/// Whether records may hold members from before these were declared.
pub(in crate::query) fn has_grown(data_type: &DataType) -> bool {
    let layout = &data_type.layout;
    layout.undeclared == Undeclared::AsGiven && layout.version > FIRST_VERSION
}

/// The stored `columns` that have to be filled. If there are any, `extras` has to be read too.
fn late(data_type: &DataType, columns: &[usize]) -> Vec<usize> {
    let layout = &data_type.layout;
    if !has_grown(data_type) {
        return Vec::new();
    }
    let base = |name: &str| matches!(name, ID | START | END | SOURCE | SOURCE_CLASS | EXTRAS);
    let is_own = |index: &&usize| {
        layout
            .storage
            .fields()
            .get(**index)
            .is_some_and(|field| !base(field.name()))
    };
    columns.iter().filter(is_own).copied().collect()
}

/// The stored columns to read in order to have `columns`: ascending, each once.
pub(in crate::query) fn needed(data_type: &DataType, mut columns: Vec<usize>) -> Vec<usize> {
    if !late(data_type, &columns).is_empty() {
        columns.extend(data_type.layout.storage.index_of(EXTRAS).ok());
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The rows of `plan`, which has the stored columns of [`needed`], with the fields filled.
pub(in crate::query) fn filled(plan: Plan, data_type: &DataType, columns: &[usize]) -> Result<Plan> {
    let late = late(data_type, columns);
    if late.is_empty() {
        return Ok(plan);
    }
    let storage = &data_type.layout.storage;
    let schema = data_type.schema.value();
    with_replaced(plan, |field| {
        let place = storage.index_of(field.name()).ok()?;
        let columns = [ident(field.name()), ident(EXTRAS)];
        let later = || computed(DeclaredLater::new(field, &schema), columns);
        late.contains(&place).then(later)
    })
}

/// `declared_later(column, extras)`: the column, or the undeclared member of its name where it is null.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DeclaredLater {
    column: FieldRef,
    canonical: Canonical,
}

impl DeclaredLater {
    /// `schema`: of the records of the column's type.
    fn new(column: &FieldRef, schema: &Value) -> Self {
        let property = schema
            .get("properties")
            .and_then(|properties| properties.get(column.name()));
        Self {
            column: Arc::clone(column),
            canonical: property
                .map(|property| Canonical::of(property, column))
                .unwrap_or_default(),
        }
    }
}

impl Computed<2> for DeclaredLater {
    const NAME: &'static str = "declared_later";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [values, extras]: [ArrayRef; 2]) -> Result<ArrayRef> {
        let filled = declared_later(&self.column, &self.canonical, &values, &extras)?;
        Ok(filled)
    }
}
