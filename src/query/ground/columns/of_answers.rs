//! Answers reduced to the selected columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::get_field;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::super::errors::QueryError;
use super::super::operator::limited;
use super::super::prepared::Prepared;
use super::{ColumnError, ColumnPath, Columns, unknown};

impl Prepared {
    /// The first `limit` rows of the same answer; all of them without a limit.
    #[must_use]
    pub fn first(mut self, limit: Option<usize>) -> Self {
        self.plan = limited(self.plan, limit);
        self
    }

    /// This answer with one more column, the last.
    pub(in crate::query) fn with_column(
        mut self,
        expr: Arc<dyn PhysicalExpr>,
        field: Field,
    ) -> Result<Self, QueryError> {
        let held = self.plan.schema();
        let own = held
            .fields()
            .iter()
            .enumerate()
            .map(|(place, held)| ProjectionExpr {
                expr: Arc::new(Column::new(held.name(), place)),
                alias: held.name().clone(),
            });
        let mut expressions: Vec<ProjectionExpr> = own.collect();
        expressions.push(ProjectionExpr {
            expr,
            alias: field.name().clone(),
        });
        self.plan = Arc::new(ProjectionExec::try_new(expressions, Arc::clone(&self.plan))?);
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        fields.push(Arc::new(field));
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }

    /// This answer with the selected columns only, in their order; with all where none are selected.
    pub fn only(mut self, columns: Option<&Columns>) -> Result<Self, QueryError> {
        let Some(columns) = columns else { return Ok(self) };
        let held = self.plan.schema();
        let mut expressions = Vec::with_capacity(columns.0.len());
        let mut fields = Vec::with_capacity(columns.0.len());
        for path in &columns.0 {
            let (expr, field) = reached(path, &held, &self.schema)?;
            expressions.push(ProjectionExpr {
                expr,
                alias: path.to_string(),
            });
            fields.push(field.with_name(path.to_string()));
        }
        self.plan = Arc::new(ProjectionExec::try_new(expressions, Arc::clone(&self.plan))?);
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }
}

/// The value at the end of a path, and the field that describes it. `held` is the plan's schema, `shown` the
/// schema that the caller sees.
fn reached(
    path: &ColumnPath,
    held: &SchemaRef,
    shown: &Schema,
) -> Result<(Arc<dyn PhysicalExpr>, Field), QueryError> {
    // A column's own name may contain dots.
    if let Some((place, _)) = held.column_with_name(&path.0) {
        return Ok((Arc::new(Column::new(&path.0, place)), shown.field(place).clone()));
    }
    let names = || held.fields().iter().map(|field| field.name().as_str());
    let Some((place, _)) = held.column_with_name(path.column()) else {
        return Err(unknown(path, path.column(), names()).into());
    };
    let mut expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(path.column(), place));
    let mut field = shown.field(place).clone();
    for member in path.members() {
        let members = members_of(&field).ok_or_else(|| ColumnError::NoMembers(field.name().clone()))?;
        let Some((_, found)) = members.find(member) else {
            let names = members.iter().map(|field| field.name().as_str());
            return Err(unknown(path, member, names).into());
        };
        let nullable = field.is_nullable() || found.is_nullable();
        let name = Literal::new(ScalarValue::from(member));
        let options = Arc::new(ConfigOptions::default());
        let arguments = vec![expr, Arc::new(name) as Arc<dyn PhysicalExpr>];
        expr = Arc::new(ScalarFunctionExpr::try_new(
            get_field(),
            arguments,
            held,
            options,
        )?);
        field = found.as_ref().clone().with_nullable(nullable);
    }
    Ok((expr, field))
}

fn members_of(field: &Field) -> Option<Fields> {
    match field.data_type() {
        ArrowType::Struct(members) => Some(members.clone()),
        _ => None,
    }
}
