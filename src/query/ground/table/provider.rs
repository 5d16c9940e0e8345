//! The interface of a table to DataFusion.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics, TableReference};
use datafusion::datasource::{TableProvider, TableType, provider_as_source};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, TableProviderFilterPushDown};
use futures::future::{self, BoxFuture, FutureExt};

use crate::catalog::records::Bounds;
use crate::model::columns::{END, START};
use crate::model::time::{Instant, TimeRange};
use crate::query::ground::operator::Plan;
use crate::query::ground::order::Order;

use super::PartitionTable;

impl PartitionTable {
    /// The row count and the range of times, where the snapshot has them exactly.
    pub(super) fn statistics(&self, schema: &Schema) -> Option<Statistics> {
        let is_all = self.selection.begins.is_none()
            && self.selection.windows.first() == Some(&TimeRange::ALWAYS)
            && self.condition.is_none()
            && self.after.is_none()
            && self.shared.is_none();
        if !is_all {
            return None;
        }
        let mut statistics = Statistics::new_unknown(schema);
        statistics.num_rows = Precision::Exact(usize::try_from(self.snapshot.records).ok()?);
        let pieces = &self.snapshot.pieces;
        if pieces.iter().any(|piece| !piece.dead.is_empty()) {
            return Some(statistics);
        }
        let bounds = pieces.iter().map(|piece| piece.bounds).reduce(Bounds::union)?;
        let known = |moment: Instant| {
            Precision::Exact(ScalarValue::TimestampMicrosecond(
                Some(moment.micros()),
                Some("UTC".into()),
            ))
        };
        for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
            match field.name().as_str() {
                START => {
                    column.min_value = known(bounds.min_start);
                    column.max_value = known(bounds.max_start);
                    column.null_count = Precision::Exact(0);
                }
                END => {
                    column.max_value = known(bounds.max_end);
                    column.null_count = Precision::Exact(0);
                }
                _ => {}
            }
        }
        Some(statistics)
    }
}

impl PartitionTable {
    /// The start of a logical plan: the rows that meet `condition`, with the stored columns of the key and
    /// `columns`, given by index.
    pub(in crate::query) fn scanned(
        self,
        columns: impl IntoIterator<Item = usize>,
        condition: Option<&Expr>,
    ) -> Result<LogicalPlanBuilder> {
        let columns = self.read_for(columns, condition);
        let name = TableReference::bare(self.snapshot.data_type.as_str());
        let table = provider_as_source(Arc::new(self));
        LogicalPlanBuilder::scan_with_filters(
            name,
            table,
            Some(columns),
            condition.cloned().into_iter().collect(),
        )
    }

    fn scan_of(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Plan> {
        let conditions = self.condition.iter().chain(filters).cloned();
        let table = self.clone().meeting(conjunction(conditions));
        let table = table.wanting(limit.or(self.wanted));
        let columns = projection.map_or_else(|| (0..self.storage.fields().len()).collect(), Vec::clone);
        table.rows_exactly(&columns, Order::Ascending)
    }
}

impl TableProvider for PartitionTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.storage)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Every condition is evaluated on the rows before they leave the table, and on the statistics of pages
    /// where possible.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    /// Expanded from `async_trait` by hand, since nothing is awaited: with a future that holds conditions,
    /// the compiler takes seconds to prove that all of their parts are `Send`.
    fn scan<'table, 'session, 'columns, 'filters, 'scan>(
        &'table self,
        _state: &'session dyn Session,
        projection: Option<&'columns Vec<usize>>,
        filters: &'filters [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'scan, Result<Plan>>
    where
        Self: 'scan,
        'table: 'scan,
        'session: 'scan,
        'columns: 'scan,
        'filters: 'scan,
    {
        future::ready(self.scan_of(projection, filters, limit)).boxed()
    }
}
