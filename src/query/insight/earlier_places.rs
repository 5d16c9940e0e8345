//! Finds the nearest of the places visited so far without looking at each of them.
//!
//! All stays, the later ones too, are halved again and again across their widest side, down to a few. Each
//! part knows the box around its places, and the latest end of those stays in it that came so far. A part is
//! passed over as a whole where all of these ended long ago, or where its box is farther away than a place
//! that is known. Knows distances and ends; knows nothing of days.

use std::ops::Range;

use crate::model::geo::{DOUBTFUL_METERS, EARTH_RADIUS_METERS, Position};
use crate::model::time::Instant;
use crate::query::ground::turn::Turn;

/// So many stays are not halved.
const FEW: usize = 8;
const METRES: f64 = 1_000.0;

/// The places of some stays, which come one after the other.
#[derive(Debug)]
pub(super) struct EarlierPlaces {
    /// Those of a part stand together.
    places: Vec<Place>,
    /// All of them, their halves, and the halves of these.
    parts: Vec<Part>,
    /// For each stay the smallest part in which it is, and its end.
    stays: Vec<(usize, i64)>,
    /// How many stays came so far.
    came: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of the stay.
    number: usize,
    until: i64,
    position: Position,
    point: [f64; 3],
}

#[derive(Debug)]
struct Part {
    places: Range<usize>,
    low: [f64; 3],
    high: [f64; 3],
    /// The latest end of the stays that came so far.
    latest: i64,
    whole: Option<usize>,
    /// The first of both; the other one follows.
    halves: Option<usize>,
}

impl EarlierPlaces {
    /// The places and ends of stays, none of which has come so far.
    pub(super) async fn of(stays: &[(Position, Instant)], turn: &mut Turn) -> Self {
        let mut places: Vec<Place> = stays.iter().enumerate().map(Place::of).collect();
        let mut stays = vec![(0, i64::MIN); places.len()];
        let mut parts = vec![Part::around(&places, 0..places.len(), None)];
        let mut number = 0;
        while let Some(part) = parts.get(number) {
            let (range, axis) = (part.places.clone(), part.widest_axis());
            turn.spend(range.len());
            let inside = places.get_mut(range.clone()).unwrap_or_default();
            if range.len() > FEW {
                let half = range.len() / 2;
                inside
                    .select_nth_unstable_by(half, |one, other| one.point[axis].total_cmp(&other.point[axis]));
                let (halves, middle) = (parts.len(), range.start + half);
                parts.push(Part::around(&places, range.start..middle, Some(number)));
                parts.push(Part::around(&places, middle..range.end, Some(number)));
                if let Some(part) = parts.get_mut(number) {
                    part.halves = Some(halves);
                }
            } else {
                for place in inside {
                    if let Some(stay) = stays.get_mut(place.number) {
                        *stay = (number, place.until);
                    }
                }
            }
            number += 1;
            turn.give_way().await;
        }
        Self {
            places,
            parts,
            stays,
            came: 0,
        }
    }

    /// The next stay has come.
    pub(super) fn next_came(&mut self, turn: &mut Turn) {
        let Some(&(smallest, until)) = self.stays.get(self.came) else {
            return;
        };
        self.came += 1;
        let mut next = Some(smallest);
        while let Some(part) = next.and_then(|number| self.parts.get_mut(number)) {
            part.latest = part.latest.max(until);
            next = part.whole;
            turn.spend(1);
        }
    }

    /// The kilometres to the nearest place of the stays that came and ended after `moment`. The search ends
    /// as soon as a place `is_enough`, which need not be the nearest.
    pub(super) fn nearest(
        &self,
        position: Position,
        moment: Instant,
        is_enough: impl Fn(f64) -> bool,
        turn: &mut Turn,
    ) -> Option<f64> {
        let (point, moment) = (point_of(position), moment.micros());
        let mut nearest: Option<f64> = None;
        // In a straight line, as boxes are.
        let mut reach = f64::INFINITY;
        let mut open = vec![(0.0, 0)];
        while let Some((away, number)) = open.pop() {
            turn.spend(1);
            let part = self.parts.get(number).filter(|part| part.latest > moment);
            let Some(part) = part.filter(|_| away <= reach + DOUBTFUL_METERS) else {
                continue;
            };
            if let Some(first) = part.halves {
                let halves = [first, first + 1].map(|half| (self.away(half, point), half));
                let is_first_nearer = halves[0].0 < halves[1].0;
                open.extend(halves);
                if is_first_nearer {
                    let last = open.len() - 1;
                    open.swap(last - 1, last);
                }
                continue;
            }
            turn.spend(FEW);
            let inside = self.places.get(part.places.clone()).unwrap_or_default();
            for place in inside {
                if place.number >= self.came || place.until <= moment {
                    continue;
                }
                let kilometres = place.position.distance_to(position) / METRES;
                if nearest.is_none_or(|nearest| kilometres < nearest) {
                    nearest = Some(kilometres);
                    reach = straight(kilometres * METRES);
                }
                if is_enough(kilometres) {
                    return nearest;
                }
            }
        }
        nearest
    }

    /// How far the box around a part is away, at least.
    fn away(&self, part: usize, point: [f64; 3]) -> f64 {
        self.parts
            .get(part)
            .map_or(f64::INFINITY, |part| part.away(point))
    }
}

impl Place {
    fn of((number, &(position, until)): (usize, &(Position, Instant))) -> Self {
        Self {
            number,
            until: until.micros(),
            position,
            point: point_of(position),
        }
    }
}

impl Part {
    fn around(all: &[Place], places: Range<usize>, whole: Option<usize>) -> Self {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for place in all.get(places.clone()).unwrap_or_default() {
            for ((low, high), part) in low.iter_mut().zip(&mut high).zip(place.point) {
                *low = low.min(part);
                *high = high.max(part);
            }
        }
        Self {
            places,
            low,
            high,
            latest: i64::MIN,
            whole,
            halves: None,
        }
    }

    fn widest_axis(&self) -> usize {
        let width = |axis: &usize| self.high[*axis] - self.low[*axis];
        (0..3)
            .max_by(|one, other| width(one).total_cmp(&width(other)))
            .unwrap_or_default()
    }

    fn away(&self, point: [f64; 3]) -> f64 {
        let sides = self.low.iter().zip(&self.high).zip(point);
        let squares = sides.map(|((low, high), part)| (low - part).max(part - high).max(0.0).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

/// Metres from the middle of the earth, in three directions.
fn point_of(position: Position) -> [f64; 3] {
    position.on_unit_sphere().map(|part| part * EARTH_RADIUS_METERS)
}

/// The metres in a straight line between points that are so many metres apart along the surface.
fn straight(metres: f64) -> f64 {
    2.0 * EARTH_RADIUS_METERS * (metres / (2.0 * EARTH_RADIUS_METERS)).sin()
}
