//! The limit on how large an answer may be.
//!
//! Knows rows and columns; must not know what is counted or summed.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::operator::{Input, Operator, Plan, Step, Task, like, only};

use super::groups::Excess;

/// The cells of an answer so far: rows times columns, where the column of times does not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    columns: u64,
    limit: u64,
    counted: u64,
}

impl Cells {
    /// Those of an answer with so many columns, that of times not counted.
    pub(super) const fn new(columns: usize, limit: u64) -> Self {
        Self {
            columns: columns as u64,
            limit,
            counted: 0,
        }
    }

    /// Whether so many rows may be too many.
    pub(super) const fn may_exceed(self, rows: u64) -> bool {
        rows.saturating_mul(self.columns) > self.limit
    }

    /// Counts more rows; fails with [`Excess`] if they are too many.
    pub(super) fn add(&mut self, rows: usize) -> Result<()> {
        let added = (rows as u64).saturating_mul(self.columns);
        self.counted = self.counted.saturating_add(added);
        if self.counted <= self.limit {
            return Ok(());
        }
        let excess = Excess::Cells { limit: self.limit };
        Err(DataFusionError::External(Box::new(excess)))
    }
}

/// Passes rows on until there are too many cells.
#[derive(Clone, Debug)]
pub(super) struct CellLimit {
    cells: Cells,
}

pub(super) type CellLimitExec = Operator<CellLimit>;

impl CellLimitExec {
    pub(super) fn new(input: Plan, cells: Cells) -> Self {
        Self::over(CellLimit { cells }, vec![input])
    }
}

impl Step for CellLimit {
    const NAME: &'static str = "CellLimitExec";
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("limit={}", self.cells.limit)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut cells = self.cells;
        let counted = move |batch: Result<RecordBatch>| {
            let batch = batch?;
            cells.add(batch.num_rows())?;
            Ok(batch)
        };
        Ok(only(inputs)?.open()?.map(counted).boxed())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::TaskContext;
    use datafusion::physical_plan::collect;

    use super::*;

    #[tokio::test]
    async fn rule_1_2c_rows_pass_until_there_are_too_many_cells() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
        let rows = [vec![batch.clone(), batch.clone()]];
        let limited = async |limit: u64| {
            let rows = MemorySourceConfig::try_new_exec(&rows, batch.schema(), None).unwrap();
            let plan = CellLimitExec::new(rows, Cells::new(2, limit));
            collect(Arc::new(plan), Arc::new(TaskContext::default())).await
        };
        assert_eq!(limited(12).await.unwrap().len(), 2);
        let DataFusionError::External(excess) = limited(11).await.unwrap_err() else {
            panic!("it is an excess");
        };
        assert_eq!(excess.downcast_ref(), Some(&Excess::Cells { limit: 11 }));
        assert!(!Cells::new(2, 12).may_exceed(6));
        assert!(Cells::new(2, 11).may_exceed(6));
    }
}
