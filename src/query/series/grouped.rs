//! Several series on one grid, side by side.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use crate::query::operator::{Input, Operator, Plan, Step, Task, one_partition};

/// The first column of the first series, and the other columns of all series. The series have the same bins
/// and drop none.
#[derive(Clone, Debug)]
pub(in crate::query) struct Grouped;

pub(in crate::query) type GroupedExec = Operator<Grouped>;

impl GroupedExec {
    pub(in crate::query) fn new(series: Vec<Plan>) -> Self {
        Self::over(Grouped, series)
    }
}

impl Step for Grouped {
    const NAME: &'static str = "GroupedExec";

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let mut fields: Vec<Arc<Field>> = Vec::new();
        for series in inputs {
            fields.extend(
                series
                    .schema()
                    .fields()
                    .iter()
                    .skip(usize::from(!fields.is_empty()))
                    .cloned(),
            );
        }
        one_partition(Arc::new(Schema::new(fields)), None)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let column = |series: Input| {
            Ok(Column {
                stream: series.open()?,
                batch: None,
                has_ended: false,
            })
        };
        let rows = GroupedRows {
            columns: inputs.into_iter().map(column).collect::<Result<_>>()?,
            schema: task.schema(),
        };
        Ok(rows.boxed())
    }
}

struct GroupedRows {
    columns: Vec<Column>,
    schema: SchemaRef,
}

struct Column {
    stream: SendableRecordBatchStream,
    /// The batch that has arrived while others are awaited.
    batch: Option<RecordBatch>,
    /// A series that has ended is not asked again. Each question takes of what a task may do before others
    /// have their turn, so that with very many series it would never come to the last.
    has_ended: bool,
}

impl Stream for GroupedRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let awaited = |column: &&mut Column| column.batch.is_none() && !column.has_ended;
        for column in self.columns.iter_mut().filter(awaited) {
            column.batch = ready!(column.stream.poll_next_unpin(context)).transpose()?;
            column.has_ended = column.batch.is_none();
        }
        if self.columns.iter().all(|column| column.has_ended) {
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
        // Series of different lengths do not fit together, and fail here.
        Poll::Ready(Some(Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)))
    }
}
