//! The columns of an answer that are asked for, by name; dots reach into structs.
//!
//! What stands under other names is not answered, and where rows are read from storage it is not read. Knows
//! plans and columns; knows nothing of types or of what is asked.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::get_field;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::nearest::{hint, nearest};

use super::records::{Prepared, QueryError};

#[cfg(test)]
mod tests;

/// A column, or a member of one: `value`, `source_properties.name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ColumnPath(String);

/// Which columns an answer has, and in which order. There is at least one, and none twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Columns(Vec<ColumnPath>);

/// Why columns cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    #[error("no column is named")]
    None,
    #[error("column {0} is named twice")]
    Twice(String),
    #[error("there is no column {name}{}", hint(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("column {0} has no members")]
    NoMembers(String),
}

impl ColumnPath {
    /// The column in which it lies.
    fn column(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    fn members(&self) -> impl Iterator<Item = &str> {
        self.0.split('.').skip(1)
    }
}

impl fmt::Display for ColumnPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Columns {
    pub fn new(names: Vec<String>) -> Result<Self, ColumnError> {
        if names.is_empty() {
            return Err(ColumnError::None);
        }
        let twice = names
            .iter()
            .enumerate()
            .find(|(place, name)| names.iter().take(*place).any(|earlier| earlier == *name));
        if let Some((_, name)) = twice {
            return Err(ColumnError::Twice(name.clone()));
        }
        Ok(Self(names.into_iter().map(ColumnPath).collect()))
    }

    /// Whether something of the column `name` is asked for.
    pub(super) fn touch(&self, name: &str) -> bool {
        self.0.iter().any(|path| path.0 == name || path.column() == name)
    }

    /// Whether each of them lies in one of the columns `known`.
    pub(super) fn are_among<'a>(
        &self,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ColumnError> {
        for path in &self.0 {
            if !known.clone().any(|name| name == path.0 || name == path.column()) {
                return Err(unknown(path, path.column(), known));
            }
        }
        Ok(())
    }
}

fn unknown<'a>(path: &ColumnPath, part: &str, known: impl Iterator<Item = &'a str>) -> ColumnError {
    ColumnError::Unknown {
        name: path.to_string(),
        nearest: nearest(part, known).map(str::to_owned),
    }
}

impl Prepared {
    /// The same answer with the columns that are asked for, in their order; with all where none are named.
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

/// What is found along a path, and the field that describes it. `held` is what the plan calls its columns,
/// `shown` how they are described to the caller.
fn reached(
    path: &ColumnPath,
    held: &SchemaRef,
    shown: &Schema,
) -> Result<(Arc<dyn PhysicalExpr>, Field), QueryError> {
    // A name may have dots of its own.
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
