//! Updates that wait until it is known whether a stay begins with the first of them.
//!
//! Whoever sends many updates in a few minutes makes them all wait. Whether they are near the first one is
//! told by the boxes around 16 of them, around 256 and so on: only where a box does not tell, its updates are
//! looked at. Knows distances; knows nothing of time.

use std::collections::VecDeque;

use crate::model::geo::{DOUBTFUL_METERS, EARTH_RADIUS_METERS, Position};
use crate::query::ground::turn::Turn;

use super::update::{NEAR, Update};

/// How many boxes, or updates, have a box of the next level around them, as a power of two.
const STEP: usize = 4;
const LEVELS: usize = 5;

/// Updates by time.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    updates: VecDeque<Update>,
    /// How many were taken away since the first one came. Those left are counted from this number on.
    gone: usize,
    /// The boxes of each level, the smallest first. Those of a level are around equally many updates, except
    /// for the last one, and the first one is around the first update.
    boxes: [VecDeque<Surrounding>; LEVELS],
}

impl Waiting {
    pub(super) fn first(&self) -> Option<&Update> {
        self.updates.front()
    }

    pub(super) fn last(&self) -> Option<&Update> {
        self.updates.back()
    }

    pub(super) fn push(&mut self, update: Update) {
        let (number, point) = (self.gone + self.updates.len(), Point::of(update.position));
        for (level, boxes) in self.boxes.iter_mut().enumerate() {
            match boxes.get_mut(block(number, level) - block(self.gone, level)) {
                Some(begun) => begun.extend(point),
                None => boxes.push_back(Surrounding::new(point)),
            }
        }
        self.updates.push_back(update);
    }

    /// Takes the first one away.
    pub(super) fn pop(&mut self) -> Option<Update> {
        let first = self.updates.pop_front()?;
        if self.updates.is_empty() {
            self.clear();
            return Some(first);
        }
        for (level, boxes) in self.boxes.iter_mut().enumerate() {
            if block(self.gone + 1, level) > block(self.gone, level) {
                boxes.pop_front();
            }
        }
        self.gone += 1;
        Some(first)
    }

    pub(super) fn clear(&mut self) {
        self.updates.clear();
        self.gone = 0;
        for boxes in &mut self.boxes {
            boxes.clear();
        }
    }

    /// Whether all are near the first.
    pub(super) async fn are_near_the_first(&self, turn: &mut Turn) -> bool {
        let (Some(first), Some(last)) = (self.first(), self.last()) else {
            return true;
        };
        turn.spend(1);
        // Mostly it is the newest that is not.
        if !first.is_near(last) {
            return false;
        }
        let point = Point::of(first.position);
        let (mut number, end) = (self.gone + 1, self.gone + self.updates.len());
        while number < end {
            let near = self.near_from(number, first, point);
            if near == 0 {
                return false;
            }
            number += near;
            turn.spend(1);
            turn.give_way().await;
        }
        true
    }

    /// How many updates from `number` on are known at once to be near `first`, which is at `point`: those of
    /// the largest box that begins there and tells, else one. 0 if any of them is not.
    fn near_from(&self, number: usize, first: &Update, point: Point) -> usize {
        for (level, boxes) in self.boxes.iter().enumerate().rev() {
            let length = 1_usize << (STEP * (level + 1));
            if !number.is_multiple_of(length) {
                continue;
            }
            let surrounding = boxes.get(block(number, level) - block(self.gone, level));
            match surrounding.and_then(|surrounding| surrounding.is_near(point)) {
                Some(true) => return length,
                Some(false) => return 0,
                None => {}
            }
        }
        let update = self.updates.get(number - self.gone);
        usize::from(update.is_some_and(|update| first.is_near(update)))
    }
}

/// The number of the box of a level that is around an update.
const fn block(number: usize, level: usize) -> usize {
    number >> (STEP * (level + 1))
}

/// Metres from the middle of the earth, in three directions. The straight distance of two points that are
/// near each other is that along the surface, to less than a thousandth of a millimetre.
#[derive(Clone, Copy, Debug)]
struct Point([f64; 3]);

impl Point {
    fn of(position: Position) -> Self {
        Self(position.on_unit_sphere().map(|part| part * EARTH_RADIUS_METERS))
    }
}

/// The smallest box around some points: each of its sides has one of them.
#[derive(Clone, Copy, Debug)]
struct Surrounding {
    low: [f64; 3],
    high: [f64; 3],
}

impl Surrounding {
    const fn new(Point(point): Point) -> Self {
        Self {
            low: point,
            high: point,
        }
    }

    fn extend(&mut self, Point(point): Point) {
        for ((low, high), part) in self.low.iter_mut().zip(&mut self.high).zip(point) {
            *low = low.min(part);
            *high = high.max(part);
        }
    }

    /// Whether all of its points are near another one; `None` if that depends on where they are in the box.
    fn is_near(&self, Point(point): Point) -> Option<bool> {
        let (mut squares, mut farthest) = (0.0, 0.0_f64);
        for ((low, high), part) in self.low.iter().zip(&self.high).zip(point) {
            let away = (part - low).max(high - part);
            squares += away * away;
            farthest = farthest.max(away);
        }
        if farthest > NEAR + DOUBTFUL_METERS {
            return Some(false);
        }
        (squares < (NEAR - DOUBTFUL_METERS) * (NEAR - DOUBTFUL_METERS)).then_some(true)
    }
}
