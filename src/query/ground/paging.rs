//! Pages of an answer: where one ends, and what comes after it.
//!
//! Rows have a fixed order, and a page is what follows a place in it, whether or not a row is still at that
//! place. Writes and deletions elsewhere do not move pages; a row that is later added before the place is on
//! no later page. Knows plans and the order of rows; knows nothing of how a place is encoded for clients.

use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Schema, TimestampMicrosecondType, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast as expr_cast};
use datafusion::prelude::{ident, lit};
use uuid::Uuid;

use crate::model::columns::{END, ID, START};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};

use super::computed::{filtered, projected};
use super::key::KEY_ORDER;
use super::operator::Plan;
use super::order::Order;
use super::row_times::micros_of;

/// The column that says which partition a row comes from, on its way through a plan.
const PARTITION: &str = "\u{1}partition";

/// A place in the order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowPosition {
    pub start: i64,
    pub end: i64,
    pub id: [u8; 16],
    /// Rows of several partitions that are equal in all of these are in the order of their partitions.
    pub partition: u64,
}

/// The number that represents a partition in a place.
pub(in crate::query) fn number_of(partition: &TypeId) -> u64 {
    let mut hasher = DefaultHasher::new();
    partition.as_str().hash(&mut hasher);
    hasher.finish()
}

impl RowPosition {
    /// The times at which rows after this place can start.
    #[must_use]
    pub fn starts_after(&self, order: Order) -> TimeRange {
        match order {
            Order::Ascending => TimeRange::between(Instant::from_micros(self.start), TimeRange::ALWAYS.end()),
            Order::Descending => {
                TimeRange::between(Instant::MIN, Instant::from_micros(self.start.saturating_add(1)))
            }
        }
    }

    /// Selects the rows after this place, and where `partition_is_later` also a row exactly at it.
    pub(in crate::query) fn rows_after(&self, order: Order, partition_is_later: bool) -> Option<Expr> {
        let beyond_it = match order {
            Order::Ascending => Operator::Gt,
            Order::Descending => Operator::Lt,
        };
        let last = match (order, partition_is_later) {
            (Order::Ascending, true) => Operator::GtEq,
            (Order::Descending, true) => Operator::LtEq,
            (_, false) => beyond_it,
        };
        let moment = |micros: i64| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()));
        let id = ScalarValue::FixedSizeBinary(16, Some(self.id.to_vec()));
        let places = [moment(self.start), moment(self.end), id];
        let keys = KEY_ORDER.iter().map(|name| ident(*name)).zip(places).collect();
        beyond(keys, (beyond_it, last), None)
    }

    fn of(batch: &RecordBatch, row: usize) -> Result<Self> {
        let missing = || internal_datafusion_err!("a row without a place");
        let time = |name: &str| micros_of(batch, name)?.get(row).copied().ok_or_else(missing);
        let id = batch
            .column_by_name(ID)
            .and_then(|ids| ids.as_fixed_size_binary_opt());
        let partition = batch
            .column_by_name(PARTITION)
            .and_then(|numbers| numbers.as_primitive_opt::<UInt64Type>());
        Ok(Self {
            start: time(START)?,
            end: time(END)?,
            id: id
                .and_then(|ids| ids.value(row).try_into().ok())
                .ok_or_else(missing)?,
            partition: partition.ok_or_else(missing)?.value(row),
        })
    }
}

/// Whether a row comes after a place by `keys`. Each key decides where those before it are equal, the last
/// with an operator of its own, and `equal` decides where all are. An order has keys.
fn beyond(
    keys: Vec<(Expr, ScalarValue)>,
    (operator, last): (Operator, Operator),
    equal: Option<Expr>,
) -> Option<Expr> {
    let mut condition = equal;
    let mut operator_here = last;
    for (column, place) in keys.into_iter().rev() {
        let than = |operator: Operator| binary_expr(column.clone(), operator, lit(place.clone()));
        let further = than(operator_here);
        condition = Some(match condition {
            None => further,
            Some(within) => further.or(than(Operator::Eq).and(within)),
        });
        operator_here = operator;
    }
    condition
}

/// The columns of an answer that locate its rows: those by which they ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowKey {
    pub start: &'static str,
    pub end: Option<&'static str>,
    pub id: Option<&'static str>,
    /// The column with the kind of a row, and its values in the order in which rows come that are otherwise
    /// equal.
    pub kind: Option<(&'static str, &'static [&'static str])>,
}

impl RowKey {
    /// For rows of which no two begin together.
    #[must_use]
    pub const fn start(start: &'static str) -> Self {
        Self {
            start,
            end: None,
            id: None,
            kind: None,
        }
    }

    pub(in crate::query) fn names(&self) -> impl Iterator<Item = &'static str> {
        let kind = self.kind.map(|(name, _)| name);
        std::iter::once(self.start)
            .chain(self.end)
            .chain(self.id)
            .chain(kind)
    }

    /// `rows` reduced to these columns.
    pub(in crate::query) fn of(&self, rows: Plan) -> Result<Plan> {
        let columns = self.names().map(|name| (ident(name), name.to_owned()));
        projected(rows, columns.collect())
    }

    /// The rows that come after a place.
    pub(in crate::query) fn after(&self, rows: Plan, place: &RowPosition) -> Result<Plan> {
        let schema = rows.schema();
        let mut keys = vec![(ident(self.start), moment(&schema, self.start, place.start)?)];
        if let Some(end) = self.end {
            keys.push((ident(end), moment(&schema, end, place.end)?));
        }
        if let Some(id) = self.id {
            let held = schema.field_with_name(id)?.data_type();
            let place = match held {
                ArrowType::FixedSizeBinary(_) => ScalarValue::FixedSizeBinary(16, Some(place.id.to_vec())),
                text => ScalarValue::from(Uuid::from_bytes(place.id).to_string()).cast_to(text)?,
            };
            keys.push((ident(id), place));
        }
        let equal = self.kind.map(|(name, kinds)| {
            let later = usize::try_from(place.partition).map_or(kinds.len(), |kind| kind.saturating_add(1));
            let later = kinds.iter().skip(later).map(|kind| lit(*kind));
            expr_cast(ident(name), ArrowType::Utf8).in_list(later.collect(), false)
        });
        match beyond(keys, (Operator::Gt, Operator::Gt), equal) {
            Some(condition) => filtered(rows, &condition),
            None => Ok(rows),
        }
    }

    pub(in crate::query) fn place_of(&self, batch: &RecordBatch, row: usize) -> Result<RowPosition> {
        let missing = || internal_datafusion_err!("a row without a place");
        let column = |name: &str| batch.column_by_name(name).ok_or_else(missing);
        let time = |name: &str| {
            let times = column(name)?.as_primitive_opt::<TimestampMicrosecondType>();
            times.map(|times| times.value(row)).ok_or_else(missing)
        };
        let text = |name: &str| {
            let texts = cast(column(name)?, &ArrowType::Utf8)?;
            let text = texts
                .as_string_opt::<i32>()
                .map(|texts| texts.value(row).to_owned());
            text.ok_or_else(missing)
        };
        let start = time(self.start)?;
        let id = match self.id {
            None => [0; 16],
            Some(name) => match column(name)?.as_fixed_size_binary_opt() {
                Some(ids) => ids.value(row).try_into().map_err(|_| missing())?,
                None => Uuid::parse_str(&text(name)?).map_err(|_| missing())?.into_bytes(),
            },
        };
        let partition = match self.kind {
            None => 0,
            Some((name, kinds)) => {
                let kind = text(name)?;
                let place = kinds.iter().position(|known| *known == kind);
                place.ok_or_else(missing)? as u64
            }
        };
        let end = self.end.map_or(Ok(start), time)?;
        Ok(RowPosition {
            start,
            end,
            id,
            partition,
        })
    }
}

/// A time in the type of its column.
fn moment(schema: &Schema, name: &str, micros: i64) -> Result<ScalarValue> {
    match schema.field_with_name(name)?.data_type() {
        ArrowType::Timestamp(_, zone) => Ok(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())),
        other => Err(internal_datafusion_err!("{name} holds {other} and no times")),
    }
}

/// The expressions that locate the rows of a partition.
pub(in crate::query) fn places_of(partition: &TypeId) -> impl Iterator<Item = Expr> {
    let keys = KEY_ORDER.iter().map(|name| ident(*name));
    keys.chain([lit(number_of(partition)).alias(PARTITION)])
}

/// Finds the last row of a page, if more rows follow.
#[derive(Debug)]
pub(in crate::query) struct PageEnd {
    limit: usize,
    passed: usize,
    last: Option<RowPosition>,
}

impl PageEnd {
    pub(in crate::query) const fn new(limit: usize) -> Self {
        Self {
            limit,
            passed: 0,
            last: None,
        }
    }

    /// Passes the next rows, with the columns of [`places_of`].
    pub(in crate::query) fn pass(&mut self, batch: &RecordBatch) -> Result<(), DataFusionError> {
        self.pass_by(batch, RowPosition::of)
    }

    pub(in crate::query) fn pass_by(
        &mut self,
        batch: &RecordBatch,
        place_of: impl Fn(&RecordBatch, usize) -> Result<RowPosition>,
    ) -> Result<(), DataFusionError> {
        let before = self.passed;
        self.passed = before.saturating_add(batch.num_rows());
        let last = self.limit.saturating_sub(1);
        if (before..self.passed).contains(&last) {
            self.last = Some(place_of(batch, last - before)?);
        }
        Ok(())
    }

    pub(in crate::query) fn found(self) -> Option<RowPosition> {
        self.last.filter(|_| self.passed > self.limit)
    }
}
