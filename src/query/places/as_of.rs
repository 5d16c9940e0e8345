//! Finds the last known place at each of many moments, in one pass over fixes and visits by time.
//!
//! Holds one fix and the current visits, however long the series. Knows nothing of batches or plans.

use crate::model::geo::Position;

use super::fixes::{Fix, uncertainty};
use super::location_source::LocationSource;
use super::visits::Fallback;

/// The moments `start + k · rate` before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    pub start: i64,
    pub end: i64,
    pub rate: i64,
}

/// The last known place at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub slot: i64,
    pub position: Position,
    /// The moment at which the position was reported.
    pub time: i64,
    pub source: LocationSource,
}

/// The state between two fixes.
#[derive(Debug)]
pub(super) struct AsOf {
    slots: Slots,
    next: i64,
    look_back: i64,
    newest: Option<Fix>,
    visits: Fallback,
}

impl AsOf {
    pub(super) fn new(slots: Slots, look_back: i64, visits: Fallback) -> Self {
        Self {
            next: slots.start,
            slots,
            look_back,
            newest: None,
            visits,
        }
    }

    /// The next slot before `until` at which a place is known. Every fix before `until` must have been taken.
    pub(super) fn next_before(&mut self, until: i64) -> Option<Placed> {
        let until = until.min(self.slots.end);
        while self.next < until {
            let slot = self.next;
            if let Some(placed) = self.place(slot) {
                self.next = slot.saturating_add(self.slots.rate);
                return Some(placed);
            }
            self.skip_to_news(slot, until);
        }
        None
    }

    /// Takes the next fix: no earlier than the previous one, and only after `next_before` returned `None` for
    /// its time. Fixes that are superseded before the next slot need not be taken.
    pub(super) fn take(&mut self, fix: Fix) {
        let better = |known: Fix| {
            let key = |fix: Fix| (uncertainty(fix.accuracy), fix.source);
            fix.time > known.time || key(fix) < key(known)
        };
        if self.newest.is_none_or(better) {
            self.newest = Some(fix);
        }
    }

    /// The first slot that was not answered yet.
    pub(super) const fn next_slot(&self) -> i64 {
        self.next
    }

    /// Whether no slot is left.
    pub(super) const fn is_done(&self) -> bool {
        self.next >= self.slots.end
    }

    fn place(&mut self, slot: i64) -> Option<Placed> {
        let oldest = slot.saturating_sub(self.look_back);
        if let Some(fix) = self.newest.filter(|fix| fix.time >= oldest) {
            return Some(Placed {
                slot,
                position: fix.position,
                time: fix.time,
                source: fix.source,
            });
        }
        let (time, visit) = self.visits.at(slot).filter(|(time, _)| *time >= oldest)?;
        Some(Placed {
            slot,
            position: visit.position,
            time,
            source: LocationSource::MobileOs,
        })
    }

    /// Skips slots for which nothing is known before the next fix or visit.
    fn skip_to_news(&mut self, slot: i64, until: i64) {
        let news = self.visits.idle_until(slot, self.look_back).unwrap_or(slot);
        let behind = (news.min(until).saturating_sub(slot) / self.slots.rate).max(1);
        self.next = slot.saturating_add(behind.saturating_mul(self.slots.rate));
    }
}

/// Decides which rows of a series are included, and how far each is from the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    pub least: Option<f64>,
    last: Option<Position>,
}

/// A row of a series, compared with the last one that was included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    First,
    /// The distance in metres.
    Moved(f64),
    /// Not included.
    TooNear,
}

impl Changes {
    pub(super) const fn new(least: Option<f64>) -> Self {
        Self { least, last: None }
    }

    /// Includes the position unless it is too near to the last one.
    pub(super) fn include(&mut self, position: Position) -> Change {
        let change = self
            .last
            .map_or(Change::First, |last| Change::Moved(last.distance_to(position)));
        if let (Change::Moved(distance), Some(least)) = (change, self.least)
            && distance < least
        {
            return Change::TooNear;
        }
        self.last = Some(position);
        change
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::super::visits::Visit;
    use super::*;
    use crate::model::ids::RecordId;

    fn walked(slots: &Slots, look_back: i64, fixes: &[Fix], visits: &[Visit]) -> Vec<Placed> {
        let mut as_of = AsOf::new(*slots, look_back, Fallback::new(visits.to_vec()));
        let mut placed = Vec::new();
        for fix in fixes {
            while let Some(place) = as_of.next_before(fix.time) {
                placed.push(place);
            }
            as_of.take(*fix);
        }
        while let Some(place) = as_of.next_before(i64::MAX) {
            placed.push(place);
        }
        placed
    }

    /// The rule itself: for each slot, look at everything.
    fn looked_up(slots: &Slots, look_back: i64, fixes: &[Fix], visits: &[Visit]) -> Vec<Placed> {
        let mut placed = Vec::new();
        let mut slot = slots.start;
        while slot < slots.end {
            let seen = |time: i64| slot - look_back <= time && time <= slot;
            let fix = fixes
                .iter()
                .enumerate()
                .filter(|(_, fix)| seen(fix.time))
                .min_by_key(|(order, fix)| {
                    (Reverse(fix.time), uncertainty(fix.accuracy), fix.source, *order)
                });
            let visit = visits
                .iter()
                .filter(|visit| visit.from <= slot && seen(visit.nearest(slot)))
                .min_by_key(|visit| (Reverse(visit.nearest(slot)), visit.standing()));
            match (fix, visit) {
                (Some((_, fix)), _) => placed.push(Placed {
                    slot,
                    position: fix.position,
                    time: fix.time,
                    source: fix.source,
                }),
                (None, Some(visit)) => placed.push(Placed {
                    slot,
                    position: visit.position,
                    time: visit.nearest(slot),
                    source: LocationSource::MobileOs,
                }),
                (None, None) => {}
            }
            slot += slots.rate;
        }
        placed
    }

    fn fix() -> impl Strategy<Value = Fix> {
        (-50_i64..250, 0_u8..40, prop::option::of(0_u8..3), any::<bool>()).prop_map(
            |(time, place, accuracy, maps)| Fix {
                time,
                position: Position::new(f64::from(place), 1.0),
                accuracy: accuracy.map(f64::from),
                source: if maps {
                    LocationSource::Maps
                } else {
                    LocationSource::MobileOs
                },
            },
        )
    }

    fn visit() -> impl Strategy<Value = Visit> {
        (
            -50_i64..250,
            0_i64..80,
            0_u8..40,
            prop::option::of(0_u8..3),
            any::<u128>(),
        )
            .prop_map(|(from, length, place, accuracy, id)| Visit {
                id: RecordId(Uuid::from_u128(id)),
                from,
                to: from + length,
                position: Position::new(f64::from(place), 2.0),
                accuracy: accuracy.map(f64::from),
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn rule_4_3_one_pass_finds_what_looking_everything_up_finds(
            mut fixes in prop::collection::vec(fix(), 0..25),
            visits in prop::collection::vec(visit(), 0..6),
            start in -20_i64..40,
            length in 0_i64..220,
            rate in 1_i64..60,
            look_back in 0_i64..90
        ) {
            fixes.sort_by_key(|fix| fix.time);
            let slots = Slots {
                start,
                end: start + length,
                rate,
            };
            prop_assert_eq!(
                walked(&slots, look_back, &fixes, &visits),
                looked_up(&slots, look_back, &fixes, &visits)
            );
        }

        #[test]
        fn rule_4_3_no_row_is_nearer_to_the_row_before_than_asked_and_none_that_is_far_is_missing(
            places in prop::collection::vec(0_u16..400, 1..40),
            least in 0_u32..20_000
        ) {
            let places: Vec<Position> = places
                .into_iter()
                .map(|place| Position::new(f64::from(place) / 1000.0, 0.0))
                .collect();
            let mut changes = Changes::new(Some(f64::from(least)));
            let mut last: Option<Position> = None;
            for place in places {
                let moved = last.map(|last| last.distance_to(place));
                let far = moved.is_none_or(|moved| moved >= f64::from(least));
                let expected = if far {
                    moved.map_or(Change::First, Change::Moved)
                } else {
                    Change::TooNear
                };
                prop_assert_eq!(changes.include(place), expected);
                if far {
                    last = Some(place);
                }
            }
        }
    }

    #[test]
    fn a_hundred_years_of_seconds_without_news_take_no_time() {
        let year = 366 * 86_400 * 1_000_000;
        let slots = Slots {
            start: 0,
            end: 100 * year,
            rate: 1_000_000,
        };
        let mut as_of = AsOf::new(slots, 10_000_000, Fallback::new(Vec::new()));
        as_of.take(Fix {
            time: -5_000_000,
            position: Position::new(1.0, 1.0),
            accuracy: None,
            source: LocationSource::Maps,
        });
        let mut rows = 0;
        while as_of.next_before(i64::MAX).is_some() {
            rows += 1;
        }
        assert_eq!(rows, 6);
    }
}
