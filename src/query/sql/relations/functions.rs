//! The questions of this room as table functions.
//!
//! While a query is planned, each call of a function is recorded; its answer is prepared between two attempts
//! at planning. So it is planned exactly as at its endpoint, and its columns are those of that plan.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunction, TableFunctionArgs, TableFunctionImpl};
use datafusion::common::{Result, ScalarValue, plan_err, project_schema};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::answer_exec::AnswerExec;
use super::calls::{Call, QuestionFunction};
use super::holdings::{Holdings, nullable};

/// The functions of one query: recorded calls, and the answers prepared for them.
#[derive(Debug, Default)]
pub(in crate::query::sql) struct Functions(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    met: Vec<Call>,
    prepared: HashMap<Call, Arc<AnswerTable>>,
}

impl Functions {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self, call: Call) -> Result<Arc<dyn TableProvider>> {
        let mut calls = self.calls();
        if let Some(table) = calls.prepared.get(&call) {
            let table: Arc<AnswerTable> = Arc::clone(table);
            return Ok(table);
        }
        calls.met.push(call);
        plan_err!("a function is not prepared yet")
    }

    /// Prepares the recorded calls; whether there were any.
    pub(in crate::query::sql) async fn prepare<Authority>(
        &self,
        holdings: &dyn Holdings<Authority>,
    ) -> Result<bool> {
        let met = std::mem::take(&mut self.calls().met);
        let any = !met.is_empty();
        for call in met {
            let prepared = holdings.answer(&call).await?;
            let table = AnswerTable::new(&call, prepared.plan);
            self.calls().prepared.insert(call, Arc::new(table));
        }
        Ok(any)
    }
}

/// All functions, for a query's session.
pub(in crate::query::sql) fn all(functions: &Arc<Functions>) -> HashMap<String, Arc<TableFunction>> {
    let of = |function: QuestionFunction| {
        let name = function.name().to_owned();
        let met = PlannedFunction {
            function,
            functions: Arc::clone(functions),
        };
        (name.clone(), Arc::new(TableFunction::new(name, Arc::new(met))))
    };
    QuestionFunction::ALL.into_iter().map(of).collect()
}

/// One function, as the planner sees it.
#[derive(Debug)]
struct PlannedFunction {
    function: QuestionFunction,
    functions: Arc<Functions>,
}

impl TableFunctionImpl for PlannedFunction {
    fn call_with_args(&self, arguments: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = self.function.name();
        let values = arguments.exprs().iter().map(|expr| {
            if let Expr::Literal(value, _) = expr {
                return Ok(value.clone());
            }
            plan_err!("arguments of '{name}' are values, not columns")
        });
        let values = values.collect::<Result<Vec<ScalarValue>>>()?;
        self.functions.table(Call::read(self.function, &values)?)
    }
}

/// The answer of a function.
#[derive(Debug)]
struct AnswerTable {
    label: String,
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
}

impl AnswerTable {
    fn new(call: &Call, plan: Arc<dyn ExecutionPlan>) -> Self {
        let label = match call {
            Call::Series { metric, .. } => format!("series of {metric}"),
            Call::SleepStages(_) => "sleep_stages".to_owned(),
            Call::SleepCycles(_) => "sleep_cycles".to_owned(),
            Call::SleepAgg { .. } => "sleep_agg".to_owned(),
            Call::LocationAt(_) => "location_at".to_owned(),
            Call::LocationUpdates(_) => "location_updates".to_owned(),
            Call::LocationSeries { .. } => "location_series".to_owned(),
            Call::Agg { data_type, .. } => format!("agg of {data_type}"),
        };
        let schema = nullable(&plan.schema());
        Self { label, plan, schema }
    }
}

#[async_trait]
impl TableProvider for AnswerTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = project_schema(&self.schema, projection)?;
        let plan = AnswerExec::try_new(Arc::clone(&self.plan), &schema, limit, self.label.clone(), &[])?;
        Ok(Arc::new(plan))
    }
}
