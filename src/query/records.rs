//! Records of a type as they were recorded: selected by time and conditions, in a fixed order, whole or in
//! pages.
//!
//! Knows specs, snapshots and plans; must not know HTTP, how an answer is encoded, or what the rows mean.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::prelude::ident;

use crate::model::columns::{EXTRAS, SPREAD};
use crate::model::permit::ReadPermit;
use crate::model::registry::{Undeclared, is_json_text};
use crate::model::time::TimeRange;

use super::answer_columns::AnswerColumns;
use super::ground::apart::apart;
use super::ground::columns::Columns as ShownColumns;
use super::ground::filter::Condition;
use super::ground::for_others::OriginalLength;
use super::ground::key::KEY_ORDER;
use super::ground::operator::{Plan, known_order, ordered};
use super::ground::paging::{RowPosition, number_of, places_of};
use super::ground::partitions_in_turn::merged;
use super::ground::shape::{self, IdForm, Visibility};
use super::ground::table::PartitionTable;
use super::ground::together::Together;
use super::page_of_prepared::NextPage;
use super::select_partitions::{SelectedPartition, states_of};
use super::summary::{RecordSummary, SeenOfRange, summarise};
use super::{Order, Prepared, QueryError, Questions, Scope, TypedPartition};

/// A question for the records of a type. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordsSpec {
    pub conditions: Vec<Condition>,
    pub order: Order,
    pub ids: IdForm,
    /// The most rows.
    pub limit: Option<usize>,
    /// Only rows that come after this place.
    pub after: Option<RowPosition>,
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
        partitions: &[TypedPartition],
        spec: &RecordsSpec,
    ) -> Result<Prepared, QueryError> {
        self.records_that_may_meet(permit, partitions, spec, None).await
    }

    /// The records of `partitions` without some that fail a condition on the columns of the answer: pages
    /// without any matching row are not read. Other records that fail it may be included.
    pub(in crate::query) async fn records_that_may_meet(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Prepared, QueryError> {
        let prepared = async {
            let selected = self.select(permit, partitions, &spec.conditions).await?;
            self.records_of(permit, partitions, selected, spec, condition)
                .await
        };
        apart(partitions.len(), prepared).await
    }

    /// A page of the records of `partitions`, with the start of the next page, if more records follow than
    /// `spec` wants.
    pub async fn page_of_records(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &RecordsSpec,
    ) -> Result<(Prepared, NextPage), QueryError> {
        let page = async {
            let selected = self.select(permit, partitions, &spec.conditions).await?;
            self.page_of(permit, partitions, selected, spec).await
        };
        apart(partitions.len(), page).await
    }

    /// A page of the records in a `range` that moves with the clock, with the start of the next page and what
    /// is seen of the range.
    pub async fn moving_page_of_records(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &RecordsSpec,
        range: TimeRange,
    ) -> Result<(Prepared, NextPage, SeenOfRange), QueryError> {
        let page = async {
            let selected = self.select(permit, partitions, &spec.conditions).await?;
            let seen = self.seen_of_range(permit, &selected).await?;
            let (mut prepared, next) = self.page_of(permit, partitions, selected, spec).await?;
            prepared.scope = prepared.scope.regardless_of(range);
            Ok::<_, QueryError>((prepared, next, seen))
        };
        apart(partitions.len(), page).await
    }

    /// The last record that `permit` makes visible, which may have begun before the visible time, and what is
    /// seen of a `range` that moves with the clock.
    pub async fn latest_record(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        spec: &RecordsSpec,
        range: TimeRange,
    ) -> Result<(Prepared, SeenOfRange), QueryError> {
        apart(partitions.len(), self.last_of(permit, partitions, spec, range)).await
    }

    async fn last_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
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
            None => RecordSummary::default(),
        };
        let start = found.last_start;
        let nothing = TimeRange::between(range.start(), range.start());
        let within = start.map_or(nothing, |start| TimeRange::between(start, range.end()));
        let latest = permit.within(within);
        let mut prepared = self
            .records_of(&latest, partitions, selected, &last, None)
            .await?;
        prepared.scope = prepared.scope.regardless_of(range);
        Ok((prepared, SeenOfRange::by_the_last(found)))
    }

    async fn page_of(
        &self,
        permit: &ReadPermit<Authority>,
        partitions: &[TypedPartition],
        selected: Vec<SelectedPartition<'_>>,
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
        partitions: &[TypedPartition],
        selected: Vec<SelectedPartition<'_>>,
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Prepared, QueryError> {
        let sees = Visibility::through(permit);
        let answer = AnswerColumns::of(partitions, spec.columns.as_ref())?;
        let states = states_of(permit, partitions, &selected);
        let later = later_than_page(partitions, spec);
        let mut selected = selected.into_iter().peekable();
        let mut schemas = Vec::with_capacity(partitions.len());
        let mut plans = Vec::new();
        for partition in partitions {
            let of_source = selected.next_if(|one| std::ptr::eq(one.partition, partition));
            let rows = of_source
                .as_ref()
                .map(|one| self.partition_rows(permit, later, one, spec))
                .transpose()?;
            let rows = rows.filter(|rows| partitions.len() == 1 || rows.table.may_have_rows());
            // One without rows keeps its columns: the columns and their types depend on the types, neither on
            // the conditions nor on what is stored.
            schemas.push(if let Some(rows) = rows {
                let plan = self
                    .records_of_one(permit, rows, answer, spec, condition.clone())
                    .await?;
                let schema = plan.schema();
                plans.push(plan);
                schema
            } else {
                let layout = &partition.data_type.layout;
                shape::schema(layout, spec.ids, sees, |name| answer.includes(name))?
            });
        }
        let plan = together(schemas, plans, spec)?;
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

    /// The part of the question for the rows of one partition. `later`: the partitions of which equal rows
    /// come after the start of the page.
    fn partition_rows<'a>(
        &self,
        permit: &ReadPermit<Authority>,
        later: &[TypedPartition],
        selected: &'a SelectedPartition<'_>,
        spec: &RecordsSpec,
    ) -> Result<PartitionRows<'a>, QueryError> {
        let partition = selected.partition;
        let is_later = later.as_ptr_range().contains(&std::ptr::from_ref(partition));
        let begins = spec.after.map(|place| place.starts_after(spec.order));
        let table = self.table(permit, partition, &selected.snapshot, OriginalLength::Dropped)?;
        Ok(PartitionRows {
            partition,
            table: table.beginning_in(begins),
            condition: selected.condition.as_ref(),
            order: spec.order,
            after: spec
                .after
                .and_then(|place| place.rows_after(spec.order, is_later)),
        })
    }

    /// The records of one partition, in the columns of the answer.
    async fn records_of_one(
        &self,
        permit: &ReadPermit<Authority>,
        rows: PartitionRows<'_>,
        answer: AnswerColumns<'_>,
        spec: &RecordsSpec,
        condition: Option<Expr>,
    ) -> Result<Plan, QueryError> {
        let layout = &rows.partition.data_type.layout;
        let sees = Visibility::through(permit);
        let needs = |name: &str| answer.includes(name);
        let narrowed = answer.narrowed(rows.partition, rows.condition);
        // Rows that fail the condition must not use up the limit.
        let limit = spec.limit.filter(|_| condition.is_none());
        let columns = shape::stored_columns(layout, sees, needs);
        let rows = rows.with_members(narrowed).planned(columns, limit)?;
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
        partitions: &[TypedPartition],
        selected: &[SelectedPartition<'_>],
        spec: &RecordsSpec,
        most: usize,
    ) -> Result<Option<Plan>, QueryError> {
        let later = later_than_page(partitions, spec);
        let mut plans = Vec::new();
        for one in selected {
            let rows = self.partition_rows(permit, later, one, spec)?;
            if !rows.table.may_have_rows() {
                continue;
            }
            let places = places_of(&rows.partition.id);
            let places = rows.planned(Vec::new(), Some(most))?.project(places)?.build()?;
            plans.push(self.engine.planned(places).await?);
        }
        if plans.len() < 2 {
            return Ok(plans.pop());
        }
        let union = UnionExec::try_new(plans)?;
        let order = key_order(&union.schema(), spec.order)?;
        Ok(Some(Arc::new(merged(order, union).with_fetch(Some(most)))))
    }
}

/// The part of the question for the rows of one partition.
struct PartitionRows<'a> {
    partition: &'a TypedPartition,
    /// Its rows that begin where rows after the start of the page do.
    table: PartitionTable,
    condition: Option<&'a Expr>,
    order: Order,
    /// The condition that rows come after the start of the page.
    after: Option<Expr>,
}

impl PartitionRows<'_> {
    fn with_members(self, storage: Option<SchemaRef>) -> Self {
        Self {
            table: self.table.with_members(storage),
            ..self
        }
    }

    /// The rows with the stored columns of the key and `columns`, as a logical plan.
    fn planned(
        self,
        columns: Vec<usize>,
        limit: Option<usize>,
    ) -> Result<LogicalPlanBuilder, DataFusionError> {
        let table = self.table.following(self.after).wanting(limit);
        let rows = table.scanned(columns, self.condition)?;
        let rows = match self.order {
            Order::Ascending => rows,
            Order::Descending => rows.sort(KEY_ORDER.map(|key| ident(key).sort(false, false)))?,
        };
        match limit {
            Some(_) => rows.limit(0, limit),
            None => Ok(rows),
        }
    }
}

/// The partitions after the one in which the page before `spec`'s ended.
fn later_than_page<'p>(partitions: &'p [TypedPartition], spec: &RecordsSpec) -> &'p [TypedPartition] {
    let ended = spec.after.and_then(|place| {
        let mut ids = partitions.iter().map(|partition| number_of(&partition.id));
        ids.position(|number| number == place.partition)
    });
    ended
        .and_then(|ended| partitions.get(ended + 1..))
        .unwrap_or_default()
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

/// Combines the plans of some partitions into one, with the columns of all partitions, whose schemas are
/// `schemas`.
fn together(
    schemas: Vec<SchemaRef>,
    mut plans: Vec<Plan>,
    spec: &RecordsSpec,
) -> Result<Plan, DataFusionError> {
    if schemas.len() == 1
        && let Some(only) = plans.pop()
    {
        return Ok(only);
    }
    let together = Together::of(schemas, []);
    let schema = together.schema();
    let order = key_order(&schema, spec.order)?;
    if plans.is_empty() {
        return known_order(Arc::new(EmptyExec::new(schema)), order);
    }
    let aligned = plans
        .into_iter()
        .map(|plan| together.align(plan))
        .collect::<Result<Vec<_>, _>>()?;
    // Shown ids sort like stored ids, and a type without rows is in any order.
    let sorted = aligned.into_iter().map(|plan| known_order(plan, order.clone()));
    let sorted = sorted.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(
        merged(order, UnionExec::try_new(sorted)?).with_fetch(spec.limit),
    ))
}

/// The order (start, end, id) in either direction.
fn key_order(schema: &Schema, order: Order) -> Result<LexOrdering, DataFusionError> {
    ordered(schema, &KEY_ORDER, order == Order::Descending)
        .ok_or_else(|| datafusion::common::internal_datafusion_err!("an order has keys"))
}
