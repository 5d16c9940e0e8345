//! The columns of an answer that are computed, and of those that are stored the members that have to be read.
//!
//! Knows layouts and the names of columns; must not know rows, ranges or plans.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Schema, SchemaRef};
use datafusion::logical_expr::Expr;

use crate::model::registry::ReadFrom;

use super::TypedPartition;
use super::ground::columns::{ColumnError, Columns as ShownColumns};
use super::ground::grown;
use super::ground::key::KEY_ORDER;

/// The columns of an answer that are computed.
#[derive(Clone, Copy)]
pub(super) struct AnswerColumns<'a> {
    columns: Option<&'a ShownColumns>,
    /// Whether rows of several partitions are merged into one order, which needs the columns of the key.
    in_order: bool,
}

impl<'a> AnswerColumns<'a> {
    /// What the `columns` that are asked for need, of all columns of `partitions`.
    pub(super) fn of(
        partitions: &[TypedPartition],
        columns: Option<&'a ShownColumns>,
    ) -> Result<Self, ColumnError> {
        if let Some(columns) = columns {
            let layouts = partitions.iter().map(|partition| &partition.data_type.layout);
            let names = layouts.flat_map(|layout| layout.read.iter().map(|column| column.name.as_str()));
            columns.are_among(names)?;
        }
        Ok(Self {
            columns,
            in_order: partitions.len() > 1,
        })
    }

    /// The stored columns of a partition with struct columns reduced to the members that the answer needs, if
    /// any can be left out. Other members are not read.
    pub(super) fn narrowed(self, partition: &TypedPartition, condition: Option<&Expr>) -> Option<SchemaRef> {
        let shown = self.columns?;
        let layout = &partition.data_type.layout;
        // Members that were sent before their declaration may be any of these.
        if self.in_order || grown::has_grown(&partition.data_type) {
            return None;
        }
        let mut fields: Vec<FieldRef> = layout.storage.fields().iter().cloned().collect();
        let mut is_less = false;
        for column in &layout.read {
            let (ReadFrom::Column(name) | ReadFrom::Versions { column: name, .. }) = &column.from else {
                continue;
            };
            let compared = |condition: &Expr| condition.column_refs().iter().any(|held| held.name == *name);
            let Some(field) = fields.iter_mut().find(|field| field.name() == name) else {
                continue;
            };
            if let ArrowType::Struct(members) = field.data_type()
                && !condition.is_some_and(compared)
                && let Some(kept) = shown.members_of(&column.name, members, |member| {
                    layout.tells_owners_names(name, member)
                })
                && kept.len() < members.len()
            {
                *field = Arc::new(field.as_ref().clone().with_data_type(ArrowType::Struct(kept)));
                is_less = true;
            }
        }
        let metadata = layout.storage.metadata().clone();
        is_less.then(|| Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    pub(super) fn includes(self, name: &str) -> bool {
        self.columns.is_none_or(|columns| columns.touch(name)) || (self.in_order && KEY_ORDER.contains(&name))
    }
}
