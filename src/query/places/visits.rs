//! Visits as a fallback where no update says where somebody was.
//!
//! A visit gives a place from its arrival to its departure. If one of the two is unknown, it counts only at
//! the other moment: that somebody arrived does not say how long they stayed. If both are unknown, it is
//! ignored.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;

use crate::model::columns::{END, ID, START};
use crate::model::geo::Position;
use crate::model::ids::RecordId;
use crate::model::time::TimeRange;
use crate::query::ground::events::known_part;
use crate::query::ground::operator::Plan;
use crate::query::ground::row_times::micros_of;
use crate::query::{QueryError, Questions};

use super::fixes::{ACCURACY, LATITUDE, LONGITUDE, Places, missing, uncertainty};
use super::pinned::Pinned;

/// The columns of a visit.
pub const VISIT_COLUMNS: &[&str] = &[
    "uuid",
    "latitude_degrees",
    "longitude_degrees",
    "horizontal_accuracy_meters",
    "arrival_date",
    "departure_date",
];

/// The part of a visit that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Visit {
    pub id: RecordId,
    /// Microseconds since 1970; the same as `to` where only one moment is known.
    pub from: i64,
    pub to: i64,
    pub position: Position,
    pub accuracy: Option<f64>,
}

impl Visit {
    /// The moment of the visit that is nearest to `time`.
    pub(super) fn nearest(&self, time: i64) -> i64 {
        time.clamp(self.from, self.to)
    }

    /// The order of visits at the same moment: the later arrival, then the better accuracy, then the smaller
    /// id.
    pub(super) fn standing(&self) -> Standing {
        (Reverse(self.from), uncertainty(self.accuracy), self.id)
    }
}

pub(super) type Standing = (Reverse<i64>, u64, RecordId);

impl<Authority> Questions<Authority> {
    /// The visits inside `wanted`.
    pub(super) fn visits(
        &self,
        pinned: &Pinned<'_, Authority>,
        wanted: TimeRange,
    ) -> Result<Plan, QueryError> {
        let seen = self.seen(pinned, &pinned.windows(Some(wanted)))?;
        Ok(seen.rows([LATITUDE, LONGITUDE, ACCURACY])?)
    }
}

/// The usable visits of a batch.
pub(super) fn visits_of(batch: &RecordBatch) -> Result<Vec<Visit>> {
    let (arrivals, departures) = (micros_of(batch, START)?, micros_of(batch, END)?);
    let places = Places::of(batch)?;
    let ids = batch
        .column_by_name(ID)
        .and_then(|column| column.as_fixed_size_binary_opt())
        .ok_or_else(|| missing(ID))?;
    let visit = |row: usize| {
        let (from, to) = known_part(arrivals[row], departures[row])?;
        let (position, accuracy) = places.usable(row)?;
        let id = RecordId(uuid::Uuid::from_slice(ids.value(row)).ok()?);
        Some(Visit {
            id,
            from,
            to,
            position,
            accuracy,
        })
    };
    Ok((0..ids.len()).filter_map(visit).collect())
}

pub(super) async fn collected(mut rows: SendableRecordBatchStream) -> Result<Vec<Visit>, DataFusionError> {
    let mut visits = Vec::new();
    while let Some(batch) = rows.next().await {
        visits.extend(visits_of(&batch?)?);
    }
    Ok(visits)
}

/// Visits, queried at ascending moments.
#[derive(Debug)]
pub(super) struct Fallback {
    /// By arrival.
    coming: Peekable<std::vec::IntoIter<Visit>>,
    /// A visit is still going on at the moment of its departure.
    present: BTreeMap<Standing, Visit>,
    leaving: BinaryHeap<Reverse<(i64, Standing)>>,
    /// The one that ended last.
    left: Option<Visit>,
}

impl Fallback {
    pub(super) fn new(mut visits: Vec<Visit>) -> Self {
        visits.sort_unstable_by_key(|visit| visit.from);
        Self {
            coming: visits.into_iter().peekable(),
            present: BTreeMap::new(),
            leaving: BinaryHeap::new(),
            left: None,
        }
    }

    /// The visit that was last known to be going on at `moment`, and its last such moment.
    pub(super) fn at(&mut self, moment: i64) -> Option<(i64, Visit)> {
        while let Some(visit) = self.coming.next_if(|visit| visit.from <= moment) {
            self.leaving.push(Reverse((visit.to, visit.standing())));
            self.present.insert(visit.standing(), visit);
        }
        while let Some(Reverse((to, standing))) = self.leaving.peek()
            && *to < moment
        {
            if let Some(visit) = self.present.remove(standing)
                && self.left.is_none_or(|left| {
                    (Reverse(visit.to), visit.standing()) < (Reverse(left.to), left.standing())
                })
            {
                self.left = Some(visit);
            }
            self.leaving.pop();
        }
        let going_on = self.present.first_key_value().map(|(_, visit)| (moment, *visit));
        going_on.or_else(|| self.left.map(|left| (left.to, left)))
    }

    /// The start of the next visit, if no place is known at `moment`.
    pub(super) fn idle_until(&mut self, moment: i64, look_back: i64) -> Option<i64> {
        match self.at(moment) {
            Some((told, _)) if told >= moment.saturating_sub(look_back) => None,
            _ => Some(self.coming.peek().map_or(i64::MAX, |visit| visit.from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;
    use crate::query::ground::events::FIRST_UNKNOWN;

    #[test]
    fn rule_4_5_a_visit_counts_up_to_and_including_its_departure() {
        let visit = |id: u128, from: i64, to: i64| Visit {
            id: RecordId(uuid::Uuid::from_u128(id)),
            from,
            to,
            position: Position::new(50.0, 8.0),
            accuracy: None,
        };
        let mut visits = Fallback::new(vec![visit(1, 15, 45), visit(2, 30, 30), visit(3, 20, 40)]);
        let mut at = |moment: i64| {
            visits
                .at(moment)
                .map(|(told, visit)| (told, visit.id.0.as_u128()))
        };
        assert_eq!(at(14), None);
        assert_eq!(at(15), Some((15, 1)));
        assert_eq!(
            at(30),
            Some((30, 2)),
            "who arrived last is there, though nobody knows for how long"
        );
        assert_eq!(at(31), Some((31, 3)));
        assert_eq!(at(40), Some((40, 3)));
        assert_eq!(at(45), Some((45, 1)));
        assert_eq!(at(46), Some((45, 1)));
    }

    #[test]
    fn rule_4_5_a_sentinel_is_no_moment() {
        let micros = |text: &str| parse_instant(text).unwrap().micros();
        let (first, last) = (micros("0001-01-01T00:00:00Z"), micros("4001-01-01T00:00:00Z"));
        let (came, went) = (micros("2024-05-01T10:00:00Z"), micros("2024-05-01T11:00:00Z"));
        assert_eq!(known_part(came, went), Some((came, went)));
        assert_eq!(known_part(came, last), Some((came, came)));
        assert_eq!(known_part(first, went), Some((went, went)));
        assert_eq!(known_part(first, last), None);
        assert_eq!(FIRST_UNKNOWN, last);
    }
}
