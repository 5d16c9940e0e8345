//! From stored columns to the columns of an answer.
//!
//! The layout of a type says which columns an answer shows and where each comes from; this turns that into a
//! projection. Knows layouts and physical expressions; knows nothing of rows or files.

mod shown;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::permit::ReadPermit;
use crate::model::registry::{Layout, ReadFrom};

use super::shared::private;
use super::uuid_text::UuidText;
use shown::{ExtrasWith, VersionLists};

/// The stored column of members that a type's schema does not declare.
const EXTRAS: &str = "extras";

/// How ids leave: as 16 bytes marked as a UUID, which text encoders print themselves, or as text for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdForm {
    Bytes,
    Text,
}

/// Whose eyes an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    Everything,
    /// Somebody else than the owner: what names devices, applications and tags is left out.
    Public,
}

impl Sees {
    #[must_use]
    pub const fn through<Authority>(permit: &ReadPermit<Authority>) -> Self {
        if permit.is_own() {
            Self::Everything
        } else {
            Self::Public
        }
    }
}

/// The stored columns that the columns of an answer that are `wanted` are made from.
#[must_use]
pub fn stored_columns(layout: &Layout, sees: Sees, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut needed: Vec<usize> = layout
        .read
        .iter()
        .filter(|column| wanted(&column.name))
        .flat_map(|column| names_of(&column.from))
        .filter(|name| sees == Sees::Everything || private::is_needed(layout, name))
        .filter_map(|name| layout.storage.index_of(name).ok())
        .collect();
    needed.sort_unstable();
    needed.dedup();
    needed
}

fn names_of(from: &ReadFrom) -> Vec<&str> {
    match from {
        ReadFrom::Id => vec!["id"],
        ReadFrom::Start => vec!["start_time"],
        ReadFrom::End => vec!["end_time"],
        ReadFrom::Span => vec!["start_time", "end_time"],
        ReadFrom::Column(name) | ReadFrom::Versions { column: name, .. } => vec![name],
        ReadFrom::Extras { hidden } => std::iter::once(EXTRAS)
            .chain(hidden.iter().map(String::as_str))
            .collect(),
        ReadFrom::Constant(_) | ReadFrom::Null => vec![],
    }
}

/// For [`project`] and [`stored_columns`]: every column of an answer.
#[must_use]
pub const fn everything(_name: &str) -> bool {
    true
}

/// Projects rows with (some of) the stored columns of `layout` to the columns of an answer that are `wanted`.
pub fn project(
    input: Arc<dyn ExecutionPlan>,
    layout: &Layout,
    ids: IdForm,
    sees: Sees,
    wanted: impl Fn(&str) -> bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let expressions = layout
        .read
        .iter()
        .filter(|column| wanted(&column.name))
        .map(|column| {
            let expr = match &column.from {
                from if sees == Sees::Public => public(from, layout, &schema, ids)?,
                from => expression(from, &schema, ids)?,
            };
            Ok(ProjectionExpr {
                expr,
                alias: column.name.clone(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, input)?))
}

/// The same for somebody else than the owner.
fn public(
    from: &ReadFrom,
    layout: &Layout,
    schema: &SchemaRef,
    ids: IdForm,
) -> Result<Arc<dyn PhysicalExpr>> {
    match from {
        ReadFrom::Column(name) => private::public(layout, name, schema),
        ReadFrom::Extras { .. } => private::public(layout, EXTRAS, schema),
        ReadFrom::Versions { column, members } => {
            let function = ScalarUDF::new_from_impl(VersionLists::new(members));
            call(function, vec![private::public(layout, column, schema)?], schema)
        }
        from => expression(from, schema, ids),
    }
}

fn expression(from: &ReadFrom, schema: &SchemaRef, ids: IdForm) -> Result<Arc<dyn PhysicalExpr>> {
    match from {
        ReadFrom::Id => {
            let id = stored("id", schema)?;
            match ids {
                IdForm::Bytes => call(ScalarUDF::new_from_impl(MarkedUuid::new()), vec![id], schema),
                IdForm::Text => call(ScalarUDF::new_from_impl(UuidText::new()), vec![id], schema),
            }
        }
        ReadFrom::Start => stored("start_time", schema),
        ReadFrom::End => stored("end_time", schema),
        ReadFrom::Column(name) => stored(name, schema),
        ReadFrom::Versions { column, members } => {
            let function = ScalarUDF::new_from_impl(VersionLists::new(members));
            call(function, vec![stored(column, schema)?], schema)
        }
        ReadFrom::Extras { hidden } => {
            let columns = std::iter::once(EXTRAS).chain(hidden.iter().map(String::as_str));
            let arguments = columns
                .map(|name| stored(name, schema))
                .collect::<Result<Vec<_>>>()?;
            call(
                ScalarUDF::new_from_impl(ExtrasWith::new(hidden)),
                arguments,
                schema,
            )
        }
        ReadFrom::Span => {
            let start: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from("start_time")));
            let end: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::from("end_time")));
            let arguments = vec![
                start,
                stored("start_time", schema)?,
                end,
                stored("end_time", schema)?,
            ];
            call(
                datafusion::functions::core::named_struct().as_ref().clone(),
                arguments,
                schema,
            )
        }
        ReadFrom::Constant(text) => Ok(Arc::new(Literal::new(constant(text)))),
        ReadFrom::Null => Ok(Arc::new(Literal::new(ScalarValue::Utf8(None)))),
    }
}

/// The same text in every row costs four bytes a row as a dictionary, and its length as a string.
pub(in crate::query) fn constant(text: &str) -> ScalarValue {
    ScalarValue::Dictionary(Box::new(ArrowType::Int32), Box::new(ScalarValue::from(text)))
}

fn stored(name: &str, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(Column::new(name, schema.index_of(name)?)))
}

fn call(
    function: ScalarUDF,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    schema: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(ScalarFunctionExpr::try_new(
        Arc::new(function),
        arguments,
        schema,
        Arc::new(ConfigOptions::default()),
    )?))
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
        let metadata = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into();
        Ok(Arc::new(
            Field::new(self.name(), ArrowType::FixedSizeBinary(16), false).with_metadata(metadata),
        ))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        arguments
            .args
            .pop()
            .ok_or_else(|| datafusion::common::internal_datafusion_err!("marked_uuid takes one argument"))
    }
}
