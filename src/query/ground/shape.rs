//! Turns stored columns into the columns of an answer.
//!
//! The layout of a type says which columns an answer shows and where each comes from; this module makes
//! expressions of it. Knows layouts; knows nothing of rows or files.

mod shown;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::{ident, lit};

use crate::model::columns::{END, EXTRAS, ID, START};
use crate::model::permit::ReadPermit;
use crate::model::registry::{Layout, ReadColumn, ReadFrom, uuid_field};

use super::computed::{Columns, projector};
use super::constant_text::constant_text;
use super::for_others::private;
use super::uuid_text::UuidText;
use shown::{ExtrasWith, VersionLists};

/// The form of ids in an answer: 16 bytes marked as a UUID, which text encoders print, or text for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdForm {
    Bytes,
    Text,
}

/// Who an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Owner,
    /// Somebody other than the owner: columns that name devices, applications and tags are hidden.
    Others,
}

impl Visibility {
    #[must_use]
    pub const fn through<Authority>(permit: &ReadPermit<Authority>) -> Self {
        if permit.is_own() {
            Self::Owner
        } else {
            Self::Others
        }
    }
}

/// The stored columns from which the `wanted` columns of an answer are made.
#[must_use]
pub fn stored_columns(layout: &Layout, sees: Visibility, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut needed: Vec<usize> = layout
        .read
        .iter()
        .filter(|column| wanted(&column.name))
        .flat_map(|column| names_of(&column.from))
        .filter(|name| sees == Visibility::Owner || private::is_needed(layout, name))
        .filter_map(|name| layout.storage.index_of(name).ok())
        .collect();
    needed.sort_unstable();
    needed.dedup();
    needed
}

fn names_of(from: &ReadFrom) -> Vec<&str> {
    match from {
        ReadFrom::Id => vec![ID],
        ReadFrom::Start => vec![START],
        ReadFrom::End => vec![END],
        ReadFrom::Span => vec![START, END],
        ReadFrom::Column(name) | ReadFrom::Versions { column: name, .. } => vec![name],
        ReadFrom::Extras { hidden } => std::iter::once(EXTRAS)
            .chain(hidden.iter().map(String::as_str))
            .collect(),
        ReadFrom::Constant(_) | ReadFrom::Null => vec![],
    }
}

/// For [`schema`] and [`stored_columns`]: every column of an answer.
#[must_use]
pub const fn everything(_name: &str) -> bool {
    true
}

/// The `wanted` columns of an answer with their names, made from the stored columns of `layout` that are in
/// `held`.
pub(in crate::query) fn columns(
    layout: &Layout,
    held: &Schema,
    ids: IdForm,
    sees: Visibility,
    wanted: impl Fn(&str) -> bool,
) -> Result<Columns> {
    let shown = layout.read.iter().filter(|column| wanted(&column.name));
    let column = |column: &ReadColumn| {
        let expr = match sees {
            Visibility::Owner => expression(&column.from, ids),
            Visibility::Others => public(&column.from, layout, held, ids)?,
        };
        Ok((expr, column.name.clone()))
    };
    shown.map(column).collect()
}

/// The schema of the `wanted` columns of an answer.
pub(in crate::query) fn schema(
    layout: &Layout,
    ids: IdForm,
    sees: Visibility,
    wanted: impl Fn(&str) -> bool,
) -> Result<SchemaRef> {
    let columns = columns(layout, &layout.storage, ids, sees, wanted)?;
    Ok(Arc::clone(projector(&layout.storage, columns)?.output_schema()))
}

/// A column of the answer for somebody other than the owner.
fn public(from: &ReadFrom, layout: &Layout, held: &Schema, ids: IdForm) -> Result<Expr> {
    Ok(match from {
        ReadFrom::Column(name) => private::public(layout, name, held)?,
        ReadFrom::Extras { .. } => private::public(layout, EXTRAS, held)?,
        ReadFrom::Versions { column, members } => {
            let versions = ScalarUDF::new_from_impl(VersionLists::new(members));
            versions.call(vec![private::public(layout, column, held)?])
        }
        from => expression(from, ids),
    })
}

fn expression(from: &ReadFrom, ids: IdForm) -> Expr {
    match from {
        ReadFrom::Id => {
            let function = match ids {
                IdForm::Bytes => ScalarUDF::new_from_impl(MarkedUuid::new()),
                IdForm::Text => ScalarUDF::new_from_impl(UuidText::new()),
            };
            function.call(vec![ident(ID)])
        }
        ReadFrom::Start => ident(START),
        ReadFrom::End => ident(END),
        ReadFrom::Column(name) => ident(name),
        ReadFrom::Versions { column, members } => {
            ScalarUDF::new_from_impl(VersionLists::new(members)).call(vec![ident(column)])
        }
        ReadFrom::Extras { hidden } => {
            let columns = std::iter::once(EXTRAS).chain(hidden.iter().map(String::as_str));
            ScalarUDF::new_from_impl(ExtrasWith::new(hidden)).call(columns.map(ident).collect())
        }
        ReadFrom::Span => datafusion::functions::core::named_struct().call(vec![
            lit("start_time"),
            ident(START),
            lit("end_time"),
            ident(END),
        ]),
        ReadFrom::Constant(text) => constant_text(text),
        ReadFrom::Null => lit(ScalarValue::Utf8(None)),
    }
}

/// Marks stored ids as UUIDs without touching them, so that encoders know what the bytes are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MarkedUuid {
    signature: Signature,
}

impl MarkedUuid {
    fn new() -> Self {
        Self {
            signature: Signature::exact(vec![ArrowType::FixedSizeBinary(16)], Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for MarkedUuid {
    fn name(&self) -> &'static str {
        "marked_uuid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::FixedSizeBinary(16))
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(uuid_field(self.name())))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        arguments
            .args
            .pop()
            .ok_or_else(|| datafusion::common::internal_datafusion_err!("marked_uuid takes one argument"))
    }
}
