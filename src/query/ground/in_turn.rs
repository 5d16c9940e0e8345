//! Reads sorted inputs that follow each other, one after the other.
//!
//! New records usually begin where the older ones end; a merge would compare every row of all of them. Inputs
//! can also be read each from its end, the last input first. Knows plans and order only.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::backwards::{Halving, from_its_end};
use super::key::KEY_ORDER;
use super::operator::{Input, Needs, Operator, Plan, Step, Task, first_columns, one_partition};

/// Reads its inputs in turn. Each has one partition; no row of an input sorts before a row of an earlier
/// input.
#[derive(Clone, Debug)]
pub(in crate::query) struct InTurn {
    order: LexOrdering,
    /// If each input is given out from its last row to its first: how to divide one that is too large.
    from_their_ends: Option<Halving>,
}

pub(in crate::query) type InTurnExec = Operator<InTurn>;

impl InTurnExec {
    /// `order`: what every input is sorted by.
    pub(in crate::query) fn try_new(inputs: Vec<Plan>, order: LexOrdering) -> Result<Self> {
        Self::build(inputs, order, None)
    }

    /// Ascending inputs, the last of them first, each from its end. `order`: the order of the output.
    pub(in crate::query) fn from_their_ends(
        inputs: Vec<Plan>,
        order: LexOrdering,
        halved: Halving,
    ) -> Result<Self> {
        Self::build(inputs, order, Some(halved))
    }

    fn build(inputs: Vec<Plan>, order: LexOrdering, from_their_ends: Option<Halving>) -> Result<Self> {
        if inputs.is_empty() {
            return internal_err!("inputs that follow each other are at least one");
        }
        let step = InTurn {
            order,
            from_their_ends,
        };
        Ok(Self::over(step, inputs))
    }
}

impl Step for InTurn {
    const NAME: &'static str = "InTurnExec";

    fn detail(&self) -> String {
        format!("from_their_ends={}", self.from_their_ends.is_some())
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        if self.from_their_ends.is_some() {
            return Needs::sorted_by(inputs, &KEY_ORDER);
        }
        vec![Needs::sorted(Some(self.order.clone())); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        one_partition(first_columns(inputs), [self.order.clone()])
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        // The next input is opened only when the previous one is exhausted, so that one is read at a time.
        if let Some(halved) = self.from_their_ends {
            let context = Arc::clone(task.context());
            let rows = futures::stream::iter(inputs).flat_map(move |input| {
                let (order, context) = (self.order.clone(), Arc::clone(&context));
                from_its_end(Arc::clone(input.plan()), halved, order, context)
            });
            return Ok(rows.boxed());
        }
        let rows = futures::stream::iter(inputs)
            .map(|input| input.open())
            .try_flatten();
        Ok(rows.boxed())
    }
}
