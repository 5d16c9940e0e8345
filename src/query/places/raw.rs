//! Rows of one type as they were recorded, in the columns that clients know, optionally only from some
//! sources or calendars.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{Expr, cast};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::{ident, lit};

use crate::model::columns::SOURCE;
use crate::model::permit::ReadPermit;
use crate::model::registry::Layout;
use crate::model::time::TimeRange;
use crate::query::ground::columns::Columns as ShownColumns;
use crate::query::ground::computed::{Columns, projected};
use crate::query::ground::operator::Plan;
use crate::query::ground::paging::RowKey;
use crate::query::shape::{self, IdForm, Visibility};
use crate::query::{Order, Prepared, QueryError, Questions, TypedPartition};

use super::pinned::{Granted, Pinned};

/// Rows in which one of `columns` holds one of `values`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OneOf {
    /// Stored columns of text.
    pub columns: &'static [&'static str],
    pub values: Vec<String>,
}

/// A question about the rows of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawSpec {
    /// The columns of the answer, by their names in the type's own shape, in this order.
    pub columns: Vec<&'static str>,
    pub only: Option<OneOf>,
    pub ids: IdForm,
}

impl RawSpec {
    /// All rows, with those of `columns` that are selected or locate a row: others need not be read. Without
    /// a selection with all.
    pub fn of(
        columns: &[&'static str],
        key: &RowKey,
        selected: Option<&ShownColumns>,
        ids: IdForm,
    ) -> Result<Self, QueryError> {
        let mut columns = columns.to_vec();
        if let Some(selected) = selected {
            selected.are_among(columns.iter().copied())?;
            columns.retain(|name| selected.touch(name) || key.names().any(|located| located == *name));
        }
        Ok(Self {
            columns,
            only: None,
            ids,
        })
    }
}

impl<Authority> Questions<Authority> {
    /// The rows that the permit makes visible.
    pub async fn raw(&self, granted: &Granted<Authority>, spec: &RawSpec) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(granted).await?;
        let plan = self.shown(&pinned, spec, None)?;
        Ok(Prepared::of(plan, vec![pinned.state()], pinned.scope()))
    }

    /// The rows inside `wanted`, or all that are visible.
    pub(super) fn shown(
        &self,
        pinned: &Pinned<'_, Authority>,
        spec: &RawSpec,
        wanted: Option<TimeRange>,
    ) -> Result<Plan, QueryError> {
        let rows = self.chosen(pinned, spec, wanted)?;
        shown(rows, &pinned.granted.permit, &pinned.granted.partition, spec)
    }

    /// The rows that `spec` selects, with the stored columns that it needs.
    pub(super) fn chosen(
        &self,
        pinned: &Pinned<'_, Authority>,
        spec: &RawSpec,
        wanted: Option<TimeRange>,
    ) -> Result<Plan, QueryError> {
        let Granted { permit, partition } = pinned.granted;
        let layout = &partition.data_type.layout;
        let columns = shape::stored_columns(layout, Visibility::through(permit), |name| {
            spec.columns.contains(&name)
        });
        let seen = self.seen(pinned, &pinned.windows(wanted))?;
        let Some(only) = &spec.only else {
            return Ok(seen.rows_at(columns, Order::Ascending)?);
        };
        if only.is_refused(permit, layout) {
            let rows = seen.rows_at(columns, Order::Ascending)?;
            return Ok(Arc::new(EmptyExec::new(rows.schema())));
        }
        let chosen = seen.meeting(Some(only.condition()));
        Ok(chosen.rows_at(columns, Order::Ascending)?)
    }
}

/// Stored rows in the columns of the answer.
pub(super) fn shown<Authority>(
    rows: Plan,
    permit: &ReadPermit<Authority>,
    partition: &TypedPartition,
    spec: &RawSpec,
) -> Result<Plan, QueryError> {
    let columns = columns(&rows.schema(), permit, partition, spec)?;
    Ok(projected(rows, columns)?)
}

/// The columns of the answer as expressions over `stored`, with their names.
pub(super) fn columns<Authority>(
    stored: &SchemaRef,
    permit: &ReadPermit<Authority>,
    partition: &TypedPartition,
    spec: &RawSpec,
) -> Result<Columns, QueryError> {
    let place = |name: &str| spec.columns.iter().position(|column| *column == name);
    let is_shown = |name: &str| place(name).is_some();
    let (layout, sees) = (&partition.data_type.layout, Visibility::through(permit));
    let mut columns = shape::columns(layout, stored, spec.ids, sees, is_shown)?;
    columns.sort_by_key(|(_, name)| place(name));
    Ok(columns)
}

impl OneOf {
    /// Whether the reader may not select by these columns. Then no row matches.
    pub(super) fn is_refused<Authority>(&self, permit: &ReadPermit<Authority>, layout: &Layout) -> bool {
        let tells_who = |name: &&str| *name == SOURCE || layout.is_private(name);
        !permit.is_own() && self.columns.iter().any(tells_who)
    }

    /// The condition on stored columns.
    pub(super) fn condition(&self) -> Expr {
        let is_one = |name: &&'static str| {
            let values = self.values.iter().map(|value| lit(value.as_str())).collect();
            cast(ident(*name), ArrowType::Utf8).in_list(values, false)
        };
        disjunction(self.columns.iter().map(is_one)).unwrap_or_else(|| lit(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::places::workouts::{WORKOUT_COLUMNS, WORKOUT_KEY};

    #[test]
    fn an_answer_has_what_is_selected_and_what_locates_its_rows() {
        let spec = |selected: Option<&ShownColumns>| {
            let spec = RawSpec::of(WORKOUT_COLUMNS, &WORKOUT_KEY, selected, IdForm::Bytes);
            spec.map(|spec| spec.columns)
        };
        let selected = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            spec(Some(&ShownColumns::new(names.collect()).unwrap()))
        };
        assert_eq!(
            selected(&["workout_events", "device.name"]).unwrap(),
            [
                "platform_workout_id",
                "device",
                "start_date",
                "end_date",
                "workout_events"
            ]
        );
        assert!(selected(&["duration", "device2"]).is_err());
        assert_eq!(spec(None).unwrap(), WORKOUT_COLUMNS);
    }
}
