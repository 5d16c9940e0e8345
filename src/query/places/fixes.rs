//! Plausible positions of all sources, by time.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int8Array, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Float64Type, Int8Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;

use crate::model::columns::START;
use crate::model::geo::Position;
use crate::model::time::TimeRange;
use crate::query::ground::operator::Plan;
use crate::query::ground::partitions_in_turn::merged;
use crate::query::ground::row_times::micros_of;
use crate::query::{QueryError, Questions};

use super::location_source::LocationSource;
use super::pinned::{PinnedSource, with_rows};

pub(super) const LATITUDE: &str = "latitude_degrees";
pub(super) const LONGITUDE: &str = "longitude_degrees";
pub(super) const ACCURACY: &str = "horizontal_accuracy_meters";
const SOURCE: &str = "location_source";

/// Where somebody was at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fix {
    /// Microseconds since 1970.
    pub time: i64,
    pub position: Position,
    pub accuracy: Option<f64>,
    pub source: LocationSource,
}

/// An accuracy as a sort key, the best first. Unknown is worst.
pub(super) fn uncertainty(accuracy: Option<f64>) -> u64 {
    // Non-negative floats sort like their bits.
    accuracy.map_or(u64::MAX, |accuracy| accuracy.max(0.0).to_bits())
}

impl<Authority> Questions<Authority> {
    /// The positions from `sources` inside `wanted`, by time. Rows of one source at one moment keep their
    /// order.
    pub(super) fn fixes(
        &self,
        sources: &[PinnedSource<'_, Authority>],
        wanted: TimeRange,
    ) -> Result<Plan, QueryError> {
        let mut plans = Vec::with_capacity(sources.len());
        for (source, pinned) in with_rows(sources, Some(wanted)) {
            let seen = self.seen(pinned, &pinned.windows(Some(wanted)))?;
            let rows = seen.rows([LATITUDE, LONGITUDE, ACCURACY])?;
            plans.push(with_source_flag(*source, rows)?);
        }
        if plans.len() == 1 {
            return Ok(plans.remove(0));
        }
        Ok(by_time(UnionExec::try_new(plans)?)?)
    }
}

fn by_time(union: Plan) -> Result<Plan> {
    let time = Arc::new(Column::new(START, union.schema().index_of(START)?));
    let order = LexOrdering::new([PhysicalSortExpr::new(time, SortOptions::default())]);
    let order = order.ok_or_else(|| internal_datafusion_err!("an order has keys"))?;
    Ok(Arc::new(merged(order, union)))
}

fn with_source_flag(source: LocationSource, rows: Plan) -> Result<Plan> {
    let schema = rows.schema();
    let mut expressions = [START, LATITUDE, LONGITUDE, ACCURACY]
        .into_iter()
        .map(|name| {
            Ok(ProjectionExpr {
                expr: Arc::new(Column::new(name, schema.index_of(name)?)) as Arc<dyn PhysicalExpr>,
                alias: name.to_owned(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    expressions.push(ProjectionExpr {
        expr: Arc::new(Literal::new(ScalarValue::Int8(Some(source as i8)))),
        alias: SOURCE.to_owned(),
    });
    Ok(Arc::new(ProjectionExec::try_new(expressions, rows)?))
}

/// The fixes of one batch.
#[derive(Debug)]
pub(super) struct Fixes {
    times: ScalarBuffer<i64>,
    places: Places,
    sources: Int8Array,
}

impl Fixes {
    pub(super) fn of(batch: &RecordBatch) -> Result<Self> {
        Ok(Self {
            times: micros_of(batch, START)?.clone(),
            places: Places::of(batch)?,
            sources: batch
                .column_by_name(SOURCE)
                .and_then(|column| column.as_primitive_opt::<Int8Type>().cloned())
                .ok_or_else(|| missing(SOURCE))?,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn time(&self, row: usize) -> i64 {
        self.times[row]
    }

    /// Of the rows from `row` on up to `moment`, those that may determine the last fix: the last row with a
    /// fix, all with the same time, and what comes after. Earlier rows are superseded.
    pub(super) fn latest(&self, row: usize, moment: i64) -> Range<usize> {
        let rest = self.times.get(row..).unwrap_or_default();
        let end = row + rest.iter().take_while(|time| **time <= moment).count();
        let Some(last) = (row..end).rev().find(|row| self.places.usable(*row).is_some()) else {
            return end..end;
        };
        let time = self.time(last);
        let alike = (row..last).rev().take_while(|row| self.time(*row) == time);
        last - alike.count()..end
    }

    /// The fix of a row, if it is plausible.
    pub(super) fn fix(&self, row: usize) -> Option<Fix> {
        let (position, accuracy) = self.places.usable(row)?;
        let source = if self.sources.value(row) == LocationSource::MobileOs as i8 {
            LocationSource::MobileOs
        } else {
            LocationSource::Maps
        };
        Some(Fix {
            time: self.times[row],
            position,
            accuracy,
            source,
        })
    }
}

/// The positions of one batch.
#[derive(Debug)]
pub(super) struct Places {
    latitudes: Float64Array,
    longitudes: Float64Array,
    accuracies: Float64Array,
}

impl Places {
    pub(super) fn of(batch: &RecordBatch) -> Result<Self> {
        let numbers = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Float64Type>().cloned())
                .ok_or_else(|| missing(name))
        };
        Ok(Self {
            latitudes: numbers(LATITUDE)?,
            longitudes: numbers(LONGITUDE)?,
            accuracies: numbers(ACCURACY)?,
        })
    }

    /// The position of a row and its accuracy, if it is plausible.
    pub(super) fn usable(&self, row: usize) -> Option<(Position, Option<f64>)> {
        if self.latitudes.is_null(row) || self.longitudes.is_null(row) {
            return None;
        }
        let position = Position::new(self.latitudes.value(row), self.longitudes.value(row));
        let accuracy = self.accuracies.is_valid(row).then(|| self.accuracies.value(row));
        position.is_usable(accuracy).then_some((position, accuracy))
    }
}

pub(super) fn missing(name: &str) -> DataFusionError {
    internal_datafusion_err!("positions come without {name}")
}
