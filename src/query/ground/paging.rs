//! Pages of an answer: where one ends, and what comes after that.
//!
//! Rows have a fixed order, and a page is what follows a place in it, whether or not there is a row at that
//! place any more. What is written or deleted elsewhere moves no page; a row that comes to lie before the
//! place is on none of those that follow. Knows plans and the order of rows; knows nothing of how a place is
//! told to anybody.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::{TimestampMicrosecondType, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};

use super::order::Order;

/// Which of the partitions a row is of, on its way through a plan.
const PARTITION: &str = "\u{1}partition";
const KEYS: [&str; 3] = ["start_time", "end_time", "id"];

/// A place in the order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowPlace {
    pub start: i64,
    pub end: i64,
    pub id: [u8; 16],
    /// Rows of several partitions that are equal in all of these come in the order of their partitions.
    pub partition: u64,
}

/// What stands for a partition in a place.
pub(in crate::query) fn number_of(partition: &TypeId) -> u64 {
    let mut hasher = DefaultHasher::new();
    partition.as_str().hash(&mut hasher);
    hasher.finish()
}

impl RowPlace {
    /// When rows begin that come after it.
    pub(in crate::query) fn begins(&self, order: Order) -> TimeRange {
        match order {
            Order::Ascending => TimeRange::between(Instant::from_micros(self.start), Instant::MAX),
            Order::Descending => {
                TimeRange::between(Instant::MIN, Instant::from_micros(self.start.saturating_add(1)))
            }
        }
    }

    /// Those of `rows` that come after it; the one at the very place too, where it is of a partition that
    /// comes `later`.
    pub(in crate::query) fn after(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        order: Order,
        later: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let beyond = match order {
            Order::Ascending => Operator::Gt,
            Order::Descending => Operator::Lt,
        };
        let last = match (order, later) {
            (Order::Ascending, true) => Operator::GtEq,
            (Order::Descending, true) => Operator::LtEq,
            (_, false) => beyond,
        };
        let moment = |micros: i64| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()));
        let id = ScalarValue::FixedSizeBinary(16, Some(self.id.to_vec()));
        let places = [moment(self.start), moment(self.end), id];
        let schema = rows.schema();
        let mut condition: Option<Arc<dyn PhysicalExpr>> = None;
        for (name, place) in KEYS.iter().zip(places).rev() {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, schema.index_of(name)?));
            let place: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(place));
            let than = |operator: Operator| -> Arc<dyn PhysicalExpr> {
                Arc::new(BinaryExpr::new(Arc::clone(&column), operator, Arc::clone(&place)))
            };
            condition = Some(match condition {
                None => than(last),
                Some(within) => {
                    let same = Arc::new(BinaryExpr::new(than(Operator::Eq), Operator::And, within));
                    Arc::new(BinaryExpr::new(than(beyond), Operator::Or, same))
                }
            });
        }
        let condition = condition.ok_or_else(|| internal_datafusion_err!("an order has keys"))?;
        Ok(Arc::new(FilterExec::try_new(condition, rows)?))
    }

    fn of(batch: &RecordBatch, row: usize) -> Result<Self> {
        let missing = || internal_datafusion_err!("a row without a place");
        let time = |name: &str| {
            let column = batch.column_by_name(name)?;
            Some(column.as_primitive_opt::<TimestampMicrosecondType>()?.value(row))
        };
        let id = batch
            .column_by_name("id")
            .and_then(|ids| ids.as_fixed_size_binary_opt());
        let partition = batch
            .column_by_name(PARTITION)
            .and_then(|numbers| numbers.as_primitive_opt::<UInt64Type>());
        Ok(Self {
            start: time("start_time").ok_or_else(missing)?,
            end: time("end_time").ok_or_else(missing)?,
            id: id
                .and_then(|ids| ids.value(row).try_into().ok())
                .ok_or_else(missing)?,
            partition: partition.ok_or_else(missing)?.value(row),
        })
    }
}

/// Only what says where rows are.
pub(in crate::query) fn places_of(
    rows: Arc<dyn ExecutionPlan>,
    partition: u64,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let mut columns = KEYS
        .iter()
        .map(|name| {
            let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, schema.index_of(name)?));
            let alias = (*name).to_owned();
            Ok(ProjectionExpr { expr, alias })
        })
        .collect::<Result<Vec<_>>>()?;
    columns.push(ProjectionExpr {
        expr: Arc::new(Literal::new(ScalarValue::from(partition))),
        alias: PARTITION.to_owned(),
    });
    Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
}

/// Finds the last row of a page, if more rows follow.
#[derive(Debug)]
pub(in crate::query) struct PageEnd {
    limit: usize,
    passed: usize,
    last: Option<RowPlace>,
}

impl PageEnd {
    pub(in crate::query) const fn new(limit: usize) -> Self {
        Self {
            limit,
            passed: 0,
            last: None,
        }
    }

    /// Looks at the next rows of [`places_of`].
    pub(in crate::query) fn pass(&mut self, batch: &RecordBatch) -> Result<(), DataFusionError> {
        let before = self.passed;
        self.passed = before.saturating_add(batch.num_rows());
        let last = self.limit.saturating_sub(1);
        if (before..self.passed).contains(&last) {
            self.last = Some(RowPlace::of(batch, last - before)?);
        }
        Ok(())
    }

    pub(in crate::query) fn found(self) -> Option<RowPlace> {
        self.last.filter(|_| self.passed > self.limit)
    }
}
