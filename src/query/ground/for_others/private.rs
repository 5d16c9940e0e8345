//! Hides the columns that only the owner may see, rule 9.2d.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;

use crate::model::columns::EXTRAS;
use crate::model::registry::{Layout, Undeclared};
use crate::query::ground::computed::{Computed, computed};

/// Members that identify the source, where a person's own type does not declare them.
const IDENTIFYING_MEMBERS: [&str; 7] = [
    "device",
    "device_properties",
    "source_id",
    "source_properties",
    "source_revision",
    "sources",
    "tags",
];

/// Whether a stored column has to be read for somebody other than the owner.
pub(in crate::query) fn is_needed(layout: &Layout, column: &str) -> bool {
    !layout.is_private(column) || is_own_words(layout, column)
}

/// Undeclared members that a person wrote into records of a type of their own.
fn is_own_words(layout: &Layout, column: &str) -> bool {
    column == EXTRAS && layout.undeclared == Undeclared::AsGiven
}

/// A stored column as others see it.
pub(in crate::query) fn public(layout: &Layout, column: &str, rows: &Schema) -> Result<Expr> {
    if !is_needed(layout, column) {
        let field = layout.storage.field_with_name(column)?;
        let nothing = ScalarValue::try_from(field.data_type())?;
        return Ok(Expr::Literal(nothing, Some(FieldMetadata::from(field))));
    }
    let stored = ident(column);
    let members = layout.private.iter().filter_map(|private| {
        private
            .strip_prefix(column)
            .and_then(|rest| rest.strip_prefix('.'))
    });
    let mut hidden: Vec<String> = members.map(str::to_owned).collect();
    if is_own_words(layout, column) {
        hidden.extend(IDENTIFYING_MEMBERS.map(str::to_owned));
    }
    if hidden.is_empty() {
        return Ok(stored);
    }
    let public = WithoutMembers {
        column: Arc::new(rows.field_with_name(column)?.clone().with_nullable(true)),
        hidden,
    };
    Ok(computed(public, [stored]))
}

/// `without_members(object)`: the struct with some members set to null, or the JSON object without them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutMembers {
    column: FieldRef,
    hidden: Vec<String>,
}

impl WithoutMembers {
    fn hides(&self, member: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == member)
    }

    fn of_structure(&self, structure: &StructArray) -> Result<ArrayRef> {
        let seen = |(field, member): (&Arc<Field>, &ArrayRef)| {
            if self.hides(field.name()) {
                new_null_array(member.data_type(), member.len())
            } else {
                Arc::clone(member)
            }
        };
        let members = structure.fields().iter().zip(structure.columns()).map(seen);
        Ok(Arc::new(StructArray::try_new(
            structure.fields().clone(),
            members.collect(),
            structure.nulls().cloned(),
        )?))
    }

    fn of_text(&self, text: &str) -> Option<String> {
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        object.retain(|member, _| !self.hides(member));
        (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
    }
}

impl Computed<1> for WithoutMembers {
    const NAME: &'static str = "without_members";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [objects]: [ArrayRef; 1]) -> Result<ArrayRef> {
        if let Some(structure) = objects.as_struct_opt() {
            return self.of_structure(structure);
        }
        let texts = cast(&objects, &ArrowType::Utf8)?;
        let texts = texts.as_string::<i32>().iter();
        let seen: StringArray = texts.map(|text| self.of_text(text?)).collect();
        Ok(cast(&seen, self.column.data_type())?)
    }
}
