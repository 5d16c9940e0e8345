//! The rows of a table as a leaf of a plan.
//!
//! A plan says which rows are wanted and in which order. How to read them is decided only when they are
//! requested, so a question that is answered from elsewhere pays nothing for readers. Knows tables; knows
//! nothing of what stands above.

use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, Result, Statistics};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::Operator::And;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use futures::stream::BoxStream;

use crate::model::time::TimeRange;
use crate::query::ground::annotation_definitions;
use crate::query::ground::backwards;
use crate::query::ground::filter::tested_while_reading;
use crate::query::ground::first_rows;
use crate::query::ground::in_slices::InSlicesExec;
use crate::query::ground::in_turn::InTurnExec;
use crate::query::ground::key::KEY_ORDER;
use crate::query::ground::operator::{
    ChosenPlan, Input, Operator, Plan, Step, Task, begins_with, one_partition, ordered,
};
use crate::query::ground::order::Order;

use super::PartitionTable;

/// How many times as many rows as were wanted at first a reader who goes on probably wants.
const GROWTH: usize = 8;

/// The rows of a table, in one partition.
#[derive(Clone, Debug)]
pub(in crate::query) struct Rows {
    table: PartitionTable,
    /// The columns that are read, as indices of stored ones.
    columns: Vec<usize>,
    order: Order,
    schema: SchemaRef,
    /// The conditions of the table on the columns that are read: of the question, and of the page.
    condition: Option<Arc<dyn PhysicalExpr>>,
    after: Option<Arc<dyn PhysicalExpr>>,
    taken: ChosenPlan,
}

pub(in crate::query) type PartitionExec = Operator<Rows>;

impl PartitionExec {
    pub(super) fn try_new(table: PartitionTable, columns: Vec<usize>, order: Order) -> Result<Self> {
        let read = Arc::new(table.storage.project(&columns)?);
        let schema = if table.is_seen_as_stored() {
            read
        } else {
            table.seen(Arc::new(EmptyExec::new(read)), &columns)?.schema()
        };
        let on_rows = |condition: &Expr| {
            let held = DFSchema::try_from(schema.as_ref().clone())?;
            table
                .engine
                .state()
                .create_physical_expr(condition.clone(), &held)
        };
        let condition = table.condition.as_ref().map(on_rows).transpose()?;
        let after = table.after.as_ref().map(on_rows).transpose()?;
        let rows = Rows {
            table,
            columns,
            order,
            schema,
            condition,
            after,
            taken: ChosenPlan::default(),
        };
        Ok(Self::over(rows, Vec::new()))
    }

    /// The plan by which the rows were read; before a run, the one that would be used if nothing were known
    /// of them.
    pub(in crate::query) fn below(&self) -> Result<Plan> {
        match self.step().taken.plan() {
            Some(taken) => Ok(taken),
            None => self.undecoded(),
        }
    }

    /// The plan that reads the rows without using cached decoded rows or footers.
    pub(in crate::query) fn undecoded(&self) -> Result<Plan> {
        let rows = self.step();
        match rows.order {
            Order::Ascending => rows.over(rows.scan()?.undecoded()?),
            Order::Descending => rows.descending(),
        }
    }
}

/// A plan over less time: each table in it is reduced to `range`.
pub(in crate::query) fn within(plan: &Plan, range: TimeRange) -> Result<Plan> {
    let narrowed = Arc::clone(plan).transform_up(|part| {
        let Some(table) = part.downcast_ref::<PartitionExec>() else {
            return Ok(Transformed::no(part));
        };
        let rows = table.step().clone();
        let rows = Rows {
            table: rows.table.within(&[range]),
            taken: ChosenPlan::default(),
            ..rows
        };
        Ok(Transformed::yes(
            Arc::new(PartitionExec::over(rows, Vec::new())) as Plan
        ))
    });
    Ok(narrowed?.data)
}

/// The rows of a table that begin in the earlier and in the later half of its time.
fn halved(plan: &Plan) -> Option<[Plan; 2]> {
    let rows = plan.downcast_ref::<PartitionExec>()?.step();
    let half = |begins| -> Plan {
        let half = Rows {
            table: rows.table.clone().beginning_in(Some(begins)),
            taken: ChosenPlan::default(),
            ..rows.clone()
        };
        Arc::new(PartitionExec::over(half, Vec::new()))
    };
    Some(rows.table.halves()?.map(half))
}

impl Rows {
    fn scan(&self) -> Result<super::Scan> {
        let on_stored = self
            .condition
            .as_ref()
            .filter(|_| self.table.is_condition_on_stored());
        let hint = on_stored.and_then(tested_while_reading);
        let hint = hint.map(|condition| reassign_expr_columns(condition, &self.table.storage));
        self.table.scan(&self.columns, hint.transpose()?)
    }

    /// The rows of a scan as they are seen, filtered by the conditions. Definitions are laid over the rows
    /// that are left, unless a condition asks about them. If a few rows are wanted, whatever they are, no
    /// more are made what they are seen as.
    fn over(&self, mut scan: Plan) -> Result<Plan> {
        if let (Some(wanted), None, false) =
            (self.table.wanted, &self.condition, self.table.is_seen_as_stored())
        {
            scan = Arc::new(InSlicesExec::of(scan, wanted));
        }
        let asks = self.table.condition.as_ref();
        if asks.is_some_and(annotation_definitions::are_asked_by) {
            return self.meeting_conditions(self.table.seen(scan, &self.columns)?);
        }
        let rows = self.table.seen_without_definitions(scan, &self.columns)?;
        self.table.with_definitions(self.meeting_conditions(rows)?)
    }

    fn meeting_conditions(&self, rows: Plan) -> Result<Plan> {
        let conditions = self.after.iter().chain(&self.condition).cloned();
        let Some(condition) = conditions.reduce(both) else {
            return Ok(rows);
        };
        let met = FilterExec::try_new(condition, rows)?;
        let Some(wanted) = self.table.wanted else {
            return Ok(Arc::new(met));
        };
        // It gathers what meets the condition, so it would read on long after there is enough.
        let at_a_time = wanted.clamp(1, met.batch_size());
        Ok(Arc::new(met.with_batch_size(at_a_time)?))
    }

    /// The first rows apart from those after them, if a few of many are wanted: a reader who takes no more
    /// opens nothing else, and one who goes on reads more and more at once.
    fn first_before_others(&self) -> Result<Option<Plan>> {
        let Some(wanted) = self.table.wanted.filter(|_| self.condition.is_none()) else {
            return Ok(None);
        };
        let selection = &self.table.selection;
        let end = selection
            .touched()
            .and_then(|touched| first_rows::end_of_first(&self.table.snapshot, &touched, wanted));
        let Some((end, order)) = end.zip(ordered(&self.schema, &KEY_ORDER, false)) else {
            return Ok(None);
        };
        let begins = selection.begins.unwrap_or(TimeRange::ALWAYS);
        let part = |begins: TimeRange, wanted: usize| -> Plan {
            let step = Self {
                table: self
                    .table
                    .clone()
                    .beginning_in(Some(begins))
                    .wanting(Some(wanted)),
                taken: ChosenPlan::default(),
                ..self.clone()
            };
            Arc::new(PartitionExec::over(step, Vec::new()))
        };
        let first = part(TimeRange::between(begins.start(), end), wanted);
        let others = part(
            TimeRange::between(end, begins.end()),
            wanted.saturating_mul(GROWTH),
        );
        Ok(Some(Arc::new(InTurnExec::try_new(vec![first, others], order)?)))
    }

    /// The rows with the last first.
    fn descending(&self) -> Result<Plan> {
        let selection = &self.table.selection;
        let all = TimeRange::ALWAYS;
        let begins = selection.begins.unwrap_or(all);
        let stretches = selection.touched().map_or_else(Vec::new, |touched| {
            backwards::stretches(&self.table.snapshot, &touched)
        });
        let stretches = stretches.into_iter().filter_map(|stretch| {
            TimeRange::new(
                stretch.start().max(begins.start()),
                stretch.end().min(begins.end()),
            )
        });
        let stretches = stretches.map(|stretch| -> Result<Plan> {
            let step = Self {
                // Its last rows are wanted, which come after all others.
                table: self.table.clone().beginning_in(Some(stretch)).wanting(None),
                order: Order::Ascending,
                taken: ChosenPlan::default(),
                ..self.clone()
            };
            Ok(Arc::new(PartitionExec::over(step, Vec::new())))
        });
        let stretches = stretches.collect::<Result<Vec<_>>>()?;
        match ordered(&self.schema, &KEY_ORDER, true) {
            Some(order) if !stretches.is_empty() => {
                Ok(Arc::new(InTurnExec::from_their_ends(stretches, order, halved)?))
            }
            _ => Ok(Arc::new(EmptyExec::new(Arc::clone(&self.schema)))),
        }
    }

    async fn plan(&self) -> Result<Plan> {
        match self.order {
            Order::Ascending => match self.first_before_others()? {
                Some(in_turn) => Ok(in_turn),
                None => self.over(self.scan()?.plan().await?),
            },
            Order::Descending => self.descending(),
        }
    }
}

fn both(one: Arc<dyn PhysicalExpr>, other: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(one, And, other))
}

impl Step for Rows {
    const NAME: &'static str = "PartitionExec";
    // The plan that it runs does.
    const YIELDS_BY_ITSELF: bool = true;

    fn detail(&self) -> String {
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        let mut detail = format!("columns=[{}]", names.join(", "));
        if self.order == Order::Descending {
            // Writing to a string cannot fail.
            let _written = write!(detail, ", from the end");
        }
        detail
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let order = ordered(&self.schema, &KEY_ORDER, self.order == Order::Descending);
        one_partition(Arc::clone(&self.schema), order)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics(&self.schema)
    }

    fn in_order(&self, order: &[PhysicalSortExpr]) -> Option<Self> {
        let reversed = match self.order {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        };
        let possible = ordered(&self.schema, &KEY_ORDER, reversed == Order::Descending)?;
        begins_with(&possible, order).then(|| Self {
            order: reversed,
            taken: ChosenPlan::default(),
            ..self.clone()
        })
    }

    fn run(self, _inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let taken = self.taken.clone();
        Ok(taken.rows(async move { self.plan().await }, task))
    }
}
