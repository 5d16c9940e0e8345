//! Queries in SQL: makes a plan from a text and what its author may read.
//!
//! Tables are made only from permits, functions are the questions of this room, and statements that neither
//! read nor compute are refused by name. Texts are bounded before they are parsed, and planned apart from
//! everything else. Knows grammar, types and plans; the [`Holdings`] that come from above decide who may read
//! what.
//!
//! On its way a text passes through [`reading`] (from words to a statement), [`relations`] (the tables and
//! functions that it names) and [`allowed`] (the functions that it may call), [`unfolding`] (its size once
//! names are replaced), [`meaning`] (the values of expressions), [`optimizing`], [`naming`] (of the answer's
//! columns) and [`bounds`] (what it may take while it runs).

mod allowed;
mod bounds;
mod errors;
mod keep_names;
mod meaning;
mod naming;
mod optimizing;
mod reading;
mod relations;
mod stand_in;
mod unfolding;
mod walking;

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::model::time::Instant;

use super::engine::Engine;
use super::{Prepared, Scope};
use bounds::{bounded, guard, separators};
use meaning::by_row::MembersByRow;
use meaning::checked::CheckedArithmetic;
use meaning::one_zero::{BothZeros, OneZero};
use meaning::truths::Truths;
use meaning::unordered::Unordered;
use meaning::wide_frames::WideFrames;
use meaning::{members, moments, outward, patterns, spans, unknown};
use naming::{columns, duplicate_names, group_keys};
use optimizing::sorted_once::SortedOnce;
use optimizing::{branches, constants_last, kept_above, large_limits, namesakes, outer_side, pages};
use reading::explained::{UNPLANNED, explained};
use reading::statement;
use reading::text::QueryText;
use relations::functions::{self, Functions};
use relations::holdings::{CATALOG, OWN};
use relations::tables::PersonCatalogs;
use unfolding::in_plan;

pub(super) use bounds::guard::GuardExec;
pub use errors::{SqlError, SqlFailure, TextPosition, outside};
pub(super) use optimizing::outer_side::OuterSideExec;
pub(super) use optimizing::pages::PageExec;
pub use reading::explained::readable;
pub use reading::parameters::Parameters;
pub use reading::statement::Show;
pub(super) use relations::answer_exec::AnswerExec;
pub use relations::calls::{Call, QuestionFunction, Span};
pub use relations::holdings::{Holding, Holdings, ListedTable};

/// A query as it was sent.
#[derive(Clone, Debug)]
pub struct SqlQuestion {
    pub text: String,
    pub parameters: Parameters,
}

/// A query that is ready to run.
#[derive(Debug)]
pub struct Planned {
    pub prepared: Prepared,
    pub show: Show,
}

impl Engine {
    /// The plan of `question`, asked at `now` by the owner of these holdings. `held` is returned with it: it
    /// is kept as long as planning takes, even when nobody waits for the result any more.
    pub async fn sql<Authority: 'static, Held: Send + 'static>(
        &self,
        holdings: Arc<dyn Holdings<Authority>>,
        question: SqlQuestion,
        now: Instant,
        held: Held,
    ) -> Result<(Planned, Held), SqlFailure> {
        let state = self.state().clone();
        let work = move || async move {
            let planned = plan(state, holdings, &question, now).await;
            (planned, held)
        };
        match self.on_planner_thread(work).await {
            Ok((planned, held)) => Ok((planned?, held)),
            // A planner that panics was given something that it should have refused.
            Err(DataFusionError::Internal(_)) => Err(SqlError::without_place(UNPLANNED).into()),
            Err(error) => Err(SqlFailure::Failed(error)),
        }
    }
}

async fn plan<Authority: 'static>(
    state: SessionState,
    holdings: Arc<dyn Holdings<Authority>>,
    question: &SqlQuestion,
    now: Instant,
) -> Result<Planned, SqlFailure> {
    let text = QueryText::read(&question.text)?;
    let asked = statement::read(&text, &question.parameters)?;
    let functions = Arc::new(Functions::default());
    let state = session(state, &holdings, &functions, now);
    statement::refuse_several_rows(&asked, &text, &|name| {
        state.scalar_functions().contains_key(name) || state.higher_order_functions().contains_key(name)
    })?;
    let wrong = |error: DataFusionError| {
        if is_ours(&error) {
            SqlFailure::Failed(error)
        } else {
            explained(&error, &text, &holdings.usual_names()).into()
        }
    };
    let planning = Planning {
        state: &state,
        holdings: &holdings,
        functions: &functions,
    };
    let planned = planning.plan_replaced(&asked.statement).await;
    let logical = match planned.and_then(group_keys::refuse_alike_keys) {
        Err(error) if duplicate_names::is_about_names(&error) => {
            let again = planning.plan_apart(&asked.statement).await;
            again.and_then(group_keys::refuse_alike_keys).map_err(|again| {
                if duplicate_names::tells_of_names(&again) {
                    error
                } else {
                    again
                }
            })
        }
        planned => planned,
    };
    let logical = logical.map_err(wrong)?;
    let own_names = duplicate_names::own_names(&logical).map_err(wrong)?;
    let logical = rewrite(logical).map_err(wrong)?;
    let logical = optimize(&state, &logical).map_err(wrong)?;
    let planner = state.query_planner();
    let plan = planner.create_physical_plan(&logical, &state).await;
    let plan = plan.map_err(wrong)?;
    let plan = columns::with_names_of_their_own(plan, &own_names).map_err(wrong)?;
    let plan = guard::with_guards(plan, state.config().batch_size()).map_err(wrong)?;
    Ok(Planned {
        prepared: Prepared::of(plan, Vec::new(), Scope::default()),
        show: asked.show,
    })
}

/// What statements of one query are planned with.
struct Planning<'a, Authority> {
    state: &'a SessionState,
    holdings: &'a Arc<dyn Holdings<Authority>>,
    functions: &'a Functions,
}

impl<Authority: 'static> Planning<'_, Authority> {
    /// A function's columns are known only once its question is prepared, which is asynchronous; so planning
    /// that meets an unprepared one is repeated after preparing it.
    async fn plan(&self, statement: &Statement) -> Result<LogicalPlan, DataFusionError> {
        loop {
            match self.state.statement_to_plan(statement.clone()).await {
                Ok(plan) => return Ok(plan),
                Err(error) => {
                    if !self.functions.prepare(self.holdings.as_ref()).await? {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The plan of a statement in which several columns of the answer, or keys of groups, have the same name.
    async fn plan_apart(&self, statement: &Statement) -> Result<LogicalPlan, DataFusionError> {
        let mut statement = statement.clone();
        if let Statement::Statement(sql) = &mut statement
            && let ast::Statement::Query(query) = sql.as_mut()
        {
            group_keys::named_apart(query);
            let spelled_out = self.spelled_out(query).await?;
            duplicate_names::named_apart(query, spelled_out)?;
        }
        self.plan(&statement).await
    }

    /// The plan of a statement, unless a `*` of it replaces a column that it does not stand for.
    async fn plan_replaced(&self, statement: &Statement) -> Result<LogicalPlan, DataFusionError> {
        let plan = self.plan(statement).await?;
        if let Statement::Statement(sql) = statement
            && let ast::Statement::Query(query) = sql.as_ref()
            && duplicate_names::replaces(query)
        {
            self.spelled_out(query).await?;
        }
        Ok(plan)
    }

    /// What each `*` stands for of the outermost SELECTs, but for those that one before it is like.
    async fn spelled_out(&self, query: &ast::Query) -> Result<Vec<Vec<ast::SelectItem>>, DataFusionError> {
        let mut spelled_out = Vec::new();
        for (item, probe) in duplicate_names::wildcards(query) {
            let probe = ast::Statement::Query(Box::new(probe));
            let plan = self.plan(&Statement::Statement(Box::new(probe))).await?;
            spelled_out.push(duplicate_names::spelled_out(&item, plan.schema())?);
        }
        Ok(spelled_out)
    }
}

/// The plan with the values that its expressions have in SQL, unless it is refused.
fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    in_plan::refuse_large(&plan)?;
    let only_reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    only_reads.verify_plan(&plan)?;
    let plan = moments::bring_to_moments(plan)?;
    let plan = spans::compare_by_length(plan)?;
    let plan = unknown::keep_unknown(plan)?;
    let plan = patterns::escape_patterns(plan)?;
    outward::refuse_lost(&plan)?;
    let plan = constants_last::write_constants_last(plan)?;
    let plan = members::keep_null(plan)?;
    bounded::limit_functions(plan)
}

/// The plan as it is carried out.
fn optimize(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    match state.optimize(plan) {
        Ok(optimized) => {
            outward::refuse_unjoined(&optimized)?;
            separators::refuse_long(&optimized)?;
            Ok(optimized)
        }
        // All names were found when the query was planned. What the optimizer does not find, it has lost:
        // most probably where it gave up joining a subquery.
        Err(error) if matches!(error.find_root(), DataFusionError::SchemaError(..)) => {
            outward::refuse_unjoined(plan)?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// The session that a query is planned with: its author's tables, and functions that do no harm.
fn session<Authority: 'static>(
    state: SessionState,
    holdings: &Arc<dyn Holdings<Authority>>,
    functions: &Arc<Functions>,
    now: Instant,
) -> SessionState {
    let mut config = state
        .config()
        .clone()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, OWN)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.enable_recursive_ctes = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    // Parts of objects under names that belong to no table are not found again behind joins and aliases.
    // Tables are read column by column, so it makes no difference to what is read.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // What a join tells its other side, while it runs, of the numbers that it has found tells zeros apart.
    // Scans do not listen to it, so it spares nothing.
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    let scalars = allowed::scalars(&state, now);
    let aggregates = allowed::aggregates(&state);
    let conditions = kept_above::with_guarded_pushdown(state.optimizers());
    let rules = namesakes::with_guarded_pushdown(state.physical_optimizers());
    let rules = pages::with_page_rule(&outer_side::with_outer_side_rule(&rules));
    let memory = state.runtime_env().memory_pool.memory_limit();
    let rules = large_limits::with_spilling_limits(&rules, &memory);
    let rules = branches::with_branches_in_turn(&rules);
    let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(spans::WrittenSpans)];
    planners.extend_from_slice(state.expr_planners());
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_config(config)
        .with_optimizer_rules(conditions)
        .with_physical_optimizer_rules(rules)
        .with_catalog_list(Arc::new(PersonCatalogs::of(holdings)))
        .with_scalar_functions(scalars)
        .with_aggregate_functions(aggregates)
        .with_analyzer_rule(Arc::new(Unordered))
        .with_analyzer_rule(Arc::new(OneZero::new()))
        .with_analyzer_rule(Arc::new(CheckedArithmetic))
        .with_analyzer_rule(Arc::new(Truths))
        .with_analyzer_rule(Arc::new(WideFrames))
        .with_optimizer_rule(Arc::new(BothZeros))
        .with_optimizer_rule(Arc::new(SortedOnce))
        .with_optimizer_rule(Arc::new(MembersByRow::new()))
        .with_table_functions(functions::all(functions))
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(moments::Microseconds))
        .build();
    let now = chrono::DateTime::from_timestamp_micros(now.micros());
    state.execution_props_mut().query_execution_start_time = now;
    state
}

/// Whether the fault lies with what the query reads, or with the machine, and not with the query. The only
/// external errors of DataFusion itself are those about a pattern.
fn is_ours(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(error) => {
            !(error.is::<regex::Error>() || error.is::<regex_syntax::Error>())
        }
        error => matches!(
            error,
            DataFusionError::ResourcesExhausted(_)
                | DataFusionError::IoError(_)
                | DataFusionError::ObjectStore(_)
                | DataFusionError::ParquetError(_)
        ),
    }
}
