//! A leaf of a plan that reads rows or, in their place, rollups, and decides between them when it runs.
//!
//! A question that is answered from elsewhere, or whose answer is known to be unchanged, therefore makes no
//! rollups.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;

use crate::model::columns::START;
use crate::model::permit::ReadPermit;
use crate::query::ground::merge_sorted::MergeSortedExec;
use crate::query::ground::operator::{
    ChosenPlan, Input, Operator, Plan, Step, Task, ascending, one_partition,
};
use crate::query::{Questions, TypedPartition};
use crate::store::snapshot::Snapshot;

use super::find_or_make::{FoundPart, find_or_make};
use super::mixed_input::{InputPart, MixedInputExec};
use super::rollup_source::{RollupSource, RollupsAsked, Stretch, snapshot_parts};

/// Rows where they have to be read, and rollups elsewhere.
#[derive(Clone, Debug)]
pub(in crate::query) struct RowsOrRollups {
    source: RollupSource,
    stretches: Arc<[Stretch]>,
    taken: ChosenPlan,
}

pub(in crate::query) type RowsOrRollupsExec = Operator<RowsOrRollups>;

impl<Authority> Questions<Authority> {
    /// Rows where they have to be read, and rollups elsewhere, decided at run time. `None` if rollups cannot
    /// replace anything.
    pub(in crate::query) fn with_rollups(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Arc<Snapshot>,
        rollups: &RollupsAsked,
    ) -> Result<Option<Plan>> {
        let mut layers: Vec<Plan> = Vec::new();
        let mut may_serve = false;
        for part in snapshot_parts(snapshot, rollups) {
            let Some(source) = RollupSource::of(self, permit, partition, &part, rollups.clone())? else {
                return Ok(None);
            };
            let stretches = source.stretches();
            may_serve |= stretches.iter().any(|stretch| source.may_serve(stretch));
            if !stretches.is_empty() {
                layers.push(Arc::new(RowsOrRollupsExec::of(source, stretches)));
            }
        }
        Ok(in_turn(layers).filter(|_| may_serve))
    }
}

/// Merges several plans that are each in the order of time; `None` without plans.
fn in_turn(mut layers: Vec<Plan>) -> Option<Plan> {
    if layers.len() < 2 {
        return layers.pop();
    }
    let order = ascending(&layers.first()?.schema(), &[START])?;
    Some(Arc::new(MergeSortedExec::new(layers, order)))
}

impl RowsOrRollupsExec {
    fn of(source: RollupSource, stretches: Vec<Stretch>) -> Self {
        let rows = RowsOrRollups {
            source,
            stretches: stretches.into(),
            taken: ChosenPlan::default(),
        };
        Self::over(rows, Vec::new())
    }

    /// The plan that was run; before a run, the one that would be used if rollups serve wherever they may.
    pub(in crate::query) fn below(&self) -> Result<Plan> {
        let step = self.step();
        if let Some(taken) = step.taken.plan() {
            return Ok(taken);
        }
        let mut parts = PartsBuilder::of(&step.source);
        for stretch in step.stretches.iter() {
            match stretch {
                Stretch::Rollups(_) => parts.rollups(RecordBatch::new_empty(step.source.schema()))?,
                Stretch::Rows(time) => parts.rows(time),
                Stretch::ReachingInto(window) => parts.reaching_into(window)?,
            }
        }
        parts.finished()
    }
}

impl RowsOrRollups {
    async fn plan(&self) -> Result<Plan> {
        let mut parts = PartsBuilder::of(&self.source);
        for stretch in self.stretches.iter() {
            match stretch {
                Stretch::Rollups(needed) => {
                    for found in find_or_make(&self.source, needed).await? {
                        match found {
                            FoundPart::Rollups(rollups) => parts.rollups(rollups)?,
                            FoundPart::Rows(time) => parts.rows(&time),
                        }
                    }
                }
                Stretch::Rows(time) => parts.rows(time),
                Stretch::ReachingInto(window) => parts.reaching_into(window)?,
            }
        }
        parts.finished()
    }
}

impl Step for RowsOrRollups {
    const NAME: &'static str = "RowsOrRollupsExec";
    // The plan that it runs does.
    const YIELDS_BY_ITSELF: bool = true;

    fn detail(&self) -> String {
        let may_be = |stretch: &&Stretch| matches!(stretch, Stretch::Rollups(_));
        let rollups = self.stretches.iter().filter(may_be).count();
        format!("stretches={}, perhaps of rollups={rollups}", self.stretches.len())
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let schema = self.source.schema();
        let order = ascending(&schema, &[START]);
        one_partition(schema, order)
    }

    fn run(self, _inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let taken = self.taken.clone();
        Ok(taken.rows(async move { self.plan().await }, task))
    }
}

/// The parts found so far, in the order of time.
struct PartsBuilder<'a> {
    source: &'a RollupSource,
    found: Vec<InputPart>,
    /// Stretches behind `found` in which rows are read.
    rows: Vec<Range<i64>>,
}

impl<'a> PartsBuilder<'a> {
    const fn of(source: &'a RollupSource) -> Self {
        Self {
            source,
            found: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn rows(&mut self, time: &Range<i64>) {
        match self.rows.last_mut() {
            Some(rows) if rows.end == time.start => rows.end = time.end,
            _ => self.rows.push(time.clone()),
        }
    }

    fn rollups(&mut self, rollups: RecordBatch) -> Result<()> {
        self.read()?;
        self.found.push(InputPart::Rollups(rollups));
        Ok(())
    }

    fn reaching_into(&mut self, window: &Range<i64>) -> Result<()> {
        self.read()?;
        self.found.push(self.source.reaching_into(window)?);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let times = std::mem::take(&mut self.rows);
        self.found.extend(self.source.rows(&times)?);
        Ok(())
    }

    fn finished(mut self) -> Result<Plan> {
        self.read()?;
        Ok(Arc::new(MixedInputExec::new(self.found, self.source.schema())))
    }
}
