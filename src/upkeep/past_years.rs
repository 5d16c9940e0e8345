//! Merges the objects that compaction left of years that are over, once nobody sends anything.
//!
//! Compaction merges objects of one size, so that a row is written a handful of times however many come after
//! it. A year that is over then stays in objects of every size, half a dozen or more, and every search for
//! ids and every question about that year opens each of them. While somebody sends records, that is as it
//! should be; afterwards one more rewrite ends it for good. Knows when pieces were made; what they hold is
//! known to the code that merges them.

use std::time::Duration;

use chrono::{DateTime, Datelike as _};

use super::choose_objects::{Limits, Object, by_year, fit};
use super::compact::{RewriteOutcome, compact, merge_group};
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::Piece;
use crate::model::time::Instant;
use crate::store::StoreError;

/// Nobody sends anything if all pieces are at least this old.
const QUIET_TIME: Duration = Duration::from_secs(3);
/// The largest of the merged objects has at most this many times the bytes of the others together, so that a
/// row is only rewritten into an object at least half as large again.
const LARGEST_RATIO: i64 = 2;

/// The result of looking for something to merge in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    Some,
    /// There is something, but not yet, or others were faster.
    Later,
    Nothing,
}

/// Compacts; where there is nothing to compact, merges what is left of one year that is over.
pub async fn compact_or_merge_past_year(
    stores: &UpkeepStores,
    key: &PartitionKey,
    limits: &Limits,
) -> Result<MergeOutcome, StoreError> {
    let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
    match compact(stores, key, &pieces, limits).await? {
        RewriteOutcome::Done => return Ok(MergeOutcome::Some),
        // What was read of the partition is outdated.
        RewriteOutcome::Overtaken => return Ok(MergeOutcome::Later),
        RewriteOutcome::Nothing => {}
    }
    let now = stores.catalog.now().await?;
    let Some(group) = past_group(&pieces, now, limits) else {
        return Ok(MergeOutcome::Nothing);
    };
    if !is_quiet(&pieces, now) {
        return Ok(MergeOutcome::Later);
    }
    // Objects that do not fit into memory side by side are left out, and the rest may not be worth it.
    let merged = merge_group(stores, key, group, limits, is_worth_it).await?;
    Ok(match merged {
        RewriteOutcome::Done => MergeOutcome::Some,
        RewriteOutcome::Overtaken => MergeOutcome::Later,
        RewriteOutcome::Nothing => MergeOutcome::Nothing,
    })
}

/// Creation times far in the future, from a wrong clock, do not matter.
fn is_quiet(pieces: &[Piece], now: Instant) -> bool {
    let age = |piece: &Piece| now.micros().abs_diff(piece.created_at.micros());
    pieces
        .iter()
        .all(|piece| u128::from(age(piece)) >= QUIET_TIME.as_micros())
}

/// The year that goes on at a moment; those before it are over.
#[must_use]
pub fn year_at(now: Instant) -> Option<i32> {
    DateTime::from_timestamp_micros(now.micros()).map(|moment| moment.year())
}

/// The objects to merge of a year that is over.
fn past_group<'p>(pieces: &'p [Piece], now: Instant, limits: &Limits) -> Option<Vec<Object<'p>>> {
    let this_year = year_at(now)?;
    let years = by_year(pieces);
    let mut past = years.range(..this_year);
    past.find_map(|(_, objects)| worth_merging(objects, limits))
}

/// Neighbours of a year that may be merged, as many as possible. If the largest is too large for the others,
/// it is left out, and those before it and those after it are tried separately.
fn worth_merging<'p>(objects: &[Object<'p>], limits: &Limits) -> Option<Vec<Object<'p>>> {
    let mut left = vec![objects];
    while let Some(objects) = left.pop() {
        if fit(objects, limits) && is_worth_it(objects) {
            return Some(objects.to_vec());
        }
        let numbered = objects.iter().enumerate();
        let largest = numbered.max_by_key(|(_, object)| object.bytes());
        if let Some((largest, _)) = largest.filter(|_| objects.len() > 2) {
            left.extend(objects.get(largest + 1..));
            left.extend(objects.get(..largest));
        }
    }
    None
}

fn is_worth_it(group: &[Object<'_>]) -> bool {
    let all: i64 = group.iter().map(Object::bytes).sum();
    let largest = group.iter().map(Object::bytes).max().unwrap_or(0);
    group.len() > 1 && largest <= (all - largest).saturating_mul(LARGEST_RATIO)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::choose_objects::tests::{DAY, days_of, object};
    use super::*;
    use crate::model::ids::PieceId;

    const MIB: i64 = 1 << 20;

    /// A moment at which 1970, in which these objects lie, is over.
    fn next_year() -> Instant {
        Instant::from_micros(400 * DAY)
    }

    /// Objects that follow each other from the first of January on, with these sizes in MiB.
    fn year(sizes: &[i64]) -> Vec<Piece> {
        let numbered = (0..).zip(sizes);
        let pieces = numbered.map(|(number, size)| object(number as u128, number * 10, 10, size * MIB));
        pieces.collect()
    }

    #[test]
    fn all_of_a_year_that_is_over_becomes_one() {
        let pieces = year(&[52, 15, 1, 6, 6, 1]);
        let group = past_group(&pieces, next_year(), &Limits::default()).unwrap();
        assert_eq!(days_of(&group), [0, 10, 20, 30, 40, 50]);
    }

    #[test]
    fn a_year_that_goes_on_stays_as_it_is() {
        let pieces = year(&[52, 15, 1, 6, 6, 1]);
        let new_years_eve = Instant::from_micros(364 * DAY);
        assert!(past_group(&pieces, new_years_eve, &Limits::default()).is_none());
    }

    #[test]
    fn little_does_not_have_much_written_again() {
        let pieces = year(&[2, 80, 1, 3]);
        let group = past_group(&pieces, next_year(), &Limits::default());
        assert!(group.is_none(), "the last is too large for the one before it");
        let pieces = year(&[2, 1, 80, 1, 2]);
        let group = past_group(&pieces, next_year(), &Limits::default()).unwrap();
        assert_eq!(days_of(&group), [0, 10]);
    }

    #[test]
    fn what_one_object_cannot_take_in_stays_apart() {
        let pieces = year(&[400, 100, 100]);
        let group = past_group(&pieces, next_year(), &Limits::default()).unwrap();
        assert_eq!(days_of(&group), [10, 20]);
    }

    #[test]
    fn nothing_is_done_while_somebody_sends_records() {
        let mut pieces = year(&[2, 2]);
        for (seconds, quiet) in [(-9, true), (-2, false), (0, false), (2, false), (3, true)] {
            pieces[1].created_at = Instant::from_micros(next_year().micros() - seconds * 1_000_000);
            assert_eq!(is_quiet(&pieces, next_year()), quiet, "{seconds} s ago");
        }
    }

    proptest! {
        /// Merging continues until nothing is left to do; an object is only rewritten into one half as large
        /// again, and objects that did not overlap before never overlap afterwards.
        #[test]
        fn rows_are_written_again_only_where_much_is_gained(
            sizes in prop::collection::vec(1_i64..2_000, 1..30),
        ) {
            let mut pieces = year(&sizes);
            for piece in &mut pieces {
                piece.bytes /= 64;
            }
            let mut next = 1000;
            while let Some(group) = past_group(&pieces, next_year(), &Limits::default()) {
                let bytes: i64 = group.iter().map(Object::bytes).sum();
                prop_assert!(group.iter().all(|object| object.bytes() * 3 <= bytes * 2));
                let merged: Vec<PieceId> = group.iter().map(|object| object.piece.id).collect();
                let first = days_of(&group)[0];
                let days = 10 * group.len() as i64;
                let ends = pieces.iter().filter(|piece| merged.contains(&piece.id));
                let ends = ends.map(|piece| piece.bounds.max_end.micros() / DAY).max().unwrap();
                pieces.retain(|piece| !merged.contains(&piece.id));
                prop_assert!(ends - first >= days);
                pieces.push(object(next, first, ends - first, bytes));
                next += 1;
                pieces.sort_by_key(|piece| piece.bounds.min_start);
                for pair in pieces.windows(2) {
                    prop_assert!(pair[0].bounds.max_start < pair[1].bounds.min_start);
                }
            }
        }
    }
}
