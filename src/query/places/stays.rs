//! Derives visits from updates, for people whose device reports none.
//!
//! Somebody stays in a place if, from one update on, all updates lie within 100 metres of it, each within 15
//! minutes of the previous one, for at least 10 minutes. A stay begins with its first update. It ends with
//! the first update elsewhere or, before a silence of more than 15 minutes, with the last update. Its place
//! is the middle of its updates, its accuracy their mean. Its id is derived from that of its first update, so
//! it is always the same.
//!
//! One pass; only the updates that may still become a stay are in memory: those of 10 minutes.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::{BoxStream, StreamExt as _, try_unfold};
use uuid::Uuid;

use crate::model::columns::{ID, START};
use crate::model::geo::{Middle, Position};
use crate::model::registry::timestamp;
use crate::model::time::{Instant, MICROS_PER_DAY, MICROS_PER_MINUTE, TimeRange};
use crate::query::ground::row_times::micros_of;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, one_partition, only};
use crate::query::shape::IdForm;
use crate::query::{Prepared, QueryError, Questions};

use super::fixes::{ACCURACY, LATITUDE, LONGITUDE, Places, missing};
use super::pinned::Granted;
use super::wider_range::widened;

/// The greatest distance in metres from the first update.
const NEAR: f64 = 100.0;
/// The shortest stay.
const LEAST_STAY: i64 = 10 * MICROS_PER_MINUTE;
/// The longest silence inside a stay.
const LONGEST_GAP: i64 = 15 * MICROS_PER_MINUTE;
/// How far beyond a range updates are read, so that stays have their whole length.
const MARGIN: i64 = MICROS_PER_DAY;

/// The time that has to be read for the stays of a range.
#[must_use]
pub fn reads(range: TimeRange) -> TimeRange {
    widened(range, MARGIN, MARGIN)
}

impl<Authority> Questions<Authority> {
    /// The stays that share time with `range`, in the shape of visits: the columns of `shape`. The permit is
    /// requested for `reads`. For somebody other than the owner, stays follow only from the updates inside
    /// the range.
    pub async fn stays(
        &self,
        updates: &Granted<Authority>,
        range: TimeRange,
        shape: &SchemaRef,
        ids: IdForm,
    ) -> Result<Prepared, QueryError> {
        let pinned = self.pinned_one(updates).await?;
        let looked_at = if updates.permit.is_own() {
            reads(range)
        } else {
            range
        };
        let windows = pinned.windows(Some(looked_at));
        let rows = self
            .seen(&pinned, &windows)?
            .rows([LATITUDE, LONGITUDE, ACCURACY])?;
        let asked = windows.into_iter().filter_map(|window| window.overlap(range));
        let step = Stays {
            schema: Arc::clone(shape),
            asked: asked.collect(),
            ids,
        };
        let plan: Plan = Arc::new(Operator::over(step, vec![rows]));
        Ok(Prepared::of(plan, vec![pinned.state()], pinned.scope()))
    }
}

#[derive(Clone, Debug)]
struct Stays {
    schema: SchemaRef,
    asked: Arc<[TimeRange]>,
    ids: IdForm,
}

impl Step for Stays {
    const NAME: &'static str = "StaysExec";

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.schema), None)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        let stays = try_unfold(
            (self, rows, Some(Search::default())),
            |(step, mut rows, search)| async move {
                let Some(mut search) = search else { return Ok(None) };
                let mut found = Vec::new();
                let search = if let Some(batch) = rows.next().await.transpose()? {
                    search.look_through(&batch, &mut found)?;
                    Some(search)
                } else {
                    search.finish(&mut found);
                    None
                };
                let batch = step.shown(&found)?;
                Ok(Some((batch, (step, rows, search))))
            },
        );
        Ok(stays.boxed())
    }
}

impl Stays {
    fn shown(&self, stays: &[Stay]) -> Result<RecordBatch> {
        let selected = |stay: &&Stay| {
            let (from, to) = (Instant::from_micros(stay.from), Instant::from_micros(stay.to));
            self.asked.iter().any(|range| range.selects(from, to))
        };
        let stays: Vec<&Stay> = stays.iter().filter(selected).collect();
        let numbers = |number: fn(&Stay) -> Option<f64>| -> ArrayRef {
            let numbers = stays.iter().map(|stay| number(stay));
            Arc::new(numbers.collect::<Float64Array>())
        };
        let moments = |moment: fn(&Stay) -> i64| -> ArrayRef {
            let moments = stays.iter().map(|stay| moment(stay));
            Arc::new(TimestampMicrosecondArray::from_iter_values(moments).with_data_type(timestamp()))
        };
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.name().as_str() {
                "uuid" => self.ids(&stays),
                LATITUDE => Ok(numbers(|stay| Some(stay.position.latitude))),
                LONGITUDE => Ok(numbers(|stay| Some(stay.position.longitude))),
                ACCURACY => Ok(numbers(|stay| stay.accuracy)),
                "arrival_date" => Ok(moments(|stay| stay.from)),
                "departure_date" => Ok(moments(|stay| stay.to)),
                other => Err(missing(other)),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn ids(&self, stays: &[&Stay]) -> Result<ArrayRef> {
        let ids = stays.iter().map(|stay| Uuid::new_v5(&stay.first, b"stay"));
        Ok(match self.ids {
            IdForm::Text => Arc::new(StringArray::from_iter_values(ids.map(|id| id.to_string()))),
            IdForm::Bytes => {
                let mut bytes = FixedSizeBinaryBuilder::with_capacity(stays.len(), 16);
                for id in ids {
                    bytes.append_value(id.as_bytes())?;
                }
                Arc::new(bytes.finish())
            }
        })
    }
}

/// A time spent in one place.
#[derive(Clone, Debug, PartialEq)]
struct Stay {
    first: Uuid,
    from: i64,
    to: i64,
    position: Position,
    accuracy: Option<f64>,
}

/// A plausible update.
#[derive(Clone, Copy, Debug)]
struct Update {
    id: Uuid,
    time: i64,
    position: Position,
    accuracy: Option<f64>,
}

/// Finds stays in updates that come by time.
#[derive(Debug, Default)]
struct Search {
    /// Updates since the first one of a possible stay. Dropped as soon as it is a stay.
    waiting: VecDeque<Update>,
    /// The possible stay of the waiting updates.
    hoped_for: Option<Staying>,
    staying: Option<Staying>,
}

/// A stay that is not over.
#[derive(Debug)]
struct Staying {
    first: Update,
    last: i64,
    middle: Middle,
    accuracies: (f64, u32),
}

impl Staying {
    fn new(first: Update) -> Self {
        let mut staying = Self {
            first,
            last: first.time,
            middle: Middle::default(),
            accuracies: (0.0, 0),
        };
        staying.add(first);
        staying
    }

    fn add(&mut self, update: Update) {
        self.last = update.time;
        self.middle.add(update.position);
        if let Some(accuracy) = update.accuracy {
            self.accuracies.0 += accuracy;
            self.accuracies.1 += 1;
        }
    }

    /// Whether an update belongs to the stay.
    fn holds(&self, update: &Update) -> bool {
        update.time - self.last <= LONGEST_GAP && self.first.position.distance_to(update.position) <= NEAR
    }

    /// The end of the stay, given the first update that does not belong to it.
    fn end(&self, next: Option<&Update>) -> i64 {
        next.filter(|next| next.time - self.last <= LONGEST_GAP)
            .map_or(self.last, |next| next.time)
    }

    fn ended(self, to: i64) -> Stay {
        Stay {
            first: self.first.id,
            from: self.first.time,
            to,
            position: self.middle.position().unwrap_or(self.first.position),
            accuracy: (self.accuracies.1 > 0).then(|| self.accuracies.0 / f64::from(self.accuracies.1)),
        }
    }
}

impl Search {
    fn look_through(&mut self, batch: &RecordBatch, found: &mut Vec<Stay>) -> Result<()> {
        let (moments, places) = (micros_of(batch, START)?, Places::of(batch)?);
        let ids = batch
            .column_by_name(ID)
            .and_then(|column| column.as_fixed_size_binary_opt())
            .ok_or_else(|| missing(ID))?;
        for row in 0..ids.len() {
            let Some((position, accuracy)) = places.usable(row) else {
                continue;
            };
            let update = Update {
                id: Uuid::from_slice(ids.value(row)).unwrap_or_default(),
                time: moments[row],
                position,
                accuracy,
            };
            self.take(update, found);
        }
        Ok(())
    }

    fn take(&mut self, update: Update, found: &mut Vec<Stay>) {
        if let Some(staying) = &mut self.staying {
            if staying.holds(&update) {
                staying.add(update);
                return;
            }
            let to = staying.end(Some(&update));
            found.extend(self.staying.take().map(|staying| staying.ended(to)));
        }
        self.waiting.push_back(update);
        match self.hoped_for.take() {
            Some(mut hoped_for) if hoped_for.holds(&update) => {
                hoped_for.add(update);
                self.hope(hoped_for);
            }
            _ => self.settle(found, false),
        }
    }

    /// Continues a possible stay. Once it is long enough, it is a stay, and its updates need not be kept.
    fn hope(&mut self, hoped_for: Staying) {
        if hoped_for.last - hoped_for.first.time >= LEAST_STAY {
            self.waiting.clear();
            self.staying = Some(hoped_for);
        } else {
            self.hoped_for = Some(hoped_for);
        }
    }

    fn finish(&mut self, found: &mut Vec<Stay>) {
        if let Some(staying) = self.staying.take() {
            let to = staying.end(None);
            found.push(staying.ended(to));
        }
        self.settle(found, true);
    }

    /// Decides about the waiting updates, as far as possible.
    fn settle(&mut self, found: &mut Vec<Stay>, all: bool) {
        while let Some(first) = self.waiting.front() {
            let mut staying = Staying::new(*first);
            let mut elsewhere = None;
            let mut held = 1;
            for update in self.waiting.iter().skip(1) {
                if !staying.holds(update) {
                    elsewhere = Some(update);
                    break;
                }
                staying.add(*update);
                held += 1;
            }
            let to = staying.end(elsewhere);
            if elsewhere.is_none() && !all {
                return self.hope(staying);
            }
            if to - staying.first.time >= LEAST_STAY {
                self.waiting.drain(..held);
                found.push(staying.ended(to));
            } else {
                self.waiting.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::time::MICROS_PER_SECOND;

    /// An update in a minute, so many metres north of somewhere.
    fn update(minute: f64, metres: f64) -> Update {
        Update {
            id: Uuid::from_u128((minute * 60.0) as u128),
            time: (minute * 60.0) as i64 * MICROS_PER_SECOND,
            position: Position::new(40.0 + metres / 111_195.08, 8.0),
            accuracy: Some(10.0),
        }
    }

    fn found(updates: &[Update]) -> Vec<Stay> {
        let (mut search, mut stays) = (Search::default(), Vec::new());
        for update in updates {
            search.take(*update, &mut stays);
        }
        search.finish(&mut stays);
        stays
    }

    fn spans(updates: &[(f64, f64)]) -> Vec<(i64, i64)> {
        let updates: Vec<Update> = updates
            .iter()
            .map(|(minute, metres)| update(*minute, *metres))
            .collect();
        let minutes = |micros: i64| micros / MICROS_PER_MINUTE;
        found(&updates)
            .iter()
            .map(|stay| (minutes(stay.from), minutes(stay.to)))
            .collect()
    }

    #[test]
    fn a_stay_ends_with_the_first_update_elsewhere() {
        assert_eq!(
            spans(&[(0.0, 0.0), (5.0, 50.0), (10.0, 99.0), (12.0, 500.0)]),
            [(0, 12)]
        );
        assert_eq!(
            spans(&[(0.0, 0.0), (5.0, 50.0), (9.0, 101.0)]),
            [],
            "less than ten minutes"
        );
        assert_eq!(
            spans(&[(0.0, 0.0), (5.0, 50.0), (10.0, 101.0)]),
            [(0, 10)],
            "ten minutes are enough"
        );
        assert_eq!(
            spans(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)]),
            [(0, 10)],
            "it goes on as far as is known"
        );
        assert_eq!(spans(&[(0.0, 0.0)]), []);
        assert_eq!(spans(&[]), []);
    }

    #[test]
    fn a_silence_of_more_than_a_quarter_of_an_hour_ends_a_stay_with_its_last_update() {
        assert_eq!(
            spans(&[(0.0, 0.0), (15.0, 0.0), (30.0, 0.0)]),
            [(0, 30)],
            "a quarter of an hour is none"
        );
        assert_eq!(
            spans(&[(0.0, 0.0), (12.0, 0.0), (28.0, 0.0), (40.0, 0.0)]),
            [(0, 12), (28, 40)]
        );
        assert_eq!(
            spans(&[(0.0, 0.0), (8.0, 0.0), (30.0, 900.0)]),
            [],
            "nobody knows where they were"
        );
    }

    #[test]
    fn a_stay_may_begin_with_any_update() {
        // On the way for five minutes, then in one place.
        assert_eq!(
            spans(&[
                (0.0, 0.0),
                (2.0, 300.0),
                (4.0, 600.0),
                (5.0, 620.0),
                (10.0, 650.0),
                (16.0, 640.0),
                (17.0, 2000.0)
            ]),
            [(4, 17)]
        );
        assert_eq!(
            spans(&[
                (0.0, 0.0),
                (12.0, 0.0),
                (14.0, 500.0),
                (20.0, 500.0),
                (26.0, 510.0)
            ]),
            [(0, 14), (14, 26)],
            "half-open: one ends where the other begins"
        );
    }

    #[test]
    fn the_place_is_the_middle_and_the_id_always_the_same() {
        let updates = [update(0.0, 0.0), update(5.0, 60.0), update(10.0, 30.0)];
        let stay = &found(&updates)[0];
        assert!(
            stay.position.distance_to(update(0.0, 30.0).position) < 0.01,
            "{stay:?}"
        );
        assert_eq!((stay.accuracy, stay.first), (Some(10.0), updates[0].id));
    }

    proptest! {
        #[test]
        fn stays_do_not_overlap_and_are_long_enough_and_the_first_hundred_metres_hold(
            steps in prop::collection::vec((0.1..20.0_f64, 0.0..300.0_f64), 0..60),
        ) {
            let mut minute = 0.0;
            let updates: Vec<Update> = steps
                .iter()
                .map(|(wait, metres)| {
                    minute += wait;
                    update(minute, *metres)
                })
                .collect();
            let stays = found(&updates);
            for stay in &stays {
                prop_assert!(stay.to - stay.from >= LEAST_STAY);
                let first = updates.iter().find(|update| update.time == stay.from).unwrap();
                let inside = updates.iter().filter(|update| stay.from < update.time && update.time < stay.to);
                for update in inside {
                    prop_assert!(update.position.distance_to(first.position) <= NEAR + 1e-6);
                }
            }
            prop_assert!(stays.windows(2).all(|pair| pair[0].to <= pair[1].from));
        }
    }
}
