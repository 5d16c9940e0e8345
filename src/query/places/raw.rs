//! Rows of one type as they were recorded, in the columns that clients know, perhaps of some sources or
//! calendars only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal, in_list};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::permit::ReadPermit;
use crate::model::registry::Layout;
use crate::model::time::TimeRange;
use crate::query::shape::{self, IdForm, Sees};
use crate::query::{Archive, Prepared, QueryError};

use super::{Granted, Pinned};

/// The stored column of who wrote a row.
const SOURCE: &str = "source";

/// Rows in which one of `columns` holds one of `values`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OneOf {
    /// Stored columns of text.
    pub columns: &'static [&'static str],
    pub values: Vec<String>,
}

/// What is asked of the rows of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawSpec {
    /// The columns of the answer, by their names in the type's own shape, in this order.
    pub columns: &'static [&'static str],
    pub only: Option<OneOf>,
    pub ids: IdForm,
}

impl<Authority> Archive<Authority> {
    /// The rows that the permit lets be seen.
    pub async fn raw(&self, granted: &Granted<Authority>, spec: &RawSpec) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(granted).await?;
        let plan = self.shown(&pinned, spec, None)?;
        Ok(Prepared {
            schema: plan.schema(),
            plan,
            states: vec![pinned.state()],
            scope: pinned.scope(),
        })
    }

    /// The rows inside `wanted`, or all that may be seen.
    pub(super) fn shown(
        &self,
        pinned: &Pinned<'_, Authority>,
        spec: &RawSpec,
        wanted: Option<TimeRange>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let rows = self.chosen(pinned, spec, &[], wanted)?;
        let layout = &pinned.granted.source.data_type.layout;
        let rows = shape::project(
            rows,
            layout,
            spec.ids,
            Sees::through(&pinned.granted.permit),
            shape::everything,
        )?;
        Ok(columns(rows, spec.columns)?)
    }

    /// The stored columns that `spec` and `besides` need, of the rows that it chooses.
    pub(super) fn chosen(
        &self,
        pinned: &Pinned<'_, Authority>,
        spec: &RawSpec,
        besides: &[&str],
        wanted: Option<TimeRange>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let layout = &pinned.granted.source.data_type.layout;
        let asked = spec.only.iter().flat_map(|only| only.columns).chain(besides);
        let asked = asked.filter_map(|name| layout.storage.index_of(name).ok());
        let shown = shape::stored_columns(layout, Sees::through(&pinned.granted.permit), shape::everything);
        let needed: Vec<usize> = shown.into_iter().chain(asked).collect();
        let rows = self.rows_within(pinned, needed, &pinned.windows(wanted))?;
        match &spec.only {
            None => Ok(rows),
            Some(only) if only.is_refused(&pinned.granted.permit, layout) => {
                Ok(Arc::new(EmptyExec::new(rows.schema())))
            }
            Some(only) => Ok(Arc::new(FilterExec::try_new(
                only.condition(&rows.schema())?,
                rows,
            )?)),
        }
    }
}

impl OneOf {
    /// Whether the reader may not ask by these columns. Then no row is known to be one of those.
    pub(super) fn is_refused<Authority>(&self, permit: &ReadPermit<Authority>, layout: &Layout) -> bool {
        let tells_who = |name: &&str| *name == SOURCE || layout.is_private(name);
        !permit.is_own() && self.columns.iter().any(tells_who)
    }

    pub(super) fn condition(&self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let mut condition: Option<Arc<dyn PhysicalExpr>> = None;
        for name in self.columns {
            let stored = Arc::new(Column::new(name, schema.index_of(name)?));
            let text = Arc::new(CastExpr::new(stored, ArrowType::Utf8, None));
            let values = self
                .values
                .iter()
                .map(|value| {
                    Arc::new(Literal::new(ScalarValue::from(value.as_str()))) as Arc<dyn PhysicalExpr>
                })
                .collect();
            let is_one = in_list(text, values, &false, schema)?;
            condition = Some(match condition {
                None => is_one,
                Some(other) => Arc::new(BinaryExpr::new(other, Operator::Or, is_one)),
            });
        }
        Ok(condition.unwrap_or_else(|| Arc::new(Literal::new(ScalarValue::Boolean(Some(false))))))
    }
}

/// The named columns, in the order of the names.
pub(super) fn columns(rows: Arc<dyn ExecutionPlan>, names: &[&str]) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let expressions = names
        .iter()
        .map(|name| {
            Ok(ProjectionExpr {
                expr: Arc::new(Column::new(name, schema.index_of(name)?)) as Arc<dyn PhysicalExpr>,
                alias: (*name).to_owned(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, rows)?))
}
