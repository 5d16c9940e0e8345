//! The columns that identify rows, and those that rows are sorted by.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_expr::LexOrdering;

use crate::model::columns::{END, ID, START};
use crate::model::registry::timestamp;

use super::operator::ascending;

/// Columns every scan yields first, because order and identity need them.
pub(in crate::query) const KEY_COLUMNS: [&str; 3] = [ID, START, END];
/// The columns by which the rows of a partition are sorted.
pub(in crate::query) const KEY_ORDER: [&str; 3] = [START, END, ID];

/// The columns that every partition has.
#[must_use]
pub(in crate::query) fn key_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(ID, DataType::FixedSizeBinary(16), false),
        Field::new(START, timestamp(), false),
        Field::new(END, timestamp(), false),
    ]))
}

/// The key order of every answer, as far as the schema has its columns.
pub(in crate::query) fn key_order(schema: &Schema) -> Result<LexOrdering> {
    ascending(schema, &KEY_ORDER).ok_or_else(|| internal_datafusion_err!("an order has keys"))
}
