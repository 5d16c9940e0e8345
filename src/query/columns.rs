//! The columns of an answer that are asked for, by name; dots reach into structs.
//!
//! What stands under other names is not answered, and where rows are read from storage it is not read. Knows
//! plans and columns; knows nothing of types or of what is asked.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::get_field;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::limit::GlobalLimitExec;
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
    #[error("the answer has a column {0} already")]
    Taken(&'static str),
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

    /// The structure of the column `name` with those of its members that are asked for. `None` where more
    /// than some members are, or one that there is not.
    pub(super) fn members_of(&self, name: &str, held: &Fields) -> Option<Fields> {
        let mut wanted = Vec::new();
        for path in self.0.iter().filter(|path| path.column() == name) {
            let (member, _) = held.find(path.members().next()?)?;
            wanted.push(member);
        }
        if wanted.is_empty() || self.0.iter().any(|path| path.0 == name) {
            return None;
        }
        let kept = held
            .iter()
            .enumerate()
            .filter(|(place, _)| wanted.contains(place));
        Some(kept.map(|(_, member)| Arc::clone(member)).collect())
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

impl Prepared {
    /// The first so many rows of the same answer; all of them where no number is given.
    #[must_use]
    pub fn first(mut self, limit: Option<usize>) -> Self {
        if limit.is_some() {
            self.plan = Arc::new(GlobalLimitExec::new(self.plan, 0, limit));
        }
        self
    }

    /// The same answer with one column more, the last.
    pub(super) fn with_column(
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
