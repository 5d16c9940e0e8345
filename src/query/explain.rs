//! A plan as text: how a question is answered, and what the run took.
//!
//! A plan may hold stored values: ids of dead rows, paths of files, definitions. For operators that read and
//! compute, the text has names, columns and counts, and no value. Counts are shown to the owner only: a
//! reader of shared data could learn from them how much data is not shared. Only what the author of an SQL
//! query wrote is shown again. Knows plans, and by their types the operators whose
//! details it shows.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use futures::StreamExt as _;

use crate::model::names::named;

use super::Prepared;
use super::engine::{Engine, deadline_passed};
use super::ground::merge_sorted::MergeSortedExec;
use super::ground::scan::ConstantsExec;
use super::ground::table::PartitionExec;
use super::ground::together::AlignExec;
use super::operator::{KnownOrderExec, Plan, is_sound};
use super::series::rollups::RowsOrRollupsExec;
use super::sql::{AnswerExec, GuardExec, OuterSideExec, PageExec};

/// The line added to a plan when an operator's input lacks the order that it relies on, which is a bug of
/// this program.
const UNSOUND: &str = "this plan is not sound: an operator relies on an order that its input is not in";

named! {
    "explain",
    /// How much to explain of a plan.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Explain {
        /// Nothing: the rows are the answer.
        No = "none",
        /// The plan, without running it.
        Plan = "plan",
        /// The plan after running it, with what it took.
        Analyze = "analyze",
    }
}

/// Who put a plan together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanAuthor {
    /// The author of a query, out of what they wrote.
    Query,
    /// This program, from stored data: the caller's own, or that of others too.
    Question { own: bool },
}

impl Prepared {
    /// The plan as text, one line for each operator. For [`Explain::Analyze`] it is run first.
    pub async fn explained(&self, engine: &Engine, explain: Explain) -> Result<Vec<String>> {
        let own = self.scope.is_own();
        self.explained_as(engine, explain, PlanAuthor::Question { own })
            .await
    }

    /// The plan of an SQL query as text, with the words of the query, one line for each operator.
    pub async fn explained_query(&self, engine: &Engine, explain: Explain) -> Result<Vec<String>> {
        self.explained_as(engine, explain, PlanAuthor::Query).await
    }

    async fn explained_as(
        &self,
        engine: &Engine,
        explain: Explain,
        author: PlanAuthor,
    ) -> Result<Vec<String>> {
        if explain == Explain::Analyze {
            let mut rows = Box::pin(engine.drive(engine.start(Arc::clone(&self.plan)), deadline_passed));
            while rows.next().await.transpose()?.is_some() {}
        }
        let mut lines = Vec::new();
        describe(self.plan.as_ref(), 0, explain, author, &mut lines);
        if !is_sound_throughout(&self.plan) {
            lines.push(UNSOUND.to_owned());
        }
        Ok(lines)
    }

    /// Text as an answer with one column, `plan`, and a row for each line.
    pub fn of_lines(lines: Vec<String>) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![Field::new("plan", DataType::Utf8, false)]));
        let column = Arc::new(StringArray::from(lines));
        let rows = RecordBatch::try_new(Arc::clone(&schema), vec![column])?;
        let plan = MemorySourceConfig::try_new_exec(&[vec![rows]], Arc::clone(&schema), None)?;
        Ok(Self {
            plan,
            schema,
            states: Vec::new(),
            scope: super::Scope::default(),
        })
    }
}

fn describe(
    plan: &dyn ExecutionPlan,
    depth: usize,
    explain: Explain,
    author: PlanAuthor,
    lines: &mut Vec<String>,
) {
    if let Some(guard) = plan.downcast_ref::<GuardExec>() {
        // One stands above each operator of a query.
        return inner_of(guard.inputs(), depth, explain, author, lines);
    }
    // These only inform the planner, and do nothing at run time.
    let side = plan.downcast_ref::<OuterSideExec>().map(OuterSideExec::inputs);
    let known = plan.downcast_ref::<KnownOrderExec>().map(KnownOrderExec::inputs);
    let page = plan.downcast_ref::<PageExec>().map(PageExec::inputs);
    if let Some(inputs) = side.or(known).or(page) {
        return inner_of(inputs, depth, explain, author, lines);
    }
    let mut line = "  ".repeat(depth);
    match author {
        PlanAuthor::Query => line.push_str(displayable(plan).one_line().to_string().trim_end()),
        PlanAuthor::Question { own } => {
            line.push_str(plan.name());
            line.push_str(&detail(plan, own));
        }
    }
    let answer = plan.downcast_ref::<AnswerExec>();
    let is_own = author != (PlanAuthor::Question { own: false }) && answer.is_none_or(AnswerExec::is_own);
    if explain == Explain::Analyze && is_own {
        line.push_str(&measured(plan));
    }
    lines.push(line);
    if let Some(below) = below(plan, is_own) {
        let author = answer.map_or(author, |answer| PlanAuthor::Question { own: answer.is_own() });
        describe(below.as_ref(), depth + 1, explain, author, lines);
    }
    for child in plan.children() {
        describe(child.as_ref(), depth + 1, explain, author, lines);
    }
}

/// What a leaf runs that is not part of the plan around it. Footers describe all rows of a piece, also those
/// that others may not see, so others see the plan as it would be without footers.
fn below(plan: &dyn ExecutionPlan, is_own: bool) -> Option<Plan> {
    if let Some(answer) = plan.downcast_ref::<AnswerExec>() {
        return Some(Arc::clone(answer.inner()));
    }
    // A plan that cannot be made reports its error when it is run.
    if let Some(rollups) = plan.downcast_ref::<RowsOrRollupsExec>() {
        return rollups.below().ok();
    }
    let partition = plan.downcast_ref::<PartitionExec>()?;
    if is_own {
        partition.below().ok()
    } else {
        partition.undecoded().ok()
    }
}

fn is_sound_throughout(plan: &Plan) -> bool {
    fn have_sound_leaves(plan: &dyn ExecutionPlan) -> bool {
        below(plan, true).is_none_or(|below| is_sound_throughout(&below))
            && plan
                .children()
                .iter()
                .all(|child| have_sound_leaves(child.as_ref()))
    }
    is_sound(plan) && have_sound_leaves(plan.as_ref())
}

/// Describes the inputs of an operator that is itself not shown.
fn inner_of(inputs: &[Plan], depth: usize, explain: Explain, author: PlanAuthor, lines: &mut Vec<String>) {
    for input in inputs {
        describe(input.as_ref(), depth, explain, author, lines);
    }
}

/// The details of an operator that reveal nobody's data.
fn detail(plan: &dyn ExecutionPlan, own: bool) -> String {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        source_detail(plan, source, own)
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        format!(": on [{}]", columns_in(filter.predicate()))
    } else if let Some(constants) = plan.downcast_ref::<ConstantsExec>() {
        format!(": columns=[{}]", constants.step().names())
    } else if plan.is::<ProjectionExec>() || plan.is::<AlignExec>() || plan.is::<PartitionExec>() {
        format!(": columns=[{}]", columns_of(plan))
    } else if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let most = limit
            .fetch()
            .map_or_else(|| "all".to_owned(), |most| most.to_string());
        format!(": skip={}, fetch={most}", limit.skip())
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        format!(": by [{}]", sort.expr())
    } else if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        format!(": by [{}]", merge.expr())
    } else if let Some(merge) = plan.downcast_ref::<MergeSortedExec>() {
        format!(": by [{}]", merge.step().order())
    } else {
        String::new()
    }
}

fn source_detail(plan: &dyn ExecutionPlan, source: &DataSourceExec, own: bool) -> String {
    let columns = columns_of(plan);
    let Some(files) = source.data_source().downcast_ref::<FileScanConfig>() else {
        return format!(": rows in memory, columns=[{columns}]");
    };
    let mut detail = if own {
        let count: usize = files.file_groups.iter().map(|group| group.files().len()).sum();
        format!(": files={count}, columns=[{columns}]")
    } else {
        format!(": columns=[{columns}]")
    };
    if let Some(predicate) = files.file_source.filter() {
        // Writing to a string cannot fail.
        let _written = write!(detail, ", skips by [{}]", columns_in(&predicate));
    }
    detail
}

fn columns_of(plan: &dyn ExecutionPlan) -> String {
    let schema = plan.schema();
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    names.join(", ")
}

fn columns_in(expr: &Arc<dyn PhysicalExpr>) -> String {
    let names: BTreeSet<String> = collect_columns(expr)
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// What an operator took, without zero metrics. Labels are left out: they name files.
fn measured(plan: &dyn ExecutionPlan) -> String {
    let Some(metrics) = plan.metrics() else {
        return String::new();
    };
    let metrics = metrics
        .aggregate_by_name()
        .sorted_for_display()
        .timestamps_removed();
    let told: Vec<String> = metrics
        .iter()
        .filter(|metric| metric.value().as_usize() > 0)
        .map(|metric| format!("{}={}", metric.value().name(), metric.value()))
        .collect();
    if told.is_empty() {
        String::new()
    } else {
        format!(", metrics=[{}]", told.join(", "))
    }
}
