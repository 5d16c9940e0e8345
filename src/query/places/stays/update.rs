//! Plausible updates of somebody's position, and what makes a stay of them.

use datafusion::arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::common::Result;
use uuid::Uuid;

use crate::model::columns::{ID, START};
use crate::model::geo::Position;
use crate::model::time::MICROS_PER_MINUTE;
use crate::query::ground::row_times::micros_of;

use super::super::fixes::{Places, missing};

/// The greatest distance in metres from the first update of a stay.
pub(super) const NEAR: f64 = 100.0;
/// The shortest stay.
pub(super) const LEAST_STAY: i64 = 10 * MICROS_PER_MINUTE;
/// The longest silence inside a stay.
pub(super) const LONGEST_GAP: i64 = 15 * MICROS_PER_MINUTE;

/// A plausible update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub(super) id: Uuid,
    /// Microseconds since 1970.
    pub(super) time: i64,
    pub(super) position: Position,
    pub(super) accuracy: Option<f64>,
}

impl Update {
    /// The plausible ones of a batch.
    pub(super) fn all_of(batch: &RecordBatch) -> Result<Vec<Self>> {
        let (moments, places) = (micros_of(batch, START)?, Places::of(batch)?);
        let ids = batch
            .column_by_name(ID)
            .and_then(|column| column.as_fixed_size_binary_opt())
            .ok_or_else(|| missing(ID))?;
        let updates = (0..ids.len()).filter_map(|row| {
            let (position, accuracy) = places.usable(row)?;
            Some(Self {
                id: Uuid::from_slice(ids.value(row)).unwrap_or_default(),
                time: moments[row],
                position,
                accuracy,
            })
        });
        Ok(updates.collect())
    }

    /// Whether another update is near enough for a stay that begins with this one.
    pub(super) fn is_near(&self, other: &Self) -> bool {
        self.position.distance_to(other.position) <= NEAR
    }
}
