//! Rows that were computed before their question is answered, in the memory that all questions share.
//!
//! Knows batches; must not know what is in them.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::operator::{Input, Operator, Plan, Step, Task, one_partition};

/// Gives out batches that are held, and for as long as they are, the memory that they were counted in.
#[derive(Clone, Debug)]
pub(super) struct HeldRows {
    schema: SchemaRef,
    batches: Arc<Vec<RecordBatch>>,
    memory: Arc<MemoryReservation>,
}

pub(super) type HeldRowsExec = Operator<HeldRows>;

impl HeldRowsExec {
    pub(super) fn new(schema: SchemaRef, batches: Vec<RecordBatch>, memory: MemoryReservation) -> Self {
        let step = HeldRows {
            schema,
            batches: Arc::new(batches),
            memory: Arc::new(memory),
        };
        Self::over(step, Vec::new())
    }
}

impl HeldRows {
    fn batch(&self, place: usize) -> Option<RecordBatch> {
        self.batches.get(place).cloned()
    }
}

impl Step for HeldRows {
    const NAME: &'static str = "HeldRowsExec";

    fn detail(&self) -> String {
        format!("{} batches, {} bytes", self.batches.len(), self.memory.size())
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.schema), None)
    }

    fn run(self, _inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let batches = (0..).map_while(move |place| self.batch(place).map(Ok));
        Ok(futures::stream::iter(batches).boxed())
    }
}
