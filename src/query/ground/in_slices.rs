//! Passes rows on in slices, the first as large as what is wanted: what stands above computes columns for all
//! rows of a batch at once, and most readers of a page take no more than the first of them.
//!
//! Nothing is copied. Whoever goes on gets larger slices, and whole batches soon. Knows numbers of rows only.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::operator::{Input, Operator, Plan, Step, Task, like, only};

/// How many times as large each slice is as the one before.
const GROWTH: usize = 4;

/// Slices of which the first has so many rows.
#[derive(Clone, Debug)]
pub(super) struct InSlices {
    first: usize,
}

pub(super) type InSlicesExec = Operator<InSlices>;

impl InSlicesExec {
    pub(super) fn of(rows: Plan, first: usize) -> Self {
        let first = first.max(1);
        Self::over(InSlices { first }, vec![rows])
    }
}

impl Step for InSlices {
    const NAME: &'static str = "InSlicesExec";
    // Its input does.
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("first={}", self.first)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        let mut most = self.first;
        let slices = rows.map_ok(move |batch| futures::stream::iter(slices(&batch, &mut most)).map(Ok));
        Ok(slices.try_flatten().boxed())
    }
}

/// The slices of a batch. `most`: how many rows the first may have.
fn slices(batch: &RecordBatch, most: &mut usize) -> Vec<RecordBatch> {
    let (mut slices, mut from) = (Vec::new(), 0);
    while from < batch.num_rows() {
        let rows = (*most).min(batch.num_rows() - from);
        slices.push(batch.slice(from, rows));
        from += rows;
        *most = most.saturating_mul(GROWTH);
    }
    slices
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray as _, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn slices_grow_and_are_together_all_rows() {
        let mut most = 2;
        let mut sizes = Vec::new();
        let mut numbers = Vec::new();
        for from in [0, 20, 40, 60] {
            let column = Int64Array::from_iter_values(from..from + 20);
            let batch = RecordBatch::try_from_iter([("number", Arc::new(column) as _)]).unwrap();
            for slice in slices(&batch, &mut most) {
                sizes.push(slice.num_rows());
                numbers.extend_from_slice(slice.column(0).as_primitive::<Int64Type>().values());
            }
        }
        assert_eq!(sizes, [2, 8, 10, 20, 20, 20]);
        assert_eq!(numbers, (0..80).collect::<Vec<_>>());
    }
}
