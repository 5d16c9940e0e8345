//! Records of a type as they were recorded: selected by time and conditions, in a fixed order.
//!
//! Knows specs, snapshots and plans; knows nothing of HTTP or of how an answer is encoded.

use std::sync::Arc;

use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use futures::StreamExt as _;

use crate::model::permit::ReadPermit;
use crate::model::registry::{ReadFrom, TypeId, Undeclared, is_json_text};
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

use super::ground::backwards;
use super::ground::columns::{ColumnError, Columns as ShownColumns};
use super::ground::definitions;
use super::ground::engine::{Engine, late};
use super::ground::filter::Condition;
use super::ground::grown;
use super::ground::in_turn::InTurnExec;
use super::ground::key::{KEY_COLUMNS, KEY_ORDER};
use super::ground::operator::{known_order, ordered};
use super::ground::paging::{PageEnd, RowPlace, number_of, places_of};
use super::ground::prepared;
use super::ground::scan::Scan;
use super::ground::shape::{self, IdForm, Sees};
use super::ground::shared::Lengths;
use super::ground::stored_type::{bind_all, refuse_private};
use super::ground::together::{align, common_schema};
use super::{Archive, Order, Prepared, QueryError, ReadState, Scope, Source};

/// The stored column of members that a type's schema does not declare.
const EXTRAS: &str = "extras";
/// Field metadata, `true`: members of the column's object are members of the row.
const SPREAD: &str = "almanac.spread";

/// What is asked of the records of a type. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordsSpec {
    pub conditions: Vec<Condition>,
    pub order: Order,
    pub ids: IdForm,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Only rows that come after this place.
    pub after: Option<RowPlace>,
    /// The columns that are wanted: what is not among them need not be read. All of them if none are named.
    /// [`Prepared::only`] brings the answer into their order.
    pub columns: Option<ShownColumns>,
}

impl<Authority> Archive<Authority> {
    /// The records of `sources`, which together are what `permit` names: one partition, or all those of a
    /// base.
    pub async fn records(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        spec: &RecordsSpec,
    ) -> Result<Prepared, QueryError> {
        let selected = self.select(permit, sources, &spec.conditions).await?;
        self.records_of(permit, sources, selected, spec)
    }

    /// The same, and the place of the last row, if more follow it than `spec` wants.
    pub async fn page_of_records(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        spec: &RecordsSpec,
    ) -> Result<(Prepared, Option<RowPlace>), QueryError> {
        let selected = self.select(permit, sources, &spec.conditions).await?;
        let last = self.end_of_page(permit, sources, &selected, spec).await?;
        let prepared = self.records_of(permit, sources, selected, spec)?;
        Ok((prepared, last))
    }

    async fn end_of_page(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        selected: &[Selected<'_>],
        spec: &RecordsSpec,
    ) -> Result<Option<RowPlace>, QueryError> {
        let Some(limit) = spec.limit else { return Ok(None) };
        let mut plans = Vec::with_capacity(selected.len());
        for one in selected {
            let rows = self.rows_after(permit, sources, one, Columns::Key, spec)?;
            plans.push(places_of(rows, number_of(&one.source.partition))?);
        }
        let one_more = Some(limit.saturating_add(1));
        let plan: Arc<dyn ExecutionPlan> = match <[_; 1]>::try_from(plans) {
            Ok([plan]) => Arc::new(GlobalLimitExec::new(plan, 0, one_more)),
            Err(plans) if plans.is_empty() => return Ok(None),
            Err(plans) => {
                let union = UnionExec::try_new(plans)?;
                let order = key_order(&union.schema(), spec.order)?;
                Arc::new(merged(order, union).with_fetch(one_more))
            }
        };
        let mut end = PageEnd::new(limit);
        let mut rows = Box::pin(self.engine.drive(self.engine.start(plan)?, late));
        while let Some(batch) = rows.next().await.transpose()? {
            end.pass(&batch)?;
        }
        Ok(end.found())
    }

    fn records_of(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        selected: Vec<Selected<'_>>,
        spec: &RecordsSpec,
    ) -> Result<Prepared, QueryError> {
        let sees = Sees::through(permit);
        let wanted = Wanted::of(sources, spec)?;
        let states = selected
            .iter()
            .map(|one| ReadState::of(permit, one.source, &one.snapshot))
            .chain(prepared::definitions(sources))
            .collect();
        let mut selected = selected.into_iter().peekable();
        let mut plans = Vec::with_capacity(sources.len());
        for source in sources {
            let layout = &source.data_type.layout;
            let plan = match selected.next_if(|one| std::ptr::eq(one.source, source)) {
                Some(one) => self.rows_after(permit, sources, &one, Columns::Shown(wanted), spec)?,
                // Its columns stay: which columns there are, and what they hold, depends on the types and not
                // on the conditions.
                None => Arc::new(EmptyExec::new(Arc::clone(&layout.storage))),
            };
            let plan = match spec.limit {
                Some(_) => Arc::new(GlobalLimitExec::new(plan, 0, spec.limit)),
                None => plan,
            };
            let needs = |name: &str| wanted.includes(name);
            plans.push(shape::project(plan, layout, spec.ids, sees, needs)?);
        }
        let plan = together(plans, spec)?;
        let spread = sources
            .iter()
            .all(|source| source.data_type.layout.undeclared == Undeclared::AsGiven);
        let schema = if spread {
            spreading(&plan.schema())
        } else {
            plan.schema()
        };
        Ok(Prepared {
            plan,
            schema,
            states,
            scope: Scope::of([permit]),
        })
    }

    /// How many records there are, and between which moments.
    pub async fn summary(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
    ) -> Result<Summary, QueryError> {
        let mut summary = Summary::default();
        for one in self.select(permit, sources, conditions).await? {
            let rows = self.rows_of_source(permit, &one, Columns::Key, None)?;
            summary = summary.and(summarise(&self.engine, rows).await?);
        }
        Ok(summary)
    }

    /// Plans of the rows that are asked for, one for each source that can have some.
    pub(super) async fn plans(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
        columns: Columns<'_>,
    ) -> Result<Vec<Arc<dyn ExecutionPlan>>, QueryError> {
        let selected = self.select(permit, sources, conditions).await?;
        selected
            .iter()
            .map(|one| self.rows_of_source(permit, one, columns, None))
            .collect()
    }

    /// What is asked of each source, as of one moment.
    async fn select<'a>(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &'a [Source],
        conditions: &[Condition],
    ) -> Result<Vec<Selected<'a>>, QueryError> {
        refuse_private(permit, conditions, &[], sources)?;
        let bound = bind_all(sources, conditions)?;
        let partitions: Vec<TypeId> = bound.iter().map(|(source, _)| source.partition.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &partitions).await?;
        let selected = |((source, condition), snapshot)| Selected {
            source,
            condition,
            snapshot,
        };
        Ok(bound.into_iter().zip(snapshots).map(selected).collect())
    }

    /// The rows of a source in the order that is asked for, from the place on where the page begins.
    fn rows_after(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        selected: &Selected<'_>,
        wanted: Columns<'_>,
        spec: &RecordsSpec,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let begins = spec.after.map(|place| place.begins(spec.order));
        let rows = match spec.order {
            Order::Ascending => self.rows_of_source(permit, selected, wanted, begins)?,
            Order::Descending => self.rows_backwards(permit, selected, wanted, begins)?,
        };
        let Some(place) = spec.after else { return Ok(rows) };
        let at = |source: &Source| number_of(&source.partition) == place.partition;
        let mut after = sources.iter().skip_while(|source| !at(source)).skip(1);
        let later = after.any(|source| std::ptr::eq(source, selected.source));
        Ok(place.after(rows, spec.order, later)?)
    }

    /// The last row first, of those that begin in `begins`.
    fn rows_backwards(
        &self,
        permit: &ReadPermit<Authority>,
        selected: &Selected<'_>,
        wanted: Columns<'_>,
        begins: Option<TimeRange>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let all = begins.unwrap_or(TimeRange::between(Instant::MIN, Instant::MAX));
        let stretches = backwards::stretches(&selected.snapshot, permit.windows().as_slice())
            .into_iter()
            .filter_map(|stretch| {
                TimeRange::new(stretch.start().max(all.start()), stretch.end().min(all.end()))
            })
            .map(|stretch| self.rows_of_source(permit, selected, wanted, Some(stretch)))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(stretch) = stretches.first() else {
            return self.rows_of_source(permit, selected, wanted, begins);
        };
        let order = key_order(&stretch.schema(), Order::Descending)?;
        Ok(Arc::new(InTurnExec::from_their_ends(stretches, order)?))
    }

    /// The rows that are asked for, with stored columns; only those that begin in a stretch, if one is given.
    fn rows_of_source(
        &self,
        permit: &ReadPermit<Authority>,
        selected: &Selected<'_>,
        wanted: Columns<'_>,
        begins: Option<TimeRange>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let Selected {
            source,
            condition,
            snapshot,
        } = selected;
        let layout = &source.data_type.layout;
        let mut columns = match wanted {
            Columns::Shown(shown) => {
                shape::stored_columns(layout, Sees::through(permit), |name| shown.includes(name))
            }
            Columns::Key => Vec::new(),
        };
        columns.extend(
            KEY_COLUMNS
                .iter()
                .filter_map(|name| layout.storage.index_of(name).ok()),
        );
        if let Some(condition) = condition {
            columns.extend(
                condition
                    .column_refs()
                    .into_iter()
                    .filter_map(|column| layout.storage.index_of(&column.name).ok()),
            );
        }
        let columns = definitions::needed(
            source.definitions.as_ref(),
            &source.data_type,
            grown::needed(&source.data_type, columns),
        );
        let narrowed = match wanted {
            Columns::Shown(shown) => shown.narrowed(source, condition.as_ref()),
            Columns::Key => None,
        };
        let scan = Scan {
            snapshot,
            storage: narrowed.as_ref().unwrap_or(&layout.storage),
            columns: columns.clone(),
            windows: permit.windows().as_slice(),
            begins,
        };
        let plan = grown::filled(
            self.seen(permit, &source.data_type, scan, Lengths::Forgotten)?,
            &source.data_type,
            &columns,
        )?;
        let plan = definitions::laid_over(plan, source.definitions.as_ref())?;
        let Some(condition) = condition else {
            return Ok(plan);
        };
        let schema = DFSchema::try_from(plan.schema().as_ref().clone())?;
        let condition = self
            .engine
            .state()
            .create_physical_expr(condition.clone(), &schema)?;
        Ok(Arc::new(FilterExec::try_new(condition, plan)?))
    }
}

/// Which stored columns are read, beside those of the key and of the conditions.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    Shown(Wanted<'a>),
    Key,
}

/// Which columns of an answer are made.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    columns: Option<&'a ShownColumns>,
    /// Whether rows of several partitions are brought into one order, which takes the columns of the key.
    in_order: bool,
}

impl<'a> Wanted<'a> {
    fn of(sources: &[Source], spec: &'a RecordsSpec) -> Result<Self, ColumnError> {
        if let Some(columns) = &spec.columns {
            let layouts = sources.iter().map(|source| &source.data_type.layout);
            let names = layouts.flat_map(|layout| layout.read.iter().map(|column| column.name.as_str()));
            columns.are_among(names)?;
        }
        Ok(Self {
            columns: spec.columns.as_ref(),
            in_order: sources.len() > 1,
        })
    }

    /// The stored columns of a source with only those members of structures that the answer is made from,
    /// where that is less than all of them. Members beside those are not read.
    fn narrowed(self, source: &Source, condition: Option<&Expr>) -> Option<SchemaRef> {
        let shown = self.columns?;
        let layout = &source.data_type.layout;
        // What was sent before it was declared may be any of the members.
        if self.in_order || grown::has_grown(&source.data_type) {
            return None;
        }
        let mut fields: Vec<FieldRef> = layout.storage.fields().iter().cloned().collect();
        let mut is_less = false;
        for column in &layout.read {
            let (ReadFrom::Column(name) | ReadFrom::Versions { column: name, .. }) = &column.from else {
                continue;
            };
            let compared = |condition: &Expr| condition.column_refs().iter().any(|held| held.name == *name);
            let Some(field) = fields.iter_mut().find(|field| field.name() == name) else {
                continue;
            };
            if let ArrowType::Struct(members) = field.data_type()
                && !condition.is_some_and(compared)
                && let Some(kept) = shown.members_of(&column.name, members)
                && kept.len() < members.len()
            {
                *field = Arc::new(field.as_ref().clone().with_data_type(ArrowType::Struct(kept)));
                is_less = true;
            }
        }
        let metadata = layout.storage.metadata().clone();
        is_less.then(|| Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    fn includes(self, name: &str) -> bool {
        self.columns.is_none_or(|columns| columns.touch(name)) || (self.in_order && KEY_ORDER.contains(&name))
    }
}

struct Selected<'a> {
    source: &'a Source,
    condition: Option<Expr>,
    snapshot: Arc<Snapshot>,
}

/// How many records, and between which moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub records: i64,
    pub first_start: Option<Instant>,
    pub last_start: Option<Instant>,
    pub last_end: Option<Instant>,
}

impl Summary {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            first_start: self.first_start.into_iter().chain(other.first_start).min(),
            last_start: self.last_start.into_iter().chain(other.last_start).max(),
            last_end: self.last_end.into_iter().chain(other.last_end).max(),
        }
    }
}

/// Counts the rows of a plan that has the key columns.
pub(super) async fn summarise(
    engine: &Engine,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Summary, DataFusionError> {
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
            last_start: column("start_time").and_then(max).map(Instant::from_micros),
            last_end: column("end_time").and_then(max).map(Instant::from_micros),
        });
    }
    Ok(summary)
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
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

/// One plan out of several, with the columns of all.
fn together(
    mut plans: Vec<Arc<dyn ExecutionPlan>>,
    spec: &RecordsSpec,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    if plans.len() == 1 {
        return Ok(plans.remove(0));
    }
    let schema = common_schema(plans.iter().map(|plan| plan.schema()));
    if plans.is_empty() {
        return Ok(Arc::new(EmptyExec::new(schema)));
    }
    let aligned = plans
        .into_iter()
        .map(|plan| align(plan, &schema))
        .collect::<Result<Vec<_>, _>>()?;
    let order = key_order(&schema, spec.order)?;
    // As what an id is shown, it is in the order of ids, and a type without rows is in any.
    let sorted = aligned.into_iter().map(|plan| known_order(plan, order.clone()));
    let sorted = sorted.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(
        merged(order, UnionExec::try_new(sorted)?).with_fetch(spec.limit),
    ))
}

/// Rows of several partitions in one order. Those that are equal in it come in the order of their partitions,
/// each time that they are asked for, or a page could not go on where another ended.
fn merged(order: LexOrdering, rows: Arc<dyn ExecutionPlan>) -> SortPreservingMergeExec {
    SortPreservingMergeExec::new(order, rows).with_round_robin_repartition(false)
}

/// (start, end, id), whichever way.
fn key_order(schema: &Schema, order: Order) -> Result<LexOrdering, DataFusionError> {
    ordered(schema, &KEY_ORDER, order == Order::Descending)
        .ok_or_else(|| datafusion::common::internal_datafusion_err!("an order has keys"))
}
