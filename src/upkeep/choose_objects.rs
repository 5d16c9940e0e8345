//! Chooses the objects of a partition that are merged next.
//!
//! Objects are merged with others of about their size, so that a row is rewritten a handful of times in its
//! life, however many come after it; and with their neighbours in time, so that objects that follow each
//! other still do so after merging. Pure: knows pieces; knows nothing of how they are read or written.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _};

use crate::catalog::records::{Footer, Piece, Place};
use crate::model::time::Instant;

/// How many objects of a size are merged.
pub const FEWEST_OBJECTS: usize = 4;

/// From this number on, objects of a size are merged even if larger ones lie between them in time.
const MOST_SCATTERED: usize = 16;

/// The largest object of a size has up to this many times the bytes of the smallest.
const SIZE_FACTOR: u64 = 4;

/// Below this size all objects count as equal: opening them costs more than reading them.
const SMALL_BYTES: u64 = 64 << 10;

/// An object is rewritten by itself if more than one in this many of its rows is dead.
const DEAD_SHARE: i64 = 5;

/// How much one compaction does.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many objects are read at once; each needs memory for a row group.
    pub inputs: usize,
    /// An object does not grow beyond these, so that no compaction takes longer than minutes.
    pub bytes: i64,
    pub rows: i64,
    /// How many bytes may be read at once.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inputs: 32,
            bytes: 512 << 20,
            rows: 16_000_000,
            memory: 48 << 20,
        }
    }
}

/// A piece that is an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'p> {
    pub(super) piece: &'p Piece,
    pub(super) path: &'p str,
    pub(super) footer: Footer,
}

impl<'p> Object<'p> {
    pub(super) fn bytes(&self) -> i64 {
        self.piece.bytes
    }

    /// `None` for a tail piece.
    pub(super) fn of(piece: &'p Piece) -> Option<Self> {
        match &piece.place {
            Place::Object { path, footer } => Some(Self {
                piece,
                path,
                footer: *footer,
            }),
            Place::Tail { .. } => None,
        }
    }

    fn size(&self) -> u32 {
        size_of(self.piece)
    }
}

/// The objects to merge next.
pub(super) fn next_group<'p>(pieces: &'p [Piece], limits: &Limits) -> Option<Vec<Object<'p>>> {
    let years = by_year(pieces);
    let mut wasteful = pieces
        .iter()
        .filter(|piece| piece.dead.len() as i64 * DEAD_SHARE > piece.rows);
    let wasteful = wasteful.find_map(Object::of);
    let sizes: BTreeSet<u32> = years.values().flatten().map(Object::size).collect();
    let groups = || {
        let sizes = sizes.iter();
        sizes.flat_map(|size| years.values().map(move |objects| (*size, objects)))
    };
    // Neighbours of any size come first, together with the small ones among them. Otherwise bodies that leave
    // two large objects and a small one each would have all their small ones merged, across all time.
    groups()
        .find_map(|(size, objects)| neighbours(objects, size, limits))
        .or_else(|| groups().find_map(|(size, objects)| scattered(objects, size, limits)))
        .or_else(|| wasteful.map(|object| vec![object]))
}

/// The objects of each year, in the order of their first starts.
pub(super) fn by_year(pieces: &[Piece]) -> BTreeMap<i32, Vec<Object<'_>>> {
    let mut years: BTreeMap<i32, Vec<Object<'_>>> = BTreeMap::new();
    for object in pieces.iter().filter_map(Object::of) {
        if let Some(year) = year_of(object.piece) {
            years.entry(year).or_default().push(object);
        }
    }
    for objects in years.values_mut() {
        objects.sort_by_key(|object| (object.piece.bounds.min_start, object.piece.id));
    }
    years
}

/// Enough objects of a size with no larger one between them, and the smaller ones among them. The result
/// overlaps nothing in time that none of them did, so objects that follow each other still do.
fn neighbours<'p>(objects: &[Object<'p>], size: u32, limits: &Limits) -> Option<Vec<Object<'p>>> {
    let mut run: Vec<Object<'p>> = Vec::new();
    // How far the run reaches, and how far anything larger has come since.
    let mut reached = Instant::MIN;
    let mut larger: Option<Instant> = None;
    for object in objects {
        let bounds = object.piece.bounds;
        if object.size() > size {
            if bounds.min_start > reached {
                larger = larger.max(Some(bounds.max_start));
            }
            continue;
        }
        if larger.is_some_and(|larger| larger < bounds.min_start) {
            if is_enough(&run, size) {
                break;
            }
            run.clear();
        }
        larger = None;
        run.push(*object);
        reached = reached.max(bounds.max_start);
    }
    let group = as_many_as_fit(run, limits);
    is_enough(&group, size).then_some(group)
}

/// Objects of a size anywhere in time, once there are so many that opening them costs more than reading them
/// interleaved with others.
fn scattered<'p>(objects: &[Object<'p>], size: u32, limits: &Limits) -> Option<Vec<Object<'p>>> {
    let alike: Vec<Object<'p>> = objects
        .iter()
        .filter(|object| object.size() == size)
        .copied()
        .collect();
    if alike.len() < MOST_SCATTERED {
        return None;
    }
    let group = as_many_as_fit(alike, limits);
    is_enough(&group, size).then_some(group)
}

fn is_enough(group: &[Object<'_>], size: u32) -> bool {
    group.iter().filter(|object| object.size() == size).count() >= FEWEST_OBJECTS
}

/// The first of them, as many as one object can hold.
fn as_many_as_fit<'p>(objects: Vec<Object<'p>>, limits: &Limits) -> Vec<Object<'p>> {
    let (mut bytes, mut rows) = (0, 0);
    let fits = |object: &Object<'_>| {
        bytes += object.piece.bytes;
        rows += object.piece.rows;
        bytes <= limits.bytes && rows <= limits.rows
    };
    objects.into_iter().take(limits.inputs).take_while(fits).collect()
}

/// Whether one object can hold all of them.
pub(super) fn fit(objects: &[Object<'_>], limits: &Limits) -> bool {
    as_many_as_fit(objects.to_vec(), limits).len() == objects.len()
}

/// Objects of about one size have the same number.
fn size_of(piece: &Piece) -> u32 {
    let bytes = piece.bytes.max(1).cast_unsigned();
    (bytes / SMALL_BYTES).max(1).ilog(SIZE_FACTOR)
}

/// The year in which all rows of a piece begin.
fn year_of(piece: &Piece) -> Option<i32> {
    let year = |micros: i64| DateTime::from_timestamp_micros(micros).map(|moment| moment.year());
    let (first, last) = (
        year(piece.bounds.min_start.micros())?,
        year(piece.bounds.max_start.micros())?,
    );
    (first == last).then_some(first)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::Bounds;
    use crate::model::ids::PieceId;

    pub(in crate::upkeep) const DAY: i64 = 86_400_000_000;

    /// An object that begins on `day` and covers `days` days.
    pub(in crate::upkeep) fn object(number: u128, day: i64, days: i64, bytes: i64) -> Piece {
        let moment = |day: i64| Instant::from_micros(day * DAY);
        Piece {
            id: PieceId(Uuid::from_u128(number)),
            sequence: 1,
            rows: bytes / 20,
            bounds: Bounds {
                min_start: moment(day),
                max_start: Instant::from_micros((day + days) * DAY - 1),
                max_end: moment(day + days),
            },
            layout_version: 1,
            checksum: 0,
            bytes,
            dead: Arc::new([]),
            created_at: Instant::from_micros(0),
            place: Place::Object {
                path: String::new(),
                footer: Footer {
                    bytes: 0,
                    checksum: 0,
                },
            },
        }
    }

    pub(in crate::upkeep) fn days_of(group: &[Object<'_>]) -> Vec<i64> {
        group
            .iter()
            .map(|object| object.piece.bounds.min_start.micros() / DAY)
            .collect()
    }

    #[test]
    fn nothing_larger_lies_between_objects_that_are_merged() {
        let small = |day| object(day as u128, day, 1, 1 << 20);
        let mut pieces: Vec<Piece> = [0, 1, 2, 50, 51, 52, 53].map(small).into();
        pieces.push(object(1000, 3, 40, 64 << 20));
        let group = next_group(&pieces, &Limits::default()).unwrap();
        assert_eq!(days_of(&group), [50, 51, 52, 53]);
        pieces.truncate(6);
        assert_eq!(
            days_of(&next_group(&pieces, &Limits::default()).unwrap()),
            [0, 1, 2, 50, 51, 52]
        );
    }

    #[test]
    fn smaller_ones_between_them_are_taken_along() {
        let mut pieces: Vec<Piece> = [0, 10, 20, 30]
            .map(|day| object(day as u128, day, 5, 64 << 20))
            .into();
        pieces.push(object(1000, 7, 1, 1 << 10));
        assert_eq!(
            days_of(&next_group(&pieces, &Limits::default()).unwrap()),
            [0, 7, 10, 20, 30]
        );
    }

    #[test]
    fn what_an_orderly_import_leaves_is_merged_in_order() {
        let mut pieces: Vec<Piece> = Vec::new();
        for number in 0..2 * MOST_SCATTERED as i64 {
            let sizes = [280 << 10, 280 << 10, 59 << 10];
            for (part, bytes) in (0..).zip(sizes) {
                let day = number * 3 + part;
                pieces.push(object(day as u128, day, 1, bytes));
            }
        }
        let group = next_group(&pieces, &Limits::default()).unwrap();
        let first: Vec<i64> = (0..group.len() as i64).collect();
        assert_eq!(days_of(&group), first);
    }

    #[test]
    fn very_many_are_merged_wherever_they_lie() {
        let mut pieces: Vec<Piece> = Vec::new();
        for number in 0..MOST_SCATTERED as i64 {
            pieces.push(object(number as u128, number * 10, 1, 1 << 20));
            // Too large to be merged with anything.
            pieces.push(object(1000 + number as u128, number * 10 + 2, 5, 512 << 20));
        }
        let group = next_group(&pieces, &Limits::default()).unwrap();
        assert_eq!(group.len(), MOST_SCATTERED);
        assert!(group.iter().all(|object| object.piece.bytes == 1 << 20));
    }

    proptest! {
        /// Merging continues until nothing is left to do; objects that did not overlap before never overlap
        /// afterwards.
        #[test]
        fn objects_that_follow_each_other_still_do(
            lengths in prop::collection::vec((1_i64..4, 10_u32..26), 1..15),
        ) {
            let mut pieces = Vec::new();
            let mut day = 0;
            for (number, (days, bits)) in lengths.into_iter().enumerate() {
                pieces.push(object(number as u128, day, days, 1 << bits));
                day += days;
            }
            let mut next = 1000;
            while let Some(group) = next_group(&pieces, &Limits::default()) {
                prop_assert!(group.len() >= FEWEST_OBJECTS);
                let bytes = group.iter().map(|object| object.piece.bytes).sum();
                let first = group.first().unwrap().piece.bounds.min_start.micros() / DAY;
                let ends = group.iter().map(|object| object.piece.bounds.max_end.micros() / DAY);
                let last = ends.max().unwrap();
                let merged: Vec<PieceId> = group.iter().map(|object| object.piece.id).collect();
                pieces.retain(|piece| !merged.contains(&piece.id));
                pieces.push(object(next, first, last - first, bytes));
                next += 1;
                pieces.sort_by_key(|piece| piece.bounds.min_start);
                for pair in pieces.windows(2) {
                    prop_assert!(pair[0].bounds.max_start < pair[1].bounds.min_start);
                }
            }
        }
    }
}
