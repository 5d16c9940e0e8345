//! Emits rollups and rows one after the other, in the order of time.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::model::columns::START;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, ascending, one_partition};

use super::as_rows::fitted;
use super::cut_stretch::Cut;

/// The rollups or rows of a stretch of time.
#[derive(Clone, Debug)]
pub(super) enum InputPart {
    Rollups(RecordBatch),
    Rows { plan: Plan, time: Range<i64>, cut: Cut },
}

/// Emits the parts in turn.
#[derive(Clone, Debug)]
pub(super) struct MixedInput {
    parts: Vec<OpenedPart>,
    schema: SchemaRef,
}

pub(super) type MixedInputExec = Operator<MixedInput>;

/// A part; the rows of a part of rows are the next input of the operator.
#[derive(Clone, Debug)]
enum OpenedPart {
    Rollups(RecordBatch),
    Rows { time: Range<i64>, cut: Cut },
}

impl MixedInputExec {
    /// `parts` in the order of time, which are made to fit `schema`.
    pub(super) fn new(parts: Vec<InputPart>, schema: SchemaRef) -> Self {
        let mut inputs = Vec::new();
        let opened = |part| match part {
            InputPart::Rollups(rollups) => OpenedPart::Rollups(rollups),
            InputPart::Rows { plan, time, cut } => {
                inputs.push(plan);
                OpenedPart::Rows { time, cut }
            }
        };
        let parts = parts.into_iter().map(opened).collect();
        Self::over(MixedInput { parts, schema }, inputs)
    }
}

impl Step for MixedInput {
    const NAME: &'static str = "MixedInputExec";

    fn detail(&self) -> String {
        let is_rollups = |part: &&OpenedPart| matches!(part, OpenedPart::Rollups(_));
        let rollups = self.parts.iter().filter(is_rollups).count();
        format!("parts={}, of rollups={rollups}", self.parts.len())
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let order = ascending(&self.schema, &[START]);
        one_partition(Arc::clone(&self.schema), order)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let schema = self.schema;
        let mut inputs = inputs.into_iter();
        // The next part is opened only when the previous one is exhausted, so that one is read at a time.
        let batches = futures::stream::iter(self.parts)
            .map(move |part| -> Result<BoxStream<'static, Result<RecordBatch>>> {
                match part {
                    OpenedPart::Rollups(rollups) => Ok(futures::stream::iter([Ok(rollups)]).boxed()),
                    OpenedPart::Rows { time, cut } => {
                        let schema = Arc::clone(&schema);
                        let missing = || internal_datafusion_err!("a part of rows without its input");
                        let rows = inputs.next().ok_or_else(missing)?.open()?.map(move |batch| {
                            let (rows, long) = cut.apply(&batch?, &time)?;
                            fitted(
                                &rows,
                                &schema,
                                long.map(|long| Arc::new(long) as ArrayRef).as_ref(),
                            )
                        });
                        Ok(rows.boxed())
                    }
                }
            })
            .try_flatten();
        Ok(batches.boxed())
    }
}
