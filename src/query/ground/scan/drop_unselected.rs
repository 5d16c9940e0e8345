//! Keeps those rows of a scan that are selected and not dead, where others are read along with them.
//!
//! Rows come in the order of their starts, so the bounds of a window are found by search instead of by
//! comparing each row, and contiguous rows are passed on as they are. Knows rows and the rule of selection;
//! knows nothing of where rows come from.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::model::columns::{END, START};
use crate::model::ids::RecordId;
use crate::model::time::Instant;
use crate::query::ground::key::KEY_ORDER;
use crate::query::ground::operator::{Input, Needs, Operator, Plan, Step, Task, like, only};
use crate::query::ground::row_times::micros_of;

use super::selection::Selection;

/// Passes on selected rows that are not dead.
#[derive(Clone, Debug)]
pub(in crate::query) struct Selected {
    selection: Selection,
    /// Sorted.
    dead: Arc<[RecordId]>,
}

pub(in crate::query) type SelectedExec = Operator<Selected>;

impl SelectedExec {
    pub(super) fn of(selection: Selection, dead: Arc<[RecordId]>, rows: Plan) -> Self {
        Self::over(Selected { selection, dead }, vec![rows])
    }
}

impl Step for Selected {
    const NAME: &'static str = "SelectedExec";
    // Its input does.
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::sorted_by(inputs, &KEY_ORDER)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        let selected = rows.map(move |rows| selected(&rows?, &self.selection, &self.dead));
        Ok(selected
            .try_filter(|rows| std::future::ready(rows.num_rows() > 0))
            .boxed())
    }
}

/// Those of the rows that are selected and not dead.
pub(super) fn selected(rows: &RecordBatch, selection: &Selection, dead: &[RecordId]) -> Result<RecordBatch> {
    let (starts, ends) = (micros_of(rows, START)?, micros_of(rows, END)?);
    if dead.is_empty()
        && let Some((first, last)) = starts.first().zip(starts.last())
        && selection.holds_all(Instant::from_micros(*first), Instant::from_micros(*last))
    {
        return Ok(rows.clone());
    }
    if dead.is_empty()
        && let Some(run) = selection.run(starts, ends)
    {
        return Ok(rows.slice(run.start, run.len()));
    }
    let mut keep = selection.selected(starts, ends);
    if !dead.is_empty() {
        let ids = rows
            .column_by_name("id")
            .and_then(|ids| ids.as_fixed_size_binary_opt());
        let ids = ids.ok_or_else(|| internal_datafusion_err!("rows that may be dead have no ids"))?;
        for (row, keep) in keep.iter_mut().enumerate() {
            let id = RecordId::from_slice(ids.value(row));
            *keep &= id.is_none_or(|id| dead.binary_search(&id).is_err());
        }
    }
    let first = keep.iter().position(|keep| *keep).unwrap_or(keep.len());
    let length = keep[first..].iter().take_while(|keep| **keep).count();
    if keep[first + length..].contains(&true) {
        Ok(filter_record_batch(rows, &BooleanArray::from(keep))?)
    } else {
        Ok(rows.slice(first, length))
    }
}
