//! Records of a type as they were recorded: selected by time and conditions, in a fixed order.
//!
//! Knows specs, snapshots and plans; knows nothing of HTTP or of how an answer is encoded.

use std::marker::PhantomData;
use std::sync::Arc;

use datafusion::arrow::compute::{SortOptions, max, min};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef, TimestampMicrosecondType};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use futures::StreamExt as _;

use crate::catalog::Catalog;
use crate::model::permit::ReadPermit;
use crate::model::registry::{DataType, TypeId, Undeclared, is_json_text};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::files::PieceFiles;
use crate::store::snapshot::{Snapshot, Snapshots};

use super::aggregate::AggregateError;
use super::engine::{Engine, late};
use super::files::PieceReaders;
use super::filter::{self, Condition, FilterError};
use super::grown;
use super::partials::Partials;
use super::scan::{KEY_COLUMNS, Scan};
use super::shape::{self, IdForm};

/// The stored column of members that a type's schema does not declare.
const EXTRAS: &str = "extras";
/// Field metadata, `true`: members of the column's object are members of the row.
const SPREAD: &str = "almanac.spread";

/// Bytes of cells to keep in memory: a person's ten years of heart rate in quarters of an hour are some 20 MB.
const CELLS: u64 = 48 << 20;

/// Which way time runs in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    #[default]
    Ascending,
    Descending,
}

/// What is asked of the records of a type. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordsSpec {
    pub conditions: Vec<Condition>,
    pub order: Order,
    pub ids: IdForm,
    /// At most so many rows.
    pub limit: Option<usize>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the question could not be planned: {0}")]
    Plan(#[from] DataFusionError),
}

/// A question that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Arc<dyn ExecutionPlan>,
    pub schema: SchemaRef,
    /// The versions of all that would be read; the same versions give the same answer.
    pub versions: Vec<(TypeId, i64)>,
}

/// A stored partition with the type that its rows have now.
#[derive(Clone, Debug)]
pub struct Source {
    pub data_type: Arc<DataType>,
    pub partition: TypeId,
}

/// Prepares questions about records. It takes the permits of one authority only.
pub struct Archive<Authority> {
    pub(super) engine: Arc<Engine>,
    pub(super) snapshots: Snapshots,
    pub(super) catalog: Catalog,
    pub(super) reader: Arc<dyn ParquetFileReaderFactory>,
    pub(super) objects: ObjectStoreUrl,
    pub(super) partials: Partials,
    authority: PhantomData<fn() -> Authority>,
}

impl<Authority> Archive<Authority> {
    #[must_use]
    pub fn new(engine: Arc<Engine>, catalog: Catalog, snapshots: Snapshots, files: PieceFiles) -> Self {
        Self {
            engine,
            snapshots,
            catalog,
            reader: Arc::new(PieceReaders(files)),
            objects: ObjectStoreUrl::local_filesystem(),
            partials: Partials::new(CELLS),
            authority: PhantomData,
        }
    }

    /// The records of `sources`, which together are what `permit` names: one partition, or all those of a base.
    pub async fn records(&self, permit: &ReadPermit<Authority>, sources: &[Source], spec: &RecordsSpec) -> Result<Prepared, QueryError> {
        let selected = self.select(permit, sources, &spec.conditions, Columns::Shown).await?;
        let versions = selected
            .iter()
            .map(|one| (one.source.partition.clone(), one.snapshot.version))
            .collect();
        let mut plans = Vec::with_capacity(selected.len());
        for one in selected {
            let mut plan = one.plan;
            if spec.order == Order::Descending || spec.limit.is_some() {
                let order = key_order(&plan.schema(), spec.order)?;
                plan = Arc::new(SortExec::new(order, plan).with_fetch(spec.limit));
            }
            plans.push(shape::project(plan, &one.source.data_type.layout, spec.ids)?);
        }
        let plan = together(plans, spec)?;
        let spread = sources
            .iter()
            .all(|source| source.data_type.layout.undeclared == Undeclared::AsGiven);
        let schema = if spread { spreading(&plan.schema()) } else { plan.schema() };
        Ok(Prepared { plan, schema, versions })
    }

    /// How many records there are, and between which moments.
    pub async fn summary(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
    ) -> Result<Summary, QueryError> {
        let mut summary = Summary::default();
        for one in self.select(permit, sources, conditions, Columns::Key).await? {
            summary = summary.and(summarise(&self.engine, one.plan).await?);
        }
        Ok(summary)
    }

    /// Plans of the rows that are asked for, one for each source that can have some.
    pub(super) async fn plans(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
        columns: Columns,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>, QueryError> {
        let selected = self.select(permit, sources, conditions, columns).await?;
        Ok(selected.into_iter().map(|one| one.plan).collect())
    }

    /// For each source the rows that are asked for, with stored columns.
    async fn select<'a>(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &'a [Source],
        conditions: &[Condition],
        columns: Columns,
    ) -> Result<Vec<Selected<'a>>, QueryError> {
        let bound = bind_all(sources, conditions)?;
        let partitions: Vec<TypeId> = bound.iter().map(|(source, _)| source.partition.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &partitions).await?;
        bound
            .into_iter()
            .zip(snapshots)
            .map(|((source, condition), snapshot)| {
                let plan = self.selected(permit, source, condition, &snapshot, columns)?;
                Ok(Selected { source, snapshot, plan })
            })
            .collect()
    }

    fn selected(
        &self,
        permit: &ReadPermit<Authority>,
        source: &Source,
        condition: Option<Expr>,
        snapshot: &Snapshot,
        wanted: Columns,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let layout = &source.data_type.layout;
        let mut columns = match wanted {
            Columns::Shown => shape::stored_columns(layout),
            Columns::Key => Vec::new(),
        };
        columns.extend(KEY_COLUMNS.iter().filter_map(|name| layout.storage.index_of(name).ok()));
        if let Some(condition) = &condition {
            columns.extend(
                condition
                    .column_refs()
                    .into_iter()
                    .filter_map(|column| layout.storage.index_of(&column.name).ok()),
            );
        }
        let columns = grown::needed(&source.data_type, columns);
        let scan = Scan {
            snapshot,
            storage: &layout.storage,
            columns: columns.clone(),
            windows: permit.windows().as_slice(),
        };
        let plan = grown::filled(scan.plan(&self.reader, &self.objects)?, &source.data_type, &columns)?;
        let Some(condition) = condition else { return Ok(plan) };
        let schema = DFSchema::try_from(plan.schema().as_ref().clone())?;
        let condition = self.engine.state().create_physical_expr(condition, &schema)?;
        Ok(Arc::new(FilterExec::try_new(condition, plan)?))
    }
}

/// Which stored columns are read, beside those of the key and of the conditions.
#[derive(Clone, Copy)]
pub(super) enum Columns {
    Shown,
    Key,
}

struct Selected<'a> {
    source: &'a Source,
    snapshot: Arc<Snapshot>,
    plan: Arc<dyn ExecutionPlan>,
}

/// How many records, and between which moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub records: i64,
    pub first_start: Option<Instant>,
    pub last_end: Option<Instant>,
}

impl Summary {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            first_start: self.first_start.into_iter().chain(other.first_start).min(),
            last_end: self.last_end.into_iter().chain(other.last_end).max(),
        }
    }
}

/// Counts the rows of a plan that has the key columns.
pub(super) async fn summarise(engine: &Engine, plan: Arc<dyn ExecutionPlan>) -> Result<Summary, DataFusionError> {
    let mut summary = Summary::default();
    let mut rows = Box::pin(engine.drive(engine.start(plan)?, late));
    while let Some(batch) = rows.next().await.transpose()? {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .map(arrow::array::AsArray::as_primitive::<TimestampMicrosecondType>)
        };
        summary = summary.and(Summary {
            records: batch.num_rows() as i64,
            first_start: column("start_time").and_then(min).map(Instant::from_micros),
            last_end: column("end_time").and_then(max).map(Instant::from_micros),
        });
    }
    Ok(summary)
}

/// The conditions of every source. A field that one definition of a base has and another has not selects nothing of the other.
pub(super) fn bind_all<'a>(sources: &'a [Source], conditions: &[Condition]) -> Result<Vec<(&'a Source, Option<Expr>)>, FilterError> {
    let mut bound = Vec::with_capacity(sources.len());
    let mut refused = None;
    for source in sources {
        match filter::bind(conditions, &source.data_type) {
            Ok(condition) => bound.push((source, condition)),
            Err(error @ FilterError::UnknownField { .. }) if sources.len() > 1 => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(error) if bound.is_empty() => Err(error),
        _ => Ok(bound),
    }
}

/// `schema` with the mark by which encoders of rows print undeclared members where the caller put them.
fn spreading(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        if field.name() == EXTRAS && is_json_text(field) {
            metadata.insert(SPREAD.to_owned(), "true".to_owned());
        }
        field.as_ref().clone().with_metadata(metadata)
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// One plan out of several, with the columns of all: a column that one lacks is null there, and one that they hold differently is text.
fn together(mut plans: Vec<Arc<dyn ExecutionPlan>>, spec: &RecordsSpec) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    if plans.len() == 1 {
        return Ok(plans.remove(0));
    }
    let schema = common_schema(&plans);
    if plans.is_empty() {
        return Ok(Arc::new(EmptyExec::new(schema)));
    }
    let aligned = plans.into_iter().map(|plan| align(plan, &schema)).collect::<Result<Vec<_>, _>>()?;
    let order = key_order(&schema, spec.order)?;
    Ok(Arc::new(
        SortPreservingMergeExec::new(order, UnionExec::try_new(aligned)?).with_fetch(spec.limit),
    ))
}

pub(super) fn common_schema(plans: &[Arc<dyn ExecutionPlan>]) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    for field in plans
        .iter()
        .flat_map(|plan| plan.schema().fields().iter().cloned().collect::<Vec<_>>())
    {
        match fields.iter_mut().find(|known| known.name() == field.name()) {
            None => fields.push(field.as_ref().clone().with_nullable(true)),
            Some(known) if known.data_type() != field.data_type() => *known = Field::new(field.name(), ArrowType::Utf8, true),
            Some(_) => {}
        }
    }
    Arc::new(Schema::new(fields))
}

/// `plan` with the columns of `schema`.
pub(super) fn align(plan: Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let own = plan.schema();
    let expressions = schema
        .fields()
        .iter()
        .map(|field| {
            let expr: Arc<dyn PhysicalExpr> = match own.column_with_name(field.name()) {
                Some((index, held)) if held.data_type() == field.data_type() => Arc::new(Column::new(field.name(), index)),
                Some((index, _)) => Arc::new(CastExpr::new(
                    Arc::new(Column::new(field.name(), index)),
                    field.data_type().clone(),
                    None,
                )),
                None => Arc::new(Literal::new(ScalarValue::try_from(field.data_type())?)),
            };
            Ok(ProjectionExpr {
                expr,
                alias: field.name().clone(),
            })
        })
        .collect::<Result<Vec<_>, DataFusionError>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}

/// (start, end, id), whichever way.
fn key_order(schema: &Schema, order: Order) -> Result<LexOrdering, DataFusionError> {
    let options = SortOptions {
        descending: order == Order::Descending,
        nulls_first: false,
    };
    let keys = ["start_time", "end_time", "id"]
        .into_iter()
        .map(|name| Ok(PhysicalSortExpr::new(Arc::new(Column::new(name, schema.index_of(name)?)), options)))
        .collect::<Result<Vec<_>, DataFusionError>>()?;
    LexOrdering::new(keys).ok_or_else(|| datafusion::common::internal_datafusion_err!("an order has keys"))
}
