//! Several series on one grid, side by side.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt as _};

use super::exec::one_ordered_partition;

/// The first column of the first series, and all other columns of all of them. The series have the same bins
/// and drop none.
#[derive(Clone, Debug)]
pub struct GroupedExec {
    series: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl GroupedExec {
    #[must_use]
    pub fn new(series: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let mut fields: Vec<Arc<Field>> = Vec::new();
        for one in &series {
            fields.extend(
                one.schema()
                    .fields()
                    .iter()
                    .skip(usize::from(!fields.is_empty()))
                    .cloned(),
            );
        }
        let properties = Arc::new(one_ordered_partition(Arc::new(Schema::new(fields))));
        Self { series, properties }
    }
}

impl DisplayAs for GroupedExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GroupedExec: {} series", self.series.len())
    }
}

impl ExecutionPlan for GroupedExec {
    fn name(&self) -> &'static str {
        "GroupedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.series.iter().collect()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(children)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("grouped series have one partition");
        }
        let columns = self.series.iter().map(|one| {
            Ok(Column {
                stream: one.execute(0, Arc::clone(&context))?,
                batch: None,
            })
        });
        Ok(Box::pin(GroupedStream {
            columns: columns.collect::<Result<_>>()?,
            schema: self.schema(),
        }))
    }
}

struct GroupedStream {
    columns: Vec<Column>,
    schema: SchemaRef,
}

struct Column {
    stream: SendableRecordBatchStream,
    /// What came, while the others are waited for.
    batch: Option<RecordBatch>,
}

impl Stream for GroupedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let mut ended = 0;
        for column in self.columns.iter_mut().filter(|column| column.batch.is_none()) {
            match ready!(column.stream.poll_next_unpin(context)).transpose()? {
                Some(batch) => column.batch = Some(batch),
                None => ended += 1,
            }
        }
        if ended == self.columns.len() {
            return Poll::Ready(None);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for batch in self.columns.iter_mut().filter_map(|column| column.batch.take()) {
            arrays.extend(
                batch
                    .columns()
                    .iter()
                    .skip(usize::from(!arrays.is_empty()))
                    .cloned(),
            );
        }
        // Series of different lengths do not fit together, and say so here.
        Poll::Ready(Some(Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)))
    }
}

impl RecordBatchStream for GroupedStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
