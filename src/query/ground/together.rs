//! Gives the rows of several types one schema.
//!
//! A column that one type lacks is null there. Where types hold different kinds of values under one name, the
//! column is JSON text, which preserves every value. Knows plans and columns; knows nothing of types or of
//! what is asked.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::registry::{is_json_text, json_text};

use super::json_text::JsonText;
use super::operator::Plan;

/// The columns of all schemas, in the order in which they first appear.
pub(in crate::query) fn common_schema(schemas: impl Iterator<Item = SchemaRef>) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    for schema in schemas {
        for field in schema.fields() {
            match fields.iter_mut().find(|known| known.name() == field.name()) {
                None => fields.push(field.as_ref().clone().with_nullable(true)),
                Some(known) => {
                    if let Some(common) = common(known, field) {
                        *known = common;
                    }
                }
            }
        }
    }
    Arc::new(Schema::new(fields))
}

/// A field that can hold the values of both, if `known` cannot.
fn common(known: &Field, field: &Field) -> Option<Field> {
    if holds(known, field) {
        None
    } else if is_plain_text(known) && is_plain_text(field) {
        Some(Field::new(known.name(), ArrowType::Utf8, true))
    } else {
        Some(json_text(known.name()))
    }
}

fn holds(known: &Field, field: &Field) -> bool {
    known.data_type() == field.data_type() && is_json_text(known) == is_json_text(field)
}

/// Text, however it is encoded.
fn is_plain_text(field: &Field) -> bool {
    let is_text =
        |held: &ArrowType| matches!(held, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View);
    let held = match field.data_type() {
        ArrowType::Dictionary(_, held) => held.as_ref(),
        held => held,
    };
    is_text(held) && !is_json_text(field)
}

/// `plan` with the columns of `schema`, the common schema of several plans.
pub(in crate::query) fn align(plan: Plan, schema: &SchemaRef) -> Result<Plan> {
    let own = plan.schema();
    let expressions = schema
        .fields()
        .iter()
        .map(|field| {
            Ok(ProjectionExpr {
                expr: aligned(&own, field)?,
                alias: field.name().clone(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}

fn aligned(own: &SchemaRef, field: &Field) -> Result<Arc<dyn PhysicalExpr>> {
    let Some((index, held)) = own.column_with_name(field.name()) else {
        let nothing = ScalarValue::try_from(field.data_type())?;
        return Ok(Arc::new(Literal::new_with_metadata(
            nothing,
            Some(FieldMetadata::from(field)),
        )));
    };
    let column = Arc::new(Column::new(field.name(), index));
    if holds(field, held) {
        Ok(column)
    } else if is_json_text(field) {
        let encode = Arc::new(ScalarUDF::new_from_impl(JsonText::new()));
        let options = Arc::new(ConfigOptions::default());
        Ok(Arc::new(ScalarFunctionExpr::try_new(
            encode,
            vec![column],
            own,
            options,
        )?))
    } else {
        Ok(Arc::new(CastExpr::new(column, field.data_type().clone(), None)))
    }
}
