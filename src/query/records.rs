//! Records of a type as they were recorded: selected by time and conditions, in a fixed order.
//!
//! Knows specs, snapshots and plans; knows nothing of HTTP or of how an answer is encoded.

use std::sync::Arc;

use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::prelude::ident;
use futures::StreamExt as _;

use crate::model::columns::{EXTRAS, SPREAD};
use crate::model::permit::ReadPermit;
use crate::model::registry::{ReadFrom, TypeId, Undeclared, is_json_text};
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

use super::ground::columns::{ColumnError, Columns as ShownColumns};
use super::ground::engine::{Engine, deadline_passed};
use super::ground::filter::Condition;
use super::ground::grown;
use super::ground::key::KEY_ORDER;
use super::ground::operator::{known_order, ordered};
use super::ground::paging::{RowPlace, number_of, places_of};
use super::ground::partition::{bind_all, refuse_private};
use super::ground::prepared;
use super::ground::shape::{self, IdForm, Visibility};
use super::ground::shared::{OriginalLength, extent_fields};
use super::ground::table::PartitionTable;
use super::ground::together::{align, common_schema};
use super::page::NextPage;
use super::{Order, Partition, Prepared, QueryError, Questions, ReadState, Scope};

/// A question for the records of a type. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordsSpec {
    pub conditions: Vec<Condition>,
    pub order: Order,
    pub ids: IdForm,
    /// The most rows.
    pub limit: Option<usize>,
    /// Only rows that come after this place.
    pub after: Option<RowPlace>,
    /// The wanted columns: others need not be read. `None` wants all. [`Prepared::only`] puts the answer into
    /// their order.
    pub columns: Option<ShownColumns>,
}

impl<Authority> Questions<Authority> {
    /// The records of `partitions`, which together are what `permit` names: one partition, or all those of a
    /// base.
    pub async fn records(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        spec: &RecordsSpec,
    ) -> Result<Prepared, QueryError> {
        self.records_that_may_meet(permit, partitions, spec, None).await
    }

    /// The same without some records that fail a condition on the columns of the answer: pages without any
    /// matching row are not read. Other records that fail it may be included.
    pub(in crate::query) async fn records_that_may_meet(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Prepared, QueryError> {
        let selected = self.select(permit, partitions, &spec.conditions).await?;
        self.records_of(permit, partitions, selected, spec, condition)
            .await
    }

    /// The same, with the start of the next page, if more records follow than `spec` wants.
    pub async fn page_of_records(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        spec: &RecordsSpec,
    ) -> Result<(Prepared, NextPage), QueryError> {
        let selected = self.select(permit, partitions, &spec.conditions).await?;
        self.page_of(permit, partitions, selected, spec).await
    }

    /// The same in a `range` that moves with the clock, with what is seen of it.
    pub async fn moving_page_of_records(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        spec: &RecordsSpec,
        range: TimeRange,
    ) -> Result<(Prepared, NextPage, SeenOfRange), QueryError> {
        let selected = self.select(permit, partitions, &spec.conditions).await?;
        let all = self.summary_of(permit, partitions, &selected)?;
        let seen = SeenOfRange::of(permit, partitions, self.summed_up(all).await?, range);
        let (mut prepared, next) = self.page_of(permit, partitions, selected, spec).await?;
        prepared.scope = prepared.scope.regardless_of(range);
        Ok((prepared, next, seen))
    }

    /// The last record that `permit` makes visible, which may have begun before the visible time, and what is
    /// seen of a `range` that moves with the clock.
    pub async fn latest_record(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        spec: &RecordsSpec,
        range: TimeRange,
    ) -> Result<(Prepared, SeenOfRange), QueryError> {
        let last = RecordsSpec {
            order: Order::Descending,
            limit: Some(1),
            ..spec.clone()
        };
        let selected = self.select(permit, partitions, &last.conditions).await?;
        let of_any_page = RecordsSpec {
            after: None,
            ..last.clone()
        };
        let place = self
            .places(permit, partitions, &selected, &of_any_page, 1)
            .await?;
        let found = match place {
            Some(place) => summarise(&self.engine, place).await?,
            None => Summary::default(),
        };
        let start = found.last_start;
        let nothing = TimeRange::between(range.start(), range.start());
        let within = start.map_or(nothing, |start| TimeRange::between(start, range.end()));
        let latest = permit.within(within);
        let mut prepared = self
            .records_of(&latest, partitions, selected, &last, None)
            .await?;
        prepared.scope = prepared.scope.regardless_of(range);
        Ok((prepared, SeenOfRange::of(permit, partitions, found, range)))
    }

    async fn page_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        selected: Vec<Selected<'_>>,
        spec: &RecordsSpec,
    ) -> Result<(Prepared, NextPage), QueryError> {
        let next = match spec.limit {
            Some(limit) => {
                // The engine counts rows in a signed integer.
                let one_more = limit.saturating_add(1).min(i64::MAX as usize);
                let places = self.places(permit, partitions, &selected, spec, one_more).await?;
                places.map(|places| NextPage::after_records(places, limit))
            }
            None => None,
        };
        let prepared = self.records_of(permit, partitions, selected, spec, None).await?;
        Ok((prepared, next.unwrap_or_default()))
    }

    async fn records_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        selected: Vec<Selected<'_>>,
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Prepared, QueryError> {
        let sees = Visibility::through(permit);
        let wanted = Wanted::of(partitions, spec)?;
        let states = states_of(permit, partitions, &selected);
        let mut selected = selected.into_iter().peekable();
        let mut plans = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let of_source = selected.next_if(|one| std::ptr::eq(one.partition, partition));
            plans.push(if let Some(one) = of_source {
                let asked = Asked::of(partitions, &one, spec);
                self.records_of_one(permit, &one, asked, wanted, spec, condition.clone())
                    .await?
            } else {
                // Its columns stay: the columns and their types depend on the types, not on the conditions.
                let layout = &partition.data_type.layout;
                let nothing = Arc::new(EmptyExec::new(Arc::clone(&layout.storage)));
                shape::project(nothing, layout, spec.ids, sees, |name| wanted.includes(name))?
            });
        }
        let plan = together(plans, spec)?;
        let spread = partitions
            .iter()
            .all(|partition| partition.data_type.layout.undeclared == Undeclared::AsGiven);
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

    /// The records of one partition, in the columns of the answer.
    async fn records_of_one(
        &self,
        permit: &ReadPermit<Authority>,
        selected: &Selected<'_>,
        asked: Asked<'_>,
        wanted: Wanted<'_>,
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let Selected {
            partition, snapshot, ..
        } = selected;
        let layout = &partition.data_type.layout;
        let sees = Visibility::through(permit);
        let needs = |name: &str| wanted.includes(name);
        let narrowed = wanted.narrowed(partition, selected.condition.as_ref());
        let table = self.table(permit, partition, snapshot, OriginalLength::Dropped)?;
        // Rows that fail the condition must not use up the limit.
        let limit = spec.limit.filter(|_| condition.is_none());
        let columns = shape::stored_columns(layout, sees, needs);
        let rows = asked.rows(table.with_members(narrowed), columns, limit)?;
        let shown = shape::columns(layout, rows.schema().as_arrow(), spec.ids, sees, needs)?;
        let shown = rows.project(shown.into_iter().map(|(expr, name)| expr.alias(name)))?;
        let Some(condition) = condition else {
            return Ok(self.engine.planned(shown.build()?).await?);
        };
        let met = shown.filter(condition)?.build()?;
        Ok(self.engine.planned_with_conditions(met).await?)
    }

    /// The places of the first `most` records, in the requested order. `None` if there are none.
    async fn places(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        selected: &[Selected<'_>],
        spec: &RecordsSpec,
        most: usize,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>, QueryError> {
        let mut plans = Vec::with_capacity(selected.len());
        for one in selected {
            let asked = Asked::of(partitions, one, spec);
            let table = self.table(permit, one.partition, &one.snapshot, OriginalLength::Dropped)?;
            let rows = asked.rows(table, Vec::new(), Some(most))?;
            let places = rows.project(places_of(&one.partition.id))?.build()?;
            plans.push(self.engine.planned(places).await?);
        }
        if plans.len() < 2 {
            return Ok(plans.pop());
        }
        let union = UnionExec::try_new(plans)?;
        let order = key_order(&union.schema(), spec.order)?;
        Ok(Some(Arc::new(merged(order, union).with_fetch(Some(most)))))
    }

    /// The number of records, and the range of their times.
    pub async fn summary(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        conditions: &[Condition],
    ) -> Result<Summary, QueryError> {
        let prepared = self.prepared_summary(permit, partitions, conditions).await?;
        self.summed_up(prepared).await
    }

    /// The same, before any record is looked at.
    pub async fn prepared_summary(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        conditions: &[Condition],
    ) -> Result<PreparedSummary, QueryError> {
        let selected = self.select(permit, partitions, conditions).await?;
        self.summary_of(permit, partitions, &selected)
    }

    fn summary_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        selected: &[Selected<'_>],
    ) -> Result<PreparedSummary, QueryError> {
        let mut keys = Vec::with_capacity(selected.len());
        for one in selected {
            let table = self.table(permit, one.partition, &one.snapshot, OriginalLength::Dropped)?;
            keys.push(table.meeting(one.condition.clone()).rows([])?);
        }
        Ok(PreparedSummary {
            keys,
            states: states_of(permit, partitions, selected),
            scope: Scope::of([permit]),
        })
    }

    pub async fn summed_up(&self, prepared: PreparedSummary) -> Result<Summary, QueryError> {
        let mut summary = Summary::default();
        for keys in prepared.keys {
            summary = summary.and(summarise(&self.engine, keys).await?);
        }
        Ok(summary)
    }

    /// The part of the question for each partition, as of one moment.
    async fn select<'a>(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &'a [Partition],
        conditions: &[Condition],
    ) -> Result<Vec<Selected<'a>>, QueryError> {
        refuse_private(permit, conditions, &[], partitions)?;
        let bound = bind_all(partitions, conditions)?;
        let ids: Vec<TypeId> = bound.iter().map(|(partition, _)| partition.id.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &ids).await?;
        let selected = |((partition, condition), snapshot)| Selected {
            partition,
            condition,
            snapshot,
        };
        Ok(bound.into_iter().zip(snapshots).map(selected).collect())
    }
}

/// The part of the question for the rows of one partition.
struct Asked<'a> {
    condition: Option<&'a Expr>,
    order: Order,
    /// The range in which rows begin that come after the start of the page.
    begins: Option<TimeRange>,
    /// The condition that rows come after it.
    after: Option<Expr>,
}

impl<'a> Asked<'a> {
    fn of(partitions: &[Partition], selected: &'a Selected<'_>, spec: &RecordsSpec) -> Self {
        let after = spec.after.and_then(|place| {
            let at = |partition: &Partition| number_of(&partition.id) == place.partition;
            let mut after = partitions.iter().skip_while(|partition| !at(partition)).skip(1);
            let later = after.any(|partition| std::ptr::eq(partition, selected.partition));
            place.rows_after(spec.order, later)
        });
        Self {
            condition: selected.condition.as_ref(),
            order: spec.order,
            begins: spec.after.map(|place| place.starts_after(spec.order)),
            after,
        }
    }

    /// The rows with the stored columns of the key and `columns`, as a logical plan.
    fn rows(
        self,
        table: PartitionTable,
        columns: Vec<usize>,
        limit: Option<usize>,
    ) -> Result<LogicalPlanBuilder, DataFusionError> {
        let rows = table.beginning_in(self.begins).scanned(columns, self.condition)?;
        let rows = match self.order {
            Order::Ascending => rows,
            Order::Descending => rows.sort(KEY_ORDER.map(|key| ident(key).sort(false, false)))?,
        };
        let rows = match self.after {
            Some(after) => rows.filter(after)?,
            None => rows,
        };
        match limit {
            Some(_) => rows.limit(0, limit),
            None => Ok(rows),
        }
    }
}

/// The columns of an answer that are computed.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    columns: Option<&'a ShownColumns>,
    /// Whether rows of several partitions are merged into one order, which needs the columns of the key.
    in_order: bool,
}

impl<'a> Wanted<'a> {
    fn of(partitions: &[Partition], spec: &'a RecordsSpec) -> Result<Self, ColumnError> {
        if let Some(columns) = &spec.columns {
            let layouts = partitions.iter().map(|partition| &partition.data_type.layout);
            let names = layouts.flat_map(|layout| layout.read.iter().map(|column| column.name.as_str()));
            columns.are_among(names)?;
        }
        Ok(Self {
            columns: spec.columns.as_ref(),
            in_order: partitions.len() > 1,
        })
    }

    /// The stored columns of a partition with struct columns reduced to the members that the answer needs, if
    /// any can be left out. Other members are not read.
    fn narrowed(self, partition: &Partition, condition: Option<&Expr>) -> Option<SchemaRef> {
        let shown = self.columns?;
        let layout = &partition.data_type.layout;
        // Members that were sent before their declaration may be any of these.
        if self.in_order || grown::has_grown(&partition.data_type) {
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
    partition: &'a Partition,
    condition: Option<Expr>,
    snapshot: Arc<Snapshot>,
}

/// The states of what is read, and of the definitions of `partitions`.
fn states_of<Authority>(
    permit: &ReadPermit<Authority>,
    partitions: &[Partition],
    selected: &[Selected<'_>],
) -> Vec<ReadState> {
    selected
        .iter()
        .map(|one| ReadState::of(permit, one.partition, &one.snapshot))
        .chain(prepared::definitions(partitions))
        .collect()
}

/// A summary that is ready to be made, and what tells it from others.
#[derive(Debug)]
pub struct PreparedSummary {
    keys: Vec<Arc<dyn ExecutionPlan>>,
    pub states: Vec<ReadState>,
    pub scope: Scope,
}

/// What is seen of a range that moves with the clock. As long as nothing else changes, equal ones show the
/// same records: what comes into the range begins after all that is in it, and what leaves it is missing in
/// the count. What the range cuts off for others shows in the times of what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenOfRange {
    /// Of the records, as the reader sees them.
    pub summary: Summary,
    /// The range itself, where the times of records do not show what it cuts off.
    range: Option<TimeRange>,
}

impl SeenOfRange {
    fn of<Authority>(
        permit: &ReadPermit<Authority>,
        partitions: &[Partition],
        summary: Summary,
        range: TimeRange,
    ) -> Self {
        let lie_elsewhere = |partition: &Partition| !extent_fields(&partition.id).is_empty();
        let shows = permit.is_own() || !partitions.iter().any(lie_elsewhere);
        Self {
            summary,
            range: (!shows).then_some(range),
        }
    }
}

/// The number of records, and the range of their times.
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

/// Summarises the rows of a plan that has the key columns.
pub(super) async fn summarise(
    engine: &Engine,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Summary, DataFusionError> {
    let mut summary = Summary::default();
    let mut rows = Box::pin(engine.drive(engine.start(plan)?, deadline_passed));
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

/// `schema` with the mark that makes row encoders print undeclared members where the caller put them.
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

/// Combines several plans into one, with the columns of all.
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
    // Shown ids sort like stored ids, and a type without rows is in any order.
    let sorted = aligned.into_iter().map(|plan| known_order(plan, order.clone()));
    let sorted = sorted.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(
        merged(order, UnionExec::try_new(sorted)?).with_fetch(spec.limit),
    ))
}

/// Merges rows of several partitions into one order. Equal rows always come in the order of their partitions,
/// or a page could not continue where another ended.
fn merged(order: LexOrdering, rows: Arc<dyn ExecutionPlan>) -> SortPreservingMergeExec {
    SortPreservingMergeExec::new(order, rows).with_round_robin_repartition(false)
}

/// The order (start, end, id) in either direction.
fn key_order(schema: &Schema, order: Order) -> Result<LexOrdering, DataFusionError> {
    ordered(schema, &KEY_ORDER, order == Order::Descending)
        .ok_or_else(|| datafusion::common::internal_datafusion_err!("an order has keys"))
}
