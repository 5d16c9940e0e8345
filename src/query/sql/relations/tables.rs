//! Tables: the readable part of a person's types, by name.
//!
//! A table is found when a query names it, and made from the permit that was found: a scan can read less than
//! the permit allows, and never more. Knows permits, layouts and plans.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, Session};
use datafusion::common::{Result, project_schema};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use uuid::Uuid;

use crate::model::ids::PersonId;
use crate::model::permit::ReadPermit;
use crate::model::registry::ReadFrom;
use crate::model::time::TimeRange;
use crate::query::Order;
use crate::query::columns::Columns;
use crate::query::for_others;
use crate::query::records::RecordsSpec;
use crate::query::shape::{IdForm, Visibility};
use crate::query::sql::errors::outside;

use super::answer_exec::AnswerExec;
use super::holdings::{CATALOG, Holding, Holdings, OWN, columns_of};
use super::information_schema::InformationSchema;
use super::narrowing::TimeColumns;

const INFORMATION: &str = "information_schema";

/// Schemas with tables: the caller's own, and one for each person who shares, named by their id.
pub(in crate::query::sql) struct PersonCatalogs<Authority> {
    holdings: Arc<dyn Holdings<Authority>>,
}

impl<Authority> PersonCatalogs<Authority> {
    pub(in crate::query::sql) fn of(holdings: &Arc<dyn Holdings<Authority>>) -> Self {
        Self {
            holdings: Arc::clone(holdings),
        }
    }
}

impl<Authority> fmt::Debug for PersonCatalogs<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("PersonCatalogs")
            .field(&self.holdings)
            .finish()
    }
}

impl<Authority: 'static> CatalogProviderList for PersonCatalogs<Authority> {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(Self::of(&self.holdings)) as Arc<dyn CatalogProvider>)
    }
}

impl<Authority: 'static> CatalogProvider for PersonCatalogs<Authority> {
    fn schema_names(&self) -> Vec<String> {
        vec![OWN.to_owned(), INFORMATION.to_owned()]
    }

    /// Every id is a schema, empty where nothing is shared: a query must not reveal who exists.
    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let holdings = Arc::clone(&self.holdings);
        if name == INFORMATION {
            return Some(Arc::new(InformationSchema::of(holdings)));
        }
        let of = match name {
            OWN => None,
            name => Some(PersonId(Uuid::try_parse(name).ok()?)),
        };
        Some(Arc::new(PersonSchema { holdings, of }))
    }
}

/// The tables of one person.
struct PersonSchema<Authority> {
    holdings: Arc<dyn Holdings<Authority>>,
    of: Option<PersonId>,
}

impl<Authority> fmt::Debug for PersonSchema<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PersonSchema").field(&self.of).finish()
    }
}

#[async_trait]
impl<Authority: 'static> SchemaProvider for PersonSchema<Authority> {
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(holding) = self.holdings.find(self.of, name).await? else {
            return Ok(None);
        };
        let table = PermittedTable::new(Arc::clone(&self.holdings), name, holding)?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, _name: &str) -> bool {
        false
    }
}

/// A type of a person, limited to a permit.
struct PermittedTable<Authority> {
    holdings: Arc<dyn Holdings<Authority>>,
    name: String,
    holding: Holding<Authority>,
    schema: SchemaRef,
    times: TimeColumns,
}

impl<Authority> PermittedTable<Authority> {
    fn new(holdings: Arc<dyn Holdings<Authority>>, name: &str, holding: Holding<Authority>) -> Result<Self> {
        let schema = columns_of(&holding.partitions, Visibility::through(&holding.permit))?;
        let mut times = TimeColumns::default();
        if let [partition] = holding.partitions.as_slice() {
            for column in &partition.data_type.layout.read {
                match column.from {
                    ReadFrom::Start => times.starts.push(column.name.clone()),
                    ReadFrom::End => times.ends.push(column.name.clone()),
                    _ => {}
                }
            }
        }
        Ok(Self {
            holdings,
            name: name.to_owned(),
            holding,
            schema,
            times,
        })
    }

    /// Whether the scan can evaluate a condition on the pages of the table's only partition.
    fn takes(&self, condition: &Expr) -> bool {
        self.holding.partitions.len() == 1 && self.holding.permit.is_own() && is_comparison(condition)
    }

    async fn rows(
        &self,
        schema: SchemaRef,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let permit = &self.holding.permit;
        let recorded = self.times.range(filters);
        // The windows of others' permits are about when rows take place, and not about what is recorded.
        let range = if permit.is_own() || recorded == TimeRange::ALWAYS {
            recorded
        } else {
            for_others::reached_within(permit.data_type(), recorded)
        };
        let permit: ReadPermit<Authority> = permit.within(range);
        let spec = RecordsSpec {
            conditions: self.holding.conditions.clone(),
            order: Order::Ascending,
            ids: IdForm::Text,
            limit,
            after: None,
            columns: read_for(&schema, &self.schema),
        };
        let taken: Vec<Expr> = filters
            .iter()
            // Conditions on times are already covered by the range.
            .filter(|filter| self.takes(filter) && !self.times.are_in(filter))
            .cloned()
            .collect();
        let questions = self.holdings.questions();
        let prepared = questions
            .records_that_may_meet(&permit, &self.holding.partitions, &spec, conjunction(taken))
            .await;
        let plan = prepared.map_err(outside)?.plan;
        let narrowed = if range == TimeRange::ALWAYS {
            ""
        } else {
            ", narrowed by time"
        };
        let label = format!("records of {}{narrowed}", self.name);
        let keys = [self.times.starts.first(), self.times.ends.first()];
        let order: Vec<&str> = keys.into_iter().flatten().map(String::as_str).collect();
        let answer = AnswerExec::try_new(plan, &schema, None, label, &order)?;
        Ok(Arc::new(answer.shared(!self.holding.permit.is_own())))
    }
}

/// Whether a condition only compares columns with constants: no function is called where rows are read.
fn is_comparison(condition: &Expr) -> bool {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let is_known = |expr: &Expr| matches!(expr, Expr::Literal(..));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => is_comparison(left) && is_comparison(right),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq => (is_column(left) && is_known(right)) || (is_known(left) && is_column(right)),
            _ => false,
        },
        Expr::Between(between) => {
            is_column(&between.expr) && is_known(&between.low) && is_known(&between.high)
        }
        Expr::InList(list) => is_column(&list.expr) && list.list.iter().all(is_known),
        Expr::IsNull(expr) | Expr::IsNotNull(expr) => is_column(expr),
        _ => false,
    }
}

/// The columns to read for those of `wanted`; `None`, which reads all, where their names are ambiguous as
/// paths.
fn read_for(wanted: &Schema, all: &Schema) -> Option<Columns> {
    let mut names: Vec<String> = wanted.fields().iter().map(|field| field.name().clone()).collect();
    if names.is_empty() {
        // Rows without columns cannot be counted.
        names.extend(all.fields().first().map(|field| field.name().clone()));
    }
    let have_paths = names.iter().any(|name| name.contains('.'));
    if have_paths || names.len() == all.fields().len() {
        return None;
    }
    Columns::new(names).ok()
}

impl<Authority> fmt::Debug for PermittedTable<Authority> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PermittedTable").field(&self.name).finish()
    }
}

#[async_trait]
impl<Authority: 'static> TableProvider for PermittedTable<Authority> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let told = filters.iter().map(|filter| {
            if self.times.are_in(filter) || self.takes(filter) {
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        });
        Ok(told.collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = project_schema(&self.schema, projection)?;
        self.rows(schema, filters, limit).await
    }
}
