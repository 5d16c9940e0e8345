//! Rows and cells in their place as a leaf of a plan, which decides between them when it runs.
//!
//! So a question that is answered from elsewhere, or whose answer is known to be the same, has made no cells.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};

use crate::model::permit::ReadPermit;
use crate::query::ground::operator::{Input, Operator, Plan, Step, Task, ascending, one_partition};
use crate::query::{Archive, Partition};
use crate::store::snapshot::Snapshot;

use super::asked::{Asked, CellsAsked, Stretch};
use super::patchwork::{Patch, PatchworkExec};

/// Rows as far as they have to be read, and cells for the rest.
#[derive(Clone, Debug)]
pub(in crate::query) struct RowsOrCells {
    asked: Asked,
    stretches: Arc<[Stretch]>,
    /// The plan by which it was done, for whoever wants to know what that took.
    taken: Arc<OnceLock<Plan>>,
}

/// The operator.
pub(in crate::query) type PartialsExec = Operator<RowsOrCells>;

impl<Authority> Archive<Authority> {
    /// The rows as far as they have to be read, and cells for the rest; which is decided when they are asked
    /// for. `None` when there is nothing that cells could stand for.
    pub(in crate::query) fn with_cells(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &Partition,
        snapshot: &Arc<Snapshot>,
        cells: CellsAsked,
    ) -> Result<Option<Plan>> {
        let Some(asked) = Asked::of(self, permit, partition, snapshot, cells)? else {
            return Ok(None);
        };
        let stretches = asked.stretches();
        if !stretches.iter().any(|stretch| asked.may_serve(stretch)) {
            return Ok(None);
        }
        Ok(Some(Arc::new(PartialsExec::of(asked, stretches))))
    }
}

impl PartialsExec {
    fn of(asked: Asked, stretches: Vec<Stretch>) -> Self {
        let rows = RowsOrCells {
            asked,
            stretches: stretches.into(),
            taken: Arc::default(),
        };
        Self::over(rows, Vec::new())
    }

    /// The plan by which it was done; before that, the one by which it would be if cells serve wherever they
    /// may.
    pub(in crate::query) fn below(&self) -> Result<Plan> {
        let step = self.step();
        if let Some(taken) = step.taken.get() {
            return Ok(Arc::clone(taken));
        }
        let mut patches = Patches::of(&step.asked);
        for stretch in step.stretches.iter() {
            match stretch {
                Stretch::Cells(_) => patches.cells(RecordBatch::new_empty(step.asked.schema()))?,
                Stretch::Rows(time) => patches.rows(time)?,
                Stretch::ReachingInto(window) => patches.reaching_into(window)?,
            }
        }
        patches.finished()
    }
}

impl RowsOrCells {
    async fn plan(&self) -> Result<Plan> {
        let mut patches = Patches::of(&self.asked);
        for stretch in self.stretches.iter() {
            match stretch {
                Stretch::Cells(wanted) => match self.asked.cells(wanted).await? {
                    Some(cells) => patches.cells(cells)?,
                    None => patches.rows(&wanted.time)?,
                },
                Stretch::Rows(time) => patches.rows(time)?,
                Stretch::ReachingInto(window) => patches.reaching_into(window)?,
            }
        }
        patches.finished()
    }
}

impl Step for RowsOrCells {
    const NAME: &'static str = "PartialsExec";
    // What it runs does.
    const GIVES_WAY: bool = true;

    fn detail(&self) -> String {
        let may_be = |stretch: &&Stretch| matches!(stretch, Stretch::Cells(_));
        let cells = self.stretches.iter().filter(may_be).count();
        format!("stretches={}, perhaps of cells={cells}", self.stretches.len())
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let schema = self.asked.schema();
        let order = ascending(&schema, &["start_time"]);
        one_partition(schema, order)
    }

    fn run(self, _inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let context = Arc::clone(task.context());
        let rows = async move {
            let plan = self.plan().await?;
            // Of several runs one is told of.
            let _first = self.taken.set(Arc::clone(&plan));
            plan.execute(0, context)
        };
        Ok(rows.into_stream().try_flatten().boxed())
    }
}

/// What was found so far, in the order of time. Rows are read in one go where nothing stands for them.
struct Patches<'a> {
    asked: &'a Asked,
    found: Vec<Patch>,
    rows: Option<Range<i64>>,
}

impl<'a> Patches<'a> {
    const fn of(asked: &'a Asked) -> Self {
        Self {
            asked,
            found: Vec::new(),
            rows: None,
        }
    }

    fn rows(&mut self, time: &Range<i64>) -> Result<()> {
        match &mut self.rows {
            Some(rows) if rows.end == time.start => rows.end = time.end,
            _ => {
                self.read()?;
                self.rows = Some(time.clone());
            }
        }
        Ok(())
    }

    fn cells(&mut self, cells: RecordBatch) -> Result<()> {
        self.read()?;
        self.found.push(Patch::Cells(cells));
        Ok(())
    }

    fn reaching_into(&mut self, window: &Range<i64>) -> Result<()> {
        self.read()?;
        self.found.push(self.asked.reaching_into(window)?);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        if let Some(time) = self.rows.take() {
            self.found.push(self.asked.rows(time)?);
        }
        Ok(())
    }

    fn finished(mut self) -> Result<Plan> {
        self.read()?;
        Ok(Arc::new(PatchworkExec::new(self.found, self.asked.schema())))
    }
}
