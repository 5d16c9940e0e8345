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

use crate::model::permit::ReadPermit;
use crate::query::ground::merge_sorted::MergeSortedExec;
use crate::query::ground::operator::{
    ChosenPlan, Input, Operator, Plan, Step, Task, ascending, one_partition,
};
use crate::query::{Partition, Questions};
use crate::store::snapshot::Snapshot;

use super::asked::{Asked, RollupsAsked, Stretch, parts};
use super::made::Told;
use super::mixed_input::{MixedInputExec, Patch};

/// Rows where they have to be read, and rollups elsewhere.
#[derive(Clone, Debug)]
pub(in crate::query) struct RowsOrRollups {
    asked: Asked,
    stretches: Arc<[Stretch]>,
    taken: ChosenPlan,
}

/// The operator.
pub(in crate::query) type RowsOrRollupsExec = Operator<RowsOrRollups>;

impl<Authority> Questions<Authority> {
    /// Rows where they have to be read, and rollups elsewhere, decided at run time. `None` if rollups cannot
    /// replace anything.
    pub(in crate::query) fn with_rollups(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &Partition,
        snapshot: &Arc<Snapshot>,
        rollups: &RollupsAsked,
    ) -> Result<Option<Plan>> {
        let mut layers: Vec<Plan> = Vec::new();
        let mut may_serve = false;
        for part in parts(snapshot, rollups) {
            let Some(asked) = Asked::of(self, permit, partition, &part, rollups.clone())? else {
                return Ok(None);
            };
            let stretches = asked.stretches();
            may_serve |= stretches.iter().any(|stretch| asked.may_serve(stretch));
            if !stretches.is_empty() {
                layers.push(Arc::new(RowsOrRollupsExec::of(asked, stretches)));
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
    let order = ascending(&layers.first()?.schema(), &["start_time"])?;
    Some(Arc::new(MergeSortedExec::new(layers, order)))
}

impl RowsOrRollupsExec {
    fn of(asked: Asked, stretches: Vec<Stretch>) -> Self {
        let rows = RowsOrRollups {
            asked,
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
        let mut patches = Patches::of(&step.asked);
        for stretch in step.stretches.iter() {
            match stretch {
                Stretch::Rollups(_) => patches.rollups(RecordBatch::new_empty(step.asked.schema()))?,
                Stretch::Rows(time) => patches.rows(time),
                Stretch::ReachingInto(window) => patches.reaching_into(window)?,
            }
        }
        patches.finished()
    }
}

impl RowsOrRollups {
    async fn plan(&self) -> Result<Plan> {
        let mut patches = Patches::of(&self.asked);
        for stretch in self.stretches.iter() {
            match stretch {
                Stretch::Rollups(wanted) => {
                    for told in self.asked.told(wanted).await? {
                        match told {
                            Told::Rollups(rollups) => patches.rollups(rollups)?,
                            Told::Rows(time) => patches.rows(&time),
                        }
                    }
                }
                Stretch::Rows(time) => patches.rows(time),
                Stretch::ReachingInto(window) => patches.reaching_into(window)?,
            }
        }
        patches.finished()
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
        let schema = self.asked.schema();
        let order = ascending(&schema, &["start_time"]);
        one_partition(schema, order)
    }

    fn run(self, _inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let taken = self.taken.clone();
        Ok(taken.rows(async move { self.plan().await }, task))
    }
}

/// The patches found so far, in the order of time.
struct Patches<'a> {
    asked: &'a Asked,
    found: Vec<Patch>,
    /// Stretches behind `found` in which rows are read.
    rows: Vec<Range<i64>>,
}

impl<'a> Patches<'a> {
    const fn of(asked: &'a Asked) -> Self {
        Self {
            asked,
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
        self.found.push(Patch::Rollups(rollups));
        Ok(())
    }

    fn reaching_into(&mut self, window: &Range<i64>) -> Result<()> {
        self.read()?;
        self.found.push(self.asked.reaching_into(window)?);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let times = std::mem::take(&mut self.rows);
        self.found.extend(self.asked.rows(&times)?);
        Ok(())
    }

    fn finished(mut self) -> Result<Plan> {
        self.read()?;
        Ok(Arc::new(MixedInputExec::new(self.found, self.asked.schema())))
    }
}
