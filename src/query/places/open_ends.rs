//! Unknown ends of visits. They are recorded as arrivals in the year 1 and departures in the year 4001, and
//! returned so to clients that expect that; others get null.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column, Literal};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::query::{Prepared, QueryError};

use crate::query::ground::events::{FIRST_KNOWN, FIRST_UNKNOWN};

const ARRIVAL: &str = "arrival_date";
const DEPARTURE: &str = "departure_date";

impl Prepared {
    /// The visits of this answer with null for unknown ends.
    pub fn with_open_ends(mut self) -> Result<Self, QueryError> {
        let held = self.plan.schema();
        let mut expressions = Vec::with_capacity(held.fields().len());
        let mut fields: Vec<FieldRef> = Vec::with_capacity(held.fields().len());
        for (place, (field, shown)) in held.fields().iter().zip(self.schema.fields()).enumerate() {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
            let unknown = match field.name().as_str() {
                ARRIVAL => Some((Operator::Lt, FIRST_KNOWN)),
                DEPARTURE => Some((Operator::GtEq, FIRST_UNKNOWN)),
                _ => None,
            };
            let alias = field.name().clone();
            let Some((operator, bound)) = unknown else {
                fields.push(Arc::clone(shown));
                expressions.push(ProjectionExpr { expr: column, alias });
                continue;
            };
            let moment = |micros: Option<i64>| -> Arc<dyn PhysicalExpr> {
                let moment = ScalarValue::TimestampMicrosecond(micros, Some("UTC".into()));
                Arc::new(Literal::new(moment))
            };
            let is_unknown: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(
                Arc::clone(&column),
                operator,
                moment(Some(bound)),
            ));
            let known = CaseExpr::try_new(None, vec![(is_unknown, moment(None))], Some(column))?;
            fields.push(Arc::new(shown.as_ref().clone().with_nullable(true)));
            expressions.push(ProjectionExpr {
                expr: Arc::new(known),
                alias,
            });
        }
        self.plan = Arc::new(ProjectionExec::try_new(expressions, Arc::clone(&self.plan))?);
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }
}
